/**
 * Session files that everything happens to, drawn from a seed: lines are appended, also by halves, files are cut down to their header, sliced,
 * renamed, copied, written again with and without changes, and deleted; after each act the importer looks at what is there, as a watcher
 * does, and is sometimes stopped in its midst. A second process, which stays open, reads every line that was ever acknowledged.
 *
 * Invariant: a line that an import has seen whole is stored once, in each of its versions, whatever became of its file, and lines that were in
 * one file keep their order.
 */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Engine } from "@lossless/core";
import { importPaths } from "@lossless/interchange";
import { makeRandom } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";
import type { PlayedSteps, StepScript } from "@lossless/testkit/shorten-script.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { openEngine } from "lossless-claw";
import type { AskedLines } from "./line-reader.ts";

const READER = fileURLToPath(new URL("./line-reader.ts", import.meta.url));
const MAX_FILES = 6;

interface SimulatedSession {
  readonly id: string;
  /** Numbers of lines, and how often each was changed. */
  readonly changes: number[];
}

interface SimulatedFile {
  readonly path: string;
  readonly session: SimulatedSession;
}

/** A line of Claude Code, which names its session and itself. */
function renderLine({ id, changes }: SimulatedSession, number: number): string {
  const link = { uuid: `${id}-${number}`, parentUuid: number === 0 ? null : `${id}-${number - 1}` };
  const text = `line ${number} of ${id}${(changes[number] ?? 0) > 0 ? `, changed ${changes[number]} times` : ""}`;
  const message = { role: number % 2 === 0 ? "user" : "assistant", content: text };
  return JSON.stringify({
    ...link,
    isSidechain: false,
    sessionId: id,
    cwd: "/srv",
    type: message.role,
    message,
  });
}

/** Says nothing of its session, as the first line of many files does. */
const renderHeader = ({ id }: SimulatedSession): string =>
  JSON.stringify({ type: "summary", summary: `about ${id}`, leafUuid: `${id}-0` });

interface NamedText {
  readonly line: string;
  readonly eventId: string | undefined;
  readonly session: string | undefined;
}

function readNames(line: string): NamedText {
  const { uuid, sessionId } = JSON.parse(line) as { uuid?: string; sessionId?: string };
  return { line, eventId: uuid, session: sessionId };
}

/** Names of events with every version of their bytes. */
type Acknowledged = Map<string, { session: string; versions: Set<string> }>;

class FileSimulation {
  readonly trail: string[] = [];
  readonly #seed: number;
  readonly #folder: string;
  readonly #files: SimulatedFile[] = [];
  readonly #sessions: SimulatedSession[] = [];
  readonly #acknowledged: Acknowledged = new Map();
  /** By session, and by the text of the list, which is often the same as before. */
  readonly #orders = new Map<string, Map<string, readonly string[]>>();
  #engine: Engine | null = null;
  #random: Random = makeRandom(0);
  #names = 0;

  constructor(seed: number, folder: string) {
    this.#seed = seed;
    this.#folder = folder;
  }

  get database(): string {
    return join(this.#folder, "..", "lcm.db");
  }

  async open(): Promise<void> {
    this.#engine = await openEngine({ database: this.database, thread: false });
  }

  async close(): Promise<void> {
    await this.#engine?.close();
    this.#engine = null;
  }

  get #acts(): readonly (readonly [name: string, weight: number, run: () => void])[] {
    return [
      ["append", 30, () => this.#append()],
      ["half a line", 6, () => this.#appendHalf()],
      ["new session", 5, () => this.#start()],
      ["cut to the header", 6, () => this.#rewriteFile((lines) => lines.slice(0, 1))],
      ["cut", 5, () => this.#rewriteFile((lines) => lines.slice(0, this.#random.below(lines.length + 1)))],
      ["slice", 6, () => this.#rewriteFile((lines) => lines.slice(this.#random.below(lines.length + 1)))],
      ["write again", 6, () => this.#rewriteFile(() => null)],
      ["change a line", 6, () => this.#change()],
      ["rename", 6, () => this.#rename()],
      ["copy", 5, () => this.#copy()],
      ["delete", 2, () => this.#delete()],
    ];
  }

  async step(number: number): Promise<void> {
    this.#random = makeRandom(this.#seed * 100_003 + number);
    const acts = this.#acts;
    let at = this.#random.next() * acts.reduce((sum, [, weight]) => sum + weight, 0);
    const [name, , run] = acts.find(([, weight]) => (at -= weight) < 0) ?? acts[0]!;
    const isStopped = this.#random.next() < 0.15;
    this.trail.push(`${number} ${name}${isStopped ? " and stop" : ""}`);
    if (this.#files.length === 0) this.#start();
    run();
    if (isStopped) await this.#importAndStop();
    await this.#import();
  }

  async #import(): Promise<void> {
    if (this.#engine === null) throw new Error("the simulation is not open");
    const paths = this.#listPaths();
    // What stands in the files now is acknowledged when the import has ended.
    const files = paths.map((path) => readWholeLines(path).map(readNames));
    const { problems } = await importPaths({ engine: this.#engine, paths });
    const unexpected = problems.filter(({ code }) => code !== "incomplete_line");
    if (unexpected.length > 0)
      throw new Error(`the import has problems: ${unexpected.map(({ message }) => message).join("; ")}`);
    for (const lines of files) this.#acknowledge(lines.filter((line) => line.eventId !== undefined));
  }

  /** The process ends in the midst of an import: the engine is closed under it. */
  async #importAndStop(): Promise<void> {
    const engine = this.#engine;
    if (engine === null) return;
    const importing = importPaths({ engine, paths: this.#listPaths() }).catch(() => undefined);
    await this.close();
    await importing;
    await this.open();
  }

  #acknowledge(lines: readonly NamedText[]): void {
    for (const { eventId = "", session = "", line } of lines) {
      const known = this.#acknowledged.get(eventId) ?? { session, versions: new Set() };
      known.versions.add(line);
      this.#acknowledged.set(eventId, known);
    }
    const { session = "" } = lines[0] ?? {};
    const orders = this.#orders.get(session) ?? new Map<string, readonly string[]>();
    const order = lines.map(({ eventId = "" }) => eventId);
    this.#orders.set(session, orders.set(order.join(), order));
  }

  /** In an order that a folder may give. */
  #listPaths(): string[] {
    const paths = readdirSync(this.#folder).map((name) => join(this.#folder, name));
    return this.#random.next() < 0.5 ? paths : paths.toReversed();
  }

  #pick(): SimulatedFile {
    return this.#random.pick(this.#files);
  }

  #start(): void {
    const session = { id: `s${this.#sessions.length}`, changes: [] };
    this.#sessions.push(session);
    if (this.#files.length >= MAX_FILES) this.#delete();
    const path = this.#makeName();
    this.#files.push({ path, session });
    const isUnnamed = this.#random.next() < 0.5;
    writeFileSync(path, isUnnamed ? `${renderHeader(session)}\n` : "");
  }

  #makeName(): string {
    return join(this.#folder, `file-${++this.#names}.jsonl`);
  }

  #newLines({ session }: SimulatedFile): string {
    const count = 1 + this.#random.below(4);
    return Array.from({ length: count }, () => {
      session.changes.push(0);
      return `${renderLine(session, session.changes.length - 1)}\n`;
    }).join("");
  }

  #append(): void {
    const file = this.#pick();
    finishLine(file.path);
    writeFileSync(file.path, this.#newLines(file), { flag: "a" });
  }

  /** The rest never comes, or with the next act that writes to this file. */
  #appendHalf(): void {
    const file = this.#pick();
    finishLine(file.path);
    const line = this.#newLines(file).split("\n")[0] ?? "";
    writeFileSync(file.path, line.slice(0, 1 + this.#random.below(line.length - 1)), { flag: "a" });
  }

  /** Null: the same lines again. The file is replaced or written in place. */
  #rewriteFile(choose: (lines: string[]) => string[] | null): void {
    const { path } = this.#pick();
    const lines = readWholeLines(path);
    this.#write(path, choose(lines) ?? lines);
  }

  #write(path: string, lines: readonly string[]): void {
    const text = lines.map((line) => `${line}\n`).join("");
    if (this.#random.next() < 0.5) return writeFileSync(path, text);
    const fresh = join(this.#folder, "..", "fresh");
    writeFileSync(fresh, text);
    renameSync(fresh, path);
  }

  #change(): void {
    const { path } = this.#pick();
    const lines = readWholeLines(path);
    const at = lines.findIndex((line) => line.includes('"uuid"'));
    if (at < 0) return;
    const chosen = at + this.#random.below(lines.length - at);
    const { uuid, sessionId } = JSON.parse(lines[chosen] ?? "{}") as { uuid?: string; sessionId?: string };
    const session = this.#sessions.find(({ id }) => id === sessionId);
    if (uuid === undefined || session === undefined) return;
    const number = Number(uuid.slice(session.id.length + 1));
    session.changes[number] = (session.changes[number] ?? 0) + 1;
    this.#write(path, lines.with(chosen, renderLine(session, number)));
  }

  #rename(): void {
    const file = this.#pick();
    const path = this.#makeName();
    renameSync(file.path, path);
    this.#files[this.#files.indexOf(file)] = { ...file, path };
  }

  #copy(): void {
    if (this.#files.length >= MAX_FILES) return this.#rename();
    const file = this.#pick();
    const path = this.#makeName();
    copyFileSync(file.path, path);
    this.#files.push({ ...file, path });
  }

  #delete(): void {
    const file = this.#pick();
    rmSync(file.path);
    this.#files.splice(this.#files.indexOf(file), 1);
  }

  /** What the second process is asked for. */
  listAcknowledged(): AskedLines[] {
    const bySession = Map.groupBy(this.#acknowledged, ([, { session }]) => session);
    return [...bySession].map(([sessionId, events]) => ({
      sessionId,
      events: events.map(([eventId, { versions }]) => ({ eventId, versions: [...versions] })),
      orders: [...(this.#orders.get(sessionId)?.values() ?? [])],
    }));
  }

  async verify(): Promise<string[]> {
    return ((await this.#engine?.verify())?.problems ?? []).map(({ message }) => message);
  }
}

/** A line without its end waits for it. */
const readWholeLines = (path: string): string[] => readFileSync(path, "utf8").split("\n").slice(0, -1);

/** What writes next begins a line of its own; half of one stays as something unreadable. */
function finishLine(path: string): void {
  const text = readFileSync(path, "utf8");
  if (text === "" || text.endsWith("\n")) return;
  writeFileSync(path, text.slice(0, text.lastIndexOf("\n") + 1));
}

/** The second process, for as long as a simulation runs. */
class LineReader {
  readonly #child: ChildProcess;
  readonly #ended: Promise<string[][]>;

  constructor(database: string) {
    this.#child = fork(READER, [database], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#ended = once(this.#child, "exit").then(() => [["the second process has ended"]]);
  }

  async findFaults(asked: readonly AskedLines[]): Promise<string[]> {
    this.#child.send(asked);
    const [answer] = (await Promise.race([once(this.#child, "message"), this.#ended])) as [string[]];
    return answer;
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}

export async function playFiles({ seed, steps }: StepScript): Promise<PlayedSteps> {
  using folder = makeTemporaryFolder();
  const sessions = folder.file("sessions");
  mkdirSync(sessions);
  const simulation = new FileSimulation(seed, sessions);
  const end = (faults: readonly string[]): PlayedSteps => ({ trail: simulation.trail, faults });
  let reader: LineReader | null = null;
  try {
    await simulation.open();
    reader = new LineReader(simulation.database);
    for (const [at, number] of steps.entries()) {
      await simulation.step(number);
      const faults = await reader.findFaults(simulation.listAcknowledged());
      if (faults.length === 0 && at + 1 === steps.length) faults.push(...(await simulation.verify()));
      if (faults.length > 0) return end(faults);
    }
    return end([]);
  } catch (error) {
    return end([error instanceof Error ? (error.stack ?? error.message) : String(error)]);
  } finally {
    reader?.stop();
    await simulation.close();
  }
}
