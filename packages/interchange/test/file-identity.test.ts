import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { importTranscript, type ImportOptions, type ImportResult } from "../src/transcript/import.ts";

import { openTestEngine } from "@lossless/testkit/session-archive.ts";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { listRealTranscripts } from "./support.ts";

type Engine = Awaited<ReturnType<typeof openTestEngine>>;

const toLine = (entry: object): string => `${JSON.stringify(entry)}\n`;

/** A Claude Code file whose first lines say nothing of their session. */
function writeSession(unnamed: number, named: number): string[] {
  const headers = Array.from({ length: unnamed }, (_, index) =>
    toLine({ type: "summary", summary: `part ${index}`, leafUuid: `leaf-${index}` }),
  );
  const rows = Array.from({ length: named }, (_, index) =>
    toLine({
      uuid: `u${index}`,
      parentUuid: index === 0 ? null : `u${index - 1}`,
      isSidechain: false,
      sessionId: "the-session",
      type: index % 2 === 0 ? "user" : "assistant",
      message: { role: index % 2 === 0 ? "user" : "assistant", content: `line ${index}` },
      timestamp: `2026-01-01T00:00:${String(index % 60).padStart(2, "0")}.000Z`,
    }),
  );
  return [...headers, ...rows];
}

async function expectStored(engine: Engine, lines: number): Promise<void> {
  const report = await engine.verify();
  expect(report.problems).toEqual([]);
  expect(report.messages).toBe(lines);
}

class Desk {
  readonly folder = makeTemporaryDirectory();
  readonly engine: Engine;
  readonly #lines: readonly string[];

  constructor(engine: Engine, lines: readonly string[]) {
    this.engine = engine;
    this.#lines = lines;
  }

  /** Writes the first lines of the file, and imports it. */
  async look(name: string, count: number): Promise<ImportResult> {
    const path = join(this.folder, name);
    writeFileSync(path, this.#lines.slice(0, count).join(""));
    return importTranscript({ engine: this.engine, path });
  }
}

describe("the session of a file", () => {
  const generated = { name: "generated", lines: writeSession(2, 49) };
  const real = listRealTranscripts()
    .filter((path) => /claude-code\//u.test(path))
    .map((path) => ({ name: basename(path), lines: readFileSync(path, "utf8").split(/(?<=\n)/u) }))
    .filter(({ lines }) => lines.length > 3 && lines.length < 200 && !lines[0]?.includes('"sessionId"'))
    .slice(0, 2);

  test.each([generated, ...real])(
    "stays the same when the file is cut to its first line and restored ($name)",
    async ({ lines }) => {
      const desk = new Desk(await openTestEngine(), lines);
      const { sessionId } = await desk.look("a.jsonl", lines.length);
      expect(await desk.look("a.jsonl", 1)).toMatchObject({ sessionId, imported: 0, revisions: 0 });
      expect(await desk.look("a.jsonl", lines.length)).toMatchObject({ imported: 0, revisions: 0 });
      await expectStored(desk.engine, lines.length);
    },
  );

  test.each([generated, ...real])(
    "is the one a line names, also if the first import saw none, and a renamed copy adds nothing ($name)",
    async ({ lines }) => {
      const desk = new Desk(await openTestEngine(), lines);
      expect(await desk.look("a.jsonl", 1)).toMatchObject({ sessionId: expect.stringMatching(/^file:/u) });
      await desk.look("a.jsonl", lines.length - 1);
      await desk.look("a.jsonl", lines.length);
      expect(await desk.look("copy.jsonl", lines.length)).toMatchObject({ imported: 0, revisions: 0 });
      await expectStored(desk.engine, lines.length);
    },
  );

  test("is the path's own where the lines name none and the first is the same", async () => {
    const lines = writeSession(1, 5);
    const desk = new Desk(await openTestEngine(), lines);
    const { sessionId } = await desk.look("a.jsonl", lines.length);
    const path = join(desk.folder, "a.jsonl");
    writeFileSync(path, `${lines[0]}${toLine({ type: "summary", summary: "new", leafUuid: "other" })}`);
    expect(await importTranscript({ engine: desk.engine, path })).toMatchObject({ sessionId, imported: 1 });
    await expectStored(desk.engine, lines.length + 1);
  });

  test("is not shared by files that only begin alike, where no line ever names one", async () => {
    const engine = await openTestEngine();
    const folder = makeTemporaryDirectory();
    const start = toLine({ type: "metadata", protocol_version: "1" });
    for (const name of ["a.jsonl", "b.jsonl"]) {
      writeFileSync(join(folder, name), start + toLine({ type: "context.append_message", text: name }));
      expect(await importTranscript({ engine, path: join(folder, name) })).toMatchObject({ imported: 2 });
    }
    expect(await engine.verify()).toMatchObject({ ok: true, conversations: 2, messages: 4 });
  });

  test("tells files apart that begin alike and name their sessions later", async () => {
    const engine = await openTestEngine();
    const lines = writeSession(1, 3);
    const other = lines.map((line) => line.replaceAll("the-session", "another").replaceAll('"u', '"v'));
    const [first, second] = [new Desk(engine, lines), new Desk(engine, other)];
    await first.look("x.jsonl", 1);
    await second.look("x.jsonl", 1);
    expect(await first.look("x.jsonl", 4)).toMatchObject({ sessionId: "the-session" });
    expect(await second.look("x.jsonl", 4)).toMatchObject({ sessionId: "another", imported: 4 });
    await expectStored(engine, 8);
  });

  const step = fc.record({
    kind: fc.constantFrom("look", "rename", "copy"),
    file: fc.nat(2),
    to: fc.nat(2),
    part: fc.oneof(fc.constantFrom(1, 2, 3), fc.nat(12)),
    isOpen: fc.boolean(),
  });

  test("each line is stored once after any sequence of cuts, growths, renames and copies", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), fc.nat(3), async (steps, unnamed) => {
        const lines = writeSession(unnamed, 6);
        const engine = await openTestEngine();
        const desk = new Desk(engine, lines);
        mkdirSync(join(desk.folder, "sub"));
        const names = ["a.jsonl", "b.jsonl", join("sub", "a.jsonl")].map((name) => join(desk.folder, name));
        const present = new Map<string, string>();
        for (const { kind, file, to, part, isOpen } of steps) {
          const [path, target] = [names[file] as string, names[to] as string];
          const content = present.get(path);
          if (kind === "look") {
            const cut = lines.slice(0, part).join("");
            present.set(path, isOpen ? cut.trimEnd() : cut);
            writeFileSync(path, present.get(path) ?? "");
            await importTranscript({ engine, path });
          } else if (content !== undefined && path !== target) {
            if (kind === "rename") renameSync(path, target);
            else copyFileSync(path, target);
            if (kind === "rename") present.delete(path);
            present.set(target, content);
            await importTranscript({ engine, path: target });
          }
        }
        for (const path of [names[0] as string, ...present.keys()]) {
          writeFileSync(path, lines.join(""));
          await importTranscript({ engine, path });
        }
        await expectStored(engine, lines.length);
        await engine.close();
      }),
      { numRuns: 40, seed: 7 },
    );
  });
});

test("talks that begin with the same words stay apart, and none is looked at for another", async () => {
  const folder = makeTemporaryDirectory();
  const engine = await openTestEngine();
  let sessionsRead = 0;
  const target: ImportOptions["engine"] = {
    ...engine,
    readSession: async (request) => {
      sessionsRead += 1;
      return engine.readSession(request);
    },
  };
  const importAs = async (name: string, words: readonly string[]): Promise<ImportResult> => {
    const path = join(folder, name);
    writeFileSync(path, words.map((content) => toLine({ role: "user", content })).join(""));
    return importTranscript({ engine: target, path });
  };
  for (let number = 0; number < 20; number++)
    expect(await importAs(`talk-${number}.jsonl`, ["hello", `number ${number}`])).toMatchObject({
      imported: 2,
    });
  sessionsRead = 0;
  // All of its lines are those of another talk.
  expect(await importAs("short.jsonl", ["hello"])).toMatchObject({ imported: 1 });
  expect(await importAs("talk-3.jsonl", ["hello", "number 3", "and more"])).toMatchObject({ imported: 1 });
  expect(sessionsRead).toBeLessThan(12);
  await expectStored(engine, 42);
});
