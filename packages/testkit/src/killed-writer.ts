/** Kills a writer repeatedly, between two acts or in the middle of a write: no acknowledged event is lost, nothing is duplicated, and no batch is partly stored. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { expect } from "vitest";
import { listCrashBatches, makeCrashEvent } from "./crash-writer.ts";
import { makeRandom } from "./random.ts";
import type { Random } from "./random.ts";

const PROGRAM = fileURLToPath(import.meta.resolve("./crash-writer.ts"));
const SEED = 4_711;
const MAX_ACKNOWLEDGED = 120;
const MAX_WAIT_MS = 40;
/** At which write of the storing thread it is killed at most; a batch has about ten. */
const MAX_WRITES = 400;

export interface KilledWriter {
  readonly database: string;
  /** How often it is killed. */
  readonly rounds: number;
  /** The path of `strace`: then every second kill is at a write to the disk. */
  readonly tracer?: string | null;
  /** Runs while it writes, before it is killed. */
  readonly meanwhile?: () => Promise<void>;
}

/** Runs the writer from a given event and kills it some time after some acknowledged events. Returns what was acknowledged. */
async function writeAndKill(
  { database, meanwhile }: KilledWriter,
  start: number,
  random: Random,
  tracer: string | null,
): Promise<string[]> {
  const enough = tracer === null ? random.below(MAX_ACKNOWLEDGED) : Infinity;
  const waitMs = random.next() < 0.5 ? 0 : random.below(MAX_WAIT_MS);
  const command = [process.execPath, PROGRAM, database, String(SEED), String(start)];
  const [program = "", ...args] =
    tracer === null ? command : [tracer, ...killAtWrite(1 + random.below(MAX_WRITES)), ...command];
  const child = spawn(program, args);
  let output = "";
  let errors = "";
  let doomed = false;
  const kill = async (): Promise<void> => {
    await meanwhile?.();
    if (waitMs === 0) child.kill("SIGKILL");
    else setTimeout(() => child.kill("SIGKILL"), waitMs);
  };
  child.stderr.on("data", (data: Buffer) => (errors += data.toString()));
  child.stdout.on("data", (data: Buffer) => {
    output += data.toString();
    if (doomed || output.split("\n").length <= enough) return;
    doomed = true;
    void kill();
  });
  const [, signal] = (await once(child, "close")) as [number | null, string | null];
  if (signal !== "SIGKILL") throw new Error(`the writer ended by itself: ${errors}`);
  // A line that the kill cut off does not count.
  return output.split("\n").slice(0, -1);
}

/** Arguments of `strace`: the process dies when it begins its nth write at a place in a file. */
const killAtWrite = (nth: number): string[] =>
  `-f -qq -o /dev/null -e trace=pwrite64 -e inject=pwrite64:signal=SIGKILL:when=${nth}`.split(" ");

async function readStored(engine: Engine): Promise<{ eventId: string; messageId: number }[]> {
  const conversation = (await engine.listConversations({ limit: 1 })).items[0];
  if (!conversation) return [];
  const { conversationId } = conversation;
  const stored: { eventId: string; messageId: number }[] = [];
  for (let after: string | null = null; ;) {
    const page = await engine.listMessages({ conversationId, after, limit: 1_000, order: "arrival" });
    stored.push(...page.items);
    if (page.next === null) return stored;
    after = page.next;
  }
}

/** Every batch is stored completely or not at all. */
function checkWholeBatches(ids: ReadonlySet<string>): void {
  let left = ids.size;
  for (const { from, to } of listCrashBatches(SEED)) {
    const present = Array.from({ length: to - from }, (_, i) => ids.has(`event-${from + i}`)).filter(
      Boolean,
    ).length;
    expect([0, to - from]).toContain(present);
    left -= present;
    if (left === 0) return;
  }
}

/** Compares the bytes of events: the newest ones, and a random sample. */
async function checkBytes(
  engine: Engine,
  stored: readonly { eventId: string; messageId: number }[],
  random: Random,
): Promise<void> {
  const chosen = [...stored.slice(-5), ...Array.from({ length: 20 }, () => random.pick(stored))];
  for (const { eventId, messageId } of chosen) {
    const body = await engine.readMessage({ messageId });
    const { message } = makeCrashEvent(SEED, Number(eventId.slice("event-".length)));
    expect(Buffer.from(body?.bytes ?? []).toString()).toBe(JSON.stringify(message));
  }
}

export async function killWriters(writer: KilledWriter): Promise<void> {
  const { database, rounds, tracer = null } = writer;
  const random = makeRandom(SEED);
  const acknowledged = new Set<string>();
  let start = 0;
  for (let round = 0; round < rounds; round++) {
    for (const id of await writeAndKill(writer, start, random, round % 2 === 1 ? tracer : null))
      acknowledged.add(id);

    const engine = await openEngine({ database, thread: false });
    const stored = await readStored(engine);
    const ids = new Set(stored.map((row) => row.eventId));
    expect(ids.size).toBe(stored.length);
    expect([...acknowledged].filter((id) => !ids.has(id))).toEqual([]);
    checkWholeBatches(ids);
    if (stored.length > 0) await checkBytes(engine, stored, random);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();

    // The next writer resends events that may have arrived, and some that certainly have.
    start = Math.max(0, acknowledged.size - 30);
  }
  expect(acknowledged.size).toBeGreaterThan(rounds);
}
