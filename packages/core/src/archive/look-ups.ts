/**
 * Reads of the store port that take rows of one table, or follow them to others by key. Read-only plans, so that no adapter repeats them.
 */
import type { Debt, FoldingStore, Guard } from "../store/folding.ts";
import type { ForkItem } from "../store/forks.ts";
import type { Family, RecallStore } from "../store/recall.ts";
import type { DoubtfulSummary, ImportedPart, RepairStore } from "../store/repair.ts";
import { given } from "../text/json-object.ts";
import { toDebt, toDoubtful, toForkItem, toImported } from "./nouns.ts";
import { Pages, readRows } from "./pages.ts";
import type { ColumnOf, PagesOf } from "./pages.ts";
import { read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import { tables } from "./tables.ts";
import type { Row, TableName } from "./tables.ts";

const columnsOf = <T extends TableName>(table: T): ColumnOf<T>[] =>
  Object.keys(tables[table].columns) as ColumnOf<T>[];

function* readAll<T extends TableName, C extends ColumnOf<T>>(
  table: T,
  of: PagesOf<T, C>,
): Asking<Pick<Row<T>, C>[]> {
  const pages = new Pages(table, of);
  const rows: Pick<Row<T>, C>[] = [];
  for (let page; (page = yield* pages.next()).length > 0;) for (const row of page) rows.push(row);
  return rows;
}

/** A conversation, and where it left its parent. */
export type FamilyRow = Pick<
  Row<"conversations">,
  "conversation_id" | "parent_id" | "fork_pos" | "first_at" | "last_at"
>;

const FAMILY_COLUMNS = ["conversation_id", "parent_id", "fork_pos", "first_at", "last_at"] as const;

export function* planFamily({
  owner,
  sessionKey,
  newestOnly,
}: Parameters<RecallStore["readFamily"]>[0]): Asking<Family> {
  const rows: FamilyRow[] = yield* readAll("conversations", {
    columns: FAMILY_COLUMNS,
    order: ["conversation_id"],
    where: { owner, session_key: sessionKey },
  });
  const ids = rows.map(({ conversation_id }) => conversation_id);
  const seen = new Set(ids);
  for (let found = rows; found.length > 0;) {
    const keys = found.flatMap(({ parent_id }) =>
      parent_id === null || seen.has(parent_id) ? [] : parent_id,
    );
    for (const key of keys) seen.add(key);
    found = yield* readRows("conversations", FAMILY_COLUMNS, {
      column: "conversation_id",
      keys: [...new Set(keys)],
    });
    rows.push(...found);
  }
  return gatherFamily(ids, rows, newestOnly);
}

/**
 * A family from its rows and those of all parents. A fork's own rows begin where it left its parent; earlier messages are stored once, with
 * the parent, and belong to both. If several paths lead to one conversation, the furthest position counts. The newest first.
 */
export function gatherFamily(
  ids: readonly number[],
  rows: readonly FamilyRow[],
  newestOnly: boolean,
): Family {
  const conversationIds = ids.toSorted((a, b) => b - a).slice(0, newestOnly ? 1 : undefined);
  const rowOf = new Map(rows.map((row) => [row.conversation_id, row]));
  const seen = new Set(conversationIds);
  const forkPositions = new Map<number, number>();
  // Iterating a set also visits what is added meanwhile.
  for (const id of seen) {
    const { parent_id = null, fork_pos = null } = rowOf.get(id) ?? {};
    if (parent_id === null) continue;
    forkPositions.set(parent_id, Math.max(fork_pos ?? 0, forkPositions.get(parent_id) ?? 0));
    seen.add(parent_id);
  }
  const times = [...seen].flatMap((id) => rowOf.get(id) ?? []);
  const first = times.flatMap(({ first_at }) => first_at ?? []);
  const last = times.flatMap(({ last_at }) => last_at ?? []);
  return {
    conversationIds,
    inherited: Array.from(forkPositions, ([conversationId, position]) => ({ conversationId, position }))
      .filter(({ conversationId }) => !conversationIds.includes(conversationId))
      .sort((a, b) => b.conversationId - a.conversationId),
    firstAt: first.length === 0 ? null : Math.min(...first),
    lastAt: last.length === 0 ? null : Math.max(...last),
  };
}

/** What a fork shows of its parent, except what was forgotten since. */
export function* planForkItems(conversationId: number): Asking<ForkItem[]> {
  const rows = yield* readAll("fork_items", {
    columns: columnsOf("fork_items"),
    order: ["ordinal"],
    where: { conversation_id: conversationId },
  });
  // Most conversations are not forks, and each context asks.
  if (rows.length === 0) return [];
  const messages = yield* readRows("messages", ["message_id", "forgotten_at"], {
    column: "message_id",
    keys: rows.flatMap((row) => row.message_id ?? []),
  });
  const forgotten = new Set<number | null>(
    messages.filter((row) => row.forgotten_at !== null).map((row) => row.message_id),
  );
  return rows.filter((row) => !forgotten.has(row.message_id)).map(toForkItem);
}

export function* planListImports(): Asking<ImportedPart[]> {
  const order = ["import_id", "conversation_id"] as const;
  const rows = yield* readAll("imports", { columns: columnsOf("imports"), order });
  return rows.map(toImported).sort((a, b) => b.at - a.at);
}

export function* planListDebts(): Asking<Debt[]> {
  const order = ["requested_at", "conversation_id"] as const;
  const rows = yield* readAll("compaction_debt", { columns: columnsOf("compaction_debt"), order });
  return rows.map(toDebt);
}

export function* planListBlobs(): Asking<string[]> {
  const rows = yield* readAll("large_files", { columns: ["file_id", "storage_path"], order: ["file_id"] });
  return rows.map((row) => row.storage_path).sort();
}

export function* planListPublished({
  after,
  limit,
  conversationId,
}: Parameters<RepairStore["listPublished"]>[0]): Asking<DoubtfulSummary[]> {
  const pages = new Pages("summaries", {
    columns: [
      "summary_id",
      "conversation_id",
      "depth",
      "tokens",
      "source_tokens",
      "level",
      "model",
      "stale",
      "content",
    ],
    order: ["summary_id"],
    where: { state: "cover", ...given({ conversation_id: conversationId }) },
    after: [after],
    limit,
  });
  return (yield* pages.next()).map(toDoubtful);
}

/** Messages with values in the vault. */
export function* planListSealed({ after, limit }: { after: number; limit: number }): Asking<number[]> {
  const columns = ["message_id", "sealed"] as const;
  const pages = new Pages("redactions", { columns, order: ["message_id"], after: [after] });
  const ids: number[] = [];
  for (let page; ids.length < limit && (page = yield* pages.next()).length > 0;)
    for (const row of page) if (row.sealed > 0) ids.push(row.message_id);
  return ids.slice(0, limit);
}

export function* planReadGuards(): Asking<Guard[]> {
  const rows = yield* readAll("guards", { columns: columnsOf("guards"), order: ["name"] });
  return rows.map(({ open_until: openUntil, ...guard }) => ({ ...guard, openUntil }));
}

type CacheUsage = Awaited<ReturnType<FoldingStore["readCacheUsage"]>>;

export function* planReadCacheUsage(conversationId: number): Asking<CacheUsage> {
  const [row] = yield* read.cacheUsage([conversationId]);
  if (!row) return null;
  return { requests: row.requests, promptTokens: row.prompt_tokens, cachedTokens: row.cached_tokens };
}

/** How a model counts tokens, as far as known; null without reports. */
export function* planReadCalibration(model: string): Asking<{ factor: number; samples: number } | null> {
  const [row] = yield* read.calibrations([model]);
  return row ? { factor: row.factor, samples: row.samples } : null;
}
