/**
 * What must hold of every context, checked from the database itself and not through the engine's own eyes: it fits, every message that is
 * shown is represented exactly once and in order, every provider accepts it, and what is written costs what the engine says.
 */
import { DatabaseSync } from "node:sqlite";

import { messageTokens, viewMessage } from "../../src/message/normalize.ts";
import { must } from "../../src/model/errors.ts";
import { estimateTextTokens } from "../../src/index.ts";
import type { AssembledContext } from "../../src/index.ts";

const ITEMS = `
  SELECT start_pos, end_pos, message_id, summary_id, depth, hidden FROM context_items
  WHERE conversation_id = ? ORDER BY start_pos, seq`;
const BOUNDARIES = `
  SELECT position, retain_depth FROM boundaries WHERE conversation_id = ? AND reason = 'new' AND undone_at IS NULL`;
const LINKS = `
  SELECT ordinal, message_id, NULL AS summary_id FROM summary_messages WHERE summary_id = ?1
  UNION ALL SELECT ordinal, NULL, parent_summary_id FROM summary_parents WHERE summary_id = ?1 ORDER BY 1`;
const MESSAGES = `
  SELECT message_id, position, seq, hidden_now, role FROM messages WHERE conversation_id = ? AND revises IS NULL ORDER BY position, seq`;
const IS_RESULT = `
  SELECT 1 AS yes FROM message_parts p JOIN messages m ON p.message_id = coalesce(m.newest, m.message_id)
  WHERE m.message_id = ? AND p.type = 'tool_result' AND p.tool_call_id IS NOT NULL LIMIT 1`;

interface Message {
  readonly message_id: number;
  readonly position: number;
  readonly hidden_now: number;
  readonly role: string;
  readonly rank: number;
}

interface Link {
  readonly message_id: number | null;
  readonly summary_id: string | null;
}

/** The archive as it stands: what is shown, and what lies under each summary. Read once, used for many contexts. */
export class ArchiveView {
  readonly #database: DatabaseSync;
  readonly #messages = new Map<number, Message>();
  readonly #under = new Map<string, readonly number[]>();
  readonly #conversationId: number;
  /** Ids of the messages a context must stand for, in order. */
  readonly shown: readonly number[];
  /** The newest shown message a person wrote that lies in no summary. */
  readonly newestUser: number | null;

  constructor(path: string, conversationId: number) {
    this.#database = new DatabaseSync(path, { readOnly: true });
    this.#conversationId = conversationId;
    for (const [rank, row] of this.#database.prepare(MESSAGES).all(conversationId).entries()) {
      const message = { ...(row as unknown as Message), rank };
      this.#messages.set(message.message_id, message);
    }
    const items = this.#listShownItems();
    this.shown = items.flatMap((item) => this.expand(item));
    const isUser = ({ message_id: id }: Link) => id !== null && this.#isUser(id);
    this.newestUser = items.findLast(isUser)?.message_id ?? null;
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  /** Shown messages an item stands for. */
  expand({ message_id: messageId, summary_id: summaryId }: Link): readonly number[] {
    if (messageId !== null) return this.#messages.get(messageId)?.hidden_now === 0 ? [messageId] : [];
    const known = this.#under.get(summaryId ?? "");
    if (known !== undefined) return known;
    const links = this.#database.prepare(LINKS).all(summaryId) as unknown as Link[];
    const messages = links.flatMap((link) => this.expand(link));
    this.#under.set(summaryId ?? "", messages);
    return messages;
  }

  rankOf(messageId: number): number {
    return this.#messages.get(messageId)?.rank ?? -1;
  }

  positionOf(messageId: number): number {
    return this.#messages.get(messageId)?.position ?? -1;
  }

  #isUser(messageId: number): boolean {
    return (
      this.#messages.get(messageId)?.role === "user" &&
      this.#database.prepare(IS_RESULT).get(messageId) === undefined
    );
  }

  #listShownItems(): Link[] {
    const boundaries = this.#database.prepare(BOUNDARIES).all(this.#conversationId) as unknown as {
      position: number;
      retain_depth: number;
    }[];
    const items = this.#database.prepare(ITEMS).all(this.#conversationId) as unknown as (Link & {
      end_pos: number;
      depth: number;
      hidden: number;
    })[];
    return items.filter(
      (item) =>
        item.hidden === 0 &&
        !boundaries.some(
          ({ position, retain_depth: depth }) => depth >= 0 && item.end_pos < position && item.depth < depth,
        ),
    );
  }
}

/** Everything that is wrong with a context, in words; an empty list is what every test wants. */
export function findFaults(context: AssembledContext, archive: ArchiveView): string[] {
  return [
    ...findBudgetFaults(context, archive),
    ...findCoverFaults(context, archive),
    ...findFormFaults(context),
  ];
}

function findBudgetFaults(context: AssembledContext, archive: ArchiveView): string[] {
  const { mode, items, estimatedTokens, budgetTokens } = context;
  const faults: string[] = [];
  if (mode !== "least" && estimatedTokens > budgetTokens)
    faults.push(`${mode}: ${estimatedTokens} tokens in ${budgetTokens}`);
  const verbatim = items.filter(({ kind }) => kind === "message" || kind === "stub");
  if (mode === "least") {
    const summaries = items.filter(({ kind }) => kind === "summary").length;
    const others = verbatim.filter(
      ({ messageId, reason }) => messageId !== archive.newestUser && reason !== "open tool group",
    );
    if (summaries > 0 || others.some(({ reason }) => !reason.includes("open tool group")))
      faults.push("least: more than the user message and the open tool group");
  }
  const showsUser =
    archive.newestUser === null || verbatim.some(({ messageId }) => messageId === archive.newestUser);
  if (!showsUser) faults.push(`${mode}: the newest user message msg_${archive.newestUser} is missing`);
  return faults;
}

function findCoverFaults(context: AssembledContext, archive: ArchiveView): string[] {
  const faults: string[] = [];
  const total = context.items.reduce((sum, item) => sum + item.messages, 0);
  if (total !== context.shownMessages || total !== archive.shown.length)
    faults.push(
      `items stand for ${total} messages, the counter says ${context.shownMessages}, the archive ${archive.shown.length}`,
    );
  const wanted = new Set(archive.shown);
  const seen = new Set<number>();
  let last = Number.POSITIVE_INFINITY;
  // From the newest back: a summary that was opened in part stands for what none of its sources, which follow it, shows.
  for (const item of context.items.toReversed()) {
    if (item.kind === "range") continue;
    const under = archive.expand({ message_id: item.messageId, summary_id: item.summaryId });
    const own = under.filter((id) => !seen.has(id));
    const name = item.ids.join();
    // A stand-in that says so may lack messages between its ends; it stands for them all the same.
    const lacking = archive.shown
      .filter((id) => !seen.has(id) && !under.includes(id) && isWithin(archive.positionOf(id), item))
      .slice(0, item.lacks ?? 0);
    for (const id of lacking) seen.add(id);
    if (own.length + lacking.length !== item.messages)
      faults.push(`${name} says ${item.messages} messages, ${own.length} are shown by nothing else`);
    if (own.length < under.length && !item.reason.includes("of which"))
      faults.push(`${under.length - own.length} messages of ${name} are represented twice`);
    for (const id of own) {
      if (!wanted.has(id)) faults.push(`msg_${id} is shown although it is hidden`);
      seen.add(id);
    }
    const first = Math.min(...under.map((id) => archive.rankOf(id)));
    if (first > last) faults.push(`${name} is out of order`);
    last = Math.min(last, first);
  }
  const ranges = context.items.filter(({ kind }) => kind === "range");
  const missing = archive.shown.filter((id) => !seen.has(id));
  const counted = ranges.reduce((sum, { messages }) => sum + messages, 0);
  if (ranges.length > 1) faults.push(`${ranges.length} range lines`);
  if (missing.length !== counted)
    faults.push(`${missing.length} messages are in no item, range lines count ${counted}`);
  for (const range of ranges) {
    const outside = missing.filter((id) => !isWithin(archive.positionOf(id), range));
    if (outside.length > 0)
      faults.push(`${outside.length} messages lie outside of the range line that counts them`);
  }
  return faults;
}

const isWithin = (
  position: number,
  { startPosition, endPosition }: { readonly startPosition: number; readonly endPosition: number },
): boolean => position >= startPosition && position <= endPosition;

function findFormFaults(context: AssembledContext): string[] {
  const faults: string[] = [];
  if (context.items.length > 0) {
    for (const { provider, violations } of must(context.grammars, "the check of the grammars"))
      for (const { rule, index, detail } of violations.slice(0, 3))
        faults.push(`${provider}: ${rule} at ${index}: ${detail}`);
  }
  if (context.messages.some((message) => message.content.length === 0)) faults.push("a message is empty");
  const counted = countWritten(context);
  if (Math.abs(counted - context.estimatedTokens) > 8 + 0.03 * context.estimatedTokens)
    faults.push(`${context.estimatedTokens} tokens are stated, ${counted} are written`);
  return faults;
}

/** Counts what is handed out as if it had just arrived. */
function countWritten({ messages }: Pick<AssembledContext, "messages">): number {
  let tokens = 0;
  for (const message of messages) {
    const view = viewMessage(Buffer.from(JSON.stringify(message)));
    tokens += messageTokens(view, estimateTextTokens);
  }
  return tokens;
}
