/** Every real file, whatever agent wrote it: imported, or named with the reason; twice imported, nothing new. */

import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { expect, test } from "vitest";

import { importPaths, importTranscript, type ImportResult } from "../src/transcript/import.ts";

import { openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { listForeignTranscripts, listRealTranscripts } from "./support.ts";

const others = listForeignTranscripts();

/** Files that are no session by themselves. */
const NAMED: readonly [RegExp, RegExp][] = [
  [/opencode__storage_v2__part__m_assistant_small__002/u, /no known format/u],
  [/opencode__storage/u, /OpenCode storage folder/u],
  [/grok__subagent__summary\.json$/u, /holds no messages/u],
  [/qwen__019f0000-0000-7000-8000-000000000005\.jsonl$/u, /its first line is not a JSON object/u],
];

test.skipIf(others.length === 0)(
  "imports or names every real file, and a second import adds nothing (skipped without shared data)",
  async () => {
    const engine = await openTestEngine();
    const paths = [...others, ...listRealTranscripts().filter((path) => path.includes("other-agents"))];
    for (const path of paths) {
      const outcome = await importTranscript({ engine, path }).catch((error: Error) => error);
      const reason = NAMED.find(([name]) => name.test(path))?.[1];
      if (outcome instanceof Error || reason !== undefined) {
        expect([basename(path), (outcome as Error).message]).toEqual([
          basename(path),
          expect.stringMatching(reason ?? /never/u),
        ]);
        continue;
      }
      expect([basename(path), outcome.imported > 0]).toEqual([basename(path), true]);
      const again = await importTranscript({ engine, path });
      expect([basename(path), again.imported, again.revisions]).toEqual([basename(path), 0, 0]);
      expect(again.skipped).toBe(outcome.imported + outcome.skipped);
    }
    expect((await engine.verify()).problems).toEqual([]);
  },
);

test.skipIf(others.length === 0)(
  "keeps each message of a document as the bytes it has there (skipped without shared data)",
  async () => {
    const engine = await openTestEngine();
    for (const path of others.filter((name) => /\.traj$|hermes__|gemini-cli\//u.test(name))) {
      const source = readFileSync(path, "latin1");
      const report = await importTranscript({ engine, path });
      const document = JSON.parse(readFileSync(path, "utf8")) as {
        messages?: unknown[];
        history?: unknown[];
      };
      const messages = document.messages ?? document.history ?? [];
      const [frame, ...lines] = await readStoredLines(engine, report.conversationId);
      expect(lines.map((line) => JSON.parse(Buffer.from(line.text, "latin1").toString()))).toEqual(messages);
      for (const { text } of lines) expect(source).toContain(text);
      expect(frame).toMatchObject({ eventId: "document", hidden: "meta" });
      if (/hermes|\.traj/u.test(path))
        expect(lines.some((line) => line.hidden === "" && line.role === "assistant")).toBe(true);
    }
  },
);

test.skipIf(others.length === 0)(
  "puts the files of an OpenCode folder together (skipped without shared data)",
  async () => {
    const folder = makeTemporaryDirectory();
    for (const path of others.filter((name) => name.includes("opencode__storage"))) {
      const target = join(folder, ...basename(path).split("__"));
      mkdirSync(dirname(target), { recursive: true });
      cpSync(path, target);
    }
    const engine = await openTestEngine();
    const reports: ImportResult[] = [];
    const summary = await importPaths({
      engine,
      paths: [folder],
      onReport: (report) => reports.push(report),
    });
    expect(reports.map((report) => report.format)).toEqual(["opencode", "opencode"]);
    expect(summary.conversations).toBe(3);
    // Three parts name messages that the sample does not hold.
    expect(
      summary.problems.every((problem) =>
        /its message m_assistant_\w+ is not in the folder/u.test(problem.message),
      ),
    ).toBe(true);
    const { conversationId } =
      (await engine.listConversations({ sessionKey: "opencode:s_stage0_drift", limit: 1 })).items[0] ?? {};
    const [message] = await readStoredLines(engine, conversationId ?? 0);
    expect(message).toMatchObject({ role: "assistant", hidden: "", eventId: "m_assistant_drift" });
    expect(message?.text).toContain('"parts":[{"messageID":"m_assistant_drift"');
    const again = await importPaths({ engine, paths: [folder] });
    expect(again.imported).toBe(0);
    expect((await engine.verify()).problems).toEqual([]);
  },
);

test.skipIf(others.length === 0)(
  "makes each task of a benchmark file a session of its own (skipped without shared data)",
  async () => {
    const engine = await openTestEngine();
    const path = others.find((name) => name.includes("tau-bench")) ?? "";
    const report = await importTranscript({ engine, path });
    expect(report.conversationIds).toHaveLength(100);
    expect(report.problems).toEqual([]);
  },
);
