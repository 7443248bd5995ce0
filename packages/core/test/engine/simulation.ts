/**
 * A conversation that everything happens to, drawn from a seed: turns with tool groups, rows found late, revisions, branches that are left
 * and taken up again, heartbeats, soft boundaries and resets, with folds, upkeep and contexts in between. The same seed gives the same run.
 */
import { makeClock, makeRandom } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";

import { openEngine, POSITION_STEP, resolveSettings } from "../../src/index.ts";
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
}

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

  constructor(seed: number, database: string) {
    this.seed = seed;
    this.#database = database;
    this.#random = makeRandom(seed);
    this.#acts = [
      { name: "turn", weight: 30, run: () => this.#appendTurn() },
      { name: "late row", weight: 6, run: () => this.#appendLate() },
      { name: "revision", weight: 5, run: () => this.#revise() },
      { name: "branch", weight: 4, run: () => this.#changeBranch() },
      { name: "heartbeat", weight: 3, run: () => this.#beat() },
      { name: "new", weight: 1, run: () => this.#recordBoundary("new") },
      { name: "reset", weight: 0.5, run: () => this.#recordBoundary("reset") },
      { name: "compact", weight: 7, run: () => this.#compact() },
      { name: "maintain", weight: 7, run: () => this.#maintain() },
      { name: "wait", weight: 1, run: async () => (this.#skewMs += 7_200_000) },
      { name: "reopen", weight: 1, run: () => this.#reopen() },
    ];
  }

  async open(): Promise<void> {
    const clock = makeClock(this.seed + 1_000_000 * this.#opened++);
    const random = this.#random;
    const model: Complete = async () => {
      if (random.next() < 0.2) return { kind: "failure", failure: "unavailable", message: "busy" };
      return {
        kind: "text",
        text: `They spoke of ${drawWords(random, 3 + random.below(20))}.`,
        model: { provider: "fake", model: "fake" },
        inputTokens: null,
        outputTokens: null,
      };
    };
    this.#engine = await openEngine({
      database: this.#database,
      thread: false,
      settings: this.#settings(),
      clock: { now: () => clock.now() + this.#skewMs, random: clock.random },
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
    this.trail.push(act?.name ?? "");
    await act?.run();
  }

  /** What is wrong with the archive and with the contexts of all conversations. */
  async findFaults(): Promise<string[]> {
    const report = await this.engine.verify();
    const faults = report.problems.map(({ message }) => message);
    const conversations = await this.engine.listConversations({ limit: 100 });
    for (const { conversationId } of conversations.items) {
      using archive = new ArchiveView(this.#database, conversationId);
      for (const budgetTokens of [2_000, this.#drawBudget(), this.#drawBudget()]) {
        const prompt = this.#random.next() < 0.3 ? { prompt: drawWords(this.#random, 2) } : {};
        const context = await this.engine.assemble({ conversationId, budgetTokens, ...prompt });
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

const drawWords = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random.pick(WORDS)).join(" ");
const drawText = (random: Random): string =>
  drawWords(random, random.next() < 0.1 ? 60 + random.below(200) : 1 + random.below(40));
