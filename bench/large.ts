/**
 * Compares a large archive with a small one, in one run: 5 GB of transcripts and 50 MB, imported by the real program. Half of each is one long
 * conversation, the rest are sessions of 5 MB. Ratios are judged: opening and assembling may cost twice as much at 100 times the size, a search
 * by words or identifiers four times. A regular expression without a literal has to read everything, and is only reported.
 *
 * `npm run bench -- large [--gigabytes 5] [--rounds 15] [--folder F] [--no-regex]`; needs about three times that space on disk. With a folder
 * the archives are kept there, and a second run measures them again.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import type { Engine, GrepResult } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { IDENTIFIERS, MessageSource, VOCABULARY } from "./archive-messages.ts";
import { judge, median, processorMs, readRounds, round, showProgress } from "./history.ts";
import { importFile, readGigabytes, writeSession } from "./import.ts";
import type { BenchResult } from "./report.ts";

type Row = Record<string, string | number>;

const DEFAULT_GIGABYTES = 5;
const SMALL_BYTES = 50e6;
const SESSION_BYTES = 5e6;
/** Space for the transcripts, the database, and SQLite's files beside it. */
const ROOM = 3;
const ROUNDS = 15;
const BUDGET_TOKENS = 64_000;
/** The number that `lcm search` shows. */
const HITS = 10;

const MAX_OPEN_RATIO = 2;
const MAX_ASSEMBLE_RATIO = 2;
const MAX_SEARCH_RATIO = 4;

const word = (rank: number): string => VOCABULARY[rank] ?? "";
const identifier = (rank: number): string => IDENTIFIERS[rank] ?? "";

/** A name in one session, which both archives have. */
function findName(): string {
  const texts = new MessageSource(2).take(400).map(({ text }) => text);
  const name = texts.flatMap((text) => /\b[a-z]{6,}\d{4}\b/.exec(text) ?? [])[0];
  if (name === undefined) throw new Error("the generator makes no names any more");
  return name;
}

/** From words in every second message to one in a single message. Except for the name, the number of matches grows with the archive. */
const SEARCHES: Readonly<Record<string, string>> = {
  "a name of one session": findName(),
  "two common words": "config server",
  "a word of middling rank": word(900),
  "a rare word": word(11_500),
  "three words": `${word(400)} ${word(2_000)} ${word(7_000)}`,
  "a common identifier": identifier(2),
  "a rare identifier": identifier(3_900),
  "a phrase": `"${word(300)} ${word(40)}"`,
  "a question": `what did we decide about ${word(1_500)} and ${identifier(700)}?`,
  "a word that is nowhere": "chrysanthemum",
};
const REGEXES: Readonly<Record<string, string>> = {
  "regex with a literal, no hit": "chrysanthemum\\d+",
  "regex without a literal, no hit": "[xyz]{3}\\d{9}",
};

interface Built {
  readonly database: string;
  readonly rawBytes: number;
  readonly messages: number;
  readonly importMs: number;
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const largeBytes = readGigabytes(args, DEFAULT_GIGABYTES) * 1e9;
  if (largeBytes < 2 * SMALL_BYTES) throw new Error("cannot compare with 50 MB: name at least 0.1 gigabytes");
  const rounds = readRounds(args, ROUNDS);
  using temporary = makeTemporaryFolder("lossless-bench-");
  const folder = args.includes("--folder")
    ? path.resolve(args[args.indexOf("--folder") + 1] ?? "")
    : temporary.path;
  const small = await buildOnce(folder, SMALL_BYTES);
  const large = await buildOnce(folder, largeBytes);
  const rows = [
    ...(await compare("open", [small, large], rounds, MAX_OPEN_RATIO, null, async () => undefined)),
    ...(await compareAssembling([small, large], rounds)),
    ...(await compareSearches([small, large], rounds)),
    ...(args.includes("--no-regex") ? [] : await compareRegexes([small, large])),
  ];
  showProgress("");
  if (rows.some(({ holds }) => holds === "NO")) process.exitCode = 1;
  return {
    name: `An archive of ${largeBytes / 1e9} GB beside one of ${SMALL_BYTES / 1e6} MB`,
    rows,
    tables: [{ title: "The archives", rows: [small, large].map(renderBuilt) }],
    notes: [
      "ms: processor time, medians; the engine runs in this thread, and the two archives are asked in turn. first, ms: the first call of an engine that was just opened.",
      "Everything is in the system's file cache, as far as memory goes.",
    ],
  };
}

/** The result is written last, so a partly built archive is rebuilt. */
async function buildOnce(folder: string, bytes: number): Promise<Built> {
  const name = path.join(folder, `${bytes / 1e6}-megabytes`);
  const note = `${name}.json`;
  if (existsSync(note)) return JSON.parse(readFileSync(note, "utf8")) as Built;
  mkdirSync(folder, { recursive: true });
  for (const left of [`${name}.db`, `${name}.db-wal`, `${name}.db-shm`, `${name}-sessions`])
    rmSync(left, { recursive: true, force: true });
  checkRoom(folder, bytes);
  const built = await build(name, bytes);
  writeFileSync(note, JSON.stringify(built));
  return built;
}

function checkRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  const [needed, free] = [bytes * ROOM, bavail * bsize];
  if (needed > free)
    throw new Error(
      `cannot build ${bytes / 1e9} GB: that takes ${round(needed / 1e9)} GB in ${folder}, and ${round(free / 1e9)} are free`,
    );
}

/** Writes the transcripts, stores them with `lcm import`, and removes them. */
async function build(name: string, bytes: number): Promise<Built> {
  const sessions = `${name}-sessions`;
  mkdirSync(sessions);
  let [rawBytes, lines] = [0, 0];
  const write = async (seed: number, size: number): Promise<void> => {
    const file = path.join(sessions, `session-${seed}.jsonl`);
    lines += await writeSession(file, size, seed);
    rawBytes += statSync(file).size;
  };
  showProgress(`writing transcripts of ${bytes / 1e6} MB`);
  await write(1, bytes / 2);
  for (let seed = 2; rawBytes < bytes; seed++) await write(seed, SESSION_BYTES);
  const database = `${name}.db`;
  showProgress(`importing ${bytes / 1e6} MB`);
  const { stored, wallMs } = await importFile(sessions, database, path.join(sessions, "usage.json"));
  if (stored !== lines) throw new Error(`${lines} lines were written, ${stored} stored`);
  rmSync(sessions, { recursive: true });
  await foldOne(database);
  return { database, rawBytes, messages: stored, importMs: wallMs };
}

const renderBuilt = ({ database, rawBytes, messages, importMs }: Built): Row => ({
  "transcripts, MB": round(rawBytes / 1e6),
  messages,
  "database, MB": round(statSync(database).size / 1e6),
  "bytes for a raw byte": round(statSync(database).size / rawBytes, 2),
  "import, MB/s": round(rawBytes / 1000 / importMs, 1),
});

const withEngine = async <T>(database: string, work: (engine: Engine) => Promise<T>): Promise<T> => {
  const engine = await openEngine({ database, thread: false });
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
};

/** The long conversation, and one of the others, by the ids of their sessions. */
async function findConversations(engine: Engine): Promise<{ long: number; folded: number }> {
  const find = async (sessionId: string): Promise<number> => {
    for (let after: string | null = null; ;) {
      const page = await engine.listConversations({ limit: 500, after });
      const found = page.items.find((conversation) => conversation.sessionId === sessionId);
      if (found) return found.conversationId;
      if (page.next === null) throw new Error(`the session ${sessionId} is not in the archive`);
      after = page.next;
    }
  };
  return { long: await find("bench-1"), folded: await find("bench-2") };
}

const foldOne = (database: string): Promise<void> =>
  withEngine(database, async (engine) => {
    showProgress("folding a conversation");
    const { folded } = await findConversations(engine);
    await engine.compact({ conversationId: folded, budgetTokens: BUDGET_TOKENS });
    await engine.flushIndex();
  });

type Pair = readonly [small: Built, large: Built];

type Prepare = (engine: Engine) => Promise<unknown>;
type Call = (engine: Engine, prepared: unknown) => Promise<unknown>;

/** The cost of a call in both archives, each time in a newly opened engine, and once more in the same one. Null: opening itself. */
async function compare(
  what: string,
  pair: Pair,
  rounds: number,
  limit: number | null,
  prepare: Prepare | null,
  call: Call,
): Promise<Row[]> {
  showProgress(what);
  const calls = pair.map((): TimedCalls[] => []);
  for (let at = 0; at < rounds; at++)
    for (const [index, { database }] of pair.entries())
      calls[index]?.push(await timeCalls(database, prepare, call));
  const middle = (pick: (timed: TimedCalls) => number): number[] =>
    calls.map((timed) => median(timed.map(pick)));
  const [small = 0, large = 0] = middle(({ open, again }) => (prepare === null ? open : again));
  const hits = calls.flatMap((timed) => timed[0]?.hits ?? []);
  return [
    {
      what,
      hits: hits.join(" → "),
      "small, ms": round(small, 1),
      "large, ms": round(large, 1),
      ratio: round(large / small, 2),
      ...(limit === null ? { goal: "reported", holds: "" } : judge(large / small, limit)),
      ...(prepare === null ? {} : { "first, ms": round(middle(({ first }) => first)[1] ?? 0, 1) }),
    },
  ];
}

interface TimedCalls {
  readonly open: number;
  readonly first: number;
  readonly again: number;
  /** The number of matches. */
  readonly hits: string | null;
}

/** In processor time: the engine is in this thread, and other load must not affect a ratio. */
async function timeCalls(database: string, prepare: Prepare | null, call: Call): Promise<TimedCalls> {
  const timed = async <T>(work: () => Promise<T>): Promise<[number, T]> => {
    const from = processorMs();
    const result = await work();
    return [processorMs() - from, result];
  };
  const [open, engine] = await timed(() => openEngine({ database, thread: false }));
  try {
    const prepared = await prepare?.(engine);
    const [first] = await timed(() => call(engine, prepared));
    const [again, result] = await timed(() => call(engine, prepared));
    return { open, first, again, hits: countHits(result) };
  } finally {
    await engine.close();
  }
}

const countHits = (result: unknown): string | null => {
  const { total, isTotalExact } = (result ?? {}) as Partial<GrepResult>;
  return total === undefined ? null : `${isTotalExact ? "" : "≥ "}${total}`;
};

async function compareAssembling(pair: Pair, rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [what, which] of [
    ["assemble, the long conversation", "long"],
    ["assemble, a folded conversation", "folded"],
  ] as const) {
    rows.push(
      ...(await compare(what, pair, rounds, MAX_ASSEMBLE_RATIO, findConversations, (engine, found) => {
        const conversationId = (found as { long: number; folded: number })[which];
        return engine.assemble({ conversationId, budgetTokens: BUDGET_TOKENS });
      })),
    );
  }
  return rows;
}

async function compareSearches(pair: Pair, rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  const none = async (): Promise<undefined> => undefined;
  for (const [what, pattern] of Object.entries(SEARCHES)) {
    const find = (engine: Engine) =>
      engine.grep({ pattern, mode: "full_text", scope: "messages", allConversations: true, limit: HITS });
    rows.push(...(await compare(`search: ${what}`, pair, rounds, MAX_SEARCH_RATIO, none, find)));
  }
  return rows;
}

async function compareRegexes(pair: Pair): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [what, pattern] of Object.entries(REGEXES)) {
    const find = (engine: Engine) =>
      engine.grep({ pattern, mode: "regex", scope: "messages", allConversations: true, limit: HITS });
    rows.push(...(await compare(what, pair, 1, null, async () => undefined, find)));
  }
  return rows;
}
