/** The same large content, told of in different ways: as a named table, as plain text, twice in one message, in two conversations. */
import { readdirSync } from "node:fs";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";

const table = Array.from({ length: 9000 }, (_, row) => `row ${row},"Value ${row * 7}",${row % 13}`).join(
  "\n",
);
const pasted = `Look:\n<file name="stock.csv" mime="text/csv">\n${table}\n</file>`;
const asFile = { role: "user", content: [{ type: "text", text: pasted }] };
const asOutput = {
  role: "toolResult",
  toolCallId: "c1",
  toolName: "read",
  content: [{ type: "text", text: table }],
};
const asBoth = { role: "user", content: [{ type: "text", text: pasted }], copy: { stdout: table } };

async function withEngine(work: (engine: Engine, filesDir: string) => Promise<void>): Promise<void> {
  using folder = makeTemporaryFolder();
  const filesDir = folder.file("files");
  const engine = await openEngine({ database: folder.file("lcm.db"), filesDir, thread: false });
  try {
    await work(engine, filesDir);
    expect((await engine.verify()).problems).toEqual([]);
    // Built anew, the index is the one that was written at first.
    await engine.reindex();
    expect((await engine.verify()).problems).toEqual([]);
  } finally {
    await engine.close();
  }
}

const sessionOf = (name: string) => ({ key: `agent:main:${name}`, id: name, owner: "main" });

test.for([
  ["a file, then a tool that reads it", [asFile, asOutput]],
  ["a tool that reads it, then the file", [asOutput, asFile]],
  ["both in one message", [asBoth]],
  ["both in one message, after a tool", [asOutput, asBoth]],
] as const)("%s: proven, and on the disk once", async ([, messages]) => {
  await withEngine(async (engine, filesDir) => {
    for (const message of messages)
      await engine.ingest({ session: sessionOf("one"), messages: [{ message }] });
    expect(
      readdirSync(filesDir, { recursive: true }).filter((name) => /file_/.test(String(name))),
    ).toHaveLength(1);
  });
});

test("a conversation is copied in front of one that has the content under another name", async () => {
  await withEngine(async (engine) => {
    const filler = Array.from({ length: 40 }, (_, i) => ({
      message: { role: "user", content: `line ${i}` },
    }));
    const messages = [{ message: asFile }, ...filler, { message: asBoth }];
    const from = await engine.ingest({ session: sessionOf("from"), messages });
    await engine.compact({ conversationId: from.conversationId, budgetTokens: 500, force: true });
    const to = await engine.ingest({ session: sessionOf("to"), messages: [{ message: asOutput }] });
    await engine.transplant({ from: from.conversationId, to: to.conversationId, dryRun: false });
  });
});
