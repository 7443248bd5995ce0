/**
 * How writing to an archive on a server grows with the writers: 1, 2, 4 and 8 processes, each on its own conversation, storing turns of four
 * messages. As many bare clients send the same rows in one batch, alternating with the engines, because other programs run at the same time:
 * each round compares the two directly after each other, in alternating order, and the median round counts. The server runs without fsync, which
 * would slow both by the same amount.
 *
 * `npm run bench -- writers [--seconds 5] [--rounds 3]`
 */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { findPostgres, startPostgres } from "@lossless/testkit/postgres-server.ts";
import { openEngine } from "lossless-claw";
import type { BenchResult } from "./report.ts";

const WRITERS = [1, 2, 4, 8];
const LEAST_SHARE = 0.5;
const BAR_WIDTH = 48;

const readOption = (args: readonly string[], name: string, other: number): number =>
  Number(args[args.indexOf(name) + 1] ?? 0) || other;

type Way = "engine" | "bare";

interface Measured {
  readonly writers: number;
  readonly engine: number;
  readonly bare: number;
}

const WAYS: readonly Way[] = ["engine", "bare"];

/** The median round, by the ratio of the engine to the bare clients. */
function takeMiddle(rounds: readonly Measured[]): Measured {
  const sorted = rounds.toSorted((a, b) => a.engine / a.bare - b.engine / b.bare);
  return sorted[Math.floor((sorted.length - 1) / 2)] as Measured;
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const programs = await findPostgres();
  if (programs === null) throw new Error("PostgreSQL is not installed here");
  const seconds = readOption(args, "--seconds", 5);
  const rounds = readOption(args, "--rounds", 3);
  const server = await startPostgres(programs);
  try {
    const measured: Measured[] = [];
    for (const writers of WRITERS) {
      const compared: Measured[] = [];
      for (let round = 0; round < rounds; round++) {
        const reached = { engine: 0, bare: 0 };
        for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) {
          const address = await server.createDatabase();
          await (await openEngine({ database: address, thread: false })).close();
          reached[way] = await measure(way, address, writers, seconds);
        }
        compared.push({ writers, ...reached });
      }
      measured.push(takeMiddle(compared));
    }
    return report(measured, seconds);
  } finally {
    await server.stop();
  }
}

/** Turns per second of all writers together. */
async function measure(way: Way, address: string, writers: number, seconds: number): Promise<number> {
  const program = path.join(import.meta.dirname, "writers-program.ts");
  const children = Array.from({ length: writers }, (_, i) =>
    fork(program, [way, address, String(i), String(seconds * 1_000)]),
  );
  try {
    await Promise.all(children.map((child) => hear(child)));
    const counted = children.map((child) => hear(child));
    for (const child of children) child.send("go");
    const turns = (await Promise.all(counted)) as { readonly turns: number }[];
    await Promise.all(children.map((child) => child.exitCode ?? once(child, "exit")));
    return turns.reduce((sum, one) => sum + one.turns, 0) / seconds;
  } finally {
    for (const child of children) child.kill();
  }
}

/** The next message of a child; if it exits before that, it failed. */
async function hear(child: ChildProcess): Promise<unknown> {
  const ended = once(child, "exit").then(() => {
    throw new Error("a writer ended before it was done");
  });
  ended.catch(() => undefined);
  const [message] = (await Promise.race([once(child, "message"), ended])) as [unknown];
  return message;
}

function report(measured: readonly Measured[], seconds: number): BenchResult {
  const first = measured[0];
  const most = Math.max(...measured.map(({ engine, bare }) => Math.max(engine, bare)));
  return {
    name: `writers on conversations of their own, turns of four messages a second (${seconds} s each, the round in the middle)`,
    rows: measured.map(({ writers, engine, bare }) => ({
      writers,
      engine: Math.round(engine),
      "bare client": Math.round(bare),
      share: Number((engine / bare).toFixed(2)),
      "of one writer": Number((engine / (first?.engine ?? engine)).toFixed(2)),
      holds: writers < 8 ? "" : engine / bare >= LEAST_SHARE ? "yes" : "NO",
    })),
    notes: [
      measured
        .flatMap(({ writers, engine, bare }) => [
          plot(`${writers} engine`, engine, most),
          plot(`${writers} bare`, bare, most),
        ])
        .join("\n"),
      `bar: eight writers reach at least ${LEAST_SHARE} of eight bare clients`,
    ],
  };
}

const plot = (name: string, value: number, most: number): string =>
  `${name.padStart(8)} ${"█".repeat(Math.round((BAR_WIDTH * value) / most))} ${Math.round(value)}`;
