/** Small conversations for the tests of the summariser. */
import type { SourceLine, SourcePart } from "../../src/summarize/source.ts";

export const estimate = (text: string): number => Math.ceil(text.length / 4);

const START = Date.UTC(2026, 1, 14, 11, 0);
let counter = 0;

export function say(role: string, text: string, minute: number, speaker?: string): SourceLine {
  counter++;
  const base = { id: `msg_${counter}`, kind: "message" as const, role, at: START + minute * 60_000, text };
  return speaker === undefined ? base : { ...base, speaker };
}

export function act(toolName: string, args: Record<string, unknown>, minute: number): SourceLine {
  const text = [toolName, ...Object.entries(args).map(([key, value]) => `${key}: ${String(value)}`)].join(
    "\n",
  );
  return withParts("assistant", [{ type: "tool_call", toolName, text }], minute);
}

export function answer(text: string, minute: number, isError = false): SourceLine {
  return withParts("tool", [{ type: "tool_result", text, isError }], minute);
}

export function withParts(role: string, parts: SourcePart[], minute: number): SourceLine {
  counter++;
  return {
    id: `msg_${counter}`,
    kind: "message",
    role,
    at: START + minute * 60_000,
    text: parts.map((part) => part.text).join("\n"),
    parts,
  };
}

export function summary(text: string, minute: number): SourceLine {
  counter++;
  return { id: `sum_${counter}`, kind: "summary", role: "summary", at: START + minute * 60_000, text };
}

const CHATTER = [
  "Sounds good to me, thanks a lot!",
  "Great, let me have a look at that now.",
  "Okay, nice. Hope you had a good weekend.",
  "Sure, no problem at all.",
];

const LOG = Array.from(
  { length: 120 },
  (_, i) => `  at step ${i}: copied object into the cache folder, nothing to report`,
).join("\n");

/** An agent at work on a retry bug, with chatter and bulk output around what matters. */
export function workSession(rounds = 12): SourceLine[] {
  const lines: SourceLine[] = [
    say(
      "user",
      "Please fix the flaky upload in src/upload/retry.ts before the release on 2026-03-01.",
      0,
      "Mira",
    ),
    say("assistant", "Let me look at the code first.", 0),
    act("read", { path: "src/upload/retry.ts" }, 1),
    answer(`export function retryUpload(job: UploadJob) {\n${LOG}\n}`, 1),
    say("assistant", "The root cause is that `retryUpload` never resets `backoffMs` after a success.", 2),
    say("user", "We decided to keep at most 5 attempts; never retry on HTTP 409.", 3, "Mira"),
    act("edit", { path: "src/upload/retry.ts", old_string: "MAX = 9", new_string: "MAX_ATTEMPTS = 5" }, 4),
    answer("The file has been updated successfully.", 4),
    act("exec", { command: "npm test -- upload" }, 5),
    answer(`${LOG}\nError: expected 5 attempts, received 6\nTests: 1 failed, 41 passed`, 5),
  ];
  for (let i = 0; i < rounds; i++) {
    lines.push(say("user", CHATTER[i % CHATTER.length] as string, 10 + i, "Mira"));
    lines.push(say("assistant", CHATTER[(i + 1) % CHATTER.length] as string, 10 + i));
    lines.push(act("exec", { command: `cat logs/part-${i}.log` }, 10 + i), answer(LOG, 10 + i));
  }
  lines.push(
    say("assistant", "Open question: should `backoffMs` be configurable in config/upload.json?", 40),
  );
  lines.push(say("user", "Yes, add it as `upload.backoffMs` with a default of 250.", 41, "Mira"));
  return lines;
}
