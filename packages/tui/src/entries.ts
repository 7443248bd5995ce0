/**
 * The rows of a conversation as people read it: what somebody said, and each tool call with its result as one card. Several entries can come
 * from one message, and one entry from two. The rules are those of the web page and the exported page (`@lossless/interchange/pairs`). Pure,
 * except for loading.
 */
import type { Engine, MessageRow, Scope } from "@lossless/core";
import { beginsTurn, describePart, previewOf, toOneLine } from "@lossless/core/doors";
import { describeOutcome, describeResult, lineOf } from "@lossless/interchange/cards";
import { isBlank, pairCalls } from "@lossless/interchange/pairs";
import { readPart } from "@lossless/interchange/parts";
import type { Message } from "./message-text.ts";

/** Enough of a part for one line. */
const LINE_CHARS = 6_000;
const SHOWN_CHARS = 300;

type PartType = Message["view"]["parts"][number]["type"];

/** A part of a loaded message: only what a row shows of it. */
interface LoadedPart {
  readonly ordinal: number;
  readonly type: PartType;
  readonly toolCallId: string | null;
  readonly isError: boolean;
  readonly isBlank: boolean;
  /** What the row begins with if this is its first part: the tool, or the type. */
  readonly head: string;
  readonly line: string;
  /** What a call that edits changes, in a few words. */
  readonly change: string;
}

export interface LoadedMessage {
  readonly id: number;
  readonly row: MessageRow;
  readonly parts: readonly LoadedPart[];
  /** The text of a message without parts, or why it cannot be read. */
  readonly bare: string;
}

export interface EntryResult {
  readonly row: MessageRow;
  readonly ordinal: number;
  readonly isError: boolean;
}

export interface Entry {
  readonly row: MessageRow;
  /** The parts it shows; null: the whole message. The heading of a turn has none. */
  readonly ordinals: readonly number[] | null;
  readonly kind: "turn" | "said" | "reasoning" | "call" | "other";
  readonly isError: boolean;
  readonly head: string;
  readonly line: string;
  readonly result: EntryResult | null;
  /** What came of a call, in a few words. */
  readonly outcome: string;
  /** Its tokens; those of a message with several entries are counted with the first. */
  readonly tokens: number;
}

/** The newest version of a message. */
export const versionOf = ({ messageId, newest }: MessageRow): number => newest ?? messageId;

/** Whether a message begins a turn. */
export const isRequest = ({ role, tokens, hidden }: MessageRow): boolean =>
  hidden.length === 0 && beginsTurn({ role, tokens });

export async function loadMessage(engine: Engine, scope: Scope, row: MessageRow): Promise<LoadedMessage> {
  const id = row.messageId;
  try {
    const message = await engine.readMessage({ ...scope, messageId: versionOf(row) });
    if (message === null) return { id, row, parts: [], bare: "" };
    const parts = message.view.parts.map((part) => toLoaded(message, part));
    return { id, row, parts, bare: parts.length === 0 ? previewOf(message) : "" };
  } catch (error) {
    // A message that cannot be read must not hide the others.
    return { id, row, parts: [], bare: `[${error instanceof Error ? error.message : String(error)}]` };
  }
}

function toLoaded(message: Message, part: Message["view"]["parts"][number]): LoadedPart {
  const read = readPart(message.bytes, part, LINE_CHARS);
  const facts = {
    ordinal: part.ordinal,
    type: part.type,
    toolCallId: read.toolCallId,
    isError: read.isError,
    isBlank: isBlank(read),
    change: part.type === "tool_call" ? describeOutcome(read, null) : "",
  };
  if (part.type === "tool_call")
    return { ...facts, head: `→ ${part.toolName ?? "tool"}`, line: shorten(lineOf(read)) };
  const head = part.type === "text" ? "" : `[${describePart(part)}]`;
  return { ...facts, head, line: shorten(part.type === "tool_result" ? describeResult(read) : read.text) };
}

const shorten = (text: string): string => toOneLine(text.slice(0, SHOWN_CHARS).toWellFormed()).trim();

/** Nothing to read in it: listed only with housekeeping. */
export const isEmpty = ({ parts, row }: LoadedMessage): boolean =>
  parts.length > 0 && row.forgottenAt === null && parts.every((part) => part.isBlank);

/** A request and its answer need no heading. */
const HEADED_FROM = 3;
/** The heading of a turn stands before the first part of its request. */
const HEADING: readonly number[] = [-1];

/** The entries of consecutive messages, in order; longer turns have a heading. */
export function toEntries(messages: readonly LoadedMessage[]): Entry[] {
  const headed: Entry[] = [];
  let turn: Entry[] = [];
  const close = (): void => {
    const row = turn[0]?.row;
    if (row !== undefined && isRequest(row) && turn.length >= HEADED_FROM)
      headed.push({ ...NOTHING, row, kind: "turn", ordinals: HEADING });
    headed.push(...turn);
    turn = [];
  };
  let begun: MessageRow | null = null;
  for (const entry of pairEntries(messages)) {
    if (entry.row !== begun && isRequest(entry.row)) close();
    begun = entry.row;
    turn.push(entry);
  }
  close();
  return headed;
}

const NOTHING = {
  ordinals: null,
  isError: false,
  head: "",
  line: "",
  result: null,
  outcome: "",
  tokens: 0,
};

/** The same without headings. A result is shown with its call; without one, as a row of its own. */
export function pairEntries(messages: readonly LoadedMessage[]): Entry[] {
  const { resultOf, moved } = pairCalls(messages);
  const rows = new Map(messages.map(({ id, row }) => [id, row]));
  const isMovedWhole = ({ parts }: LoadedMessage): boolean =>
    parts.some((part) => moved.has(part)) && parts.every((part) => moved.has(part) || part.isBlank);
  /** The tokens of a message that held nothing but results go to the card of the first. */
  const counted = new Set(
    messages.filter(isMovedWhole).flatMap(({ parts }) => parts.find((part) => moved.has(part)) ?? []),
  );
  return messages.flatMap((message) => {
    const { row, parts, bare } = message;
    if (isMovedWhole(message)) return [];
    const entries = groupParts(parts.filter((part) => !moved.has(part))).map(({ shown, call }): Entry => {
      const found = call && resultOf.get(call);
      const resultRow = found && rows.get(found.messageId);
      const paired =
        found && resultRow
          ? {
              row: resultRow,
              ordinal: found.part.ordinal,
              isError: found.part.isError,
            }
          : null;
      const resultTokens = found && resultRow && counted.has(found.part) ? resultRow.tokens : 0;
      return {
        ...shown,
        row,
        result: paired,
        outcome: (paired?.isError === true ? "" : call?.change) || (found?.part.line ?? ""),
        isError: shown.isError || paired?.isError === true,
        tokens: resultTokens,
      };
    });
    if (entries.length === 0) entries.push({ ...NOTHING, row, kind: "other", line: bare });
    return entries.map((entry, at) => ({ ...entry, tokens: entry.tokens + (at === 0 ? row.tokens : 0) }));
  });
}

interface Group {
  readonly shown: Pick<Entry, "ordinals" | "kind" | "head" | "line" | "isError">;
  readonly call?: LoadedPart;
}

/** Each call by itself; everything else between two calls together, under its first text. */
function groupParts(parts: readonly LoadedPart[]): Group[] {
  const groups: Group[] = [];
  let others: LoadedPart[] = [];
  const close = (): void => {
    if (others.some((part) => !part.isBlank)) groups.push({ shown: toSaid(others) });
    others = [];
  };
  for (const part of parts) {
    if (part.type !== "tool_call") {
      others.push(part);
      continue;
    }
    close();
    const { ordinal, head, line, isError } = part;
    groups.push({ shown: { ordinals: [ordinal], kind: "call", head, line, isError }, call: part });
  }
  close();
  return groups;
}

function toSaid(parts: readonly LoadedPart[]): Group["shown"] {
  const full = parts.filter((part) => !part.isBlank);
  // Reasoning is folded away where something was said.
  const said = full.filter(({ type }) => type !== "reasoning");
  const shown = said.length > 0 ? said : full;
  const [first] = shown;
  const kind = said.length === 0 ? "reasoning" : first?.type === "text" ? "said" : "other";
  const words = shown.map(({ head, line }, at) => (at === 0 || head === "" ? line : `${head} ${line}`));
  return {
    ordinals: parts.map(({ ordinal }) => ordinal),
    kind,
    isError: shown.some(({ isError }) => isError),
    head: first?.head ?? "",
    line: words.join(" ").trim(),
  };
}

/** The entry of a message, or the card that its result is in; otherwise the first one at or after its place. -1: none. */
export function findEntry(
  entries: readonly Entry[],
  wanted: { readonly position: number; readonly seq: number },
  ordinal = 0,
): number {
  const isIt = ({ row, ordinals }: Entry): boolean =>
    row.seq === wanted.seq && (ordinals === null || ordinals.includes(ordinal));
  const exact = entries.findIndex(isIt);
  if (exact >= 0) return exact;
  const near = entries.findIndex(
    ({ row, result }) => row.seq === wanted.seq || result?.row.seq === wanted.seq,
  );
  return near >= 0
    ? near
    : entries.findIndex(
        ({ row }) =>
          row.position > wanted.position || (row.position === wanted.position && row.seq >= wanted.seq),
      );
}
