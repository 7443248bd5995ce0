/**
 * A team on one server: gateways that store turns, workers that fold, one of them killed again and again, and the server restarted twice. Nothing is
 * lost or doubled, each conversation keeps its order, no work is paid twice, and the archive proves.
 * `LCM_SOAK=20 npm run test:soak -- packages/cli/test/team-postgres.test.ts` is the whole of it (200,000 messages); it prints its numbers.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Engine } from "@lossless/core";
import { makeRandom } from "@lossless/testkit";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import type { PostgresServer } from "@lossless/testkit/postgres-server.ts";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import {
  eventIdsOf,
  sessionOf,
  sharedEventOf,
  TEAM_SESSION,
  TURN_MESSAGES,
} from "@lossless/testkit/team-writer.ts";
import type { TeamOrders } from "@lossless/testkit/team-writer.ts";
import { openEngine } from "lossless-claw";
import { afterAll, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope } from "./support.ts";
import { ANSWER_TOKENS, look, startCountingModel, startWorker } from "./worker-stage.ts";
import type { CountingModel } from "./worker-stage.ts";

const folder = makeFolder();
const lcm = createRunner(folder.path);
afterAll(() => folder.remove());

const PROGRAM = fileURLToPath(import.meta.resolve("@lossless/testkit/team-writer.ts"));
const WRITERS = isSoak ? 10 : 3;
const WORKERS = isSoak ? 3 : 2;
const MESSAGES = rounds({ test: 1_200, soak: 10_000 });
const TURNS = Math.ceil(MESSAGES / TURN_MESSAGES / WRITERS);
const CONVERSATIONS = Math.max(2, Math.ceil(TURNS / 250));
/** At least so often a process is killed, spread over the run; and one every few seconds. */
const MIN_KILLS = isSoak ? 20 : 4;
const KILL_EVERY_MS = 5_000;
const RESTARTS = ["immediate", "fast"] as const;
/** A new process sends again what the one before it has stored for certain. */
const SENT_AGAIN = 3;
/** Fewer and larger summaries in the long run, where there are enough of them, and no limit to what they may cost. */
const SUMMARIES: CountingModel["env"] = {
  LCM_SUMMARY_MAX_TOKENS_PER_WINDOW: "1000000000",
  ...(isSoak ? { LCM_LEAF_CHUNK_TOKENS: "4000" } : {}),
};
const WORK = ["--budget", "6000", "--lease", "30", "--poll", "0.5"];
/** The long run takes longer than anything else, above all on a busy machine: each process that is killed starts again. */
const LIMIT_MS = HANG_LIMIT_MS * Math.max(1, MESSAGES / 10_000);

/** One place in the team: a process, and another one after each kill. */
abstract class Member {
  kills = 0;
  protected child: ChildProcess | null = null;
  protected isOver = false;
  /** It has said something since it was started: on a busy machine, one that is killed before that would never come to its work. */
  #isAtWork = false;

  protected abstract launch(): ChildProcess;
  protected abstract onEnd(code: number | null, errors: string): void;

  start(): void {
    const child = this.launch();
    this.child = child;
    this.#isAtWork = false;
    let errors = "";
    for (const stream of [child.stdout, child.stderr]) stream?.once("data", () => (this.#isAtWork = true));
    child.stderr?.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4_000)));
    child.once("close", (code: number | null, signal: string | null) => {
      if (signal === "SIGKILL" && !this.isOver) this.start();
      else this.onEnd(code, errors);
    });
  }

  /** Leaves nobody behind when the test has failed. */
  end(): void {
    this.isOver = true;
    this.child?.kill("SIGKILL");
  }

  kill(): boolean {
    if (this.isOver || !this.#isAtWork || this.child?.exitCode !== null || this.child.signalCode !== null)
      return false;
    this.kills += 1;
    return this.child.kill("SIGKILL");
  }
}

class Writer extends Member {
  /** Turns that are stored for certain: all before this one. */
  stored = 0;
  readonly done: Promise<void>;
  readonly #orders: Omit<TeamOrders, "from">;
  readonly #settled = Promise.withResolvers<void>();

  constructor(orders: Omit<TeamOrders, "from">) {
    super();
    this.#orders = orders;
    this.done = this.#settled.promise;
    this.start();
  }

  protected launch(): ChildProcess {
    const orders: TeamOrders = { ...this.#orders, from: Math.max(0, this.stored - SENT_AGAIN) };
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(orders)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let line = "";
    child.stdout.on("data", (chunk: Buffer) => {
      const lines = (line + chunk.toString()).split("\n");
      // A line that was cut by the kill was not told.
      line = lines.pop() ?? "";
      this.stored = Math.max(this.stored, ...lines.map((turn) => Number(turn) + 1));
    });
    return child;
  }

  protected onEnd(code: number | null, errors: string): void {
    this.isOver = true;
    if (code === 0 && this.stored === this.#orders.turns) this.#settled.resolve();
    else this.#settled.reject(new Error(`a writer ended with ${code} after ${this.stored} turns: ${errors}`));
  }
}

class Worker extends Member {
  readonly #args: readonly string[];
  readonly #env: CountingModel["env"];
  failure: string | null = null;

  constructor(database: string, env: CountingModel["env"]) {
    super();
    this.#args = ["--db", database, ...WORK];
    this.#env = { ...env, ...SUMMARIES, NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" };
    this.start();
  }

  protected launch(): ChildProcess {
    return startWorker(folder.path, this.#args, this.#env).child;
  }

  protected onEnd(code: number | null, errors: string): void {
    // It waits for a server that is down, also at its start.
    if (!this.isOver) this.failure = `a worker ended with ${code}: ${errors}`;
  }

  async stop(): Promise<void> {
    this.isOver = true;
    if (this.child?.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "close");
    this.child.kill("SIGTERM");
    await ended;
  }
}

/** Kills one of the team every few seconds and at some points of the way, and restarts the server at others, until all is stored. */
async function disturb(
  server: PostgresServer,
  writers: readonly Writer[],
  workers: readonly Worker[],
): Promise<void> {
  const random = makeRandom(15);
  const everybody = [...writers, ...workers];
  const share = (): number => writers.reduce((sum, { stored }) => sum + stored, 0) / (WRITERS * TURNS);
  let [steps, restarts, killedAt] = [0, 0, performance.now()];
  while (share() < 1) {
    const now = performance.now();
    if (share() * (RESTARTS.length + 1) >= restarts + 1) {
      await server.restart(RESTARTS[restarts % RESTARTS.length]);
      restarts += 1;
    } else if (now - killedAt > KILL_EVERY_MS || share() * (MIN_KILLS + 1) >= steps + 1) {
      steps = Math.max(steps, Math.floor(share() * (MIN_KILLS + 1)));
      if (random.pick(everybody).kill()) killedAt = now;
    }
    await Promise.race([
      Promise.all(writers.map(({ done }) => done)),
      new Promise((resolve) => setTimeout(resolve, 50)),
    ]);
  }
  expect(restarts).toBe(RESTARTS.length);
}

async function readEventIds(engine: Engine, conversationId: number): Promise<string[]> {
  const ids: string[] = [];
  for (let after: string | null = null; ;) {
    const page = await engine.listMessages({ conversationId, after, limit: 1_000, order: "arrival" });
    ids.push(...page.items.map(({ eventId }) => eventId));
    if (page.next === null) return ids;
    after = page.next;
  }
}

/** Every event of every conversation, once, in the order in which it was said. */
async function expectAllStored(engine: Engine): Promise<number> {
  const turns = Array.from({ length: TURNS }, (_, turn) => turn);
  const shared = turns.map(sharedEventOf).filter((id) => id !== null);
  const expected = new Map<string, string[]>();
  for (let writer = 0; writer < WRITERS; writer++)
    for (let at = 0; at < CONVERSATIONS; at++)
      expected.set(
        sessionOf(writer, at).key,
        turns.filter((turn) => turn % CONVERSATIONS === at).flatMap(eventIdsOf),
      );
  const { items } = await engine.listConversations({ limit: 1_000 });
  expect(items.map(({ sessionKey }) => sessionKey).toSorted()).toEqual(
    [...expected.keys(), TEAM_SESSION.key].toSorted(),
  );
  for (const { conversationId, sessionKey } of items) {
    const ids = await readEventIds(engine, conversationId);
    // Who of the team is the first to store a common event is chance; that it is stored once is not.
    if (sessionKey === TEAM_SESSION.key) expect(ids.toSorted()).toEqual(shared.toSorted());
    else expect(ids).toEqual(expected.get(sessionKey));
  }
  return WRITERS * TURNS * TURN_MESSAGES + shared.length;
}

/** What the ledger has of answers, each with the tokens that the model says. */
async function countStoredAnswers(engine: Engine): Promise<number> {
  const [all] = await engine.spend({ since: 0, by: "all" });
  return (all?.outputTokens ?? 0) / ANSWER_TOKENS;
}

describePostgres("a team on one server", (server) => {
  test(
    "loses, doubles and pays nothing twice while processes are killed and the server restarts",
    async () => {
      const database = await server.createDatabase();
      const model = await startCountingModel();
      const started = performance.now();
      const seconds = (): number => Math.round((performance.now() - started) / 1000);
      // The first to write to it makes the tables; a worker that comes before it finds no archive.
      await (await openEngine({ database, thread: false })).close();
      const writers = Array.from(
        { length: WRITERS },
        (_, writer) => new Writer({ database, writer, conversations: CONVERSATIONS, turns: TURNS }),
      );
      const workers = Array.from({ length: WORKERS }, () => new Worker(database, model.env));
      try {
        await disturb(server, writers, workers);
        await Promise.all(writers.map(({ done }) => done));
        const storedAfter = seconds();
        const last = await lcm(["worker", "--once", "--json", "--db", database, ...WORK], {
          env: { ...model.env, ...SUMMARIES },
        });
        expect(parseEnvelope(last).data).toMatchObject({ failures: 0 });
        await Promise.all(workers.map((worker) => worker.stop()));
        expect(workers.map(({ failure }) => failure)).toEqual(workers.map(() => null));
        const foldedAfter = seconds();

        const answered = model.calls.filter(({ isAnswered }) => isAnswered).map(({ prompt }) => prompt);
        const repeated = answered.length - new Set(answered).size;
        const count = (members: readonly Member[]): number =>
          members.reduce((sum, { kills }) => sum + kills, 0);
        // An answer that was stored is never asked for again; what a worker had not stored yet when it was killed, or ended while another did
        // the last of the work, may be.
        const stored = await look(database, countStoredAnswers);
        expect(answered.length - stored).toBeLessThanOrEqual(count(workers) + WORKERS);
        expect(repeated).toBeLessThanOrEqual(answered.length - stored);
        expect(answered.length).toBeGreaterThan(WRITERS);

        const figures = await look(database, async (engine) => {
          const messages = await expectAllStored(engine);
          const { summaries } = await engine.status();
          const provenAt = performance.now();
          expect(await engine.verify()).toMatchObject({ ok: true, problems: [], messages });
          return { messages, summaries, verifySeconds: Math.round((performance.now() - provenAt) / 1000) };
        });
        console.log("a team on one server", {
          ...figures,
          processes: WRITERS,
          workers: WORKERS,
          storedAfterSeconds: storedAfter,
          messagesPerSecond: Math.round(figures.messages / Math.max(1, storedAfter)),
          foldedAfterSeconds: foldedAfter,
          killedWriters: count(writers),
          killedWorkers: count(workers),
          restarts: RESTARTS.length,
          modelCalls: model.calls.length,
          answered: answered.length,
          answersStored: stored,
          paidAgainAfterKill: repeated,
        });
      } finally {
        for (const member of [...writers, ...workers]) member.end();
        await model.close();
      }
    },
    LIMIT_MS,
  );
});
