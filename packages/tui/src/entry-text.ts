/** An entry of a conversation, or a whole turn, as text for a pane: a call and its result one below the other. */
import type { Engine, MessageRow, Scope } from "@lossless/core";
import { countOf, toOneLine } from "@lossless/core/doors";
import { isHousekeeping } from "@lossless/interchange/pairs";
import { isEmpty, isRequest, loadMessage, pairEntries, versionOf } from "./entries.ts";
import type { Entry } from "./entries.ts";
import { readMessageText, renderMessageText, type Message } from "./message-text.ts";
import type { Paint, Style } from "./paint.ts";
import type { TextLine } from "./wrapped-text.ts";

/** What is read of an entry; a text says why it cannot be read. */
export interface EntryTexts {
  readonly entry: Entry;
  readonly message: Message | string;
  readonly result: Message | string | null;
}

export async function readEntryText(engine: Engine, scope: Scope, entry: Entry): Promise<EntryTexts> {
  const [message, result] = await Promise.all([
    readMessageText(engine, scope, versionOf(entry.row)),
    entry.result === null ? null : readMessageText(engine, scope, versionOf(entry.result.row)),
  ]);
  return { entry, message, result };
}

export function renderEntryText(
  { entry, message, result }: EntryTexts,
  paint: Paint,
  options: { readonly foldsReasoning: boolean },
): TextLine[] {
  const lines = renderOne(message, paint, { ordinals: entry.ordinals, ...options });
  if (entry.result === null || result === null) return lines;
  return [...lines, { text: "" }, ...renderOne(result, paint, { ordinals: [entry.result.ordinal] })];
}

const renderOne = (
  message: Message | string,
  paint: Paint,
  slice: Parameters<typeof renderMessageText>[2],
): TextLine[] =>
  typeof message === "string"
    ? [{ text: toOneLine(message), style: paint.bad }]
    : renderMessageText(message, paint, slice);

/** The colour of an entry's first words. */
export function styleEntry({ kind, isError }: Pick<Entry, "kind" | "isError">, paint: Paint): Style {
  if (isError) return paint.bad;
  return kind === "call" ? paint.role("tool") : paint.faint;
}

/** What a card says after what the call acts on. */
export const writeOutcome = ({ outcome }: Entry): string => (outcome === "" ? "" : ` ⇒ ${outcome}`);

/** What a call acts on, without the folder of the project, which is the same in every row. */
export const shortenPaths = (line: string, project: string | null): string =>
  project === null || project.length < 2 ? line : line.replaceAll(`${project}/`, "");

export interface TurnTexts {
  readonly project: string | null;
  readonly texts: readonly EntryTexts[];
  /** Whether the turn goes on. */
  readonly isCut: boolean;
}

const TURN_PAGE = 100;

export interface TurnRequest {
  readonly request: MessageRow;
  readonly project: string | null;
  readonly maxMessages: number;
}

/** A turn from its request on, at most this many messages of it. */
export async function readTurnText(
  engine: Engine,
  scope: Scope,
  { request, project, maxMessages }: TurnRequest,
): Promise<TurnTexts> {
  const rows: MessageRow[] = [request];
  const { conversationId } = request;
  let isCut = false;
  for (let after: string | null = `${request.position}.${request.seq}`; after !== null && !isCut;) {
    const limit = Math.min(TURN_PAGE, maxMessages);
    const page = await engine.listMessages({ ...scope, conversationId, limit, after, direction: "oldest" });
    const end = page.items.findIndex((row) => row.revises === null && isRequest(row));
    const own = end < 0 ? page.items : page.items.slice(0, end);
    rows.push(...own.filter((row) => row.revises === null && !isHousekeeping(row)));
    after = end < 0 ? page.next : null;
    isCut = after !== null && rows.length >= maxMessages;
  }
  const loaded = await Promise.all(rows.map((row) => loadMessage(engine, scope, row)));
  const entries = pairEntries(loaded.filter((message) => !isEmpty(message)));
  // Cards are one line in a turn: only what was said is read again as a whole.
  const texts = entries.map(async (entry): Promise<EntryTexts> =>
    entry.kind === "call"
      ? { entry, message: "", result: null }
      : { ...(await readEntryText(engine, scope, entry)), result: null },
  );
  return { texts: await Promise.all(texts), isCut, project };
}

/** Folded reasoning takes at most this much of a turn. */
const FOLDED_CHARS = 70;

const foldLine = (line: string): string =>
  line.length <= FOLDED_CHARS ? line : `${line.slice(0, FOLDED_CHARS).toWellFormed().trimEnd()}…`;

/** A turn to read: what was said in full, calls as a line each, and so is reasoning unless it is opened. */
export function renderTurnText(
  { texts, isCut, project }: TurnTexts,
  paint: Paint,
  options: { readonly foldsReasoning: boolean },
): TextLine[] {
  const lines: TextLine[] = [];
  let wasLine: boolean | null = null;
  for (const text of texts) {
    const { entry } = text;
    const isFolded = entry.kind === "reasoning" && options.foldsReasoning;
    const isLine = entry.kind === "call" || isFolded;
    if (wasLine !== null && !(isLine && wasLine)) lines.push({ text: "" });
    if (isFolded) lines.push({ text: foldLine(`${entry.head} ${entry.line}`), style: paint.faint });
    else if (isLine) {
      const head = toOneLine(entry.head);
      const line = `${head} ${shortenPaths(entry.line, project)}${writeOutcome(entry)}`;
      const ranges = [{ start: 0, end: head.length, style: styleEntry(entry, paint) }];
      lines.push({ text: line, hang: 2, ranges });
    } else {
      lines.push({ text: toOneLine(entry.row.role), style: paint.role(entry.row.role) });
      lines.push(...renderEntryText(text, paint, options));
    }
    wasLine = isLine;
  }
  if (isCut)
    lines.push(
      { text: "" },
      {
        text: `… the turn goes on after ${countOf(texts.length, "row")}; T lists all of it`,
        style: paint.faint,
      },
    );
  return lines;
}
