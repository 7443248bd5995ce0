/** The first screen: every conversation with its size, its last activity and its health. Filtered while typing. */
import type { ConversationOrder, HeadedConversation } from "@lossless/core";
import { formatCount, formatTime, nameProject, toOneLine } from "@lossless/core/doors";
import { ConversationList } from "../conversation-list.ts";
import { HealthBook } from "../health.ts";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, type Paint, type Span } from "../paint.ts";
import type { Desk, Screen, Size } from "../screen.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter", does: "messages" },
  { keys: "s", does: "graph" },
  { keys: "c", does: "context" },
  { keys: "f", does: "filter" },
  { keys: "o", does: "order" },
  { keys: "F", does: "large files" },
  { keys: "t", does: "transplant" },
  { keys: "R", does: "repair" },
  { keys: "$", does: "spend" },
  { keys: "D", does: "doctor" },
  { keys: "i", does: "import transcripts" },
];

/** Widths of all columns but the title, which takes the rest; 0 omits a column. Ids come last. */
const WIDE = { project: 14, agent: 12, messages: 8, tokens: 9, last: 16, health: 13, id: 5 };
const NARROW = { project: 10, agent: 0, messages: 0, tokens: 8, last: 11, health: 9, id: 4 };
const SMALL = { project: 0, agent: 0, messages: 0, tokens: 0, last: 11, health: 0, id: 3 };
const WIDE_COLUMNS = 110;
const NARROW_COLUMNS = 60;

function chooseWidths(columns: number): typeof WIDE {
  if (columns >= WIDE_COLUMNS) return WIDE;
  return columns < NARROW_COLUMNS ? SMALL : NARROW;
}
const HEAD_ROWS = 1;
/** In the order in which the key goes through them. */
const ORDERS: readonly ConversationOrder[] = ["newest", "oldest", "project", "agent", "model"];
const REST_MS = 200;

export class ConversationsScreen implements Screen {
  readonly name = "Conversations";
  readonly keys = KEYS;
  readonly #desk: Desk;
  readonly #health: HealthBook;
  #list: ConversationList;
  #cursor: ListCursor = LIST_START;
  #rest: NodeJS.Timeout | null = null;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#health = new HealthBook(desk.archive.engine);
    this.#list = this.#makeList("", "newest");
  }

  get position(): string | null {
    const { rows, isWhole } = this.#list;
    return rows.length === 0 ? null : `${this.#cursor.selected + 1}/${rows.length}${isWhole ? "" : "+"}`;
  }

  get #rows(): number {
    return Math.max(1, this.#desk.size.rows - HEAD_ROWS);
  }

  get area(): ListArea {
    return placeList(this.#cursor, this.#list.rows.length, this.#desk.size, HEAD_ROWS);
  }

  get #selected(): HeadedConversation | undefined {
    return this.#list.rows[this.#cursor.selected];
  }

  #makeList(filter: string, order: ConversationOrder): ConversationList {
    return new ConversationList(this.#desk.archive.engine, this.#desk.archive.scope, filter, order);
  }

  async load(): Promise<void> {
    await this.#health.readDebts();
    await this.#setFilter(this.#list.filter);
  }

  async #changeOrder(): Promise<boolean> {
    const { filter, order } = this.#list;
    const next = ORDERS[(ORDERS.indexOf(order) + 1) % ORDERS.length] ?? "newest";
    this.#cursor = LIST_START;
    await this.#setFilter(filter, next);
    this.#cursor = LIST_START;
    this.#desk.say(next === "newest" || next === "oldest" ? `${next} first` : `ordered by ${next}`);
    return true;
  }

  async #setFilter(filter: string, order = this.#list.order): Promise<void> {
    const chosen = this.#selected?.conversationId;
    const list = this.#makeList(filter, order);
    await list.readUpTo(this.#cursor.top + 2 * this.#rows);
    const at = list.rows.findIndex(({ conversationId }) => conversationId === chosen);
    this.#list = list;
    this.#cursor = keepInList({ ...this.#cursor, selected: Math.max(0, at) }, list.rows.length, this.#rows);
  }

  /** Health is loaded for visible rows, after everything else. */
  async settle(): Promise<void> {
    const list = this.#list;
    const { top } = this.#cursor;
    await this.#health.read(list.rows.slice(top, top + this.#rows), () => list === this.#list);
    this.#prepareLater();
  }

  /** A user who stays on a conversation may soon open its graph. */
  #prepareLater(): void {
    const row = this.#selected;
    if (this.#rest !== null) clearTimeout(this.#rest);
    this.#rest = setTimeout(() => {
      if (row !== undefined && row === this.#selected) this.#desk.graphs.prepare(row);
    }, REST_MS);
    this.#rest.unref();
  }

  close(): void {
    if (this.#rest !== null) clearTimeout(this.#rest);
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows);
    if (move !== null) {
      const reach = move.kind === "last" ? Number.POSITIVE_INFINITY : this.#cursor.selected + 3 * this.#rows;
      await this.#list.readUpTo(reach);
      this.#cursor = moveInList(this.#cursor, move, this.#list.rows.length, this.#rows);
      return true;
    }
    return this.#act(key);
  }

  async #act({ name }: Key): Promise<boolean> {
    const { go } = this.#desk;
    if (name === "f") return this.#askFilter();
    if (name === "o") return this.#changeOrder();
    if (name === "$") return go.spend();
    if (name === "D") return go.doctor();
    if (name === "i") return go.transcripts();
    if (name === "escape" && this.#list.filter !== "") {
      await this.#setFilter("");
      return true;
    }
    const row = this.#selected;
    if (row === undefined) return false;
    if (isOpen(name)) return go.messages(row);
    if (name === "s") return go.graph(row);
    if (name === "c") return go.context(row);
    if (name === "p") return go.previousContext(row, null);
    if (name === "P") return go.contextBefore(row, null);
    if (name === "F") return go.files(row);
    if (name === "t") return go.transplant(row);
    return name === "R" && go.repair(row);
  }

  #askFilter(): boolean {
    this.#desk.ask({
      label: "filter",
      text: this.#list.filter,
      onType: (text) => this.#setFilter(text),
      onDone: async (text) => {
        if (text === null) await this.#setFilter("");
      },
    });
    return true;
  }

  render(size: Size, paint: Paint): string[] {
    const rows = Math.max(1, size.rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, this.#list.rows.length, rows);
    const { top, selected } = this.#cursor;
    const seen = this.#list.rows.slice(top, top + rows);
    const lines = seen.map((row, at) =>
      renderRow(this.#renderCells(row, size.columns, paint), {
        columns: size.columns,
        isSelected: top + at === selected,
        paint,
      }),
    );
    return [renderTitles(size.columns, paint), ...(lines.length === 0 ? [this.#renderEmpty(paint)] : lines)];
  }

  #renderEmpty(paint: Paint): string {
    const { filter } = this.#list;
    return paint.faint(
      filter === ""
        ? "  Nothing is stored yet. i lists the transcripts that agents have left here."
        : `  No conversation matches “${toOneLine(filter)}”. Esc shows all.`,
    );
  }

  #renderCells(row: HeadedConversation, columns: number, paint: Paint): Span[] {
    const health = this.#health.get(row);
    const state =
      row.archivedAt === null ? (health?.text ?? "…") : `archived${health?.isGood === false ? " !" : ""}`;
    const widths = chooseWidths(columns);
    const last = formatTime(row.lastAt, this.#desk.timezone);
    return layOut(columns, {
      title: `${row.pinnedAt === null ? "" : "★ "}${toOneLine(row.heading)}`,
      project: { text: nameProject(row.project), style: paint.faint },
      agent: { text: toOneLine(row.agent ?? ""), style: paint.faint },
      messages: { text: formatCount(row.messages), right: true },
      tokens: { text: formatCount(row.shownTokens), right: true },
      // A narrow screen has no room for the year.
      last: { text: widths === WIDE ? last : last.slice(5), style: paint.faint },
      health: { text: state, style: health?.isGood === false ? paint.bad : paint.good },
      id: { text: String(row.conversationId), right: true, style: paint.name },
    });
  }
}

interface Cell {
  readonly text: string;
  readonly right?: boolean;
  readonly style?: (text: string) => string;
}

type Cells = Readonly<Record<keyof typeof WIDE, Cell>> & {
  readonly title: string;
  readonly styleTitle?: (text: string) => string;
};

function layOut(columns: number, { title, styleTitle, ...cells }: Cells): Span[] {
  const widths = Object.entries(chooseWidths(columns)) as [keyof typeof WIDE, number][];
  const shown = widths.filter(([, width]) => width > 0);
  const fixed = shown.reduce((sum, [, width]) => sum + width + 1, 2);
  const first = cell(title, Math.max(8, columns - fixed - 1), { style: styleTitle });
  return [
    first,
    ...shown.flatMap(([name, width]) => {
      const { text, right, style } = cells[name];
      return [span(" "), cell(text, width, { right, style })];
    }),
  ];
}

function renderTitles(columns: number, paint: Paint): string {
  const { faint: style } = paint;
  const spans = layOut(columns, {
    title: "TITLE",
    styleTitle: style,
    project: { text: "PROJECT", style },
    agent: { text: "AGENT", style },
    messages: { text: "MESSAGES", right: true, style },
    tokens: { text: "TOKENS", right: true, style },
    last: { text: "LAST", style },
    health: { text: "HEALTH", style },
    id: { text: "ID", right: true, style },
  });
  return renderSpans([span("  "), ...spans], columns);
}
