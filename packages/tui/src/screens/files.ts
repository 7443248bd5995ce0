/** The large files of a conversation: content too long to stay in its message. Enter opens one, a page at a time. */
import type { HeadedConversation, DescribeResult, LargeFileRow } from "@lossless/core";
import { countOf, formatBytes, formatCount, formatTime, toOneLine } from "@lossless/core/doors";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, storedSpan, type Paint } from "../paint.ts";
import { joinPanes, splitPanes } from "../panes.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import { TextPane } from "../text-pane.ts";
import { toTextLines } from "../wrapped-text.ts";
import { TextScreen } from "./text.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter", does: "content" },
  { keys: "m", does: "the message it came from" },
  { keys: "J K", does: "scroll the text" },
];
const HEAD_ROWS = 1;

export class FilesScreen implements Screen {
  readonly name = "large files";
  readonly keys = KEYS;
  readonly conversation: HeadedConversation;
  readonly #desk: Desk;
  readonly #pane = new TextPane();
  #files: readonly LargeFileRow[] = [];
  #cursor: ListCursor = LIST_START;

  constructor(desk: Desk, conversation: HeadedConversation) {
    this.#desk = desk;
    this.conversation = conversation;
  }

  get area(): ListArea {
    return placeList(this.#cursor, this.#files.length, splitPanes(this.#desk.size).list, HEAD_ROWS);
  }

  get #rows(): number {
    return Math.max(1, splitPanes(this.#desk.size).list.rows - HEAD_ROWS);
  }

  async load(): Promise<void> {
    const { engine, scope } = this.#desk.archive;
    const { conversationId } = this.conversation;
    this.#files = await engine.listFiles({ ...scope, conversationId });
    this.#cursor = keepInList(this.#cursor, this.#files.length, this.#rows);
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows);
    if (move !== null) {
      this.#cursor = moveInList(this.#cursor, move, this.#files.length, this.#rows);
      return true;
    }
    if (this.#pane.handle(key)) return true;
    const file = this.#files[this.#cursor.selected];
    if (file === undefined) return false;
    if (isOpen(key.name)) return this.#desk.go.file(file.fileId);
    return key.name === "m" && this.#openMessage(file);
  }

  async #openMessage({ fileId }: LargeFileRow): Promise<boolean> {
    const described = await describeFile(this.#desk, fileId, null);
    const id = Number(described.messageIds[0]?.replace("msg_", ""));
    return Number.isSafeInteger(id) ? this.#desk.go.messages(this.conversation, id) : true;
  }

  render(size: Size, paint: Paint): string[] {
    const panes = splitPanes(size);
    const { columns } = panes.list;
    const rows = Math.max(1, panes.list.rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, this.#files.length, rows);
    const { top, selected } = this.#cursor;
    const lines = this.#files
      .slice(top, top + rows)
      .map((file, at) =>
        renderRow(
          [
            cell(file.fileId, 22, { style: paint.name }),
            cell(formatBytes(file.byteSize), 9, { right: true }),
            span("  "),
            cell(formatTime(file.createdAt, this.#desk.timezone), 17, { style: paint.faint }),
            storedSpan(file.fileName ?? file.mimeType),
          ],
          { columns, isSelected: top + at === selected, paint },
        ),
      );
    const file = this.#files[selected];
    const head = renderSpans([span(`  ${countOf(this.#files.length, "large file")}`, paint.faint)], columns);
    const detail =
      file === undefined
        ? []
        : this.#pane.render(file.fileId, panes.detail, () => toTextLines(file.explorationSummary));
    return joinPanes(
      panes,
      {
        list: [head, ...lines],
        title: file === undefined ? "nothing is so long that it was put aside" : describeRow(file),
        detail,
      },
      paint,
    );
  }
}

function describeRow({ fileId, mimeType, byteSize, lineCount }: LargeFileRow): string {
  const lines = lineCount === null ? "" : ` · ${formatCount(lineCount)} lines`;
  return `${fileId} · ${mimeType} · ${formatBytes(byteSize)}${lines}`;
}

type DescribedFile = Extract<DescribeResult, { type: "file" }>;

/** Tokens of one page; a page of this size is wrapped at once. */
const PAGE_TOKENS = 20_000;

async function describeFile(desk: Desk, fileId: string, after: string | null): Promise<DescribedFile> {
  const { engine, scope } = desk.archive;
  const described = await engine.describe({
    ...scope,
    allConversations: true,
    id: fileId,
    tokenCap: PAGE_TOKENS,
    after: after ?? undefined,
  });
  if (described.type !== "file") throw new TypeError(`${fileId} is not a file`);
  return described;
}

/** One file; `n` shows the next page, `N` starts over. */
export function makeFileScreen(desk: Desk, fileId: string): Screen {
  let after: string | null = null;
  let next: string | null = null;
  const screen: TextScreen = new TextScreen(desk, {
    name: fileId,
    keys: [
      { keys: "n", does: "next page" },
      { keys: "N", does: "first page" },
    ],
    read: async () => {
      const file = await describeFile(desk, fileId, after);
      next = file.next;
      const range = `bytes ${formatCount(file.byteOffset)}–${formatCount(file.byteEnd)} of ${formatCount(file.byteSize)}`;
      return {
        title: toOneLine(
          `${file.fileName ?? fileId} · ${file.mimeType} · ${range}${next === null ? "" : " · n: more"}`,
        ),
        lines: (paint) =>
          file.content === null
            ? [
                { text: "This file is not text.", style: paint.faint },
                ...toTextLines(file.explorationSummary),
              ]
            : toTextLines(file.content),
      };
    },
    act: async ({ name }) => {
      if (name !== "n" && name !== "N") return false;
      if (name === "n" && next === null) desk.say("this is the last page");
      after = name === "n" ? (next ?? after) : null;
      await screen.restart();
      return true;
    },
  });
  return screen;
}
