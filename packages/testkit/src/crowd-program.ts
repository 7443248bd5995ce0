/**
 * One process of a crowd around one database; `concurrency.test.ts` and `bench/load.ts` fork many. Its first argument is its role: write turns,
 * read forever, meddle with the file, hold the write lock, or only run a timer. It reports to its parent; an error sets its exit status.
 */
import { chmodSync, closeSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { openEngine } from "lossless-claw";
import type { Arrival, Engine } from "@lossless/core";
import { StallProbe } from "./stall-probe.ts";

/** The input of every process of the crowd. */
export interface CrowdOrders {
  readonly database: string;
  readonly name: string;
  readonly turns: number;
  /** Events of the session that all writers share. */
  readonly sharedEvents: number;
}

/** The result of a process. */
export interface CrowdResult {
  readonly kind: "done";
  readonly name: string;
  readonly stored: number;
  readonly known: number;
  readonly rounds: number;
  /** How long a writer waited for its turns. */
  readonly waits?: Waits;
  /** How long its main thread was blocked. */
  readonly stall?: Stall;
}

export interface Waits {
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

export interface Stall {
  /** 99.9 % of the samples found the thread blocked for no longer. */
  readonly p999Ms: number;
  readonly longestMs: number;
}

export const TURN_MESSAGES = 4;
export const SHARED_SESSION = { key: "agent:main:shared", id: "shared", owner: "main" };

export const sharedArrival = (index: number): Arrival => ({
  eventId: `shared-${index}`,
  message: { role: "user", content: `shared note ${index} about the harvest` },
});

/** Pause between two rounds of a reader: ten that never pause would leave the writers no processor, which is not what is tested. */
const PAUSE_MS = 15;

let stopped = false;

const showStall = (probe: StallProbe): Stall => ({
  p999Ms: probe.percentile(0.999),
  longestMs: probe.stallMs,
});

function showWaits(times: Float64Array): Waits {
  const sorted = times.toSorted();
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return { medianMs: at(0.5), p99Ms: at(0.99), longestMs: at(1) };
}

async function write(orders: CrowdOrders): Promise<Omit<CrowdResult, "kind" | "name">> {
  const { name, turns, sharedEvents } = orders;
  const engine = await openEngine({ database: orders.database });
  const session = { key: `agent:main:${name}`, id: name, owner: "main" };
  const outcomes = { stored: 0, known: 0 };
  const times = new Float64Array(turns);
  const probe = new StallProbe();
  for (let turn = 0; turn < turns; turn++) {
    const since = performance.now();
    const own = engine.ingest({
      session,
      messages: makeTurn(name, turn),
      turn: { advancementKey: `${name}/${turn}` },
    });
    // Not awaited in between: one engine takes several concurrent calls, as a busy host makes them.
    const from = Math.floor((turn * sharedEvents) / turns);
    const to = Math.floor(((turn + 1) * sharedEvents) / turns);
    const messages = Array.from({ length: to - from }, (_, i) => sharedArrival(from + i));
    const shared = engine.ingest({ session: SHARED_SESSION, messages });
    for (const { results } of await Promise.all([own, shared])) {
      for (const { outcome } of results) {
        if (outcome === "stored") outcomes.stored += 1;
        else if (outcome === "known") outcomes.known += 1;
        else throw new Error(`an event ended as ${outcome}`);
      }
    }
    times[turn] = performance.now() - since;
  }
  probe.stop();
  await engine.close();
  return { ...outcomes, rounds: turns, waits: showWaits(times), stall: showStall(probe) };
}

export function makeTurn(name: string, turn: number): Arrival[] {
  const id = (step: number): string => `${name}-${turn}-${step}`;
  const call = `call-${name}-${turn}`;
  return [
    { eventId: id(0), message: { role: "user", content: `question ${turn} of ${name}` } },
    {
      eventId: id(1),
      message: {
        role: "assistant",
        content: [{ type: "toolCall", id: call, name: "bash", arguments: { command: "ls" } }],
      },
    },
    {
      eventId: id(2),
      message: {
        role: "toolResult",
        toolCallId: call,
        toolName: "bash",
        content: `result ${turn} of ${name} `.repeat(turn % 20),
      },
    },
    { eventId: id(3), message: { role: "assistant", content: `answer ${turn} of ${name}` } },
  ];
}

/** Reads until it is told to stop, and checks consistency: never fewer messages than before, never half a turn. */
async function read({ database }: CrowdOrders): Promise<Omit<CrowdResult, "kind" | "name">> {
  const engine = await openEngine({ database, readOnly: true, thread: false });
  let seen = 0;
  let rounds = 0;
  for (; !stopped || rounds === 0; rounds++) {
    const status = await engine.status();
    if (status.messages < seen) throw new Error(`saw ${seen} messages, then ${status.messages}`);
    seen = status.messages;
    await engine.search({ query: rounds % 2 === 0 ? "harvest" : "question result", limit: 5 });
    await checkConversations(engine);
    await setTimeout(PAUSE_MS);
  }
  await engine.close();
  return { stored: 0, known: 0, rounds };
}

async function checkConversations(engine: Engine): Promise<void> {
  const { items } = await engine.listConversations({ limit: 10 });
  for (const { conversationId, sessionKey } of items) {
    const page = await engine.listMessages({
      conversationId,
      limit: 8,
      direction: "newest",
      order: "arrival",
    });
    if (sessionKey !== SHARED_SESSION.key && (page.items[0]?.seq ?? 0) % TURN_MESSAGES !== 0) {
      throw new Error(`half a turn is visible in conversation ${conversationId}`);
    }
    const newest = page.items[0];
    if (newest) await engine.readMessage({ messageId: newest.messageId });
  }
}

/** Does what backup tools, scanners and other programs do to a file. */
async function meddle({ database }: CrowdOrders): Promise<Omit<CrowdResult, "kind" | "name">> {
  const header = Buffer.alloc(100);
  let rounds = 0;
  for (; !stopped || rounds === 0; rounds++) {
    const handle = openSync(database, rounds % 2 === 0 ? "r" : "r+");
    readSync(handle, header, 0, header.length, 0);
    closeSync(handle);
    chmodSync(database, rounds % 2 === 0 ? 0o640 : 0o600);
    statSync(database);
    const raw = new DatabaseSync(database, { readOnly: rounds % 3 === 0, timeout: 30_000 });
    raw.prepare("SELECT count(*) FROM messages").get();
    raw.close();
    if (rounds % 10 === 0) await (await openEngine({ database, thread: false })).close();
    await setTimeout(PAUSE_MS);
  }
  chmodSync(database, 0o600);
  return { stored: 0, known: 0, rounds };
}

/** Takes the write lock, reports that, and keeps it until told to stop. */
async function hold({ database }: CrowdOrders): Promise<Omit<CrowdResult, "kind" | "name">> {
  const raw = new DatabaseSync(database, { timeout: 30_000 });
  raw.exec("BEGIN IMMEDIATE");
  process.send?.({ kind: "held" });
  while (!stopped) await setTimeout(PAUSE_MS);
  raw.exec("COMMIT");
  raw.close();
  return { stored: 0, known: 0, rounds: 1 };
}

/** Only runs a timer: the baseline for the others. */
async function idle(): Promise<Omit<CrowdResult, "kind" | "name">> {
  const probe = new StallProbe();
  let rounds = 0;
  for (; !stopped || rounds === 0; rounds++) await setTimeout(PAUSE_MS);
  probe.stop();
  return { stored: 0, known: 0, rounds, stall: showStall(probe) };
}

const ROLES = { write, read, meddle, hold, idle };

export type CrowdRole = keyof typeof ROLES;

if (process.argv[1] === import.meta.filename && process.send) {
  process.on("message", () => (stopped = true));
  process.on("disconnect", () => process.exit(0));
  const orders = JSON.parse(process.argv[3] ?? "{}") as CrowdOrders;
  const report = await ROLES[process.argv[2] as CrowdRole](orders);
  process.send({ kind: "done", name: orders.name, ...report } satisfies CrowdResult, () =>
    process.disconnect(),
  );
}
