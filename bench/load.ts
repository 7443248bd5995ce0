/**
 * Ten processes and one database: events per second, how long a caller waits for a turn, and whether any process ever gets an error. An eleventh
 * process opens, closes and chmods the file all the time, and some only run a timer: the event loop of a writer may be blocked 20 ms longer than
 * theirs.
 *
 * `npm run bench -- load [--events 5000]`; a million took ten minutes on two busy processors, with the folder for temporary files in memory
 * (`TMPDIR=/dev/shm`).
 */
import { openEngine } from "lossless-claw";
import { CrowdMember } from "@lossless/testkit/crowd.ts";
import { TURN_MESSAGES } from "@lossless/testkit/crowd-program.ts";
import type { CrowdOrders, CrowdResult } from "@lossless/testkit/crowd-program.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { median, round, showProgress } from "./history.ts";
import type { BenchResult } from "./report.ts";

const WRITERS = 10;
const CONTROLS = 3;
const SHARED_EVENTS = 100;
const DEFAULT_EVENTS = 5_000;
const MAX_MORE_STALL_MS = 20;

export interface LoadResult {
  readonly events: number;
  readonly stored: number;
  readonly eventsPerSecond: number;
  /** The output of failed processes. */
  readonly failures: readonly string[];
  /** The number of problems that `verify` found. */
  readonly problems: number;
  readonly writers: readonly CrowdResult[];
  readonly stallMs: number;
  readonly controlMs: number;
}

/** Stores about this many events with ten processes; each has its own session, and all share one. */
export async function loadArchive(events: number): Promise<LoadResult> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const database = folder.file("lcm.db");
  const turns = Math.ceil((events - SHARED_EVENTS) / WRITERS / TURN_MESSAGES);
  await (await openEngine({ database, thread: false })).close();
  const orders = (name: string): CrowdOrders => ({ database, name, turns, sharedEvents: SHARED_EVENTS });
  const onlookers = [
    new CrowdMember("meddle", orders("meddler")),
    ...Array.from({ length: CONTROLS }, (_, at) => new CrowdMember("idle", orders(`control${at}`))),
  ];
  const startedAt = performance.now();
  const writers = Array.from({ length: WRITERS }, (_, at) => new CrowdMember("write", orders(`writer${at}`)));
  const written = await Promise.allSettled(writers.map(({ report }) => report));
  const seconds = (performance.now() - startedAt) / 1000;
  const watched = await Promise.allSettled(onlookers.map((onlooker) => onlooker.stop()));
  const engine = await openEngine({ database, thread: false });
  const { messages } = await engine.status();
  const { problems } = await engine.verify();
  await engine.close();
  const reports = written.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const stallOf = (results: readonly CrowdResult[]): number =>
    median(results.flatMap(({ stall }) => stall?.p999Ms ?? []));
  return {
    events: WRITERS * turns * TURN_MESSAGES + SHARED_EVENTS,
    stored: messages,
    eventsPerSecond: messages / seconds,
    failures: [...written, ...watched].flatMap((end) =>
      end.status === "rejected" ? [String(end.reason)] : [],
    ),
    problems: problems.length,
    writers: reports,
    stallMs: stallOf(reports),
    controlMs: stallOf(watched.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []))),
  };
}

export const isSound = ({ events, stored, failures, problems }: LoadResult): boolean =>
  failures.length === 0 && problems === 0 && stored === events;

export const isLive = ({ stallMs, controlMs }: LoadResult): boolean =>
  stallMs <= controlMs + MAX_MORE_STALL_MS;

function readEvents(args: readonly string[]): number {
  const at = args.indexOf("--events");
  const events = at < 0 ? DEFAULT_EVENTS : Number(args[at + 1]);
  if (Number.isInteger(events) && events >= 1_000) return events;
  throw new Error(`cannot send --events ${args[at + 1]}: name a whole number from 1000 up`);
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const events = readEvents(args);
  showProgress(`sending ${events} events through ${WRITERS} processes`);
  const result = await loadArchive(events);
  showProgress("");
  const waits = result.writers.flatMap(({ waits: own }) => own ?? []);
  const worst = (pick: (wait: (typeof waits)[number]) => number): number => Math.max(...waits.map(pick), 0);
  const yes = (holds: boolean): string => (holds ? "yes" : "NO");
  if (!isSound(result) || !isLive(result)) process.exitCode = 1;
  return {
    name: `Ten processes, one database, ${result.events} events`,
    rows: [
      {
        what: "events stored",
        unit: "",
        found: result.stored,
        goal: `= ${result.events}`,
        holds: yes(result.stored === result.events),
      },
      {
        what: "processes with an error",
        unit: "",
        found: result.failures.length,
        goal: "= 0",
        holds: yes(result.failures.length === 0),
      },
      {
        what: "problems that verify found",
        unit: "",
        found: result.problems,
        goal: "= 0",
        holds: yes(result.problems === 0),
      },
      { what: "speed", unit: "events/s", found: round(result.eventsPerSecond) },
      {
        what: "wait for a turn, median of the slowest writer",
        unit: "ms",
        found: round(
          worst(({ medianMs }) => medianMs),
          1,
        ),
      },
      {
        what: "wait for a turn, p99 of the slowest writer",
        unit: "ms",
        found: round(
          worst(({ p99Ms }) => p99Ms),
          1,
        ),
      },
      { what: "longest wait for a turn", unit: "ms", found: round(worst(({ longestMs }) => longestMs)) },
      { what: "the event loop with a timer alone, p99.9", unit: "ms", found: result.controlMs },
      {
        what: "the event loop of a writer, p99.9",
        unit: "ms",
        found: result.stallMs,
        goal: `≤ ${result.controlMs + MAX_MORE_STALL_MS}`,
        holds: yes(isLive(result)),
      },
    ],
    notes: [
      "A turn has four messages and is one durable transaction. A hundred events are of a session that all ten write.",
      "Event loop: the median of the processes; time in which others had the processor is not counted where the system tells of it.",
      ...result.failures,
    ],
  };
}
