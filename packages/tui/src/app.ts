/**
 * The program inside the terminal: a stack of screens, one line above them and one below, the global keys, the input line, and live updates
 * while agents write. Draws lines and handles keys; does not depend on a terminal, so that tests can drive it.
 *
 * Invariant: keys and reloads are handled one after the other in order of arrival; then the screen is drawn. No screen is ever called while it
 * is still busy with another call.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describeFailure, displayWidth, toOneLine, truncateToWidth } from "@lossless/core/doors";
import { findFootKey, renderFoot } from "./foot.ts";
import { GraphBook } from "./graph-book.ts";
import { isBack, type Key } from "./keys.ts";
import { startInput, typeKey, type LineInput } from "./line-input.ts";
import { pointAt, type MousePoint } from "./mouse.ts";
import { clipLine, padLine, renderSpans, span, type Paint } from "./paint.ts";
import { TurnBook } from "./turn-book.ts";
import type { Desk, Navigator, Question, Screen, Size, TuiArchive } from "./screen.ts";

export interface AppOptions {
  readonly archive: TuiArchive;
  readonly paint: Paint;
  readonly size: () => Size;
  /** Schedules a redraw; called when something changed without a key. */
  readonly redraw: () => void;
  readonly navigate: (desk: Desk) => Navigator;
  readonly now?: () => number;
}

/** Work that takes longer shows a busy indicator. */
const SLOW_MS = 150;
/** How long to wait for optional content; then the screen is drawn without it. */
const SETTLE_MS = 12;
const MAX_NAME_COLUMNS = 32;
/** Lines above and below the screen. */
const FRAME_ROWS = 2;

export class App implements Desk {
  readonly archive: TuiArchive;
  readonly timezone: string;
  readonly go: Navigator;
  readonly graphs: GraphBook;
  readonly turns: TurnBook;
  readonly #options: AppOptions;
  readonly #stack: Screen[] = [];
  readonly #tasks: (() => Promise<void>)[] = [];
  readonly #unseen = new Set<Screen>();
  #work: Promise<void> | null = null;
  #settling: Promise<void> = Promise.resolve();
  #question: (Question & { input: LineInput }) | null = null;
  #note: { readonly text: string; readonly isBad: boolean } | null = null;
  #isLive = true;
  #end: (error: unknown) => void = () => undefined;
  /** Settles when the program should end; rejects when it cannot continue. */
  readonly ended: Promise<void>;

  constructor(options: AppOptions) {
    this.#options = options;
    this.archive = options.archive;
    this.go = options.navigate(this);
    this.graphs = new GraphBook(this.archive.engine, this.archive.scope);
    this.turns = new TurnBook(this.archive.engine, this.archive.scope);
    this.timezone = options.archive.settings.timezone;
    this.ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => (error === undefined ? resolve() : reject(error));
    });
    // The runner awaits this, but maybe not yet.
    this.ended.catch(() => undefined);
  }

  now(): number {
    return this.#options.now?.() ?? Date.now();
  }

  get size(): Size {
    const { columns, rows } = this.#options.size();
    return { columns, rows: Math.max(1, rows - FRAME_ROWS) };
  }

  get top(): Screen | undefined {
    return this.#stack.at(-1);
  }

  /** Shows a screen once it is loaded; if that fails, the current screen stays. */
  async open(screen: Screen): Promise<void> {
    const reading = { text: "reading …", isBad: false };
    const slow = setTimeout(() => {
      this.#note = reading;
      this.redraw();
    }, SLOW_MS);
    try {
      await screen.load();
    } finally {
      clearTimeout(slow);
      if (this.#note === reading) this.#note = null;
    }
    this.#stack.push(screen);
  }

  async back(options: { readonly hasChanged: boolean } = { hasChanged: false }): Promise<void> {
    if (this.#stack.length <= 1) return;
    if (options.hasChanged) {
      this.graphs.forget();
      for (const screen of this.#stack) this.#unseen.add(screen);
    }
    this.#stack.pop()?.close?.();
    const shown = this.top;
    if (shown !== undefined && this.#unseen.delete(shown)) await shown.load();
  }

  say(text: string): void {
    this.#note = { text, isBad: false };
    this.redraw();
  }

  ask(question: Question): void {
    this.#question = { ...question, input: startInput(question.text) };
    this.redraw();
  }

  run(work: () => Promise<void | (() => Promise<void>)>): void {
    void this.#guard(async () => {
      const finish = await work();
      await this.#enqueue(finish ?? (() => Promise.resolve()));
    });
  }

  redraw(): void {
    this.#options.redraw();
  }

  quit(): void {
    for (const screen of this.#stack) screen.close?.();
    this.#end(undefined);
  }

  /** Ends the program because it cannot continue. */
  fail(error: unknown): void {
    for (const screen of this.#stack) screen.close?.();
    this.#end(error ?? new Error("the program failed without saying why"));
  }

  /** Handles a key. Resolves when it, and all before it, have been handled. */
  press(key: Key): Promise<void> {
    return this.#enqueue(() => this.#answer(key));
  }

  /** Handles the mouse: chooses or opens a row, scrolls with the wheel, presses a key at the bottom. */
  point(point: MousePoint): Promise<void> {
    return this.#enqueue(() => this.#answerPoint(point));
  }

  async #answerPoint(point: MousePoint): Promise<void> {
    // The input line has no rows to choose from.
    if (this.#question !== null) return;
    const { columns, rows } = this.#options.size();
    const screen = this.top;
    const isFoot = point.row === rows - 1 && point.kind === "press";
    const key = isFoot
      ? this.#note === null
        ? findFootKey(screen?.keys ?? [], columns, point.column)
        : null
      : pointAt({ ...point, row: point.row - 1 }, screen?.area ?? null);
    if (key !== null) await this.#answer(key);
  }

  /** Resolves when all keys so far have been handled and the screen's content is loaded. Background work is not awaited. */
  async idle(): Promise<void> {
    await this.#work;
    await this.#settling;
  }

  /** Everything on the screens may have changed: reloads the visible one now, the others when they are shown. */
  refresh(): Promise<void> {
    return this.#enqueue(() => this.#reload());
  }

  async #reload(): Promise<void> {
    const shown = this.top;
    for (const screen of this.#stack) if (screen !== shown) this.#unseen.add(screen);
    await shown?.load();
  }

  setLive(isLive: boolean): void {
    this.#isLive = isLive;
  }

  #enqueue(task: () => Promise<void>): Promise<void> {
    this.#tasks.push(task);
    this.#work ??= this.#workOff().finally(() => {
      this.#work = null;
    });
    return this.#work;
  }

  async #workOff(): Promise<void> {
    while (this.#tasks.length > 0) {
      for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift())
        await this.#guard(task);
      await this.#settle();
    }
    this.redraw();
  }

  /** Shows failures at the bottom; only a bug ends the program. */
  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { code, message, hint } = describeFailure(error);
      if (code === "internal") this.fail(error);
      else this.#note = { text: hint === null ? message : `${message} (${hint})`, isBad: true };
    }
  }

  async #settle(): Promise<void> {
    const screen = this.top;
    if (screen?.settle === undefined) return;
    let isLate = false;
    const settled = this.#guard(async () => {
      await screen.settle?.();
      if (isLate) this.redraw();
    });
    this.#settling = settled;
    await Promise.race([settled, sleep(SETTLE_MS, undefined, { ref: false })]);
    isLate = true;
  }

  async #answer(key: Key): Promise<void> {
    this.#note = null;
    if (key.name === "ctrl+c") {
      process.exitCode = 130;
      return this.quit();
    }
    if (this.#question !== null) return this.#type(key);
    const screen = this.top;
    if (screen === undefined || (await screen.handle(key))) return;
    await this.#answerAnywhere(key, screen);
  }

  async #answerAnywhere(key: Key, screen: Screen): Promise<void> {
    if (key.name === "q") return this.quit();
    if (key.name === "?") await this.go.help(screen);
    else if (key.name === "/") await this.go.search(screen.conversation ?? null);
    else if (key.name === "ctrl+l") {
      this.graphs.forget();
      await this.#reload();
    } else if (isBack(key.name)) await this.back();
    else if (key.name === "d" || key.name === "r") this.say("choose a summary first: s opens the graph");
  }

  async #type(key: Key): Promise<void> {
    const question = this.#question;
    if (question === null) return;
    if (key.name === "enter" || key.name === "escape") {
      this.#question = null;
      return question.onDone(key.name === "enter" ? question.input.text : null);
    }
    const next = typeKey(question.input, key);
    if (next === null) return;
    question.input = next;
    await question.onType?.(next.text);
  }

  /** The whole screen: exactly this many lines. */
  render(): string[] {
    const { columns, rows } = this.#options.size();
    const screen = this.top;
    const body = screen === undefined ? [] : screen.render(this.size, this.#options.paint);
    const lines = [this.#renderHead(columns), ...body.slice(0, this.size.rows)];
    while (lines.length < rows - 1) lines.push("");
    const whole = [...lines.slice(0, Math.max(0, rows - 1)), this.#renderFoot(columns)].slice(-rows);
    return whole.map((line) => clipLine(line, columns));
  }

  #renderHead(columns: number): string {
    const { paint } = this.#options;
    const screen = this.top;
    const position = screen?.position ?? screen?.area?.position ?? null;
    const state = this.#isLive ? "live" : "the archive cannot be read";
    const live = ` ${position === null ? "" : `${position}  `}${state} `;
    const room = Math.max(1, columns - live.length - 5);
    const left = renderSpans(
      [span(" lcm ", paint.title), span(` ${describePath(this.#stack, room - 1)}`)],
      room + 5,
    );
    return padLine(left, room + 5) + paint.faint(live);
  }

  #renderFoot(columns: number): string {
    const { paint } = this.#options;
    if (this.#question !== null) return renderQuestion(this.#question, columns, paint);
    if (this.#note !== null) {
      const style = this.#note.isBad ? paint.bad : paint.good;
      return renderSpans([span(` ${toOneLine(this.#note.text)}`, style)], columns);
    }
    return renderFoot(this.top?.keys ?? [], columns, paint);
  }
}

/** "graph of X" after "X" is the graph. */
const dropSubject = (name: string, above: string): string =>
  above !== "" && name.endsWith(` of ${above}`) ? name.slice(0, -` of ${above}`.length) : name;

/** The current location. If it does not fit, it is cut at the front: the last names say most. */
function describePath(stack: readonly Screen[], columns: number): string {
  const whole = stack.map(({ name }) => toOneLine(name));
  const names = whole.map((name, at) =>
    truncateToWidth(dropSubject(name, whole[at - 1] ?? ""), MAX_NAME_COLUMNS),
  );
  const path = names.join(" › ");
  if (displayWidth(path) <= columns) return path;
  let short = names.at(-1) ?? "";
  for (const name of names.slice(0, -1).toReversed()) {
    if (displayWidth(`… › ${name} › ${short}`) > columns) break;
    short = `${name} › ${short}`;
  }
  return `… › ${short}`;
}

/** At least half of the line is for what is typed: examples in brackets are left out first. */
function fitLabel(label: string, columns: number): string {
  const half = Math.floor(columns / 2);
  if (displayWidth(label) <= half) return label;
  return truncateToWidth(label.replace(/ \(.*\)$/, ""), half);
}

function renderQuestion(
  { label, input }: { label: string; input: LineInput },
  columns: number,
  paint: Paint,
): string {
  const shown = fitLabel(label, columns);
  const room = Math.max(1, columns - displayWidth(shown) - 4);
  const before = input.text.slice(0, input.cursor).slice(-room);
  const behind = input.text.slice(input.cursor);
  // A cursor character that is also visible without colour.
  return renderSpans(
    [
      span(` ${shown}: `, paint.title),
      span(toOneLine(before)),
      span("▏", paint.match),
      span(toOneLine(behind)),
    ],
    columns,
  );
}
