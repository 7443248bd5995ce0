/** Transcripts of agents: lines, whole documents, and OpenCode's folder. Everything is stored unchanged and once, however often it is read. */
import type { Engine } from "@lossless/core";
import { holdsSessionLines, importTranscript, openTranscript } from "@lossless/interchange";
import type { ImportResult } from "@lossless/interchange";
import { readStoredLines } from "@lossless/testkit/session-archive.ts";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openMemoryEngine, prove } from "../memory-engine.ts";
import { accept, hold } from "../target.ts";
import type { Probe, Target } from "../target.ts";

const WORDS = [
  "uuid",
  "parentUuid",
  "sessionId",
  "isSidechain",
  "parentId",
  "session_meta",
  "response_item",
  "event_msg",
  "compacted",
  "payload",
  "projectHash",
  "$rewindTo",
  "$set",
  "session_start",
  "session.start",
  "data",
  "context.append_user",
  "protocol_version",
  "step_index",
  "source",
  "messages",
  "history",
  "session_id",
  "platform",
  "tool_calls",
  "tool_use_id",
  "timestamp",
  "2026-01-01T00:00:00Z",
  "user",
  "assistant",
  "tool_result",
  "isMeta",
  "leafUuid",
  "summary",
  "a1",
  "s1",
];

async function withEngine<T>(work: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = openMemoryEngine();
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}

/** Imports twice: the second time adds nothing. */
async function importTwice(engine: Engine, path: string): Promise<ImportResult | null> {
  const first = await accept(() => importTranscript({ engine, path }));
  const again = await accept(() => importTranscript({ engine, path }));
  hold((first === null) === (again === null), "a file is accepted once only", first, again);
  hold(
    again === null || (again.imported === 0 && again.revisions === 0),
    "a second import stores something",
    again,
  );
  await prove(engine);
  return first;
}

async function readTexts(engine: Engine): Promise<string[]> {
  const texts: string[] = [];
  for (const { conversationId } of (await engine.listConversations({ limit: 200 })).items)
    texts.push(...(await readStoredLines(engine, conversationId)).map(({ text }) => text));
  return texts;
}

/** The lines of a file, byte for byte. An unfinished last line is left out. */
function splitLines(input: Buffer): string[] {
  const lines = input.toString("latin1").split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export const transcriptTarget: Target = {
  name: "transcript",
  words: WORDS,
  open: async (folder) => {
    const path = join(folder, "session.jsonl");
    return {
      run: async (input) => {
        writeFileSync(path, input);
        const whole = await withEngine(async (engine) => {
          const result = await importTwice(engine, path);
          // Lines that are sessions themselves have other events.
          if (result !== null && !(await holdsSessions(path)))
            checkLines(await readTexts(engine), input, result);
          return result === null ? null : await readTexts(engine);
        });
        if (whole !== null) await readGrowing(path, input, whole);
      },
      close: async () => undefined,
    };
  },
};

async function holdsSessions(path: string): Promise<boolean> {
  const transcript = await openTranscript(path);
  try {
    return await holdsSessionLines(transcript);
  } finally {
    await transcript.file.close();
  }
}

function checkLines(stored: readonly string[], input: Buffer, { format, problems }: ImportResult): void {
  if (format === null)
    return hold(stored.length === 0, "something is stored of a file without a line", stored);
  const lines = splitLines(input);
  const isOpen = problems.some(({ code }) => code === "incomplete_line");
  const expected = isOpen ? lines.slice(0, -1) : lines;
  hold(
    stored.length === expected.length && stored.every((text, at) => text === expected[at]),
    "the stored lines are not those of the file",
    { stored: stored.length, lines: expected.length },
    stored.find((text, at) => text !== expected[at]),
  );
}

/** A file that is read while it grows has the same content in the end. */
async function readGrowing(path: string, input: Buffer, whole: readonly string[]): Promise<void> {
  const ends = [...input.toString("latin1").matchAll(/\n/g)].map(({ index }) => index + 1);
  const cut = ends[Math.floor(ends.length / 2)];
  if (cut === undefined || cut === input.length) return;
  await withEngine(async (engine) => {
    writeFileSync(path, input.subarray(0, cut));
    // The beginning alone may not be a known format.
    if ((await accept(() => importTranscript({ engine, path }))) === null) return;
    writeFileSync(path, input);
    const grown = await accept(() => importTranscript({ engine, path }));
    // An incomplete document may look like a line of another format.
    if (grown === null) return;
    const texts = await readTexts(engine);
    hold(
      texts.toSorted().join("\n") === whole.toSorted().join("\n"),
      "a file that has grown is stored otherwise than at once",
      { cut, grown: texts.length, whole: whole.length },
    );
    await prove(engine);
  });
}

export const documentTarget: Target = {
  name: "document",
  words: WORDS,
  open: async (folder) => {
    const path = join(folder, "session.json");
    return {
      run: async (input) => {
        writeFileSync(path, input);
        await withEngine(async (engine) => {
          const result = await importTwice(engine, path);
          if (result === null) hold((await readTexts(engine)).length === 0, "a refused file left something");
        });
      },
      close: async () => undefined,
    };
  },
};

/** Files of a folder, each after a line with its name. */
export const storageTarget: Target = {
  name: "opencode-storage",
  words: [
    ...WORDS,
    "=== message/s1/m1.json",
    "=== part/m1/p1.json",
    "=== session/s1.json",
    "sessionID",
    "messageID",
    "time",
    "created",
  ],
  open: async (folder) => storageProbe(join(folder, "storage")),
};

function storageProbe(storage: string): Probe {
  return {
    run: async (input) => {
      rmSync(storage, { recursive: true, force: true });
      mkdirSync(storage);
      for (const piece of input.toString("latin1").split(/^=== /m).slice(1)) {
        const name = piece.slice(0, piece.indexOf("\n"));
        if (!/^[a-z]+(?:\/[\w-]{1,40}){1,3}\.json$/.test(name)) continue;
        const path = join(storage, name);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, Buffer.from(piece.slice(name.length + 1), "latin1"));
      }
      await withEngine((engine) => importTwice(engine, storage));
    },
    close: async () => undefined,
  };
}
