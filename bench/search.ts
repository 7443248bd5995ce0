/**
 * The time of a search, by size of the archive and kind of question, compared with the bare FTS5 query with the same terms. Sizes are 10,000 and
 * 100,000 messages; `--million` adds a million. Messages are generated from a seed, with word frequencies as in real text, in families of at
 * most 20,000 messages that arrive interleaved.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openEngine } from "lossless-claw";
import type { Arrival, Engine } from "@lossless/core";
import { analyzeQuery, buildClues } from "@lossless/core/testing";
import { toMatch } from "@lossless/sqlite/testing";
import type { BenchResult } from "./report.ts";

const OWNER = "bench";
const FAMILY = 20_000;
const BATCH = 500;
const ROUNDS = 21;

const CONSONANTS = "bdfgklmnprtvz";
const VOWELS = "aeiou";

/** A made-up word for a number, of letters only: a word with digits would be read as an identifier. */
function spell(number: number): string {
  let word = "";
  for (let rest = number + 65; rest > 0; rest = Math.floor(rest / 65)) {
    word += `${CONSONANTS[rest % 13]}${VOWELS[Math.floor(rest / 13) % 5]}`;
  }
  return `${word}x`;
}

const QUESTION = `what did we decide about ${spell(40)} and ${spell(300)} in ${spell(7)}?`;

interface Case {
  readonly name: string;
  readonly request: Record<string, unknown>;
  /** The question for the bare query to compare with. */
  readonly bare?: string;
}

const CASES: readonly Case[] = [
  {
    name: "rare word",
    request: { pattern: spell(29_000), mode: "full_text", allConversations: true },
    bare: spell(29_000),
  },
  {
    name: "two common words",
    request: { pattern: `${spell(2)} ${spell(5)}`, mode: "full_text", allConversations: true },
    bare: `${spell(2)} ${spell(5)}`,
  },
  {
    name: "question, everywhere",
    request: { pattern: QUESTION, mode: "full_text", allConversations: true },
    bare: QUESTION,
  },
  { name: "question, one family", request: { pattern: QUESTION, mode: "full_text" } },
  {
    name: "phrase",
    request: { pattern: `"${spell(12)} ${spell(30)}"`, mode: "full_text", allConversations: true },
    bare: `"${spell(12)} ${spell(30)}"`,
  },
  {
    name: "absent word",
    request: { pattern: "chrysanthemum", mode: "full_text", allConversations: true },
    bare: "chrysanthemum",
  },
  {
    name: "regex with a literal, no hit",
    request: { pattern: "chrysanthemum\\d+", allConversations: true, scope: "messages" },
  },
  {
    name: "regex without, no hit",
    request: { pattern: "[xyz]{3}\\d{9}", allConversations: true, scope: "messages" },
  },
];

export async function run(args: readonly string[]): Promise<BenchResult> {
  const sizes = [10_000, 100_000, ...(args.includes("--million") ? [1_000_000] : [])];
  const rows: Record<string, string | number>[] = [];
  for (const size of sizes) {
    const folder = mkdtempSync(path.join(tmpdir(), "lossless-search-"));
    const database = path.join(folder, "lcm.db");
    try {
      await withEngine(database, (engine) => fill(engine, size));
      for (const one of CASES)
        rows.push(await withEngine(database, (engine) => measure(engine, database, size, one)));
      rows.push(await withEngine(database, (engine) => measureAsk(engine, size)));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return {
    name: "search latency, ms",
    rows,
    notes: [
      "first: the first search of an engine that was just opened and has read nothing; bare: FTS5 with the same terms, OR, best 50",
      "goals at 100,000: a regex without a hit under 50 ms with a literal and under 500 without, the first included; ask under 150",
      "goals at 1,000,000: a question in one family under 100 ms (p95), everywhere at most 2 × bare",
    ],
  };
}

/** Each question runs in a new engine, whose thread has started and whose caches are empty. */
async function withEngine<T>(database: string, work: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await openEngine({ database });
  try {
    await engine.status();
    return await work(engine);
  } finally {
    await engine.close();
  }
}

async function fill(engine: Engine, size: number): Promise<void> {
  const families = Math.max(1, Math.ceil(size / FAMILY));
  let state = 1;
  const chance = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (let made = 0; made < size; made += BATCH) {
    const family = (made / BATCH) % families;
    const messages = Array.from({ length: BATCH }, (_, i): Arrival => {
      const words = Array.from({ length: 15 + Math.floor(chance() * 60) }, () =>
        spell(Math.floor(chance() ** -0.9) % 30_000),
      );
      return {
        eventId: `e${made + i}`,
        createdAt: 1_700_000_000_000 + (made + i) * 1_000,
        message: { role: i % 2 === 0 ? "user" : "assistant", content: `${words.join(" ")}.` },
      };
    });
    await engine.ingest({ session: { key: `bench:${family}`, id: `s${family}`, owner: OWNER }, messages });
  }
}

async function measure(
  engine: Engine,
  database: string,
  size: number,
  one: Case,
): Promise<Record<string, string | number>> {
  const times = await repeat(async () => {
    const { signal: _signal, ...request } = { signal: undefined, ...one.request };
    await engine.grep({ session: { key: "bench:0", owner: OWNER }, ...(request as { pattern: string }) });
  });
  const row = { messages: size, question: one.name, ...times };
  return one.bare === undefined ? row : { ...row, bare: measureBare(database, one.bare) };
}

async function measureAsk(engine: Engine, size: number): Promise<Record<string, string | number>> {
  const times = await repeat(async () => {
    await engine.ask({ session: { key: "bench:0", owner: OWNER }, prompt: QUESTION });
  });
  return { messages: size, question: "ask, without a model", ...times };
}

async function repeat(work: () => Promise<void>): Promise<{ first: number; median: number; p95: number }> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    await work();
    times.push(performance.now() - started);
  }
  const [first = 0, ...rest] = times;
  const sorted = rest.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    Number((sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(1));
  return { first: Number(first.toFixed(1)), median: at(0.5), p95: at(0.95) };
}

function measureBare(database: string, question: string): number {
  const connection = new DatabaseSync(database, { readOnly: true });
  const match = buildClues(analyzeQuery(question))
    .map(({ sought }) => toMatch(sought))
    .join(" OR ");
  const statement = connection.prepare(
    "SELECT rowid FROM messages_fts_1 WHERE messages_fts_1 MATCH ? ORDER BY rank LIMIT 50",
  );
  const times = Array.from({ length: 5 }, () => {
    const started = performance.now();
    statement.all(match);
    return performance.now() - started;
  });
  connection.close();
  return Number((times.toSorted((a, b) => a - b)[2] ?? 0).toFixed(1));
}
