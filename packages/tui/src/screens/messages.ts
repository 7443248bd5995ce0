/** The messages of a conversation, one line each, and the chosen one below or beside. Scrolls through any number; follows new ones. */
import { formatMessageId, parseMessageId } from "@lossless/core";
import type { HeadedConversation, MessageRow } from "@lossless/core";
import { countOf, formatCount, parseTime, toOneLine } from "@lossless/core/doors";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { ChosenText, type Choosable } from "../chosen-text.ts";
import { describeMessage } from "../message-text.ts";
import { placeList } from "../list-cursor.ts";
import { MessageWindow } from "../message-window.ts";
import type { ListArea } from "../mouse.ts";
import { renderRow, renderSpans, span, type Paint, type Span } from "../paint.ts";
import { joinPanes, splitPanes } from "../panes.ts";
import { Previews, renderPreview } from "../previews.ts";
import { renderRowColumns } from "../row-columns.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import type { Sought } from "../sought.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter", does: "whole message" },
  { keys: "s", does: "graph" },
  { keys: "c", does: "context" },
  { keys: "p", does: "previous context" },
  { keys: "H", does: "housekeeping" },
  { keys: ":", does: "go to a time or id" },
  { keys: "F", does: "large files" },
  { keys: "J K", does: "scroll the text" },
  { keys: "t", does: "transplant" },
  { keys: "R", does: "repair" },
];

const HEAD_ROWS = 1;
/** Longer messages are not loaded for the pane while scrolling past them; Enter opens them. */
const MAX_PANE_BYTES = 2_000_000;

export class MessagesScreen implements Screen {
  readonly keys = KEYS;
  conversation: HeadedConversation;
  readonly #desk: Desk;
  readonly #window: MessageWindow;
  readonly #previews: Previews;
  readonly #text: ChosenText;
  readonly #startAt: number | null;
  /** The search hit in the message that was opened. */
  readonly #sought: Sought | null;
  #isOpen = false;

  constructor(desk: Desk, conversation: HeadedConversation, messageId?: number, sought?: Sought) {
    const { engine, scope } = desk.archive;
    this.#desk = desk;
    this.conversation = conversation;
    this.#startAt = messageId ?? null;
    this.#sought = sought ?? null;
    this.#window = new MessageWindow(engine, scope, conversation.conversationId);
    this.#previews = new Previews(engine, scope);
    this.#text = new ChosenText(desk);
  }

  get name(): string {
    return toOneLine(this.conversation.heading);
  }

  get area(): ListArea {
    return placeList(
      this.#window.cursor,
      this.#window.rows.length,
      splitPanes(this.#desk.size).list,
      HEAD_ROWS,
    );
  }

  /** The list is a window: messages are numbered in the order of storing. */
  get position(): string | null {
    const { at, last } = this.#place;
    return at === null ? null : `${at}/${last}`;
  }

  get #place(): { readonly at: number | null; readonly last: number } {
    const { rows, isAtEnd, selected } = this.#window;
    const last = isAtEnd ? (rows.at(-1)?.seq ?? 0) : this.conversation.messages;
    return { at: selected?.seq ?? null, last: Math.max(1, last, selected?.seq ?? 0) };
  }

  get #rows(): number {
    return Math.max(1, splitPanes(this.#desk.size).list.rows - HEAD_ROWS);
  }

  async load(): Promise<void> {
    const { engine, scope } = this.#desk.archive;
    const { conversationId } = this.conversation;
    this.conversation = (await engine.readConversation({ ...scope, conversationId })) ?? this.conversation;
    this.#desk.graphs.prepare(this.conversation);
    if (this.#isOpen) return this.#window.reload(this.#rows);
    this.#isOpen = true;
    // Where there is nothing else, an empty list would say that nothing is stored.
    this.#window.showsHousekeeping = this.conversation.shownMessages === 0;
    if (this.#startAt === null) await this.#window.openEnd(this.#rows);
    else await this.#goToMessage(this.#startAt);
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows) ?? readPageKey(key.name, this.#rows);
    if (move !== null) {
      await this.#window.move(move, this.#rows);
      return true;
    }
    if (this.#text.handle(key)) return true;
    if (key.name === ":") return this.#askWhere();
    if (key.name === "H") {
      this.#window.showsHousekeeping = !this.#window.showsHousekeeping;
      await this.#window.reload(this.#rows);
      return true;
    }
    return this.#go(key.name);
  }

  async #go(name: string): Promise<boolean> {
    const { go } = this.#desk;
    const row = this.#window.selected;
    if (isOpen(name)) return row !== undefined && go.message(versionOf(row), this.#soughtIn(row));
    if (name === "s") return go.graph(this.conversation);
    if (name === "c") return go.context(this.conversation);
    if (name === "p") return go.previousContext(this.conversation, null);
    if (name === "P") return go.contextBefore(this.conversation, null);
    if (name === "F" || name === "f") return go.files(this.conversation);
    if (name === "t") return go.transplant(this.conversation);
    return name === "R" && go.repair(this.conversation);
  }

  #soughtIn(row: MessageRow | undefined): Sought | null {
    const isIt = row !== undefined && (row.messageId === this.#startAt || versionOf(row) === this.#startAt);
    return isIt ? this.#sought : null;
  }

  #askWhere(): boolean {
    this.#desk.ask({
      label: "go to (msg_12, 2026-02-21, yesterday, 3h)",
      onDone: async (text) => {
        if (text !== null && text.trim() !== "") await this.#goTo(text.trim());
      },
    });
    return true;
  }

  async #goTo(text: string): Promise<void> {
    const id = parseMessageId(text);
    if (id !== null) return this.#goToMessage(id);
    const { timezone } = this.#desk;
    const at = parseTime(text, { now: this.#desk.now(), timezone, option: "the time" });
    await this.#window.openTime(at, this.#rows);
  }

  async #goToMessage(messageId: number): Promise<void> {
    const { engine, scope } = this.#desk.archive;
    const message = await engine.readMessage({ ...scope, messageId });
    const isHere = message?.row.conversationId === this.conversation.conversationId;
    if (message === null || !isHere) {
      this.#desk.say(`${formatMessageId(messageId)} is not in this conversation`);
      if (this.#window.rows.length === 0) await this.#window.openEnd(this.#rows);
      return;
    }
    await this.#window.openAt(message.row, this.#rows);
  }

  /** First words of the visible messages, and the text of the chosen one. */
  async settle(): Promise<void> {
    const { top } = this.#window.cursor;
    const ids = this.#window.rows.slice(top, top + this.#rows).map(versionOf);
    const isSeen = (): boolean => this.#window.cursor.top === top;
    await Promise.all([
      this.#previews.read(ids, isSeen),
      this.#text.read(toChoosable(this.#window.selected)),
    ]);
  }

  render(size: Size, paint: Paint): string[] {
    const panes = splitPanes(size);
    const rows = Math.max(1, panes.list.rows - HEAD_ROWS);
    this.#window.keep(rows);
    const { columns } = panes.list;
    const { top, selected } = this.#window.cursor;
    const lines = this.#window.rows.slice(top, top + rows).map((row, at) =>
      renderRow(this.#renderCells(row, top + at, columns, paint), {
        columns,
        isSelected: top + at === selected,
        paint,
      }),
    );
    const row = this.#window.selected;
    return joinPanes(
      panes,
      {
        list: [this.#renderHead(columns, paint), ...lines],
        title: row === undefined ? "no messages" : describeMessage({ row }, this.#desk.timezone),
        detail: this.#text.render(toChoosable(row), panes.detail, paint, this.#soughtIn(row)),
      },
      paint,
    );
  }

  #renderHead(columns: number, paint: Paint): string {
    const { messages, summaries, shownTokens } = this.conversation;
    const facts = `${countOf(messages, "message")}, ${countOf(summaries, "summary", "summaries")}, ${formatCount(shownTokens)} tokens in context`;
    const follow = this.#window.isFollowing ? "; following" : "";
    const all = this.#window.showsHousekeeping ? "; with housekeeping" : "";
    return renderSpans([span(`  ${facts}${follow}${all}`, paint.faint)], columns);
  }

  #renderCells(row: MessageRow, at: number, columns: number, paint: Paint): Span[] {
    const preview = this.#previews.get(versionOf(row));
    const { top, selected } = this.#window.cursor;
    const above = at === top || at === selected ? undefined : this.#window.rows[at - 1];
    const marks = [
      ...(row.forgottenAt === null ? [] : ["forgotten"]),
      ...(row.newest === null ? [] : ["changed"]),
      ...row.hidden,
    ];
    return [
      ...renderRowColumns(
        { at: row.createdAt, above: above?.createdAt ?? null, who: row.role, tokens: row.tokens },
        columns,
        this.#desk.timezone,
        paint,
      ),
      ...(marks.length === 0 ? [] : [span(`[${marks.join(", ")}] `, paint.warning)]),
      ...renderPreview(preview, row.hidden.length > 0, paint),
    ];
  }
}

/** The newest version of a message. */
const versionOf = ({ messageId, newest }: MessageRow): number => newest ?? messageId;

function toChoosable(row: MessageRow | undefined): Choosable | null {
  if (row === undefined) return null;
  const isLong = row.arrivalBytes > MAX_PANE_BYTES;
  return {
    id: String(versionOf(row)),
    messageId: isLong ? null : versionOf(row),
    summaryId: null,
    reason: "This message is very long. Enter opens it.",
  };
}

/** Older and newer, with the keys of earlier programs. */
function readPageKey(name: string, rows: number): ReturnType<typeof readMove> {
  if (name === "[") return readMove("pageUp", rows);
  return name === "]" ? readMove("pageDown", rows) : null;
}
