/**
 * Removes summaries of a conversation that do not verify, with all that were made from them, and shows again what they represented. For a
 * conversation whose graph or cover is damaged: nothing that can be recomputed is read from either. Everything removed here was made from
 * messages, and can be made from them again.
 *
 * Invariant: no message, no record and no link of the chain changes; afterwards the cover has the highest published summaries that are
 * left, and an item for each first message under none of them.
 */
import { Changes } from "./changes.ts";
import { describeItem, describeSummaryItem } from "./cover.ts";
import { Head } from "./head.ts";
import { PAGE_ROWS, Pages, readRows } from "./pages.ts";
import { flush, flushIfLong, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import { removeSummaries } from "./remove.ts";
import { hashSummary } from "./summary.ts";
import type { Row } from "./tables.ts";

type Item = Row<"context_items">;
type LinkRow = Pick<Row<"summary_parents">, "summary_id" | "parent_summary_id">;

/** How many were removed, all if none are named; null, without any change, if something else uses one of them. */
export function* planDropSummaries(
  conversationId: number,
  summaryIds: readonly string[] | null,
): Plan<number | null> {
  const changes = new Changes();
  const [[row], above] = yield* together(
    read.lockHeads([conversationId]),
    read.summariesAbove([], summaryIds ?? []),
  );
  const ids =
    summaryIds === null
      ? yield* listSummaries({ conversation_id: conversationId })
      : above.filter((one) => one.conversation_id === conversationId).map((one) => one.summary_id);
  if (!row || (yield* isUsedElsewhere(ids))) return changes.done(row ? null : 0);
  changes.delete("context_items", { conversation_id: conversationId });
  yield* removeSummaries(changes, ids);
  yield* flush(changes);
  yield* dropLostPrevious(changes, conversationId);
  const shown = yield* rebuildCover(changes, conversationId);
  const head = new Head(row);
  head.recount({ ...shown, summaries: yield* read.count("summaries", { conversation_id: conversationId }) });
  head.save(changes, 0);
  return changes.done(ids.length);
}

function* listSummaries(where: Partial<Row<"summaries">>): Asking<string[]> {
  const order = ["summary_id"] as const;
  const pages = new Pages("summaries", { columns: order, order, where });
  const ids: string[] = [];
  for (let page; (page = yield* pages.next()).length > 0;)
    for (const { summary_id } of page) ids.push(summary_id);
  return ids;
}

/** Forks show summaries of their parent by id, and a summary elsewhere may claim one of these as its source. */
function* isUsedElsewhere(ids: readonly string[]): Asking<boolean> {
  const chosen = new Set(ids);
  const shown = yield* readRows("fork_items", ["summary_id"], { column: "summary_id", keys: ids });
  if (shown.length > 0) return true;
  return (yield* listDerived(ids)).some((link) => !chosen.has(link.summary_id));
}

const BOUND = [
  "summary_id",
  "conversation_id",
  "kind",
  "depth",
  "content",
  "tokens",
  "model",
  "level",
  "created_at",
  "previous_id",
] as const;

/** A summary that named a removed one as previous context no longer does; the hash binds that name. */
function* dropLostPrevious(changes: Changes, conversationId: number): Asking<void> {
  const later = yield* read.withPrevious(conversationId);
  const known = new Set(
    (yield* read.summaries(later.map((row) => row.previous_id))).map((row) => row.summary_id),
  );
  const keys = later.filter((row) => !known.has(row.previous_id)).map((row) => row.summary_id);
  for (const row of yield* readRows("summaries", BOUND, { column: "summary_id", keys })) {
    const { summary_id } = row;
    const hash = hashSummary({ ...row, previous_id: null });
    changes.update("summaries", { summary_id }, { previous_id: null, hash });
  }
}

/** Puts every message of a conversation without a cover under an item, and returns what these show. */
function* rebuildCover(
  changes: Changes,
  conversationId: number,
): Asking<{ readonly messages: number; readonly tokens: number }> {
  const shown = { messages: 0, tokens: 0 };
  const put = (item: Item): void => {
    changes.insert("context_items", item);
    if (item.hidden !== 0) return;
    shown.messages += item.messages;
    shown.tokens += item.tokens;
  };
  const tops = yield* listTops(conversationId);
  for (const top of yield* read.summaries(tops)) put(describeSummaryItem(top));
  const below = yield* listBelow(tops);
  for (let after = { position: -1, seq: -1 }, isLast = false; !isLast;) {
    yield* flushIfLong(changes);
    const page = yield* read.firstVersions(conversationId, after, PAGE_ROWS);
    const covered = yield* listCovered(
      page.map((message) => message.message_id),
      below,
    );
    for (const { message_id: messageId, position, seq, tokens, hidden_now: hidden } of page)
      if (!covered.has(messageId))
        put(describeItem({ conversationId, position, seq, messageId, tokens, hidden }));
    after = page.at(-1) ?? after;
    isLast = page.length < PAGE_ROWS;
  }
  return shown;
}

/** Published summaries that no other published one was made from. */
function* listTops(conversation_id: number): Asking<string[]> {
  const published = yield* listSummaries({ conversation_id, state: "cover" });
  const links = yield* listDerived(published);
  const above = yield* read.summaries([...new Set(links.map((link) => link.summary_id))]);
  const inForce = new Set(above.filter(({ state }) => state === "cover").map((row) => row.summary_id));
  const used = new Set(
    links.filter((link) => inForce.has(link.summary_id)).map((link) => link.parent_summary_id),
  );
  return published.filter((id) => !used.has(id));
}

/** The links of summaries that were made from any of these. */
const listDerived = (keys: readonly string[]): Asking<LinkRow[]> =>
  readRows("summary_parents", ["summary_id", "parent_summary_id"], { column: "parent_summary_id", keys });

/** These summaries and all below them, each once however they are linked. */
function* listBelow(tops: readonly string[]): Asking<ReadonlySet<string>> {
  const below = new Set(tops);
  for (let level = tops; level.length > 0;) {
    const next = (yield* read.sources(level)).flatMap((link) => link.source_id ?? []);
    level = [...new Set(next)].filter((id) => !below.has(id));
    for (const id of level) below.add(id);
  }
  return below;
}

/** Those of the messages that one of the summaries was made from. */
function* listCovered(keys: readonly number[], below: ReadonlySet<string>): Asking<ReadonlySet<number>> {
  const links = yield* readRows("summary_messages", ["message_id", "summary_id"], {
    column: "message_id",
    keys,
  });
  return new Set(links.filter((link) => below.has(link.summary_id)).map((link) => link.message_id));
}
