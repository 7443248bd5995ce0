/** The real files of other agents, imported: who says what is shown, found by search, proven, and sent on as a provider takes it. */
import { basename } from "node:path";
import { expect, test } from "vitest";
import { importTranscript } from "../src/transcript/import.ts";
import { openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { listForeignTranscripts } from "./support.ts";

interface Expected {
  readonly file: RegExp;
  /** Shown messages by role. */
  readonly shown: Readonly<Record<string, number>>;
  /** Words, and the role of the message that has them. */
  readonly words: readonly (readonly [string, string])[];
}

const FILES: readonly Expected[] = [
  {
    file: /gemini-cli\/ab-/u,
    shown: { user: 1, assistant: 11 },
    words: [
      ["creates a color file", "user"],
      ["Considering Color Documentation Format", "assistant"],
    ],
  },
  {
    file: /gemini__jsonl_v040/u,
    shown: { user: 1, assistant: 2 },
    words: [
      ["AgentSessions README", "assistant"],
      ["Hello listed the files", "assistant"],
    ],
  },
  { file: /gemini__schema_drift/u, shown: { user: 1, assistant: 1 }, words: [["looks like", "assistant"]] },
  {
    file: /copilot__subdir/u,
    shown: { user: 1, assistant: 2, tool: 1 },
    words: [
      ["List the files", "user"],
      ["directory contains file1", "assistant"],
    ],
  },
  { file: /copilot__schema/u, shown: { assistant: 2, tool: 2 }, words: [["exit code", "tool"]] },
  {
    file: /grok__chat/u,
    shown: { system: 1, user: 3, assistant: 5, tool: 2 },
    words: [
      ["released by xAI", "system"],
      ["summarize what it prints", "user"],
      ["web_search builtin", "assistant"],
    ],
  },
  {
    file: /antigravity/u,
    shown: { user: 1, assistant: 1, tool: 1 },
    words: [["opened example.com", "tool"]],
  },
  {
    file: /kimi__assistant_tools/u,
    shown: { user: 13, assistant: 47, tool: 19 },
    words: [
      ["three hi messages greeting", "assistant"],
      ["No such file or directory", "tool"],
    ],
  },
  { file: /cursor__schema/u, shown: { user: 1, assistant: 2, tool: 1 }, words: [["Compile failed", "tool"]] },
  {
    file: /droid__stream/u,
    shown: { user: 1, assistant: 1, tool: 1 },
    words: [["non-existent-directory", "tool"]],
  },
];

const paths = listForeignTranscripts();

test.skipIf(paths.length === 0).each(FILES)(
  "shows the messages of $file with their roles (skipped without shared data)",
  async ({ file, shown, words }) => {
    const path = paths.find((name) => file.test(name)) ?? "";
    const engine = await openTestEngine();
    const { conversationId, problems } = await importTranscript({ engine, path });
    expect([basename(path), problems]).toEqual([basename(path), []]);
    const lines = (await readStoredLines(engine, conversationId)).filter(({ hidden }) => hidden === "");
    const roles = Map.groupBy(lines, ({ role }) => role);
    expect(Object.fromEntries([...roles].map(([role, list]) => [role, list.length]))).toEqual(shown);
    for (const [query, role] of words) {
      const { hits } = await engine.search({ query, limit: 5 });
      expect([query, hits.map((hit) => hit.role)]).toEqual([query, expect.arrayContaining([role])]);
    }
    const context = await engine.assemble({ conversationId: conversationId ?? 0, budgetTokens: 100_000 });
    expect(context?.messages.length).toBeGreaterThan(0);
    for (const message of context?.messages ?? [])
      if (message.role === "toolResult") expect(message.toolCallId).not.toBe("");
    expect((await engine.verify()).problems).toEqual([]);
  },
);
