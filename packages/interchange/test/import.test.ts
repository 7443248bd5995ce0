import { appendFileSync, copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import { makeRandom } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { someOf } from "@lossless/testkit/rounds.ts";
import { describe, expect, test } from "vitest";

import {
  importPaths,
  importTranscript,
  type ImportOptions,
  type ImportResult,
} from "../src/transcript/import.ts";

import { makeTemporaryDirectory } from "@lossless/testkit";
import { cutRandomly, listRealTranscripts, MemoryTarget, readLatin1Lines } from "./support.ts";

type Entry = Record<string, unknown>;

/** One file and one target; `grow` appends to the file and imports it again. */
class Desk {
  readonly target = new MemoryTarget();
  readonly path: string;

  constructor(name = "file.jsonl") {
    this.path = join(makeTemporaryDirectory(), name);
    writeFileSync(this.path, "");
  }

  async grow(content: string | Buffer, options: Partial<ImportOptions> = {}): Promise<ImportResult> {
    appendFileSync(this.path, content);
    return this.import(options);
  }

  async import(options: Partial<ImportOptions> = {}): Promise<ImportResult> {
    return importTranscript({ engine: this.target, path: this.path, ...options });
  }

  list(sessionId = "s1"): ReturnType<MemoryTarget["list"]> {
    return this.target.list(sessionId);
  }
}

function toLines(entries: readonly Entry[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}

const HEADER: Entry = {
  type: "session",
  version: 3,
  id: "s1",
  timestamp: "2026-01-01T00:00:00.000Z",
  cwd: "/tmp",
};

function say(id: string, parentId: string | null, text = id): Entry {
  return {
    type: "message",
    id,
    parentId,
    timestamp: "2026-01-01T00:00:01.000Z",
    message: { role: "user", content: text },
  };
}

function row(uuid: string, parentUuid: string | null, extra: Entry = {}): Entry {
  const type = uuid.startsWith("a") ? "assistant" : "user";
  const base = { uuid, parentUuid, isSidechain: false, sessionId: "s1", type };
  return { ...base, message: { role: type, content: uuid }, timestamp: "2026-01-01T00:00:01.000Z", ...extra };
}

function hiddenOf(desk: Desk): Record<string, string> {
  return Object.fromEntries(desk.list().map((event) => [event.eventId, event.hidden]));
}

describe("importing a file", () => {
  test("stores every line as it stands, in the order of the lines", async () => {
    const desk = new Desk();
    const text = `${JSON.stringify(HEADER)}\r\n\n{broken\n${toLines([say("a", null, "é\u{1F600}")])}[1]\n\n`;
    const report = await desk.grow(text);
    expect(desk.list().map((event) => event.text)).toEqual(readLatin1Lines(desk.path));
    expect(report).toMatchObject({ format: "pi", sessionId: "s1", imported: 6, skipped: 0, revisions: 0 });
    expect(report.bytes).toBe(statSync(desk.path).size);
    expect(report.problems.map(({ code, line }) => [code, line])).toEqual([
      ["unreadable_line", 3],
      ["unreadable_line", 5],
    ]);
    expect(desk.list().map((event) => event.hidden)).toEqual(["meta", "meta", "meta", "", "meta", "meta"]);
  });

  test("stores a line whose type is no text like any other", async () => {
    const desk = new Desk();
    const odd = { type: { toString: 1 }, data: {} };
    await desk.grow(toLines([{ type: "session.start", data: { sessionId: "s1" } }, odd]));
    expect(desk.list().map(({ text }) => text)).toEqual(readLatin1Lines(desk.path));
  });

  test("names repeated ids and repeated lines by their occurrence", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER, say("a", null), say("a", "a", "again")]) + "\n\n");
    const [blank] = desk.list().filter((event) => event.text === "");
    expect(desk.list().map((event) => event.eventId)).toEqual([
      "s1",
      "a",
      "a#2",
      blank?.eventId,
      `${blank?.eventId}#2`,
    ]);
  });

  test("adds nothing the second time, and reads nothing again", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER, say("a", null), say("b", "a")]));
    const messages = desk.target.calls.messages;
    expect(await desk.import()).toMatchObject({ imported: 0, skipped: 3, revisions: 0, conversationId: 1 });
    expect(desk.target.calls.messages).toBe(messages);
  });

  test("gives the session a key of format and id, an owner and the times of the lines", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER, { type: "label" }]));
    const session = desk.target.sessions.get("s1");
    expect(session?.key).toBe("pi:s1");
    const times = [...(session?.events.values() ?? [])].map((event) => event.createdAt);
    expect(times).toEqual([Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 1)]);
  });

  test("keeps batches within their limits and reports progress up to the whole file", async () => {
    const desk = new Desk();
    const entries = Array.from({ length: 20 }, (_, index) =>
      say(`e${index}`, index === 0 ? null : `e${index - 1}`),
    );
    const seen: number[] = [];
    const onProgress: ImportOptions["onProgress"] = (progress) =>
      seen.push(progress.bytesDone / progress.bytesTotal);
    await desk.grow(toLines([HEADER, ...entries]), { batchLines: 4, onProgress });
    expect(desk.target.calls.ingest).toBe(6);
    expect(seen.at(-1)).toBe(1);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });

  test("hands over batches ahead, and has one stored at a time", async () => {
    const desk = new Desk();
    let running = 0;
    desk.target.beforeIngest = async () => {
      running += 1;
      expect(running).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    await desk.grow(toLines([HEADER, ...Array.from({ length: 30 }, () => ({ type: "label" }))]), {
      batchLines: 3,
    });
    expect(desk.list()).toHaveLength(31);
  });

  test("passes on the failure of the store", async () => {
    const desk = new Desk();
    desk.target.beforeIngest = (batch) => {
      if (batch === 2) throw new Error("no room");
    };
    await expect(
      desk.grow(toLines([HEADER, say("a", null), say("b", "a")]), { batchLines: 1 }),
    ).rejects.toThrow("no room");
    desk.target.beforeIngest = () => {};
    expect(await desk.import()).toMatchObject({ imported: 2, skipped: 1 });
  });

  test("stops after what was handed over when it is cancelled, and goes on from there later", async () => {
    const desk = new Desk();
    const controller = new AbortController();
    const entries = Array.from({ length: 60 }, (_, index) =>
      say(`e${index}`, index === 0 ? null : `e${index - 1}`),
    );
    desk.target.beforeIngest = (batch) => {
      if (batch === 2) controller.abort();
    };
    const cancelled = desk.grow(toLines([HEADER, ...entries]), { batchLines: 2, signal: controller.signal });
    await expect(cancelled).rejects.toMatchObject({ code: "aborted" });
    const stored = desk.list().length;
    expect(stored).toBeGreaterThanOrEqual(4);
    expect(stored).toBeLessThan(30);
    expect(await desk.import()).toMatchObject({ imported: 61 - stored, skipped: stored });
  });

  test("stores the lines before one that is too long, and says which it is", async () => {
    const desk = new Desk();
    const text = toLines([HEADER, say("a", null), say("b", "a", "x".repeat(500)), say("c", "b")]);
    const refused = desk.grow(text, { maxLineBytes: 400 });
    await expect(refused).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("line 3"),
    });
    expect(desk.list().map((event) => event.eventId)).toEqual(["s1", "a"]);
  });

  test("stores the lines before one that is too long also if none of them names the session", async () => {
    const desk = new Desk();
    const text = `{"type":"summary","summary":"x","leafUuid":"y"}\n${toLines([row("u1", null, { text: "x".repeat(500) })])}`;
    const refused = desk.grow(text, { maxLineBytes: 400 });
    await expect(refused).rejects.toMatchObject({ code: "invalid_input" });
    const [sessionId = ""] = desk.target.sessions.keys();
    expect(desk.list(sessionId)).toHaveLength(1);
  });

  test("leaves alone the cursor of a host that reads the same session", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER]));
    const session = desk.target.sessions.get("s1");
    if (session) session.cursor = "opaque words of a host";
    await desk.grow(toLines([say("a", null)]));
    expect(session?.cursor).toBe("opaque words of a host");
    expect(desk.list()).toHaveLength(2);
  });

  test("says so when the settings keep the session out of the archive", async () => {
    const desk = new Desk();
    desk.target.ingest = async () => ({ conversationId: 0, results: [], skipped: "ignored" });
    const report = await desk.grow(toLines([HEADER, say("a", null)]), { batchLines: 1 });
    expect(report).toMatchObject({ imported: 0, conversationId: null, problems: [{ code: "not_stored" }] });
  });

  test("keeps two formats of one session apart", async () => {
    const desk = new Desk();
    await desk.grow(toLines([row("u1", null), row("a1", "u1")]));
    const other = join(makeTemporaryDirectory(), "pi.jsonl");
    writeFileSync(other, toLines([HEADER, say("u1", null)]));
    for (const expected of [2, 0]) {
      const report = await importTranscript({ engine: desk.target, path: other });
      expect(report).toMatchObject({ sessionId: "pi:s1", imported: expected });
    }
    expect(desk.list()).toHaveLength(2);
    expect(desk.target.sessions.get("pi:s1")?.key).toBe("pi:s1");
  });
});

describe("a last line without a line feed", () => {
  test("is stored when it is a whole entry, once, also after its line feed arrived", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER, say("a", null)]).trimEnd());
    expect(desk.list()).toHaveLength(2);
    expect(await desk.import()).toMatchObject({ imported: 0, skipped: 2, revisions: 0 });
    expect(desk.target.calls.knownEvents).toBe(0);
    expect(await desk.grow("\n")).toMatchObject({ imported: 0, skipped: 2, revisions: 0 });
    expect(await desk.grow(toLines([say("b", "a")]))).toMatchObject({
      imported: 1,
      skipped: 2,
      revisions: 0,
    });
    expect(desk.list().map((event) => event.text)).toEqual(readLatin1Lines(desk.path));
  });

  test("waits when it is not finished, and says so", async () => {
    const desk = new Desk();
    const report = await desk.grow(`${toLines([HEADER])}{"type":"mess`);
    expect(report.problems).toEqual([expect.objectContaining({ code: "incomplete_line", line: 2 })]);
    expect(desk.list()).toHaveLength(1);
    await desk.grow('age","id":"a","parentId":null,"message":{"role":"user","content":""}}\n');
    expect(desk.list().map((event) => event.text)).toEqual(readLatin1Lines(desk.path));
  });

  test("waits when it is a word that happens to be JSON", async () => {
    const desk = new Desk();
    await desk.grow(`${toLines([HEADER])}12`);
    expect(desk.list()).toHaveLength(1);
  });

  test("is no error while it is all there is", async () => {
    const desk = new Desk();
    expect(await desk.grow('{"type":"sess')).toMatchObject({ format: null, sessionId: null, imported: 0 });
    expect(desk.target.calls.ingest).toBe(0);
  });

  test("keeps its occurrence when it repeats an id", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER, say("a", null), say("a", "a", "again")]).trimEnd());
    await desk.grow("\n");
    await desk.grow(toLines([say("a", "a", "third")]));
    expect(desk.list().map((event) => [event.eventId, event.versions])).toEqual([
      ["s1", 1],
      ["a", 1],
      ["a#2", 1],
      ["a#3", 1],
    ]);
  });
});

describe("a file that changes", () => {
  test("is read from its start when the bytes before the cursor are others", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER, say("a", null), say("b", "a")]));
    writeFileSync(desk.path, toLines([HEADER, say("a", null, "changed"), say("b", "a"), say("c", "b")]));
    expect(await desk.import()).toMatchObject({ imported: 1, skipped: 2, revisions: 1 });
    expect(desk.list().map((event) => event.text)).toEqual(readLatin1Lines(desk.path));
  });

  test("is read from its start when it was cut, and adds nothing that was stored before", async () => {
    const desk = new Desk();
    const entries = [HEADER, say("a", null), say("b", "a"), say("c", "b")];
    await desk.grow(toLines(entries));
    writeFileSync(desk.path, toLines(entries.slice(0, 2)));
    expect(await desk.import()).toMatchObject({ imported: 0, skipped: 2 });
    expect(await desk.grow(toLines(entries.slice(2)))).toMatchObject({
      imported: 0,
      skipped: 4,
      revisions: 0,
    });
    expect(desk.list()).toHaveLength(4);
  });

  test("puts what is new after all that was stored, also where lines before it are gone", async () => {
    const desk = new Desk();
    const entries = ["a", "b", "c", "d", "e", "f"].map((id, at, all) => say(id, all[at - 1] ?? null));
    const order = (): string[] => desk.list().map(({ eventId }) => eventId);
    await desk.grow(toLines([HEADER, ...entries.slice(0, 4)]));
    // Only its newest line is left, and one that follows it.
    writeFileSync(desk.path, toLines([HEADER, ...entries.slice(3, 5)]));
    expect(await desk.import()).toMatchObject({ imported: 1, revisions: 0 });
    // Cut to its header, and written on.
    writeFileSync(desk.path, toLines([HEADER, ...entries.slice(5)]));
    expect(await desk.import()).toMatchObject({ imported: 1, revisions: 0 });
    expect(await desk.grow(toLines([say("g", "f")]))).toMatchObject({ imported: 1, revisions: 0 });
    expect(order().slice(1)).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
    // All of it again.
    writeFileSync(desk.path, toLines([HEADER, ...entries, say("g", "f"), say("h", "g")]));
    await desk.import();
    expect(order().slice(1)).toEqual(["a", "b", "c", "d", "e", "f", "g", "h"]);
  });

  test("becomes the session that a line names later, and what was stored before is known there", async () => {
    const desk = new Desk();
    await desk.grow('{"type":"summary","summary":"x","leafUuid":"y"}\n');
    const report = await desk.grow(toLines([row("u1", null)]));
    expect(report).toMatchObject({ imported: 1, skipped: 1, sessionId: "s1" });
    expect(desk.list()).toHaveLength(2);
  });
});

describe("branches of a pi session", () => {
  test("are hidden when the file goes on elsewhere, and shown when it comes back", async () => {
    const desk = new Desk();
    await desk.grow(toLines([HEADER, say("a", null), say("b", "a"), say("c", "b")]));
    expect(desk.target.calls.setBranch).toBe(0);
    await desk.grow(toLines([say("d", "a")]));
    expect(hiddenOf(desk)).toEqual({ s1: "meta", a: "", b: "branch", c: "branch", d: "" });
    await desk.grow(toLines([say("e", "d")]));
    expect(desk.target.calls.setBranch).toBe(1);
    await desk.grow(toLines([say("f", "c")]));
    expect(hiddenOf(desk)).toEqual({ s1: "meta", a: "", b: "", c: "", d: "branch", e: "branch", f: "" });
  });

  test("are decided later when an import was killed between storing and deciding", async () => {
    const desk = new Desk();
    const decide = desk.target.setBranch.bind(desk.target);
    desk.target.setBranch = async () => {
      throw new Error("killed");
    };
    await expect(desk.grow(toLines([HEADER, say("a", null), say("b", "a"), say("c", "a")]))).rejects.toThrow(
      "killed",
    );
    desk.target.setBranch = decide;
    await desk.import();
    expect(hiddenOf(desk)).toEqual({ s1: "meta", a: "", b: "branch", c: "" });
    await desk.import();
    expect(desk.target.calls.setBranch).toBe(1);
  });
});

describe("branches of a Claude Code session", () => {
  test("follow the last prompt, and keep parallel tool calls and hide sidechains", async () => {
    const result = { message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t" }] } };
    const desk = new Desk();
    await desk.grow(
      toLines([
        row("u1", null),
        row("a1", "u1"),
        row("a2", "a1"),
        row("r1", "a1", { type: "user", ...result }),
        row("r2", "a2", { type: "user", ...result }),
        row("x1", null, { isSidechain: true }),
        row("m1", "r2", { isMeta: true }),
        row("u2", "r2"),
      ]),
    );
    expect(desk.target.calls.setBranch).toBe(0);
    await desk.grow(toLines([row("u3", "r2"), row("a3", "u3")]));
    const shown = { u1: "", a1: "", a2: "", r1: "", r2: "", u3: "", a3: "" };
    expect(hiddenOf(desk)).toEqual({ ...shown, x1: "branch", m1: "meta", u2: "branch" });
  });

  test("show the whole file of a sub-agent", async () => {
    const desk = new Desk();
    await desk.grow(toLines([row("u1", null, { isSidechain: true, agentId: "7" })]));
    expect(desk.list("agent-7").map((event) => event.hidden)).toEqual([""]);
  });
});

describe("importing a file that grows", () => {
  const line = fc.oneof(
    fc
      .record({
        id: fc.constantFrom("a", "b", "c", "d", "a#2", undefined),
        parentId: fc.constantFrom("a", "b", "c", "d", "s1", "gone", null, undefined),
        kind: fc.constantFrom("pi", "prompt", "assistant", "side"),
      })
      .map(({ id, parentId, kind }) => {
        const isSidechain = kind === "side";
        const message = { role: kind === "assistant" ? "assistant" : "user", content: "é" };
        const type = kind === "pi" ? "message" : message.role;
        return JSON.stringify({
          type,
          id,
          uuid: id,
          parentId,
          parentUuid: parentId,
          isSidechain,
          message,
          sessionId: "s1",
        });
      }),
    fc.constantFrom("", "{broken", "7", '{"type":"mode"}', ' {"type":"mode"}'),
  );

  test.each(["pi", "claude-code"] as const)("ends as one clean import does (%s)", async (format) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { minLength: 1, maxLength: 25 }),
        fc.integer(),
        fc.boolean(),
        fc.integer({ min: 1, max: 6 }),
        async (lines, seed, isTerminated, batchLines) => {
          const content = Buffer.from(
            `${JSON.stringify(HEADER)}\n${lines.join("\n")}${isTerminated ? "\n" : ""}`,
          );
          const grown = new Desk();
          let done = 0;
          for (const cut of cutRandomly(content.length, 8, makeRandom(seed))) {
            await grown.grow(content.subarray(done, cut), { format, batchLines });
            done = cut;
          }
          const clean = new Desk();
          await clean.grow(content, { format });
          const [[session], [expected]] = [
            [...grown.target.sessions.keys()],
            [...clean.target.sessions.keys()],
          ];
          expect(grown.list(session)).toEqual(clean.list(expected));
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("importPaths", () => {
  test("sums up files and directories, and reports files of a directory that are no transcripts", async () => {
    const directory = makeTemporaryDirectory();
    mkdirSync(join(directory, "more"));
    writeFileSync(join(directory, "a.jsonl"), toLines([HEADER, say("a", null)]));
    writeFileSync(
      join(directory, "more", "b.jsonl"),
      `${toLines([row("u1", null)]).replace('"s1"', '"s2"')}{broken\n`,
    );
    writeFileSync(join(directory, "more", "c.jsonl"), '{"type":"session_meta"}\n');
    const engine = new MemoryTarget();
    const summary = await importPaths({ engine, paths: [directory] });
    expect(summary).toMatchObject({ imported: 4, skipped: 0, conversations: 2 });
    expect(summary.problems.map(({ code, path }) => [code, basename(path)])).toEqual([
      ["unreadable_line", "b.jsonl"],
      ["refused_file", "c.jsonl"],
    ]);
    const refused = importPaths({ engine, paths: [join(directory, "more", "c.jsonl")] });
    await expect(refused).rejects.toMatchObject({ code: "invalid_input" });
  });
});

describe("the real transcripts", () => {
  const real = someOf(listRealTranscripts(), 5);
  test.skipIf(real.length === 0)(
    "come back line by line, once, also as files that grow (skipped without shared data)",
    async () => {
      const random = makeRandom(7);
      for (const path of real) {
        const clean = new Desk(basename(path));
        copyFileSync(path, clean.path);
        const report = await clean.import();
        const expected = clean.list(report.sessionId ?? "");
        expect(expected.map((event) => event.text)).toEqual(readLatin1Lines(path));
        expect(await clean.import()).toMatchObject({ imported: 0, skipped: expected.length, revisions: 0 });

        const grown = new Desk(basename(path));
        const content = readFileSync(path);
        let done = 0;
        for (const cut of cutRandomly(content.length, 6, random)) {
          await grown.grow(content.subarray(done, cut));
          done = cut;
        }
        const [session] = grown.target.sessions.keys();
        expect(grown.list(session ?? "")).toEqual(expected);
      }
    },
  );
});
