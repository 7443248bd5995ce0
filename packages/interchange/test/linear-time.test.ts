/** Time grows with what is imported, not with its square: a long line, many lines, and documents, in every format. */
import { writeFileSync } from "node:fs";
import { must } from "@lossless/core/adapter";
import { makeTemporaryFolder } from "@lossless/testkit";
import { attempt, listSlow } from "@lossless/testkit/linear-time.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { afterAll, describe, expect, test } from "vitest";
import { parseRecord } from "../src/archive/archive-records.ts";
import { readDocument } from "../src/formats/documents.ts";
import { parseLine } from "../src/formats/format.ts";
import type { TranscriptFormat } from "../src/formats/format.ts";
import { parseCursor } from "../src/transcript/cursor.ts";
import { LINE_FORMATS } from "../src/transcript/detect.ts";
import { importTranscript } from "../src/transcript/import.ts";
import { MemoryTarget } from "./support.ts";

const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

async function importFile(name: string, content: string): Promise<unknown> {
  const path = folder.file(name);
  writeFileSync(path, content);
  // Refused is as good: it must be so soon.
  return importTranscript({ engine: new MemoryTarget(), path }).catch(() => null);
}

/** The first line of each format, and one with a text of somebody. */
const LINES: Readonly<Record<string, readonly [head: object, line: (text: string) => object]>> = {
  "claude-code": [
    {
      type: "user",
      uuid: "u",
      parentUuid: null,
      isSidechain: false,
      sessionId: "s",
      message: { role: "user" },
    },
    (text) => ({
      type: "user",
      parentUuid: text,
      sessionId: "s",
      isSidechain: false,
      message: { role: "user", content: text },
    }),
  ],
  pi: [
    { type: "session", version: 3, id: "s" },
    (text) => ({ type: "message", id: text, parentId: text, message: { role: "user", content: text } }),
  ],
  codex: [
    { type: "session_meta", payload: { id: "s" } },
    (text) => ({ type: "response_item", payload: { type: "function_call", arguments: text } }),
  ],
  "gemini-cli": [
    { sessionId: "s", projectHash: "p" },
    (text) => ({ id: text, type: "user", content: text, $rewindTo: text }),
  ],
  qwen: [
    { uuid: "1", parentUuid: null, sessionId: "s", message: { role: "user" } },
    (text) => ({ uuid: text, parentUuid: "1", sessionId: "s", message: { role: "user", parts: [{ text }] } }),
  ],
  droid: [
    { type: "session_start", id: "s" },
    (text) => ({ type: "message", id: text, message: { role: "user", content: text } }),
  ],
  copilot: [
    { type: "session.start", data: { sessionId: "s" } },
    (text) => ({ type: text, data: { content: text } }),
  ],
  kimi: [
    { type: "metadata", protocol_version: "1" },
    (text) => ({ type: "context.append_user", time: text, content: text }),
  ],
  cursor: [
    { role: "user", message: { content: "x" } },
    (text) => ({ role: text, message: { content: [{ type: "text", text }] } }),
  ],
  antigravity: [
    { step_index: 1, source: "USER", content: "x" },
    (text) => ({ step_index: 2, source: text, created_at: text, content: text, thinking: text }),
  ],
  grok: [{ type: "user", content: "x" }, (text) => ({ type: "assistant", id: text, content: text })],
  openai: [{ role: "user", content: "x" }, (text) => ({ role: "user", content: text })],
};

/** Members that say something of a line's time, its place and its origin, in one format or another. */
const TELLING =
  "timestamp time created_at cwd gitBranch version title sessionTitle aiTitle summary model parent_id".split(
    " ",
  );

/** Asks the reader of a format everything about a line that has the text wherever it can. */
function readByFormat(format: TranscriptFormat, text: string): unknown {
  const told = Object.fromEntries(TELLING.map((name) => [name, text]));
  const line = { ...told, ...must(LINES[format.name], format.name)[1](text) };
  const parsed = parseLine(Buffer.from(JSON.stringify(line)));
  if (parsed.kind !== "entry") throw new Error("a line cannot be read");
  const { entry } = parsed;
  return [
    format.recognise(entry),
    format.readSession(entry),
    format.readFacts(entry, { isSubAgent: false }),
    format.readOrigin?.(entry),
  ];
}

/** What a line says matters for long ones, how many there are for short ones. */
const LONG = { motifs: isSoak ? 8 : 2 };
const MANY = { size: isSoak ? 60_000 : 20_000, motifs: isSoak ? 2 : 1 };
/** Characters of a short line. */
const SHORT = 60;

describe("eight times the transcript takes about eight times as long", () => {
  test("every format has its lines here", () => {
    expect(Object.keys(LINES).toSorted()).toEqual(LINE_FORMATS.map(({ name }) => name).toSorted());
  });

  test.each(LINE_FORMATS)("the reader of a line of $name", async (format) => {
    expect(await listSlow((text) => readByFormat(format, text))).toEqual([]);
  });

  test.each(Object.entries(LINES))("one long line of %s", async (name, [head, line]) => {
    const slow = await listSlow(
      (text) => importFile(`${name}.jsonl`, `${JSON.stringify(head)}\n${JSON.stringify(line(text))}\n`),
      LONG,
    );
    expect(slow).toEqual([]);
  });

  test.each(Object.entries(LINES))("many lines of %s", async (name, [head, line]) => {
    const slow = await listSlow((text) => {
      const count = Math.ceil(text.length / SHORT);
      const lines = Array.from({ length: count }, (_, at) => line(text.slice(at * SHORT, (at + 1) * SHORT)));
      return importFile(
        `${name}.jsonl`,
        [head, ...lines].map((each) => `${JSON.stringify(each)}\n`).join(""),
      );
    }, MANY);
    expect(slow).toEqual([]);
  });

  test.each(
    Object.entries({
      "lines that are nothing": (text: string) => importFile("a.jsonl", text),
      "a file that is nothing": (text: string) => importFile("a.json", text),
      "a document": (text: string) =>
        readAll(
          `{"messages":[{"role":"user","content":${JSON.stringify(text)}}],"a":${JSON.stringify(text)}}`,
        ),
      "a document of many messages": (text: string) =>
        readAll(`[${'{"role":"user"},'.repeat(text.length / 20)}{"role":"user"}]`),
      "a record of an archive": (text: string) =>
        attempt(() =>
          parseRecord(Buffer.from(JSON.stringify({ record: "message", eventId: text, body: text })), 1),
        ),
      "a record that is nothing": (text: string) => attempt(() => parseRecord(Buffer.from(text), 1)),
      "a cursor": (text: string) => attempt(() => parseCursor(text)),
    }),
  )("%s", async (_name, read) => {
    expect(await listSlow(read, LONG)).toEqual([]);
  });
});

const readAll = (text: string): unknown =>
  attempt(() => [...readDocument(Buffer.from(text), "a.json").messages()]);
