/**
 * Finding the clues of questions, on PostgreSQL compared with SQLite in the same run: the listing that every search begins with. Questions of
 * six words without a phrase, phrases, word prefixes and identifiers, taken from the texts. `--size N` overrides the 50,000 messages. The texts
 * are those of the shared data, with parts of them repeated elsewhere if more are needed.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Arrival } from "@lossless/core";
import type { ClueRequest, CluesFound, Store, TextClue } from "@lossless/core/ports";
import { analyzeQuery, buildClues, deriveMessage } from "@lossless/core/testing";
import {
  Connection,
  databaseFiles,
  FullTextIndex,
  IndexQueue,
  migrate,
  VERBS,
} from "@lossless/postgres/testing";
import type { StoreContext } from "@lossless/postgres/testing";
import { copyArchive } from "@lossless/testkit/copy-archive.ts";
import { findPostgres, startPostgres } from "@lossless/testkit/postgres-server.ts";
import { makeRandom } from "@lossless/testkit/random.ts";
import type { Random } from "@lossless/testkit/random.ts";
import { findSharedData } from "@lossless/testkit/shared-data.ts";
import { openEngine, openStore } from "lossless-claw";
import type { BenchResult } from "./report.ts";

const BATCH = 500;
const SESSIONS = 20;
const QUESTIONS = 48;
/** Repetitions of each question; the best time counts. */
const ROUNDS = 3;
/** The limit of `findDocuments`. */
const LIMIT = 20_000;
export const OWNER = "bench";

type FindClues = (request: ClueRequest) => Promise<CluesFound>;

export async function run(args: readonly string[]): Promise<BenchResult> {
  const size = Number(args[args.indexOf("--size") + 1] ?? 0) || 50_000;
  const programs = await findPostgres();
  if (programs === null) throw new Error("there is no PostgreSQL here, and none could be fetched");
  const folder = mkdtempSync(path.join(tmpdir(), "lossless-pg-search-"));
  const server = await startPostgres(programs);
  try {
    return await measureAll(folder, await server.createDatabase(), size);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureAll(folder: string, address: string, size: number): Promise<BenchResult> {
  const database = path.join(folder, "lcm.db");
  const texts = takeTexts(size);
  await fill(database, texts);
  const connection = new Connection({ address, readOnly: false });
  await migrate(connection, { create: true });
  await copyArchive(database, address);
  const context: StoreContext = {
    sql: connection,
    files: databaseFiles,
    index: new FullTextIndex(),
    derive: deriveMessage,
  };
  const started = performance.now();
  await new IndexQueue(context).settle("all");
  const indexMs = performance.now() - started;
  const store = await openStore(database, { derive: deriveMessage });
  try {
    const rows = await measureKinds(store, (request) => VERBS.findClues(context, request), connection, texts);
    return {
      name: `listing for search at ${size} messages, ms`,
      rows,
      tables: [{ title: "size", rows: [await measureSize(connection)] }],
      notes: [
        `the index was written in ${(indexMs / 1000).toFixed(1)} s`,
        "bar: p95 at most 2 × SQLite's for questions without phrases",
      ],
    };
  } finally {
    await store.close();
    await connection.close();
  }
}

async function measureKinds(
  store: Store,
  onServer: FindClues,
  connection: Connection,
  texts: readonly string[],
): Promise<Record<string, string | number>[]> {
  const random = makeRandom(7);
  const rows: Record<string, string | number>[] = [];
  for (const [kind, write] of Object.entries(KINDS)) {
    const clues = Array.from({ length: QUESTIONS }, () => write(random, random.pick(texts)));
    const before = connection.trips;
    const [sqlite = [], postgres = []] = await measure(
      [(request) => store.findClues(request), onServer],
      clues,
    );
    rows.push({
      questions: kind,
      "sqlite p50": at(sqlite, 0.5),
      "sqlite p95": at(sqlite, 0.95),
      "postgres p50": at(postgres, 0.5),
      "postgres p95": at(postgres, 0.95),
      "p95 ratio": Number((at(postgres, 0.95) / at(sqlite, 0.95)).toFixed(2)),
      trips: Number(((connection.trips - before) / (ROUNDS * QUESTIONS)).toFixed(2)),
    });
  }
  return rows;
}

export const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}_./-]{2,40}/gu) ?? ["archive"];

function cutRun(random: Random, text: string, length: number): string[] {
  const words = wordsOf(text);
  const from = random.below(Math.max(1, words.length - length));
  return words.slice(from, from + length);
}

/** The clues of a question. */
const ask = (question: string): TextClue[] => buildClues(analyzeQuery(question)).map(({ sought }) => sought);

/** A word that looks like a name in code; any word of a text that has none. */
function pickIdentifier(random: Random, text: string): string {
  const words = wordsOf(text);
  const named = words.filter((word) => /[a-z][A-Z]|\w[_./-]\w/.test(word));
  return random.pick(named.length > 0 ? named : words);
}

const KINDS: Readonly<Record<string, (random: Random, text: string) => readonly TextClue[]>> = {
  "six words": (random, text) => ask(Array.from({ length: 6 }, () => random.pick(wordsOf(text))).join(" ")),
  "one word": (random, text) => ask(random.pick(wordsOf(text))),
  identifier: (random, text) => ask(pickIdentifier(random, text)),
  // A question uses prefixes for short hashes, a regular expression for its literals.
  beginning: (random, text) => [
    { kind: "prefix", words: [random.pick(wordsOf(text)).toLowerCase().slice(0, 4)] },
  ],
  phrase: (random, text) => ask(`"${cutRun(random, text, 3).join(" ")}"`),
  "pasted line": (random, text) => ask(cutRun(random, text, 12).join(" ")),
};

/** The best time of each question, for each method; they alternate, because other programs run at the same time. */
async function measure(
  ways: readonly FindClues[],
  asked: readonly (readonly TextClue[])[],
): Promise<number[][]> {
  const best = ways.map(() => asked.map(() => Infinity));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, clues] of asked.entries()) {
      for (const [way, find] of ways.entries()) {
        const started = performance.now();
        await find({ kind: "message", clues, scope: { owner: OWNER }, limit: LIMIT });
        const times = best[way] ?? [];
        times[index] = Math.min(times[index] ?? Infinity, performance.now() - started);
      }
    }
  }
  return best.map((times) => times.toSorted((a, b) => a - b));
}

export const at = (sorted: readonly number[], share: number): number =>
  Number((sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(1));

async function measureSize(connection: Connection): Promise<Record<string, string | number>> {
  const row = await connection.get<Record<string, number>>(`
    SELECT count(*) AS blocks, sum(octet_length(documents)) AS documents, sum(octet_length(places)) AS places,
      pg_total_relation_size('index_postings') AS tables, (SELECT count(*) FROM index_segments) AS segments FROM index_postings`);
  const inMegabytes = (bytes = 0): number => Number((bytes / 1e6).toFixed(1));
  return {
    segments: row?.["segments"] ?? 0,
    blocks: row?.["blocks"] ?? 0,
    "documents MB": inMegabytes(row?.["documents"]),
    "places MB": inMegabytes(row?.["places"]),
    "table and index MB": inMegabytes(row?.["tables"]),
  };
}

export async function fill(database: string, texts: readonly string[]): Promise<void> {
  const engine = await openEngine({ database, thread: false });
  for (let made = 0; made < texts.length; made += BATCH) {
    const session = (made / BATCH) % SESSIONS;
    const messages = texts.slice(made, made + BATCH).map((content, i): Arrival => ({
      eventId: `e${made + i}`,
      createdAt: 1_700_000_000_000 + (made + i) * 1_000,
      message: { role: i % 2 === 0 ? "user" : "assistant", content },
    }));
    await engine.ingest({ session: { key: `bench:${session}`, id: `s${session}`, owner: OWNER }, messages });
  }
  await engine.close();
}

/** Real texts, cut to the length of messages; if there are too few, windows of them again. */
export function takeTexts(count: number): string[] {
  const folder = findSharedData();
  if (folder === null) throw new Error("this benchmark needs the shared data");
  const random = makeRandom(3);
  const real: string[] = [];
  const take = (value: unknown): void => {
    if (typeof value === "string" && value.length > 40) real.push(value.slice(0, 2_000));
    else if (Array.isArray(value)) value.forEach(take);
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(take);
  };
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const name = path.join(folder, file);
    if (!/\.jsonl?$/.test(file) || !statSync(name).isFile() || statSync(name).size > 30_000_000) continue;
    for (const line of readFileSync(name, "utf8").split("\n")) {
      try {
        take(JSON.parse(line));
      } catch {
        continue;
      }
    }
  }
  return Array.from({ length: count }, (_, i) => {
    if (i < real.length) return real[i] ?? "";
    const text = random.pick(real);
    const from = random.below(Math.max(1, text.length - 400));
    return text.slice(from, from + 100 + random.below(600));
  });
}
