/** The engine names the next step; only doors know commands, flags and tools. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { deserializeError, serializeError } from "../../src/engine/thread-messages.ts";
import { EngineError, hintFor } from "../../src/model/errors.ts";
import { LIBRARY_WORDS, wordNote, wordStep, type NextStep } from "../../src/model/next-step.ts";
import { TOOL_WORDS } from "../../src/tools/tool-words.ts";

const CORE = fileURLToPath(new URL("../../src", import.meta.url));
/** A command, a flag or a tool of one door. */
const DOOR_WORDS = /\blcm [a-z]|(?:^|\s)--[a-z]|\blcm_[a-z]+/;

test("no hint in core names a command, a flag or a tool", () => {
  const sources = readdirSync(CORE, { recursive: true, encoding: "utf8" }).filter(
    // The tools are a door themselves.
    (file) => file.endsWith(".ts") && !file.startsWith("tools"),
  );
  const found = sources.flatMap((file) =>
    [...readFileSync(join(CORE, file), "utf8").matchAll(/\bhint:\s*([^\n]*)/g)]
      .map((match) => match[1] ?? "")
      .filter((hint) => DOOR_WORDS.test(hint.replace(/^["'`]/, "")))
      .map((hint) => `${file}: ${hint}`),
  );
  expect(sources.length).toBeGreaterThan(100);
  expect(found).toEqual([]);
});

test("each door words a step for itself", () => {
  const step: NextStep = { kind: "open_ids", ids: ["msg_3..msg_9", "sum_0123456789abcdef"] };
  const error = new EngineError("usage", "cannot expand", { step });
  expect(error.hint).toBe("open msg_3..msg_9, then sum_0123456789abcdef with describe");
  expect(hintFor(error, TOOL_WORDS)).toBe("open msg_3..msg_9, then sum_0123456789abcdef with lcm_describe");
  expect(hintFor(new EngineError("usage", "cannot", { hint: "free some space" }), TOOL_WORDS)).toBe(
    "free some space",
  );
  for (const kind of Object.keys(LIBRARY_WORDS)) expect(Object.keys(TOOL_WORDS)).toContain(kind);
  expect(wordStep({ kind: "expand_granted", ids: ["sum_0123456789abcdef"] }, TOOL_WORDS)).toMatch(
    /^call lcm_expand with summaryIds \["sum_0123456789abcdef"\]/,
  );
});

test("a note ends with its step as a sentence", () => {
  const note = { text: "This looks like a regular expression.", step: { kind: "search_regex" } } as const;
  expect(wordNote(note, LIBRARY_WORDS)).toBe(
    'This looks like a regular expression. Use mode "regex" to match it as written.',
  );
});

test("an error keeps its code, cause of failure and step across a thread", () => {
  const sent = new EngineError("not_found", "cannot find", { step: { kind: "list", what: "backups" } });
  const received = deserializeError(structuredClone(serializeError(sent)));
  expect(received).toBeInstanceOf(EngineError);
  expect(received).toMatchObject({
    code: "not_found",
    message: "cannot find",
    step: sent.step,
    hint: sent.hint,
  });
});
