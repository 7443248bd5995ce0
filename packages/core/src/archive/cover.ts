/**
 * Changes of a cover when a row arrives late, is revised, hidden or shown again. A message that is itself in the cover changes its item; a
 * folded one changes what the summaries above it represent: counts are corrected at once, the texts become stale and are remade.
 *
 * Invariant: after `save`, every message at the affected places is under exactly one item, and items and summaries count what is shown.
 */
import { must } from "../model/errors.ts";
import { HIDDEN } from "../model/message.ts";
import type { RowWriter } from "./changes.ts";
import type { Heads } from "./heads.ts";
import { read, together } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { Covering, CoverPoint, PlacedLink, SummarySpan } from "./reads.ts";
import type { Row } from "./tables.ts";

type Item = Row<"context_items">;

/** A message that arrived after later ones. */
export interface LateMessage extends CoverPoint {
  readonly messageId: number;
  readonly tokens: number;
  readonly hidden: number;
  /** The same write has revised it; `tokens` are those of the newest version. */
  readonly isRevised?: boolean;
}

/** The item of a message that is itself in the cover. */
export const describeItem = ({
  conversationId,
  position,
  seq,
  messageId,
  tokens,
  hidden,
}: LateMessage): Item => ({
  conversation_id: conversationId,
  start_pos: position,
  seq,
  end_pos: position,
  message_id: messageId,
  summary_id: null,
  tokens,
  messages: 1,
  depth: -1,
  hidden,
});

/** A summary of which nothing is shown is not shown either: it would reveal what is hidden. */
export const hideSummary = (shownMessages: number): number => (shownMessages === 0 ? HIDDEN.branch : 0);

/** The item of a summary that is itself in the cover. */
export const describeSummaryItem = (span: SummarySpan): Item => ({
  conversation_id: span.conversation_id,
  start_pos: span.start_pos,
  seq: span.start_seq,
  end_pos: span.end_pos,
  message_id: null,
  summary_id: span.summary_id,
  tokens: span.tokens,
  messages: span.messages,
  depth: span.depth,
  hidden: hideSummary(span.messages),
});

const nameOf = ({ conversationId, position, seq }: CoverPoint): string =>
  `${conversationId} ${position} ${seq}`;

/** Asks for what covers some places, and for what was made ahead in their conversations. */
export function* readCover(points: readonly CoverPoint[], heads: Heads): Asking<CoverChanges> {
  const ids = [...new Set(points.map(({ conversationId }) => conversationId))];
  const [coverings, ...ahead] = yield* together(
    read.covering(points),
    ...ids.map((id) => read.madeAhead(id)),
  );
  const byPoint = new Map(
    points.map((point, i) => [nameOf(point), must(coverings[i], "what covers a place")]),
  );
  return new CoverChanges(heads, byPoint, new Map(ids.map((id, i) => [id, ahead[i] ?? []])));
}

export class CoverChanges {
  readonly #heads: Heads;
  readonly #coverings: ReadonlyMap<string, Covering>;
  readonly #ahead: ReadonlyMap<number, readonly SummarySpan[]>;
  readonly #items = new Map<string, Item>();
  readonly #summaries = new Map<string, SummarySpan>();
  readonly #staleAhead = new Set<string>();
  /** By the summary they go under. */
  readonly #late = new Map<string, LateMessage[]>();

  constructor(
    heads: Heads,
    coverings: ReadonlyMap<string, Covering>,
    ahead: ReadonlyMap<number, readonly SummarySpan[]>,
  ) {
    this.#heads = heads;
    this.#coverings = coverings;
    this.#ahead = ahead;
  }

  /** Puts a message that arrived inside a folded span under the lowest summary there; any other is added to the cover itself. */
  addLate(message: LateMessage): void {
    const head = this.#heads.of(message.conversationId);
    const shown = message.hidden === 0 ? 1 : 0;
    const { path } = this.#touch(message);
    const top = path[0];
    // A row at the very end of the span came after everything folded there.
    if (!top || isBehind(message, top)) {
      this.#heads.writer.insert("context_items", describeItem(message));
      return head.noteShown(shown, shown * message.tokens);
    }
    const lowest = must(path.at(-1), "the lowest summary").summary_id;
    this.#late.set(lowest, [...(this.#late.get(lowest) ?? []), message]);
    head.noteShown(shown, 0);
    this.#countPath(message, shown);
    if (message.isRevised) this.#markStale(path);
  }

  /** The cover keeps the item of the first version; from now on it represents the newest one. */
  revise(point: CoverPoint, tokens: number): void {
    const { path } = this.#touch(point);
    const item = this.#findItem(point);
    // The summaries above a folded message describe the previous version.
    if (!item) return this.#markStale(path);
    if (item.hidden === 0) this.#heads.of(point.conversationId).noteShown(0, tokens - item.tokens);
    item.tokens = tokens;
  }

  /** The reasons for hiding a message have changed. */
  setHidden(point: CoverPoint, before: number, after: number): void {
    const shown = (after === 0 ? 1 : 0) - (before === 0 ? 1 : 0);
    const item = this.#findItem(point);
    if (!item && shown === 0) return;
    this.#touch(point);
    this.#heads.of(point.conversationId).noteShown(shown, item ? shown * item.tokens : 0);
    if (item) item.hidden = after;
    else this.#countPath(point, shown);
  }

  *save(): Asking<void> {
    const { writer } = this.#heads;
    for (const { conversation_id, start_pos, seq, tokens, messages, hidden } of this.#items.values())
      writer.update("context_items", { conversation_id, start_pos, seq }, { tokens, messages, hidden });
    for (const { summary_id, messages, stale } of this.#summaries.values())
      writer.update("summaries", { summary_id }, { messages, stale });
    for (const summary_id of this.#staleAhead) writer.update("summaries", { summary_id }, { stale: 1 });
    if (this.#late.size === 0) return;
    const links = Map.groupBy(yield* read.placedSources([...this.#late.keys()]), (link) => link.summary_id);
    for (const [summaryId, messages] of this.#late)
      insertLinks(writer, links.get(summaryId) ?? [], summaryId, messages);
  }

  /** Anything made ahead over a changed place is stale: it is never published, and shown only if nothing better fits. */
  #touch(point: CoverPoint): Covering {
    for (const span of this.#ahead.get(point.conversationId) ?? [])
      if (span.stale === 0 && span.start_pos <= point.position && span.end_pos >= point.position)
        this.#staleAhead.add(span.summary_id);
    return must(this.#coverings.get(nameOf(point)), "what covers a place");
  }

  /** The item of a message that is itself in the cover, with changes so far. */
  #findItem(point: CoverPoint): Item | null {
    const item = this.#coverings.get(nameOf(point))?.item ?? null;
    const isOwn = item?.message_id != null && item.start_pos === point.position && item.seq === point.seq;
    return isOwn ? this.#draftItem(item) : null;
  }

  #countPath(point: CoverPoint, shown: number): void {
    const { item, path } = must(this.#coverings.get(nameOf(point)), "what covers a place");
    if (!item || path.length === 0) return;
    for (const summary of path) {
      const draft = this.#draft(summary);
      draft.messages += shown;
      if (shown !== 0) draft.stale = 1;
    }
    const draft = this.#draftItem(item);
    const tokensBefore = draft.hidden === 0 ? draft.tokens : 0;
    draft.messages += shown;
    draft.hidden = hideSummary(draft.messages);
    this.#heads.of(point.conversationId).noteShown(0, (draft.hidden === 0 ? draft.tokens : 0) - tokensBefore);
  }

  #markStale(path: readonly SummarySpan[]): void {
    for (const summary of path) this.#draft(summary).stale = 1;
  }

  #draft(summary: SummarySpan): SummarySpan {
    return remember(this.#summaries, summary.summary_id, summary);
  }

  #draftItem(item: Item): Item {
    const { conversation_id: conversationId, start_pos: position, seq } = item;
    return remember(this.#items, nameOf({ conversationId, position, seq }), item);
  }
}

const isBehind = (point: CoverPoint, summary: SummarySpan): boolean =>
  point.position > summary.end_pos || (point.position === summary.end_pos && point.seq > summary.end_seq);

/** A mutable copy, made once. */
function remember<V extends object>(drafts: Map<string, V>, name: string, row: V): V {
  let draft = drafts.get(name);
  if (!draft) drafts.set(name, (draft = { ...row }));
  return draft;
}

type Link = Pick<PlacedLink, "message_id" | "source_id" | "position" | "seq">;

/** Inserts messages into the sources of a summary, each after those that begin before it; the others are renumbered. */
function insertLinks(
  writer: RowWriter,
  before: readonly PlacedLink[],
  summaryId: string,
  messages: readonly LateMessage[],
): void {
  const links: Link[] = [...before];
  for (const { messageId, position, seq } of messages) {
    const at = links.findLastIndex(
      (link) => link.position < position || (link.position === position && link.seq < seq),
    );
    links.splice(at + 1, 0, { message_id: messageId, source_id: null, position, seq });
  }
  for (const [ordinal, link] of links.entries()) {
    const old = before[ordinal];
    if (old === link) continue;
    const key = { summary_id: summaryId, ordinal };
    if (old) writer.delete(old.message_id === null ? "summary_parents" : "summary_messages", key);
    if (link.message_id !== null) writer.insert("summary_messages", { ...key, message_id: link.message_id });
    else writer.insert("summary_parents", { ...key, parent_summary_id: must(link.source_id, "a source") });
  }
}
