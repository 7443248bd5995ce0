/**
 * The terminal UI on a large archive: the time from a key until the resulting screen is written to the terminal, and the memory that scrolling
 * takes. The floor, in the same run, is the same program on a screen that reads nothing: a key, a marked row, a redraw. `npm run bench -- tui
 * [messages] [folder]`; the archive is created once and kept in the folder.
 */
import { tmpdir } from "node:os";
import path from "node:path";
import type { Terminal } from "@earendil-works/pi-tui";
import { openEngine } from "lossless-claw";
import type { Engine, Settings } from "@lossless/core";
import { App } from "../packages/tui/src/app.ts";
import { readMove, type Key } from "../packages/tui/src/keys.ts";
import { keepInList, LIST_START, moveInList } from "../packages/tui/src/list-cursor.ts";
import { createNavigator } from "../packages/tui/src/navigation.ts";
import { createPaint, renderRow, span, type Paint } from "../packages/tui/src/paint.ts";
import type { Screen, Size } from "../packages/tui/src/screen.ts";
import { ConversationsScreen } from "../packages/tui/src/screens/conversations.ts";
import { TerminalUi } from "../packages/tui/src/terminal-ui.ts";
import { median, round } from "./history.ts";
import { makeLargeArchive } from "./inspector-archive.ts";
import type { BenchResult } from "./report.ts";
import { chooseClock, startTiming, type Clock, type Timing } from "./timing.ts";

const MESSAGES = 100_000;
const LIMIT_MS = 50;
const ROUNDS = 40;
const SIZE: Size = { columns: 120, rows: 40 };
const DOWN = "j";
const PAGE_DOWN = "\u001B[6~";
const PAGE_UP = "\u001B[5~";
const ENTER = "\r";
const ESCAPE = "\u001B";

/** Discards what is written. */
class Sink implements Terminal {
  readonly columns = SIZE.columns;
  readonly rows = SIZE.rows;
  readonly kittyProtocolActive = false;
  #onInput: (data: string) => void = () => undefined;

  start(onInput: (data: string) => void): void {
    this.#onInput = onInput;
  }
  write(): void {}
  type(data: string): void {
    this.#onInput(data);
  }
  drainInput(): Promise<void> {
    return Promise.resolve();
  }
  stop(): void {}
  moveBy(): void {}
  hideCursor(): void {}
  showCursor(): void {}
  clearLine(): void {}
  clearFromCursor(): void {}
  clearScreen(): void {}
  setTitle(): void {}
  setProgress(): void {}
}

interface Desk {
  readonly app: App;
  readonly sink: Sink;
  readonly ui: TerminalUi;
}

async function openDesk(engine: Engine, settings: Settings, first: (app: App) => Screen): Promise<Desk> {
  const sink = new Sink();
  const ui = new TerminalUi(sink);
  const app = new App({
    archive: {
      engine,
      scope: {},
      settings,
      modelName: null,
      sessionFolders: [],
      change: () => Promise.reject(new Error("nothing is changed here")),
      examine: () => Promise.reject(new Error("nothing is examined here")),
      mend: () => Promise.reject(new Error("nothing is fixed here")),
    },
    paint: createPaint(true),
    size: () => ui.size,
    redraw: () => ui.redraw(),
    navigate: createNavigator,
  });
  await app.open(first(app));
  ui.start(app);
  await app.idle();
  ui.draw();
  return { app, sink, ui };
}

/** From the key to the complete screen. */
async function press({ app, sink, ui }: Desk, keys: string): Promise<Timing> {
  const end = startTiming();
  sink.type(keys);
  await app.idle();
  ui.draw();
  return end();
}

async function type(desk: Desk, text: string): Promise<void> {
  for (const character of text) await press(desk, character);
}

interface Step {
  readonly name: string;
  /** Keys pressed before and after, not measured. */
  readonly before?: (desk: Desk, round: number) => Promise<unknown>;
  readonly keys: string;
  readonly after?: (desk: Desk) => Promise<unknown>;
}

const back = (desk: Desk): Promise<unknown> => press(desk, ESCAPE);

function listSteps(messages: number): readonly Step[] {
  return [
    {
      name: "a row down",
      keys: DOWN,
      before: (desk, at) => (at === 0 ? press(desk, "g") : Promise.resolve()),
    },
    { name: "a page down", keys: PAGE_DOWN },
    { name: "a page up", keys: PAGE_UP },
    { name: "to the last message", keys: "G", before: (desk) => press(desk, "g") },
    { name: "to the first message", keys: "g", before: (desk) => press(desk, "G") },
    {
      name: "to a message by its id",
      keys: ENTER,
      before: async (desk, at) => {
        await press(desk, ":");
        await type(desk, `msg_${1 + ((at * 7919) % messages)}`);
      },
    },
    {
      name: "to a time",
      keys: ENTER,
      before: async (desk, at) => {
        await press(desk, ":");
        await type(desk, `2026-01-${String(5 + (at % 20)).padStart(2, "0")}`);
      },
    },
    { name: "a whole message", keys: ENTER, after: back },
    { name: "graph", keys: "s", after: back },
    {
      name: "graph: open a summary",
      keys: "l",
      before: (desk) => press(desk, "s"),
      after: back,
    },
    {
      name: "graph: a row down",
      keys: DOWN,
      before: (desk) => press(desk, "s"),
      after: back,
    },
    { name: "context for 32,000 tokens", keys: "c", after: back },
    {
      name: "context for 64,000 tokens",
      keys: "+",
      before: (desk) => press(desk, "c"),
      after: back,
    },
    { name: "previous context", keys: "p", after: back },
    { name: "help", keys: "?", after: back },
    { name: "back to the conversations", keys: ESCAPE, after: (desk) => press(desk, ENTER) },
    { name: "messages of a conversation", keys: ENTER, before: back },
  ];
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const messages = Number(args[0] ?? MESSAGES);
  if (!Number.isInteger(messages) || messages < 2_000)
    throw new Error(`cannot measure ${args[0]} messages: name a whole number from 2000 up`);
  const folder = args[1] ?? path.join(tmpdir(), "lcm-bench");
  console.log(`archive of ${messages} messages in ${folder} (made when it is missing, which takes minutes)`);
  const { database, settings } = await makeLargeArchive(folder, messages);
  const engine = await openEngine({ database, settings, readOnly: true });
  try {
    const { floorMs, clock } = await measureFloor(engine, settings);
    const desk = await openDesk(engine, settings, (app) => new ConversationsScreen(app));
    await press(desk, ENTER);
    const rows = [];
    for (const step of listSteps(messages)) rows.push(await measureStep(desk, step, floorMs, clock));
    const memory = await measureScrolling(desk);
    desk.ui.stop();
    return {
      name: `The terminal UI on ${messages} messages: from a key to the screen`,
      rows,
      tables: [{ title: "Memory while paging from the first message on", rows: memory }],
      notes: [
        clock.note,
        `Floor: a key on a screen that reads nothing, ${round(floorMs, 2)} ms. first: nothing of it was read before; the others: of ${ROUNDS} after it. Everything on the screen is waited for; the program itself draws after 12 ms and adds what comes later, such as the health of a conversation.`,
      ],
    };
  } finally {
    await engine.close();
  }
}

async function measureStep(
  desk: Desk,
  { name, keys, before, after }: Step,
  floorMs: number,
  clock: Clock,
): Promise<Record<string, string | number>> {
  const times: Timing[] = [];
  for (let at = 0; at <= ROUNDS; at++) {
    await before?.(desk, at);
    times.push(await press(desk, keys));
    await after?.(desk);
  }
  const [first, ...later] = times;
  const judged = later.map((time) => time[clock.of]).toSorted((a, b) => a - b);
  const most = judged[Math.floor(0.95 * judged.length)] ?? 0;
  return {
    key: name,
    "first ms": round(first?.[clock.of] ?? 0, 1),
    "median ms": round(median(judged), 1),
    "95 % ms": round(most, 1),
    "× floor": round(median(judged) / floorMs, 1),
    "on the wall ms": round(median(later.map(({ wallMs }) => wallMs)), 1),
    "limit ms": LIMIT_MS,
    holds: median(judged) <= LIMIT_MS ? "yes" : "NO",
  };
}

async function measureFloor(
  engine: Engine,
  settings: Settings,
): Promise<{ readonly floorMs: number; readonly clock: Clock }> {
  const desk = await openDesk(engine, settings, (app) => new FixedScreen(() => app.size));
  const times: Timing[] = [];
  for (let at = 0; at < 5 * ROUNDS; at++) times.push(await press(desk, DOWN));
  desk.ui.stop();
  const steady = times.slice(ROUNDS);
  const clock = chooseClock(steady);
  return { floorMs: median(steady.map((time) => time[clock.of])), clock };
}

/** As many rows as the archive's lists draw, of text that is already there. */
class FixedScreen implements Screen {
  readonly name = "floor";
  readonly keys = [];
  readonly #size: () => Size;
  #cursor = LIST_START;

  constructor(size: () => Size) {
    this.#size = size;
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  handle({ name }: Key): boolean {
    const { rows } = this.#size();
    const move = readMove(name, rows);
    if (move === null) return false;
    this.#cursor = moveInList(this.#cursor, move, 100_000, rows);
    return true;
  }

  render({ columns, rows }: Size, paint: Paint): string[] {
    this.#cursor = keepInList(this.#cursor, 100_000, rows);
    const { top, selected } = this.#cursor;
    return Array.from({ length: rows }, (_, at) =>
      renderRow(
        [span(`row ${top + at} `, paint.name), span("of text that is there already ".repeat(4), paint.faint)],
        {
          columns,
          isSelected: top + at === selected,
          paint,
        },
      ),
    );
  }
}

/** Pages through the conversation; memory must not grow with the distance. */
async function measureScrolling(desk: Desk): Promise<Record<string, string | number>[]> {
  await press(desk, "g");
  const rows: Record<string, string | number>[] = [];
  for (let pages = 0, next = 100; next <= 1_600; next *= 2) {
    const startedAt = performance.now();
    const from = pages;
    for (; pages < next; pages++) await press(desk, PAGE_DOWN);
    globalThis.gc?.();
    rows.push({
      pages,
      "ms per page": round((performance.now() - startedAt) / (pages - from), 1),
      "heap MB": round(process.memoryUsage().heapUsed / 1e6, 1),
    });
  }
  return rows;
}
