/**
 * The heading of a conversation in lists: the name a person gave it, the agent's own title, or else the first request, shortened. The
 * request is read from the messages each time, so that it is redacted and forgotten with them.
 */
import { readSearchText } from "../message/normalize.ts";
import { readUserText } from "../summarize/injected.ts";
import type { ConversationRow, Store } from "../store/store.ts";

export interface HeadedConversation extends ConversationRow {
  /** Never empty: the session key if there is no request. */
  readonly heading: string;
}

const HEADING_CHARS = 100;
/** Text that a host writes in the user's name often comes first. */
const LOOKED_AT = 4;

/** What a heading is made from, besides the messages. */
type Named = Pick<ConversationRow, "conversationId" | "name" | "title" | "sessionKey">;

export async function addHeadings<T extends Named>(
  store: Pick<Store, "listOpenings" | "readShown">,
  rows: readonly T[],
): Promise<(T & Pick<HeadedConversation, "heading">)[]> {
  const unnamed = rows.filter(({ name, title }) => name === null && title === null);
  const openings = await store.listOpenings(
    unnamed.map(({ conversationId }) => conversationId),
    LOOKED_AT,
  );
  const shown = await store.readShown(openings.map(({ messageId }) => messageId));
  const bytesOf = new Map(shown.map((message) => [message.messageId, message.bytes]));
  const requestOf = new Map<number, string>();
  for (const { conversationId, messageId } of openings) {
    const bytes = bytesOf.get(messageId);
    const request = bytes === undefined || requestOf.has(conversationId) ? "" : readRequest(bytes);
    if (request !== "") requestOf.set(conversationId, request);
  }
  return rows.map((row) => headByName(row, requestOf.get(row.conversationId)));
}

/** Without looking for a request. */
export const headByName = <T extends Named>(
  row: T,
  request?: unknown,
): T & Pick<HeadedConversation, "heading"> => ({
  ...row,
  heading: toHeading(row.name ?? row.title ?? (typeof request === "string" ? request : row.sessionKey)),
});

/** The part of a message that the user wrote; empty if a machine wrote all of it. */
function readRequest(bytes: Uint8Array): string {
  const { text, isNotice } = readUserText(readSearchText(bytes));
  return isNotice ? "" : text;
}

/** One line, cut at a word unless that would lose most of it. */
function toHeading(text: string): string {
  const line = text.trim().replaceAll(/\s+/gu, " ");
  if (line.length <= HEADING_CHARS) return line;
  const cut = line.slice(0, HEADING_CHARS - 1).toWellFormed();
  const end = cut.lastIndexOf(" ");
  return `${(end > HEADING_CHARS / 2 ? cut.slice(0, end) : cut).trimEnd()}…`;
}
