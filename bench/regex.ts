/**
 * The cost of a regular expression at 100,000 messages, compared with a pattern without any literal, which has to read every text: the floor of
 * a full scan, measured in the same run. `--size N` sets another size. Each pattern runs in a newly opened engine (cold), then in the same
 * engine again (warm).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import type { BenchResult } from "./report.ts";

const SESSION = { key: "bench:regex", id: "s1", owner: "bench" };
const BATCH = 1_000;
const WARM_ROUNDS = 5;
/** Neither it nor its characters occur anywhere. */
const FULL_SCAN = "[!]+[?]+[#]";
const STEMS =
  "great really parser config upload retry queue index archive budget token stream worker cache report error limit value button".split(
    " ",
  );
/** Few words in text, many in names, as in code. */
const NAMES = STEMS.flatMap((stem) =>
  ["", "er", "ing", "let", "or", "ful", "wise", "less"].map((end) => stem + end),
);

const PATTERNS = [
  "PROJ-42420\\b",
  "src/great/really\\.ts",
  "great_really",
  "PROJ",
  "chrysanthemum\\d+",
  "timed out after \\d+ ms",
];

export async function run(args: readonly string[]): Promise<BenchResult> {
  const size = args.includes("--size") ? Number(args[args.indexOf("--size") + 1]) : 100_000;
  const folder = mkdtempSync(path.join(tmpdir(), "lossless-regex-"));
  const database = path.join(folder, "lcm.db");
  try {
    await withEngine(database, (engine) => fill(engine, size));
    const floor = await measure(database, FULL_SCAN);
    const rows: Record<string, string | number>[] = [];
    for (const pattern of [FULL_SCAN, ...PATTERNS]) {
      const found = pattern === FULL_SCAN ? floor : await measure(database, pattern);
      const share = (name: "cold" | "warm" | "coldWork" | "warmWork"): number =>
        Number((found[name] / floor[name]).toFixed(3));
      rows.push({
        pattern: pattern === FULL_SCAN ? "full scan" : pattern,
        hits: found.hits,
        cold: found.cold,
        warm: found.warm,
        memory: found.memory,
        "cold share": share("cold"),
        "warm share": share("warm"),
        "cold work": share("coldWork"),
        "warm work": share("warmWork"),
      });
    }
    return {
      name: `regular expressions over ${size} messages, ms`,
      rows,
      notes: [
        "goal: a share of at most 0.1, cold and warm, where a literal holds a whole word or identifier or the page is full soon",
        "work: the same share in processor time of all threads, which other programs disturb less; cold, most of it is the start of a thread",
        "memory: what the process has grown by after the pattern, in MB; texts that are kept take at most 32 of them",
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function withEngine<T>(database: string, work: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await openEngine({ database });
  try {
    await engine.status();
    return await work(engine);
  } finally {
    await engine.close();
  }
}

/** A message has one unique name and a few common ones. */
async function fill(engine: Engine, size: number): Promise<void> {
  let state = 1;
  const chance = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const pick = (list: readonly string[]): string => list[Math.floor(chance() * list.length)] ?? "";
  const textOf = (n: number): string => {
    const words = Array.from({ length: 40 + Math.floor(chance() * 80) }, () =>
      chance() < 0.1
        ? `${pick(NAMES)}_${pick(NAMES)}${Math.floor(chance() * 2_000)}`
        : chance() < 0.1
          ? `src/${pick(NAMES)}/${pick(NAMES)}${n % 977}.ts`
          : pick(STEMS),
    );
    const rare = n === Math.floor(size / 2) ? "great_really src/great/really.ts timed out after 300 ms" : "";
    return `PROJ-${n} ${words.join(" ")} ${rare}.`;
  };
  for (let at = 0; at < size; at += BATCH) {
    const messages = Array.from({ length: Math.min(BATCH, size - at) }, (_, i) => ({
      eventId: `e${at + i}`,
      createdAt: 1_700_000_000_000 + (at + i) * 1_000,
      message: { role: i % 2 === 0 ? "user" : "assistant", content: textOf(at + i) },
    }));
    await engine.ingest({ session: SESSION, messages });
  }
}

interface Measured {
  readonly hits: number;
  readonly cold: number;
  readonly warm: number;
  readonly coldWork: number;
  readonly warmWork: number;
  readonly memory: number;
}

async function measure(database: string, pattern: string): Promise<Measured> {
  return withEngine(database, async (engine) => {
    const before = process.memoryUsage().rss;
    const ask = async (): Promise<{ hits: number; ms: number; work: number }> => {
      const started = performance.now();
      const busy = process.cpuUsage();
      const { hits } = await engine.grep({ session: SESSION, pattern, scope: "messages", limit: 20 });
      const { user, system } = process.cpuUsage(busy);
      return { hits: hits.length, ms: performance.now() - started, work: (user + system) / 1_000 };
    };
    const first = await ask();
    const again: { ms: number; work: number }[] = [];
    for (let round = 0; round < WARM_ROUNDS; round++) again.push(await ask());
    const middle = (name: "ms" | "work"): number =>
      again.map((one) => one[name]).toSorted((a, b) => a - b)[Math.floor(WARM_ROUNDS / 2)] ?? 0;
    return {
      hits: first.hits,
      cold: Number(first.ms.toFixed(1)),
      warm: Number(middle("ms").toFixed(1)),
      coldWork: first.work,
      warmWork: middle("work"),
      memory: Math.round((process.memoryUsage().rss - before) / 1e6),
    };
  });
}
