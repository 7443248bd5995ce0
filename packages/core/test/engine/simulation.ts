/**
 * Conversations that everything happens to, drawn from a seed: turns with tool groups, rows found late, revisions, branches that are left
 * and taken up again, heartbeats, soft boundaries and resets, histories handed over again whole, in slices and in the wrong order, forks,
 * summaries written again and taken back, messages forgotten, the archive moved into another one, with folds, upkeep and contexts in
 * between, two of these at the same moment, models that fail, clocks that are set back, and processes that are killed.
 *
 * Each step draws from a seed of its own, so that a script is a list of step numbers, and steps can be left out without changing the others.
 *
 * A crash is what a killed process leaves. Where the files of a moment can be kept, the act goes on in vain, then the files of that moment are
 * put back; elsewhere the act fails in its midst. Then the archive is opened again, and the host does again whatever it was about to do.
 */
import { makeRandom } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";

import { createLocalEngine } from "../../src/engine/local-engine.ts";
import { POSITION_STEP } from "../../src/index.ts";
import type { Arrival, Engine, SessionRef } from "../../src/index.ts";

import { findArchiveFaults, findContextFaults, findHistoryFaults } from "./simulation-checks.ts";
import type { Ground } from "./grounds.ts";
import { moveAndCompare } from "./move-archive.ts";
import { drawWords, PlayedProcess, RealProcess, settingsOf } from "./simulated-process.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

const MAIN = { key: "agent:main:simulation", id: "simulation", owner: "main" };
/** What the host has handed over under one id. */
export interface SimulatedEvent {
  readonly session: SessionRef;
  readonly eventId: string;
  readonly position: number;
  /** As they came, the newest last. */
  readonly versions: Arrival[];
  /** As far as the host was told. */
  messageId: number | null;
  isForgotten: boolean;
}

/** A session of the host: the first one, or a fork of it. */
export interface Talk {
  readonly session: SessionRef;
  /** Events that a fork has from the session it was copied from, with the number of versions they had then. */
  readonly copied: ReadonlyMap<SimulatedEvent, number>;
  line: number;
  offBranch: readonly string[];
}

interface Act {
  readonly name: string;
  readonly weight: number;
  readonly run: () => Promise<unknown>;
  /** A host that was killed in the middle of it would do it again. */
  readonly canCrash?: true;
  /** May happen at the same moment as another one: what is left does not depend on which comes first. */
  readonly canMeet?: true;
}

export interface SimulationOptions {
  readonly seed: number;
  readonly ground: Ground;
  /** For files, and for the archive that everything is moved to. */
  readonly folder: string;
  /** Share of the acts in which the process is killed. */
  readonly crashes: number;
  /** The processes that write, in turns that the seed draws. */
  readonly processes: SimulatedProcesses;
}

export type SimulatedProcesses = "one" | "two" | "two real";

/** How many looks at the clock, draws of an id and calls to a model into an act it may be killed; mostly few, as most acts have few. */
const MAX_FUSE = 60;
/** After this long, the lease of a process that was killed has ended. */
const LEASE_ENDED_MS = 200_000;
const MAX_TALKS = 3;
/** How often a summary is picked again after it changed; each change is a fold, of which few are under way. */
const MAX_PICKS = 20;
const CHANGED: ReadonlySet<string> = new Set(["database_busy", "not_found"]);

export class Simulation {
  readonly trail: string[] = [];
  readonly #options: SimulationOptions;
  readonly #events: SimulatedEvent[] = [];
  readonly #talks: Talk[] = [{ session: MAIN, copied: new Map(), line: 0, offBranch: [] }];
  readonly #acts: readonly Act[];
  /** Of the models: called by work in the background, too, which must not change what the steps draw. */
  readonly #modelRandom: Random;
  #random: Random;
  #processes: SimulatedProcess[] = [];
  /** The number of the process that acts. */
  #actor = 0;
  #calls = 0;
  #boundaries = 0;
  #skewMs = 0;
  #opened = 0;
  #moves = 0;
  /** What the host of a killed process does again. */
  #redo: (() => Promise<unknown>)[] = [];
  crashed = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = makeRandom(options.seed);
    this.#modelRandom = makeRandom(options.seed + 2);
    this.#acts = [
      { name: "turn", weight: 30, run: () => this.#appendTurn(), canCrash: true, canMeet: true },
      { name: "late row", weight: 6, run: () => this.#appendLate(), canCrash: true, canMeet: true },
      { name: "revision", weight: 5, run: () => this.#revise(), canCrash: true, canMeet: true },
      { name: "replay", weight: 3, run: () => this.#replay(), canCrash: true },
      { name: "slice", weight: 4, run: () => this.#replaySlice(), canCrash: true, canMeet: true },
      { name: "reorder", weight: 2, run: () => this.#replayShuffled(), canCrash: true },
      { name: "branch", weight: 4, run: () => this.#changeBranch(), canCrash: true, canMeet: true },
      { name: "heartbeat", weight: 3, run: () => this.#beat(), canCrash: true, canMeet: true },
      { name: "new", weight: 1, run: () => this.#recordBoundary("new"), canCrash: true },
      { name: "reset", weight: 0.5, run: () => this.#recordBoundary("reset"), canCrash: true },
      { name: "fork", weight: 1.5, run: () => this.#fork(), canCrash: true },
      { name: "forget", weight: 2, run: () => this.#forget(), canCrash: true, canMeet: true },
      { name: "compact", weight: 7, run: () => this.#compact(), canCrash: true, canMeet: true },
      { name: "maintain", weight: 7, run: () => this.#maintain(), canCrash: true, canMeet: true },
      { name: "rewrite", weight: 2, run: () => this.#rewriteSummary(), canCrash: true, canMeet: true },
      { name: "dissolve", weight: 1, run: () => this.#dissolveSummary(), canCrash: true, canMeet: true },
      { name: "two at once", weight: 5, run: () => this.#actTogether() },
      { name: "move", weight: 1, run: () => this.#move() },
      { name: "wait", weight: 1, run: async () => (this.#skewMs += 7_200_000) },
      { name: "clock", weight: 0.7, run: async () => this.#setClock() },
      { name: "reopen", weight: 1, run: () => this.#reopen() },
    ];
  }

  async open(): Promise<void> {
    const count = this.#options.processes === "one" ? 1 : 2;
    while (this.#processes.length < count) this.#processes.push(await this.#start());
  }

  async #start(): Promise<SimulatedProcess> {
    const { seed, ground, processes } = this.#options;
    const orders = { seed, number: this.#opened++ };
    const skewMs = (): number => this.#skewMs;
    if (processes === "two real") {
      if (ground.location === null) throw new Error("no other process can open this archive");
      const process = new RealProcess({ ...orders, location: ground.location }, skewMs);
      // It answers when it is open.
      await process.arm(null);
      return process;
    }
    const store = await ground.openStore({ readOnly: false });
    const { image } = ground;
    const keepImage = image === null ? null : () => image.keep();
    return new PlayedProcess({ ...orders, store, skewMs, random: this.#modelRandom, keepImage });
  }

  get engine(): Engine {
    return this.#acting.engine;
  }

  get #acting(): SimulatedProcess {
    const process = this.#processes[this.#actor];
    if (process === undefined) throw new Error("the simulation is not open");
    return process;
  }

  async close(): Promise<void> {
    for (const process of this.#processes.splice(0)) await process.close();
  }

  /** Plays the step of this number. */
  async step(number: number): Promise<void> {
    const random = makeRandom(this.#options.seed * 100_003 + number);
    this.#random = random;
    const total = this.#acts.reduce((sum, act) => sum + act.weight, 0);
    let at = random.next() * total;
    const act = this.#acts.find(({ weight }) => (at -= weight) < 0) ?? this.#acts[0];
    const crashes = act?.canCrash === true && random.next() < this.#options.crashes;
    this.#actor = this.#drawActor(number);
    const actor = this.#processes.length > 1 ? ` by ${this.#actor + 1}` : "";
    this.trail.push(`${number} ${act?.name ?? ""}${actor}${crashes ? " and crash" : ""}`);
    this.#redo = [];
    if (!crashes) return void (await act?.run());
    const process = this.#acting;
    await process.arm(Math.floor(MAX_FUSE ** random.next()));
    try {
      await act?.run();
    } catch (error) {
      if (!process.isKilled) throw error;
    }
    await process.arm(null);
    if (process.isKilled) await this.#wakeUp();
  }

  /** Two acts at the same moment, by different processes where there are two. Each draws all it needs before it waits for the first time. */
  async #actTogether(): Promise<void> {
    const acts = this.#acts.filter(({ canMeet }) => canMeet);
    const first = this.#random.pick(acts);
    const second = this.#random.pick(acts.filter((act) => act !== first));
    this.trail[this.trail.length - 1] += ` (${first.name}, ${second.name})`;
    const begun = first.run();
    this.#actor = (this.#actor + 1) % this.#processes.length;
    await Promise.all([begun, second.run()]);
  }

  /** From a seed of its own, so that the same steps do the same with one process and with two. */
  #drawActor(number: number): number {
    return makeRandom(this.#options.seed * 100_003 + number + 50_001).below(this.#processes.length);
  }

  /** The files of the moment are those of every process, so all begin again; elsewhere the other one goes on. */
  async #wakeUp(): Promise<void> {
    this.crashed += 1;
    const { ground, processes } = this.#options;
    if (ground.image !== null && processes !== "two real") {
      await this.close();
      ground.image.putBack();
      await this.open();
    } else {
      await this.#acting.close();
      this.#processes[this.#actor] = await this.#start();
    }
    this.#skewMs += LEASE_ENDED_MS;
    // Whoever is there does it again.
    this.#actor = this.#random.below(this.#processes.length);
    for (const work of this.#redo) await work();
  }

  /** What a host is about to do: if it is killed meanwhile, it does all of it again. */
  async #do(...works: readonly (() => Promise<unknown>)[]): Promise<void> {
    this.#redo = [...works];
    for (const work of works) await work();
  }

  /** What other processes find missing or twofold: a new one, and the writer that did not act. Cheap enough for every step. */
  async findLosses(): Promise<string[]> {
    const tables = await this.#options.ground.readTables();
    const history = { tables, events: this.#events, talks: this.#talks };
    const reader = await this.#openReader();
    try {
      const faults = await findHistoryFaults({ engine: reader, ...history });
      for (const { engine } of this.#processes.toSpliced(this.#actor, 1))
        faults.push(...(await findHistoryFaults({ engine, ...history })));
      return faults;
    } finally {
      await reader.close();
    }
  }

  /** What is wrong with the archive and with the contexts of all conversations. */
  async findFaults(): Promise<string[]> {
    const faults = await findArchiveFaults(this.engine);
    const { items } = await this.engine.listConversations({ limit: 100 });
    for (const { conversationId } of items) {
      const asks = [2_000, this.#drawBudget(), this.#drawBudget()].map((budgetTokens) => ({
        conversationId,
        budgetTokens,
        ...(this.#random.next() < 0.3 ? { prompt: drawWords(this.#random, 2) } : {}),
      }));
      faults.push(...(await findContextFaults(this.engine, this.#options.ground, asks)));
    }
    return faults;
  }

  async #openReader(): Promise<Engine> {
    return createLocalEngine({
      store: await this.#options.ground.openStore({ readOnly: true }),
      settings: settingsOf(this.#options.seed),
    });
  }

  #drawBudget(): number {
    return Math.floor(400 * 40 ** this.#random.next());
  }

  /** Mostly the first session. */
  #pickTalk(): Talk {
    const [first] = this.#talks;
    return first !== undefined && this.#random.next() < 0.7 ? first : this.#random.pick(this.#talks);
  }

  #ingest({ session }: Talk, messages: readonly Arrival[]): () => Promise<void> {
    const background = this.#random.next() < 0.15 ? { budgetTokens: 1_000 + this.#random.below(6_000) } : {};
    return async () => {
      const { results } = await this.engine.ingest({ session, messages, ...background });
      for (const { eventId, messageId, outcome } of results)
        if (outcome !== "revision") this.#noteStored(eventId, messageId);
    };
  }

  #noteStored(eventId: string, messageId: number): void {
    const event = this.#events.find((known) => known.eventId === eventId);
    if (event !== undefined) event.messageId = messageId;
  }

  #draw({ session }: Talk, message: unknown, position: number, more: Partial<Arrival> = {}): Arrival {
    const eventId = `e${this.#events.length}`;
    const arrival = { eventId, position, message, ...more };
    this.#events.push({
      session,
      eventId,
      position,
      versions: [arrival],
      messageId: null,
      isForgotten: false,
    });
    return arrival;
  }

  #next(talk: Talk, message: unknown): Arrival {
    return this.#draw(talk, message, ++talk.line * POSITION_STEP);
  }

  async #appendTurn(): Promise<void> {
    const random = this.#random;
    const talk = this.#pickTalk();
    const messages = [this.#next(talk, { role: "user", content: drawText(random) })];
    for (let groups = random.below(4); groups > 0; groups--) messages.push(...this.#drawToolGroup(talk));
    if (random.next() < 0.9)
      messages.push(
        this.#next(talk, { role: "assistant", content: [{ type: "text", text: drawText(random) }] }),
      );
    // A turn may arrive in pieces, and rarely in the wrong order.
    const cut = random.below(messages.length + 1);
    const pieces =
      random.next() < 0.1
        ? [messages.slice(cut), messages.slice(0, cut)]
        : [messages.slice(0, cut), messages.slice(cut)];
    await this.#do(...pieces.filter((piece) => piece.length > 0).map((piece) => this.#ingest(talk, piece)));
  }

  #drawToolGroup(talk: Talk): Arrival[] {
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
      this.#next(talk, {
        role: "assistant",
        content: [{ type: "text", text: drawWords(random, 3) }, ...calls],
      }),
    ];
    for (const toolCallId of ids) {
      if (random.next() < 0.05) continue;
      const text = random.next() < 0.1 ? drawWords(random, 700) : drawText(random);
      group.push(
        this.#next(talk, {
          role: "toolResult",
          toolCallId,
          toolName: "bash",
          content: [{ type: "text", text }],
        }),
      );
    }
    return group;
  }

  async #appendLate(): Promise<void> {
    const talk = this.#talks[0];
    if (talk === undefined || talk.line < 2) return;
    const random = this.#random;
    const position = (1 + random.below(talk.line)) * POSITION_STEP + 1 + random.below(POSITION_STEP - 1);
    const role = random.pick(["user", "assistant"]);
    const hidden = random.next() < 0.2 ? { hidden: ["meta"] as const } : {};
    const late = this.#draw(talk, { role, content: drawText(random) }, position, hidden);
    await this.#do(this.#ingest(talk, [late]));
  }

  async #revise(): Promise<void> {
    const events = this.#events.filter(({ isForgotten }) => !isForgotten);
    if (events.length === 0) return;
    const event = this.#random.pick(events);
    const content = `version ${event.versions.length}: ${drawText(this.#random)}`;
    const { eventId, position } = event;
    const arrival = { eventId, position, message: { role: "user", content } };
    event.versions.push(arrival);
    await this.#do(this.#ingest(this.#talkOf(event), [arrival]));
  }

  #talkOf(event: SimulatedEvent): Talk {
    const talk = this.#talks.find(({ session }) => session.id === event.session.id);
    if (talk === undefined) throw new Error(`the session of ${event.eventId} is unknown`);
    return talk;
  }

  /** What the file of a session holds now, in its order. A fork's file does not change when that of its parent does. */
  #listHistory(talk: Talk): Arrival[] {
    const copied = [...talk.copied].filter(([event, versions]) => event.versions.length === versions);
    return [...copied.map(([event]) => event), ...this.#events.filter((event) => this.#isOf(event, talk))]
      .toSorted((a, b) => a.position - b.position)
      .flatMap(({ versions }) => versions.slice(-1));
  }

  #isOf(event: SimulatedEvent, talk: Talk): boolean {
    return event.session.id === talk.session.id;
  }

  async #replay(): Promise<void> {
    const talk = this.#pickTalk();
    await this.#handOver(talk, this.#listHistory(talk));
  }

  async #replaySlice(): Promise<void> {
    const talk = this.#pickTalk();
    const history = this.#listHistory(talk);
    const from = this.#random.below(history.length + 1);
    const slice = history.slice(from, from + 1 + this.#random.below(20));
    // A host that lost count hands over old and new together.
    if (this.#random.next() < 0.5)
      slice.push(this.#next(talk, { role: "user", content: drawText(this.#random) }));
    await this.#handOver(talk, slice);
  }

  async #replayShuffled(): Promise<void> {
    const talk = this.#pickTalk();
    const drawn = this.#listHistory(talk).map((arrival) => ({ arrival, at: this.#random.next() }));
    await this.#handOver(
      talk,
      drawn.toSorted((a, b) => a.at - b.at).map(({ arrival }) => arrival),
    );
  }

  async #handOver(talk: Talk, messages: readonly Arrival[]): Promise<void> {
    const size = 1 + this.#random.below(80);
    const pieces: Arrival[][] = [];
    for (let at = 0; at < messages.length; at += size) pieces.push(messages.slice(at, at + size));
    await this.#do(...pieces.map((piece) => this.#ingest(talk, piece)));
  }

  async #changeBranch(): Promise<void> {
    const random = this.#random;
    const talk = this.#pickTalk();
    const own = this.#events.filter((event) => this.#isOf(event, talk));
    if (random.next() < 0.3 || own.length === 0) talk.offBranch = [];
    else {
      const from = random.below(own.length);
      const run = own
        .slice(from, from + 1 + random.below(random.next() < 0.2 ? 60 : 8))
        .map(({ eventId }) => eventId);
      talk.offBranch = random.next() < 0.5 ? run : [...talk.offBranch, ...run];
    }
    const { session, offBranch } = talk;
    await this.#do(() => this.engine.setBranch({ session, offBranch }));
  }

  async #beat(): Promise<void> {
    const talk = this.#pickTalk();
    await this.#do(
      this.#ingest(talk, [
        this.#next(talk, { role: "user", content: "Heartbeat: is there anything to do?" }),
        this.#next(talk, { role: "assistant", content: [{ type: "text", text: "HEARTBEAT_OK" }] }),
      ]),
    );
  }

  async #recordBoundary(reason: "new" | "reset"): Promise<void> {
    const talk = this.#pickTalk();
    // The host's entry has a place of its own; rarely it is found late, when more has been said since.
    const line = this.#random.next() < 0.2 ? 1 + this.#random.below(talk.line + 1) : ++talk.line;
    const position = (reason === "reset" ? ++talk.line : line) * POSITION_STEP;
    const boundary = { session: talk.session, eventId: `b${++this.#boundaries}`, reason, position };
    await this.#do(() => this.engine.recordBoundary(boundary));
  }

  /** The host copies the file of the first session up to somewhere, and goes on in the copy. */
  async #fork(): Promise<void> {
    const [parent] = this.#talks;
    if (parent === undefined || this.#talks.length >= MAX_TALKS) return;
    const own = this.#events
      .filter((event) => this.#isOf(event, parent))
      .toSorted((a, b) => a.position - b.position);
    if (own.length < 2) return;
    const copied = own.slice(0, 1 + this.#random.below(own.length));
    const id = `fork${this.#talks.length}`;
    const talk: Talk = {
      session: { key: `agent:main:${id}`, id, owner: "main" },
      copied: new Map(copied.map((event) => [event, event.versions.length])),
      line: Math.ceil((copied.at(-1)?.position ?? 0) / POSITION_STEP) + 1,
      offBranch: [],
    };
    this.#talks.push(talk);
    const eventIds = copied.map(({ eventId }) => eventId);
    const first = [this.#next(talk, { role: "user", content: drawText(this.#random) })];
    await this.#do(
      () => this.engine.fork({ session: talk.session, parentSessionId: parent.session.id, eventIds }),
      this.#ingest(talk, first),
    );
  }

  async #forget(): Promise<void> {
    const known = this.#events.filter(({ messageId, isForgotten }) => messageId !== null && !isForgotten);
    if (known.length === 0) return;
    const from = this.#random.below(known.length);
    const chosen = known.slice(from, from + 1 + this.#random.below(3));
    await this.#do(async () => {
      const messageIds = chosen.flatMap(({ messageId }) => messageId ?? []);
      await this.engine.forget({ messageIds, reason: "asked" });
      for (const event of chosen) event.isForgotten = true;
    });
  }

  async #compact(): Promise<void> {
    const random = this.#random;
    const budgetTokens = this.#drawBudget();
    const target = random.next() < 0.3 ? { targetTokens: Math.floor(budgetTokens * 0.3) } : {};
    const force = random.next() < 0.3;
    await this.#onEach((conversationId) =>
      this.engine.compact({ conversationId, budgetTokens, force, ...target }),
    );
  }

  async #maintain(): Promise<void> {
    const budgetTokens = this.#drawBudget();
    await this.#onEach((conversationId) => this.engine.maintain({ conversationId, budgetTokens }));
  }

  async #rewriteSummary(): Promise<void> {
    const isExtractive = this.#random.next() < 0.5;
    await this.#onSummary((summaryId) =>
      this.engine.rewriteSummary({ summaryId, dryRun: false, isExtractive }),
    );
  }

  async #dissolveSummary(): Promise<void> {
    await this.#onSummary((summaryId) => this.engine.dissolveSummary({ summaryId, dryRun: false }));
  }

  /** Folds in the background may replace the summary that was picked; then the next best is taken, as a person would. */
  async #onSummary(work: (summaryId: string) => Promise<unknown>): Promise<void> {
    const at = this.#random.next();
    for (let tries = 1; ; tries++) {
      const published = await this.engine.listPublished({ after: "", limit: 1_000 });
      const summaryId = published[Math.floor(at * published.length)]?.summaryId;
      if (summaryId === undefined) return;
      try {
        return void (await work(summaryId));
      } catch (error) {
        if (tries >= MAX_PICKS || !CHANGED.has((error as { code?: string }).code ?? "")) throw error;
      }
    }
  }

  /** The archive is moved into another one, which must then be the same. */
  async #move(): Promise<void> {
    const { ground, folder } = this.#options;
    const faults = await moveAndCompare(ground, `${folder}/move${++this.#moves}`);
    if (faults.length > 0) throw new Error(faults.join("; "));
  }

  async #onEach(work: (conversationId: number) => Promise<unknown>): Promise<void> {
    const { items } = await this.engine.listConversations({ limit: 100 });
    for (const { conversationId } of items) await work(conversationId);
  }

  /** The clock of the machine is set, by up to three days, mostly back. */
  #setClock(): void {
    this.#skewMs += Math.floor((this.#random.next() - 0.7) * 4 * 86_400_000);
  }

  async #reopen(): Promise<void> {
    await this.#acting.close();
    this.#processes[this.#actor] = await this.#start();
  }
}

const drawText = (random: Random): string =>
  drawWords(random, random.next() < 0.1 ? 60 + random.below(200) : 1 + random.below(40));
