/**
 * What must hold of every context, checked from the database itself and not through the engine's own eyes: it fits, every message that is
 * shown is represented exactly once and in order, every provider accepts it, and what is written costs what the engine says.
 */
import { messageTokens, viewMessage } from "../../src/message/normalize.ts";
import { must } from "../../src/model/errors.ts";
import { parseMessageId } from "../../src/model/ids.ts";
import { estimateSentTokens } from "../../src/index.ts";
import type { AssembledContext } from "../../src/index.ts";
import { readTables } from "./archive-tables.ts";
import type { ArchiveTables, ItemRow, MessageRow } from "./archive-tables.ts";

interface Message extends MessageRow {
  readonly rank: number;
}

type Link = Pick<ItemRow, "message_id" | "summary_id">;

/** The archive as it stands: what is shown, and what lies under each summary. Read once, used for many contexts. */
export class ArchiveView {
  readonly #tables: ArchiveTables;
  readonly #messages = new Map<number, Message>();
  readonly #links = new Map<string, Link[]>();
  readonly #under = new Map<string, readonly number[]>();
  readonly #conversationId: number;
  /** Ids of the messages a context must stand for, in order. */
  readonly shown: readonly number[];
  /** The newest shown message a person wrote that lies in no summary. */
  readonly newestUser: number | null;

  /** Of an archive in a file, or of what was read of one. */
  constructor(of: string | ArchiveTables, conversationId: number) {
    this.#tables = typeof of === "string" ? readTables(of) : of;
    this.#conversationId = conversationId;
    const own = this.#tables.messages.filter(
      (row) => row.conversation_id === conversationId && row.revises === null,
    );
    for (const [rank, row] of own.toSorted(byPlace).entries())
      this.#messages.set(row.message_id, { ...row, rank });
    for (const link of this.#tables.links.toSorted((a, b) => a.ordinal - b.ordinal))
      this.#links.set(link.above, [...(this.#links.get(link.above) ?? []), link]);
    const items = this.#listShownItems();
    this.shown = items.flatMap((item) => this.expand(item));
    const isUser = ({ message_id: id }: Link) => id !== null && this.#isUser(id);
    this.newestUser = items.findLast(isUser)?.message_id ?? null;
  }

  /** Shown messages an item stands for. */
  expand({ message_id: messageId, summary_id: summaryId }: Link): readonly number[] {
    if (messageId !== null) return this.#messages.get(messageId)?.hidden_now === 0 ? [messageId] : [];
    const known = this.#under.get(summaryId ?? "");
    if (known !== undefined) return known;
    const messages = (this.#links.get(summaryId ?? "") ?? []).flatMap((link) => this.expand(link));
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
    const message = this.#messages.get(messageId);
    return message?.role === "user" && !this.#tables.results.has(message.newest ?? messageId);
  }

  #listShownItems(): ItemRow[] {
    const isOwn = (row: { readonly conversation_id: number }) => row.conversation_id === this.#conversationId;
    const boundaries = this.#tables.boundaries.filter(isOwn);
    return this.#tables.items
      .filter(isOwn)
      .toSorted((a, b) => a.start_pos - b.start_pos || a.seq - b.seq)
      .filter(
        (item) =>
          item.hidden === 0 &&
          !boundaries.some(
            ({ position, retain_depth: depth }) =>
              depth >= 0 && item.end_pos < position && item.depth < depth,
          ),
      );
  }
}

const byPlace = (a: MessageRow, b: MessageRow): number => a.position - b.position || a.seq - b.seq;

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
  const hasSummary = items.some(({ kind }) => kind === "summary");
  if ((mode !== "least" || hasSummary) && estimatedTokens > budgetTokens)
    faults.push(`${mode}: ${estimatedTokens} tokens in ${budgetTokens}`);
  const verbatim = items.filter(({ kind }) => kind === "message" || kind === "stub");
  if (mode === "least") {
    const others = verbatim.filter(
      ({ messageId, reason }) => messageId !== archive.newestUser && reason !== "open tool group",
    );
    if (others.some(({ reason }) => !reason.includes("open tool group")))
      faults.push("least: more messages than the user message and the open tool group");
  }
  const showsUser =
    archive.newestUser === null || verbatim.some(({ messageId }) => messageId === archive.newestUser);
  if (!showsUser) faults.push(`${mode}: the newest user message msg_${archive.newestUser} is missing`);
  return faults;
}

function findCoverFaults(context: AssembledContext, archive: ArchiveView): string[] {
  const faults: string[] = [];
  if (context.items.some(({ messageId, role }) => messageId === null && role !== null))
    faults.push("something that is not a message has a role");
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
    // A stand-in that says so may lack messages between its ends; it stands for them all the same. How many it names is a difference: others may
    // have been hidden since.
    const lacking =
      item.lacks === undefined
        ? []
        : archive.shown.filter(
            (id) => !seen.has(id) && !under.includes(id) && isWithin(archive.positionOf(id), item),
          );
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
    const named = range.ids.map((id) => must(parseMessageId(id), "an id of a message"));
    const places = named.map((id) => archive.positionOf(id));
    const ends = { startPosition: Math.min(...places), endPosition: Math.max(...places) };
    const unnamed = missing.filter((id) => !isWithin(archive.positionOf(id), ends));
    if (unnamed.length > 0 || named.some((id) => !missing.includes(id)))
      faults.push(
        `the range line names ${range.ids.join(", ")}, it counts ${missing[0]} to ${missing.at(-1)}`,
      );
  }
  return faults;
}

const isWithin = (
  position: number,
  { startPosition, endPosition }: { readonly startPosition: number; readonly endPosition: number },
): boolean => position >= startPosition && position <= endPosition;

export function findFormFaults(context: AssembledContext): string[] {
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
    tokens += messageTokens(view, estimateSentTokens);
  }
  return tokens;
}
