/**
 * The time to store compared with the floor: single messages, turns of four, and imports, in archives of several sizes. Floor and archive
 * alternate slice by slice, and so do a small and a large archive, so that other load affects all alike; the result is the median of the ratios
 * of neighbouring slices.
 */
import { join } from "node:path";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import type { TemporaryFolder } from "@lossless/testkit/temporary.ts";
import { Floor } from "./archive-floor.ts";
import { MessageSource, TURN_MESSAGES } from "./archive-messages.ts";
import type { GeneratedMessage } from "./archive-messages.ts";

export interface Workload {
  readonly name: string;
  /** Messages per transaction. */
  readonly commit: number;
  /** Messages per slice: enough for occasional checkpoints of the write-ahead log. */
  readonly slice: number;
  /** Commit size for filling the archive before the measurement; live workloads use a few turns at a time, to get there sooner. */
  readonly fill: number;
}

const IMPORT_BATCH = 500;
const LIVE_FILL = 5 * TURN_MESSAGES;
export const SINGLE: Workload = { name: "single messages", commit: 1, slice: 100, fill: LIVE_FILL };
export const TURNS: Workload = { name: "turns of four", commit: TURN_MESSAGES, slice: 200, fill: LIVE_FILL };
export const IMPORT: Workload = {
  name: "imports",
  commit: IMPORT_BATCH,
  slice: IMPORT_BATCH,
  fill: IMPORT_BATCH,
};

export interface SpeedResult {
  readonly workload: Workload;
  readonly size: number;
  readonly floorUs: number;
  readonly oursUs: number;
  readonly ratio: number;
  /** Cost per message here divided by the cost in the small archive measured alongside; 1 for the small one itself. */
  readonly floorGrowth: number;
  readonly oursGrowth: number;
}

const SESSION_MESSAGES = 2_000;
/** The small archive has 2,000 messages on average: it is measured from this size to the next, then recreated. */
const SMALL_FROM = 1_000;
const SMALL_TO = 3_000;
const SLICES = 24;
/** Concurrent calls while filling, which is not measured. */
const FILL_LANES = 4;

/** The floor and the archive, fed with the same messages. */
class Pair {
  readonly #folder: TemporaryFolder;
  readonly #floor: Floor;
  readonly #engine: Engine;
  readonly #source: MessageSource;
  #count = 0;

  private constructor(folder: TemporaryFolder, engine: Engine, seed: number) {
    this.#folder = folder;
    this.#engine = engine;
    this.#floor = new Floor(join(folder.path, "floor.db"));
    this.#source = new MessageSource(seed);
  }

  static async open(seed: number, thread = true): Promise<Pair> {
    const folder = makeTemporaryFolder("lossless-bench-");
    return new Pair(folder, await openEngine({ database: folder.file("lcm.db"), thread }), seed);
  }

  get count(): number {
    return this.#count;
  }

  async fill(messages: number, commit: number, onProgress: (done: number) => void): Promise<void> {
    const pending: Promise<unknown>[] = [];
    while (this.#count < messages) {
      const batch = this.#take(commit);
      pending.push(this.#ingest(batch, commit));
      this.#floor.insert(batch);
      if (pending.length >= FILL_LANES) await pending.shift();
      if (this.#count % SESSION_MESSAGES === 0) onProgress(this.#count);
    }
    await Promise.all(pending);
  }

  /** Microseconds per message of the next slice, in the floor and in the archive. */
  async measure(
    { commit, slice }: Workload,
    floorFirst: boolean,
    readUs: () => number = readWallUs,
  ): Promise<{ floorUs: number; oursUs: number }> {
    const messages = this.#take(slice);
    const commits = Array.from({ length: slice / commit }, (_, i) =>
      messages.slice(i * commit, (i + 1) * commit),
    );
    const runFloor = (): number => {
      const start = readUs();
      for (const batch of commits) this.#floor.insert(batch);
      return (readUs() - start) / slice;
    };
    const runOurs = async (): Promise<number> => {
      const start = readUs();
      for (const batch of commits) await this.#ingest(batch, commit);
      return (readUs() - start) / slice;
    };
    if (floorFirst) return { floorUs: runFloor(), oursUs: await runOurs() };
    const oursUs = await runOurs();
    return { floorUs: runFloor(), oursUs };
  }

  async close(): Promise<void> {
    this.#floor.close();
    await this.#engine.close();
    this.#folder[Symbol.dispose]();
  }

  #take(count: number): GeneratedMessage[] {
    this.#count += count;
    return this.#source.take(count);
  }

  async #ingest(batch: readonly GeneratedMessage[], commit: number): Promise<unknown> {
    const id = `session-${Math.floor(this.#count / SESSION_MESSAGES)}`;
    const session = { key: `agent:main:${id}`, id, owner: "main" };
    // An importer passes the bytes of lines, a host passes objects and names the turn.
    if (commit === IMPORT_BATCH) {
      return this.#engine.ingest({
        session,
        messages: batch.map(({ eventId, bytes }) => ({ eventId, bytes })),
      });
    }
    const messages = batch.map(({ eventId, message }) => ({ eventId, message }));
    const advancementKey = `${id}/${batch[0]?.eventId}`;
    return this.#engine.ingest({
      session,
      messages,
      turn: commit === TURN_MESSAGES ? { advancementKey } : undefined,
    });
  }
}

/** Measures workloads in an archive of a given size, alternating with a small one. */
export async function measureSpeed(
  size: number,
  workloads: readonly [Workload, ...Workload[]],
  onProgress: (text: string) => void,
): Promise<{ small: SpeedResult; large: SpeedResult }[]> {
  const [{ fill }] = workloads;
  const large = await Pair.open(size);
  let small = await openSmall(fill);
  try {
    await large.fill(size, fill, (done) => onProgress(`filling ${done}/${size} in commits of ${fill}`));
    const samples = new Map(workloads.map((workload) => [workload, [] as Sample[]]));
    for (let i = 0; i < SLICES; i++) {
      if (small.count >= SMALL_TO) {
        await small.close();
        small = await openSmall(fill);
      }
      for (const [workload, list] of samples) {
        const floorFirst = i % 2 === 0;
        const smallSlice = await small.measure(workload, floorFirst);
        list.push({ small: smallSlice, large: await large.measure(workload, floorFirst) });
      }
      onProgress(`measuring at ${size}: slice ${i + 1}/${SLICES}`);
    }
    return [...samples].map(([workload, list]) => summarize(workload, size, list));
  } finally {
    await small.close();
    await large.close();
  }
}

/**
 * Processor time instead of wall time: the work of both in this thread, without the disk, other processes, and the round trip to a worker. On a
 * busy machine this is the number to trust.
 */
export async function measureWork(workload: Workload): Promise<SpeedResult> {
  const pair = await Pair.open(3, false);
  try {
    await pair.fill(SMALL_FROM, workload.fill, () => undefined);
    const samples: Sample[] = [];
    for (let i = 0; i < SLICES; i++) {
      const slice = await pair.measure(workload, i % 2 === 0, readThreadUs);
      samples.push({ small: slice, large: slice });
    }
    return summarize(workload, SMALL_FROM + SLICES * workload.slice, samples).large;
  } finally {
    await pair.close();
  }
}

const readWallUs = (): number => performance.now() * 1000;

function readThreadUs(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

async function openSmall(fill: number): Promise<Pair> {
  const pair = await Pair.open(2);
  await pair.fill(SMALL_FROM, fill, () => undefined);
  return pair;
}

interface Sample {
  readonly small: { readonly floorUs: number; readonly oursUs: number };
  readonly large: { readonly floorUs: number; readonly oursUs: number };
}

function summarize(
  workload: Workload,
  size: number,
  samples: readonly Sample[],
): { small: SpeedResult; large: SpeedResult } {
  const side = (key: "small" | "large"): Pick<SpeedResult, "workload" | "floorUs" | "oursUs" | "ratio"> => ({
    workload,
    floorUs: median(samples.map((sample) => sample[key].floorUs)),
    oursUs: median(samples.map((sample) => sample[key].oursUs)),
    ratio: median(samples.map((sample) => sample[key].oursUs / sample[key].floorUs)),
  });
  return {
    small: { ...side("small"), size: 2_000, floorGrowth: 1, oursGrowth: 1 },
    large: {
      ...side("large"),
      size,
      floorGrowth: median(samples.map(({ small, large }) => large.floorUs / small.floorUs)),
      oursGrowth: median(samples.map(({ small, large }) => large.oursUs / small.oursUs)),
    },
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? 0)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
