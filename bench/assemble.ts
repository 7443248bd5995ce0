/**
 * The cost of a context compared with the floor of reading and parsing the chosen bodies, for several sizes of history with the same context:
 * ten summaries over everything old, then the newest turns word for word. Ours and the floor alternate, and so do the sizes, so that other load
 * affects all alike. Both wall time and processor time are shown; the goals use one of them depending on whether the machine was quiet, and the
 * notes say which.
 *
 * `npm run bench -- assemble [--sizes 2000,20000,200000,1000000] [--rounds 40]`
 */
import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import type { AssembledContext } from "@lossless/core";
import type { RunKey } from "@lossless/core/ports";
import { decodeBody } from "@lossless/core/testing";
import { MessageSource } from "./archive-messages.ts";
import { Archive, median, readRounds, readSizes, round, showProgress, textOf } from "./history.ts";
import { chooseClock, startTiming } from "./timing.ts";
import type { Clock, Timing } from "./timing.ts";
import type { BenchResult } from "./report.ts";

type Row = Record<string, string | number>;

const DEFAULT_SIZES = [2_000, 20_000, 200_000, 1_000_000];
const DEFAULT_ROUNDS = 40;
/** An engine runs for hours: exclude the time to compile it. */
const WARM_UP_ROUNDS = 60;
/** The newest messages, the same in each archive. */
const RECENT_MESSAGES = 400;
const TOP_SUMMARIES = 10;
const FANOUT = 10;
const MAX_LEAF_MESSAGES = 2_000;
const SUMMARY_TOKENS = 1_800;
/** The first shows everything, like a context that is folded in time; the others are tight and show only a part. */
const BUDGETS = [200_000, 64_000, 16_000];
const MAX_GROWTH = 1.3;
const MAX_RATIO = 2;

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const rounds = readRounds(args, DEFAULT_ROUNDS);
  const subjects: Subject[] = [];
  try {
    for (const size of readSizes(args, DEFAULT_SIZES)) subjects.push(await Subject.build(size));
    const measured: Measured[] = [];
    for (const budgetTokens of BUDGETS)
      measured.push({ budgetTokens, samples: await measureBudget(subjects, budgetTokens, rounds) });
    const clock = chooseClock(
      measured.flatMap(({ samples }) =>
        [...samples.values()].flat().flatMap(({ ours, floor }) => [ours, floor]),
      ),
    );
    const rows = measured.flatMap((budget) => render(budget, clock));
    return { name: "assemble", rows, notes: [clock.note, ...NOTES] };
  } finally {
    for (const subject of subjects) await subject.close();
    showProgress("");
  }
}

const NOTES = [
  "Floor: the rows of the chosen messages and summaries by their ids, decompressed and parsed as JSON. Ours: engine.assemble in the same thread, turn after turn: it has the bodies of the turn before decompressed.",
  "Medians; ratio (ours to the floor) and growth (to the smallest history) are medians over neighbouring measurements.",
];

interface Sample {
  readonly ours: Timing;
  readonly floor: Timing;
}

interface Measured {
  readonly budgetTokens: number;
  readonly samples: ReadonlyMap<Subject, readonly Sample[]>;
}

async function measureBudget(
  subjects: readonly Subject[],
  budgetTokens: number,
  rounds: number,
): Promise<ReadonlyMap<Subject, readonly Sample[]>> {
  const samples = new Map(subjects.map((subject) => [subject, [] as Sample[]]));
  for (let i = -WARM_UP_ROUNDS; i < rounds; i++) {
    showProgress(`${budgetTokens} tokens: round ${i + 1}/${rounds}`);
    for (const [subject, list] of samples) {
      const sample = await subject.measure(budgetTokens, i % 2 === 0);
      if (i >= 0) list.push(sample);
    }
  }
  return samples;
}

function render({ budgetTokens, samples }: Measured, clock: Clock): Row[] {
  const smallest = samples.values().next().value ?? [];
  return [...samples].map(([subject, list]) => {
    const middle = (pick: (sample: Sample) => number): number => round(median(list.map(pick)), 2);
    const ratio = middle(({ ours, floor }) => ours[clock.of] / floor[clock.of]);
    const growth = round(
      median(list.map(({ ours }, i) => ours[clock.of] / (smallest[i]?.ours[clock.of] ?? Infinity))),
      2,
    );
    return {
      budget: budgetTokens,
      messages: subject.size,
      "context tokens": subject.shown(budgetTokens).estimatedTokens,
      bodies: subject.shown(budgetTokens).items.length,
      "ours wall ms": middle(({ ours }) => ours.wallMs),
      "floor wall ms": middle(({ floor }) => floor.wallMs),
      "ours cpu ms": middle(({ ours }) => ours.processorMs),
      "floor cpu ms": middle(({ floor }) => floor.processorMs),
      ratio,
      growth,
      goal: `≤ ${MAX_RATIO}, ≤ ${MAX_GROWTH}`,
      holds: ratio <= MAX_RATIO && growth <= MAX_GROWTH ? "yes" : "NO",
    };
  });
}

/** An archive of a given size whose context is the same as at every other size. */
class Subject {
  readonly size: number;
  readonly #archive: Archive;
  readonly #floor: Floor;
  readonly #shown = new Map<number, AssembledContext>();

  private constructor(size: number, archive: Archive) {
    this.size = size;
    this.#archive = archive;
    this.#floor = new Floor(archive.path);
  }

  static async build(size: number): Promise<Subject> {
    const archive = new Archive();
    await archive.addShort(size - RECENT_MESSAGES, (stored) => showProgress(`storing ${stored}/${size}`));
    await foldAll(archive);
    await archive.add(new MessageSource(1).take(RECENT_MESSAGES));
    await archive.settle();
    return new Subject(size, archive);
  }

  shown(budgetTokens: number): AssembledContext {
    const context = this.#shown.get(budgetTokens);
    if (!context) throw new Error("cannot show a context: none was assembled");
    return context;
  }

  async measure(budgetTokens: number, floorFirst: boolean): Promise<Sample> {
    if (!this.#shown.has(budgetTokens)) await this.#assemble(budgetTokens);
    const before = floorFirst ? this.#measureFloor(budgetTokens) : null;
    const stop = startTiming();
    await this.#assemble(budgetTokens);
    const ours = stop();
    return { ours, floor: before ?? this.#measureFloor(budgetTokens) };
  }

  async close(): Promise<void> {
    this.#floor.close();
    await this.#archive.close();
  }

  async #assemble(budgetTokens: number): Promise<void> {
    const context = await this.#archive.engine.assemble({ conversationId: 1, budgetTokens });
    if (context) this.#shown.set(budgetTokens, context);
  }

  #measureFloor(budgetTokens: number): Timing {
    const { items } = this.shown(budgetTokens);
    const stop = startTiming();
    this.#floor.read(items);
    return stop();
  }
}

/** The minimum work of any assembly: fetch the chosen rows, decompress, parse. */
class Floor {
  readonly #database: DatabaseSync;
  readonly #message: StatementSync;
  readonly #summary: StatementSync;

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { readOnly: true });
    this.#message = this.#database.prepare(
      "SELECT body, encoding, arrival_bytes FROM messages WHERE message_id = ?",
    );
    this.#summary = this.#database.prepare("SELECT content FROM summaries WHERE summary_id = ?");
  }

  read(items: AssembledContext["items"]): unknown[] {
    this.#database.exec("BEGIN");
    const bodies: unknown[] = [];
    for (const { messageId, summaryId } of items) {
      if (summaryId !== null) bodies.push(this.#summary.get(summaryId));
      if (messageId === null) continue;
      const row = this.#message.get(messageId) as {
        body: Uint8Array;
        encoding: number;
        arrival_bytes: number;
      };
      const bytes = decodeBody(row, row.arrival_bytes);
      bodies.push(JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")));
    }
    this.#database.exec("COMMIT");
    return bodies;
  }

  close(): void {
    this.#database.close();
  }
}

// ---- folding a history of any length into the same few summaries

async function foldAll(archive: Archive): Promise<void> {
  let summaries = await foldLeaves(archive);
  while (summaries.length > TOP_SUMMARIES) {
    const above: RunKey[] = [];
    for (let at = 0; at < summaries.length; at += FANOUT)
      above.push(await foldRun(archive, summaries.slice(at, at + FANOUT), "cover"));
    summaries = above;
  }
  await foldRun(archive, summaries, "reserve");
}

/** The number of leaves that gives, fanout by fanout, exactly the wanted number at the top. */
async function foldLeaves(archive: Archive): Promise<RunKey[]> {
  let leaves = TOP_SUMMARIES * FANOUT;
  while (archive.stored / leaves > MAX_LEAF_MESSAGES) leaves *= FANOUT;
  const keys: RunKey[] = [];
  let after: string | null = null;
  for (let leaf = 0; leaf < leaves; leaf++) {
    const limit =
      Math.floor((archive.stored * (leaf + 1)) / leaves) - Math.floor((archive.stored * leaf) / leaves);
    const page = await archive.engine.listMessages({ conversationId: 1, after, limit });
    after = page.next;
    const run = page.items.map(({ messageId, position, seq }) => ({
      startPosition: position,
      seq,
      hidden: 0,
      versionId: messageId,
      summaryId: null,
    }));
    keys.push(await foldRun(archive, run, "cover"));
    showProgress(`folding ${archive.stored}: leaf ${leaf + 1}/${leaves}`);
  }
  return keys;
}

let summaryCount = 0;

async function foldRun(
  archive: Archive,
  run: readonly RunKey[],
  state: "cover" | "reserve",
): Promise<RunKey> {
  const summaryId = `sum_${(++summaryCount).toString(16).padStart(16, "0")}`;
  const text = {
    content: textOf(SUMMARY_TOKENS),
    tokens: SUMMARY_TOKENS + 200,
    model: "bench/instant",
    level: "normal" as const,
  };
  const summary = { summaryId, ...text };
  const isRoot = state === "reserve";
  const outcome = await archive.store.storeSummary({
    conversationId: 1,
    run,
    summary,
    state,
    isRoot,
    now: Date.now(),
  });
  const first = run[0];
  if (outcome.kind === "stale" || !first)
    throw new Error("cannot fold the history: the run is not what was stored");
  return { startPosition: first.startPosition, seq: first.seq, hidden: 0, versionId: null, summaryId };
}
