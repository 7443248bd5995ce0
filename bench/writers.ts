/**
 * How writing to an archive on a server grows with the writers: 1, 2, 4 and 8 processes, each on its own conversation, storing turns of four
 * messages. As many bare clients send the same rows in one batch, alternating with the engines, because other programs run at the same time:
 * each round compares the two directly after each other, in alternating order, and the median round counts. The server runs without fsync, which
 * would slow both by the same amount.
 *
 * Both ways warm up before they are measured: a gateway runs for days, and a process spends most of its first second compiling. Processes share
 * the processors, so more of them take longer to warm up. `--cold` measures from the first turn on.
 *
 * `npm run bench -- writers [--seconds 5] [--rounds 3] [--cold]`
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
const WARM_UP_SECONDS_PER_WRITER = 1.5;

const readOption = (args: readonly string[], name: string, other: number): number =>
  Number(args[args.indexOf(name) + 1] ?? 0) || other;

type Way = "engine" | "bare";

/** Of all writers of one way together. */
interface Rate {
  readonly turnsPerSecond: number;
  /** Processor time of the writers, without the server's. */
  readonly cpuMsPerTurn: number;
}

interface Measured {
  readonly writers: number;
  readonly engine: Rate;
  readonly bare: Rate;
}

const shareOf = ({ engine, bare }: Measured): number => engine.turnsPerSecond / bare.turnsPerSecond;

const WAYS: readonly Way[] = ["engine", "bare"];

/** The median round, by the ratio of the engine to the bare clients. */
function takeMiddle(rounds: readonly Measured[]): Measured {
  const sorted = rounds.toSorted((a, b) => shareOf(a) - shareOf(b));
  return sorted[Math.floor((sorted.length - 1) / 2)] as Measured;
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const programs = await findPostgres();
  if (programs === null) throw new Error("PostgreSQL is not installed here");
  const seconds = readOption(args, "--seconds", 5);
  const rounds = readOption(args, "--rounds", 3);
  const warmUpSeconds = args.includes("--cold") ? 0 : WARM_UP_SECONDS_PER_WRITER;
  const server = await startPostgres(programs);
  try {
    const measured: Measured[] = [];
    for (const writers of WRITERS) {
      const compared: Measured[] = [];
      for (let round = 0; round < rounds; round++) {
        const reached: Partial<Record<Way, Rate>> = {};
        for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) {
          const address = await server.createDatabase();
          await (await openEngine({ database: address, thread: false })).close();
          reached[way] = await measure(way, address, writers, { seconds, warmUp: warmUpSeconds * writers });
        }
        compared.push({ writers, ...(reached as Record<Way, Rate>) });
      }
      measured.push(takeMiddle(compared));
    }
    return report(measured, seconds);
  } finally {
    await server.stop();
  }
}

async function measure(
  way: Way,
  address: string,
  writers: number,
  { seconds, warmUp }: { readonly seconds: number; readonly warmUp: number },
): Promise<Rate> {
  const program = path.join(import.meta.dirname, "writers-program.ts");
  const children = Array.from({ length: writers }, (_, i) =>
    fork(program, [way, address, String(i), String(warmUp * 1_000), String(seconds * 1_000)]),
  );
  try {
    await Promise.all(children.map((child) => hear(child)));
    const counted = children.map((child) => hear(child));
    for (const child of children) child.send("go");
    const reports = (await Promise.all(counted)) as { readonly turns: number; readonly cpuMs: number }[];
    await Promise.all(children.map((child) => child.exitCode ?? once(child, "exit")));
    const turns = reports.reduce((sum, one) => sum + one.turns, 0);
    const cpuMs = reports.reduce((sum, one) => sum + one.cpuMs, 0);
    return { turnsPerSecond: turns / seconds, cpuMsPerTurn: cpuMs / turns };
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
  const first = measured[0]?.engine.turnsPerSecond ?? 1;
  const most = Math.max(
    ...measured.flatMap(({ engine, bare }) => [engine.turnsPerSecond, bare.turnsPerSecond]),
  );
  return {
    name: `writers on conversations of their own, turns of four messages a second (${seconds} s each, the round in the middle)`,
    rows: measured.map((one) => ({
      writers: one.writers,
      engine: Math.round(one.engine.turnsPerSecond),
      "bare client": Math.round(one.bare.turnsPerSecond),
      share: Number(shareOf(one).toFixed(2)),
      "of one writer": Number((one.engine.turnsPerSecond / first).toFixed(2)),
      "engine CPU ms": Number(one.engine.cpuMsPerTurn.toFixed(2)),
      "bare CPU ms": Number(one.bare.cpuMsPerTurn.toFixed(2)),
      holds: one.writers < 8 ? "" : shareOf(one) >= LEAST_SHARE ? "yes" : "NO",
    })),
    notes: [
      measured
        .flatMap(({ writers, engine, bare }) => [
          plot(`${writers} engine`, engine.turnsPerSecond, most),
          plot(`${writers} bare`, bare.turnsPerSecond, most),
        ])
        .join("\n"),
      "CPU ms: processor time of a writer for a turn, without the server's",
      `bar: eight writers reach at least ${LEAST_SHARE} of eight bare clients`,
    ],
  };
}

const plot = (name: string, value: number, most: number): string =>
  `${name.padStart(8)} ${"█".repeat(Math.round((BAR_WIDTH * value) / most))} ${Math.round(value)}`;
