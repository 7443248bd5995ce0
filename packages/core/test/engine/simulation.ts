/**
 * A conversation that everything happens to, drawn from a seed: turns with tool groups, rows found late, revisions, branches that are left
 * and taken up again, heartbeats, soft boundaries and resets, with folds, upkeep and contexts in between, models that fail, and crashes.
 * The same seed gives the same run.
 *
 * A crash is what a killed process leaves: the files as they are at a moment in the middle of an act. The act goes on in vain; then the
 * files of that moment are put back and opened, and the host hands over again whatever the act had handed over.
 */
import { copyFileSync, existsSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

import { makeClock, makeRandom } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";

import { POSITION_STEP, resolveSettings } from "../../src/index.ts";
import { openEngine } from "lossless-claw";
import type { Arrival, Complete, Engine, Settings } from "../../src/index.ts";

import { ArchiveView, findFaults } from "./context-checks.ts";

const session = { key: "agent:main:simulation", id: "simulation", owner: "main" };
const WORDS =
  "seed bed row bench label printer truck order door lamp water soil frost glass north gate price stock crate shelf moss fern".split(
    " ",
  );

interface Event {
  readonly eventId: string;
  readonly position: number;
  version: number;
}

interface Act {
  readonly name: string;
  readonly weight: number;
  readonly run: () => Promise<unknown>;
  /** A host that was killed in the middle of it would do it again. */
  readonly canCrash?: true;
}

export interface SimulationOptions {
  /** Share of the acts in which the process is killed. */
  readonly crashes?: number;
}

/** How many looks at the clock, draws of an id and calls to a model into an act it may be killed; mostly few, as most acts have few. */
const MAX_FUSE = 60;
/** After this long, the lease of a process that was killed has ended. */
const LEASE_ENDED_MS = 200_000;

export class Simulation {
  readonly seed: number;
  readonly trail: string[] = [];
  readonly #database: string;
  readonly #random: Random;
  readonly #events: Event[] = [];
  readonly #acts: readonly Act[];
  #engine: Engine | null = null;
  #line = 0;
  #calls = 0;
  #boundaries = 0;
  #offBranch: readonly string[] = [];
  #skewMs = 0;
  #opened = 0;
  readonly #crashes: number;
  /** Moments until the files are kept as they are; null: not in this act. */
  #fuse: number | null = null;
  #hasImage = false;
  #sent: (readonly Arrival[])[] = [];
  crashed = 0;

  constructor(seed: number, database: string, options: SimulationOptions = {}) {
    this.seed = seed;
    this.#database = database;
    this.#crashes = options.crashes ?? 0;
    this.#random = makeRandom(seed);
    this.#acts = [
      { name: "turn", weight: 30, run: () => this.#appendTurn(), canCrash: true },
      { name: "late row", weight: 6, run: () => this.#appendLate(), canCrash: true },
      { name: "revision", weight: 5, run: () => this.#revise(), canCrash: true },
      { name: "branch", weight: 4, run: () => this.#changeBranch() },
      { name: "heartbeat", weight: 3, run: () => this.#beat(), canCrash: true },
      { name: "new", weight: 1, run: () => this.#recordBoundary("new") },
      { name: "reset", weight: 0.5, run: () => this.#recordBoundary("reset") },
      { name: "compact", weight: 7, run: () => this.#compact(), canCrash: true },
      { name: "maintain", weight: 7, run: () => this.#maintain(), canCrash: true },
      { name: "wait", weight: 1, run: async () => (this.#skewMs += 7_200_000) },
      { name: "reopen", weight: 1, run: () => this.#reopen() },
    ];
  }

  async open(): Promise<void> {
    const clock = makeClock(this.seed + 1_000_000 * this.#opened++);
    const random = this.#random;
    const model: Complete = async () => {
      this.#burn();
      const fate = random.next();
      if (fate < 0.1) return { kind: "failure", failure: "unavailable", message: "busy" };
      if (fate < 0.15) throw new Error("the connection was reset");
      return {
        kind: "text",
        text:
          fate < 0.2 ? "" : `They spoke of ${drawWords(random, 3 + random.below(fate < 0.25 ? 2_000 : 20))}.`,
        model: { provider: "fake", model: "fake" },
        inputTokens: null,
        outputTokens: null,
      };
    };
    this.#engine = await openEngine({
      database: this.#database,
      thread: false,
      settings: this.#settings(),
      clock: {
        now: () => {
          this.#burn();
          return clock.now() + this.#skewMs;
        },
        random: (size) => {
          this.#burn();
          return clock.random(size);
        },
      },
      complete: this.seed % 3 === 0 ? model : null,
    });
  }

  /** Settings small enough that folds reach several depths within a few hundred messages. */
  #settings(): Settings {
    const random = makeRandom(this.seed + 1);
    const config = {
      databasePath: this.#database,
      freshTailCount: 2 + random.below(12),
      leafChunkTokens: 300 + random.below(1_500),
      leafTargetTokens: 120,
      condensedTargetTokens: 100,
      leafMinFanout: 2 + random.below(4),
      condensedMinFanout: 2 + random.below(2),
      sweepMaxDepth: random.below(4) - 1,
      newSessionRetainDepth: random.below(4) - 1,
      pruneHeartbeatOk: random.next() < 0.5,
    };
    return resolveSettings({ env: {}, config }).settings;
  }

  get engine(): Engine {
    if (this.#engine === null) throw new Error("the simulation is not open");
    return this.#engine;
  }

  async close(): Promise<void> {
    await this.#engine?.close();
    this.#engine = null;
  }

  async step(): Promise<void> {
    const total = this.#acts.reduce((sum, act) => sum + act.weight, 0);
    let at = this.#random.next() * total;
    const act = this.#acts.find(({ weight }) => (at -= weight) < 0) ?? this.#acts[0];
    const crashes = act?.canCrash === true && this.#random.next() < this.#crashes;
    this.trail.push(`${act?.name ?? ""}${crashes ? " and crash" : ""}`);
    if (!crashes) return void (await act?.run());
    this.#fuse = Math.floor(MAX_FUSE ** this.#random.next());
    this.#sent = [];
    await act?.run();
    this.#fuse = null;
    if (this.#hasImage) await this.#wakeUp();
  }

  /** One of the moments in which the process may be killed. */
  #burn(): void {
    if (this.#fuse === null || --this.#fuse > 0) return;
    this.#fuse = null;
    this.#hasImage = true;
    for (const end of ["", "-wal"]) copyIfThere(`${this.#database}${end}`, this.#imageOf(end));
  }

  #imageOf(end: string): string {
    return `${this.#database}.image${end}`;
  }

  async #wakeUp(): Promise<void> {
    this.crashed += 1;
    await this.close();
    for (const end of ["", "-wal", "-shm"]) {
      rmSync(`${this.#database}${end}`, { force: true });
      copyIfThere(this.#imageOf(end), `${this.#database}${end}`);
      rmSync(this.#imageOf(end), { force: true });
    }
    this.#hasImage = false;
    this.#skewMs += LEASE_ENDED_MS;
    await this.open();
    for (const messages of this.#sent) await this.engine.ingest({ session, messages });
  }

  /** What is wrong with the archive and with the contexts of all conversations. */
  async findFaults(): Promise<string[]> {
    const report = await this.engine.verify();
    const faults = report.problems.map(({ message }) => message);
    const known = countEvents(this.#database);
    if (known !== this.#events.length)
      faults.push(`${this.#events.length} events came in, ${known} are known`);
    const conversations = await this.engine.listConversations({ limit: 100 });
    for (const { conversationId } of conversations.items) {
      using archive = new ArchiveView(this.#database, conversationId);
      for (const budgetTokens of [2_000, this.#drawBudget(), this.#drawBudget()]) {
        const prompt = this.#random.next() < 0.3 ? { prompt: drawWords(this.#random, 2) } : {};
        const context = await this.engine.assemble({
          conversationId,
          budgetTokens,
          ...prompt,
          checkGrammars: true,
        });
        const found = context === null ? ["no context"] : findFaults(context, archive);
        faults.push(...found.map((fault) => `conversation ${conversationId} for ${budgetTokens}: ${fault}`));
      }
    }
    return faults;
  }

  #drawBudget(): number {
    return Math.floor(400 * 40 ** this.#random.next());
  }

  async #ingest(messages: readonly Arrival[]): Promise<void> {
    const background = this.#random.next() < 0.15 ? { budgetTokens: 1_000 + this.#random.below(6_000) } : {};
    this.#sent.push(messages);
    await this.engine.ingest({ session, messages, ...background });
  }

  #draw(message: unknown, position: number): Arrival {
    const eventId = `e${this.#events.length}`;
    this.#events.push({ eventId, position, version: 0 });
    return { eventId, position, message };
  }

  #next(message: unknown): Arrival {
    return this.#draw(message, ++this.#line * POSITION_STEP);
  }

  async #appendTurn(): Promise<void> {
    const random = this.#random;
    const messages = [this.#next({ role: "user", content: drawText(random) })];
    for (let groups = random.below(4); groups > 0; groups--) messages.push(...this.#drawToolGroup());
    if (random.next() < 0.9)
      messages.push(this.#next({ role: "assistant", content: [{ type: "text", text: drawText(random) }] }));
    // A turn may arrive in pieces, and rarely in the wrong order.
    const cut = random.below(messages.length + 1);
    const pieces =
      random.next() < 0.1
        ? [messages.slice(cut), messages.slice(0, cut)]
        : [messages.slice(0, cut), messages.slice(cut)];
    for (const piece of pieces) if (piece.length > 0) await this.#ingest(piece);
  }

  #drawToolGroup(): Arrival[] {
    const random = this.#random;
    const ids = Array.from(
      { length: 1 + random.below(3) },
      () => `call_${random.next() < 0.1 ? 1 : ++this.#calls}`,
    );
    const calls = ids.map((id) => ({
      type: "toolCall",
      id,
      name: "bash",
      arguments: { command: drawText(random) },
    }));
    const group = [
      this.#next({ role: "assistant", content: [{ type: "text", text: drawWords(random, 3) }, ...calls] }),
    ];
    for (const toolCallId of ids) {
      if (random.next() < 0.05) continue;
      const text = random.next() < 0.1 ? drawWords(random, 700) : drawText(random);
      group.push(
        this.#next({ role: "toolResult", toolCallId, toolName: "bash", content: [{ type: "text", text }] }),
      );
    }
    return group;
  }

  async #appendLate(): Promise<void> {
    if (this.#line < 2) return;
    const random = this.#random;
    const position = (1 + random.below(this.#line)) * POSITION_STEP + 1 + random.below(POSITION_STEP - 1);
    const role = random.pick(["user", "assistant"]);
    const hidden = random.next() < 0.2 ? { hidden: ["meta"] as const } : {};
    await this.#ingest([{ ...this.#draw({ role, content: drawText(random) }, position), ...hidden }]);
  }

  async #revise(): Promise<void> {
    if (this.#events.length === 0) return;
    const event = this.#random.pick(this.#events);
    event.version += 1;
    const content = `version ${event.version}: ${drawText(this.#random)}`;
    await this.#ingest([
      { eventId: event.eventId, position: event.position, message: { role: "user", content } },
    ]);
  }

  async #changeBranch(): Promise<void> {
    const random = this.#random;
    const count = this.#events.length;
    if (random.next() < 0.3 || count === 0) this.#offBranch = [];
    else {
      const from = random.below(count);
      const run = this.#events
        .slice(from, from + 1 + random.below(random.next() < 0.2 ? 60 : 8))
        .map(({ eventId }) => eventId);
      this.#offBranch = random.next() < 0.5 ? run : [...this.#offBranch, ...run];
    }
    await this.engine.setBranch({ session, offBranch: this.#offBranch });
  }

  async #beat(): Promise<void> {
    await this.#ingest([
      this.#next({ role: "user", content: "Heartbeat: is there anything to do?" }),
      this.#next({ role: "assistant", content: [{ type: "text", text: "HEARTBEAT_OK" }] }),
    ]);
  }

  async #recordBoundary(reason: "new" | "reset"): Promise<void> {
    // The host's entry has a place of its own; rarely it is found late, when more has been said since.
    const line = this.#random.next() < 0.2 ? 1 + this.#random.below(this.#line + 1) : ++this.#line;
    const position = (reason === "reset" ? ++this.#line : line) * POSITION_STEP;
    await this.engine.recordBoundary({ session, eventId: `b${++this.#boundaries}`, reason, position });
  }

  async #compact(): Promise<void> {
    const random = this.#random;
    const budgetTokens = this.#drawBudget();
    const target = random.next() < 0.3 ? { targetTokens: Math.floor(budgetTokens * 0.3) } : {};
    await this.#onEach((conversationId) =>
      this.engine.compact({ conversationId, budgetTokens, force: random.next() < 0.3, ...target }),
    );
  }

  async #maintain(): Promise<void> {
    const budgetTokens = this.#drawBudget();
    await this.#onEach((conversationId) => this.engine.maintain({ conversationId, budgetTokens }));
  }

  async #onEach(work: (conversationId: number) => Promise<unknown>): Promise<void> {
    const { items } = await this.engine.listConversations({ limit: 100 });
    for (const { conversationId } of items) await work(conversationId);
  }

  async #reopen(): Promise<void> {
    await this.close();
    await this.open();
  }
}

function copyIfThere(from: string, to: string): void {
  if (existsSync(from)) copyFileSync(from, to);
}

function countEvents(path: string): number {
  using database = new DatabaseSync(path, { readOnly: true });
  return database.prepare("SELECT count(*) AS n FROM event_ids").get()?.n as number;
}

const drawWords = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random.pick(WORDS)).join(" ");
const drawText = (random: Random): string =>
  drawWords(random, random.next() < 0.1 ? 60 + random.below(200) : 1 + random.below(40));
