/**
 * Documents on their way into the full-text index. A stored document waits as a pending row, written with it, and is searched by its text until
 * there are enough for a segment: writing the index for each turn would cost many times the turn itself. The process that locks the head of an
 * owner writes the next segment; others leave it to that one.
 *
 * Invariant: a document is pending, or in a segment, or forgotten. Both change in one transaction. A failure here never affects a message.
 */
import { ANALYSIS_VERSION, encodeForIndex, EngineError } from "@lossless/core/adapter";
import type { DocumentKind } from "@lossless/core/ports";
import type { WriteSql } from "./connection.ts";
import { statement } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { addSegment, lockHead, mergeSegments, noteProblem, purge, SMALL_SEGMENT } from "./full-text-index.ts";
import type { IndexedDocument, IndexHead } from "./full-text-index.ts";
import { readDocuments } from "./pending.ts";
import { SegmentWriter } from "./segment.ts";
import { fillPart, listMissingParts, SpellingWriter } from "./word-blocks.ts";

/** The number of waiting documents for a segment. Summaries are longer, and fewer. */
const ENOUGH: Readonly<Record<DocumentKind, number>> = { message: SMALL_SEGMENT, summary: 32 };
/** Documents of one segment, and bytes of their texts: this limits memory, and how long a forget has to wait. */
const BATCH = 2_048;
const BATCH_BYTES = 8_000_000;
/** How many pending rows are read to find their owners. */
const LOOK_AHEAD = 4_096;
/** Missing parts of spelled words are rebuilt a few at a time, whenever there is something to index anyway. */
const MENDED_AT_ONCE = 2;

const WAITING = `
  SELECT 'message' AS kind, p.owner, count(*) AS documents
  FROM (SELECT owner FROM index_pending ORDER BY message_id LIMIT ${LOOK_AHEAD}) p GROUP BY p.owner
  UNION ALL
  SELECT 'summary', p.owner, count(*)
  FROM (SELECT owner FROM index_pending_summaries ORDER BY summary_ref LIMIT ${LOOK_AHEAD}) p GROUP BY p.owner`;
/** Skips rows that another transaction is removing. */
const NEXT_MESSAGES = `
  SELECT p.message_id AS id, m.arrival_bytes AS bytes
  FROM index_pending p JOIN messages m USING (message_id)
  WHERE p.owner = $1 ORDER BY p.message_id LIMIT ${BATCH} FOR UPDATE OF p SKIP LOCKED`;
const NEXT_SUMMARIES = `
  SELECT p.summary_ref AS id, s.summary_id AS name, s.conversation_id, s.content
  FROM index_pending_summaries p JOIN summary_refs r USING (summary_ref) JOIN summaries s USING (summary_id)
  WHERE p.owner = $1 ORDER BY p.summary_ref LIMIT ${BATCH} FOR UPDATE OF p SKIP LOCKED`;
const END_MESSAGES = "DELETE FROM index_pending WHERE message_id = ANY($1::bigint[])";
const END_SUMMARIES = "DELETE FROM index_pending_summaries WHERE summary_ref = ANY($1::bigint[])";

export class IndexQueue {
  readonly #context: StoreContext;
  readonly #readOnly: boolean;
  /** Messages known to wait since the last check. */
  #waiting = 0;
  #running: Promise<void> | null = null;
  #isClosed = false;

  constructor(context: StoreContext, { readOnly = false }: { readonly readOnly?: boolean } = {}) {
    this.#context = context;
    this.#readOnly = readOnly;
  }

  /** Indexes when enough is waiting. No caller waits for it: until then, searches read the pending texts. */
  notePending(messages: number): void {
    this.#waiting += messages;
    if (this.#waiting < ENOUGH.message || this.#isClosed) return;
    this.#waiting = 0;
    void this.settle("enough");
  }

  /** Indexes waiting documents: all of them, or if there are enough for a segment. One run at a time. */
  async settle(which: "all" | "enough"): Promise<void> {
    while (this.#running !== null) await this.#running;
    this.#running = this.#settle(which).finally(() => (this.#running = null));
    await this.#running;
  }

  /** Nothing is indexed after this. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.settle("enough");
  }

  async #settle(which: "all" | "enough"): Promise<void> {
    const { sql, derive } = this.#context;
    if (derive === null || this.#readOnly) return;
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      const waiting = await sql
        .all<{ kind: DocumentKind; owner: string; documents: number }>(WAITING)
        .catch(ignoreServer);
      for (const { kind, owner, documents } of waiting ?? [])
        if (which === "all" || documents >= ENOUGH[kind])
          isMoving = (await this.#indexBatch(owner, kind)) || isMoving;
    }
  }

  /** Writes one segment; false when there was nothing to do, or another process is doing it. */
  async #indexBatch(owner: string, kind: DocumentKind): Promise<boolean> {
    const { sql } = this.#context;
    try {
      return await sql.write(async (transaction) => {
        const head = await lockHead(transaction, owner, true);
        if (head === null || !isUsable(head)) return false;
        await purge(transaction, owner);
        const count = await (kind === "message"
          ? this.#indexMessages(transaction, head)
          : indexSummaries(transaction, head));
        await mergeSegments(transaction, head, kind);
        if (kind === "message") await this.#mendSpellings(transaction, owner);
        return count > 0;
      });
    } catch (error) {
      if (isOfServer(error)) return false;
      const reason = error instanceof Error ? error.message : String(error);
      await sql.write((transaction) => noteProblem(transaction, owner, reason)).catch(ignoreServer);
      return false;
    }
  }

  async #indexMessages(sql: WriteSql, head: IndexHead): Promise<number> {
    const ids = takeBytes(await sql.all<SizedId>(NEXT_MESSAGES, head.owner));
    await addMessages(sql, this.#context, head, ids);
    sql.post(statement(END_MESSAGES, ids));
    return ids.length;
  }

  async #mendSpellings(sql: WriteSql, owner: string): Promise<void> {
    for (const missing of await listMissingParts(sql, owner, MENDED_AT_ONCE)) {
      const writer = new SpellingWriter();
      for (const { id, readTerms } of await readDocuments(sql, this.#context, missing.ids))
        writer.add(id, readTerms);
      const [filled] = writer.finish();
      if (filled) await fillPart(sql, owner, missing, filled);
    }
  }
}

const isUsable = ({ problem, analysis }: IndexHead): boolean =>
  problem === null && analysis === ANALYSIS_VERSION;

/** An unreachable or busy server is not a problem of the index: pending documents stay pending. */
const isOfServer = (error: unknown): boolean =>
  error instanceof EngineError && error.code.startsWith("database_");

function ignoreServer(error: unknown): null {
  if (isOfServer(error)) return null;
  throw error;
}

/** A message and its length. */
export interface SizedId {
  readonly id: number;
  readonly bytes: number;
}

/** As many as fit into one transaction. */
export function takeBytes(rows: readonly SizedId[]): number[] {
  const ids: number[] = [];
  let left = BATCH_BYTES;
  for (const { id, bytes } of rows) {
    if (left <= 0) break;
    ids.push(id);
    left -= bytes;
  }
  return ids;
}

/** Adds messages as one segment. */
export async function addMessages(
  sql: WriteSql,
  context: StoreContext,
  head: Pick<IndexHead, "owner" | "generation">,
  ids: readonly number[],
): Promise<void> {
  const writer = new SegmentWriter();
  const spelling = new SpellingWriter();
  const documents = (await readDocuments(sql, context, ids)).map(
    ({ id, conversationId, readTerms }): IndexedDocument => ({
      id,
      words: writer.add(id, conversationId, spelling.add(id, readTerms)),
      name: null,
    }),
  );
  await addSegment(sql, { head, kind: "message", writer, documents, spellings: spelling.finish() });
}

/** A summary as read for indexing. */
export interface SummaryRow {
  readonly id: number;
  readonly name: string;
  readonly conversation_id: number;
  readonly content: string;
}

async function indexSummaries(sql: WriteSql, head: IndexHead): Promise<number> {
  const rows = await sql.all<SummaryRow>(NEXT_SUMMARIES, head.owner);
  await addSummaries(sql, head, rows);
  sql.post(
    statement(
      END_SUMMARIES,
      rows.map(({ id }) => id),
    ),
  );
  return rows.length;
}

/** Adds summaries as one segment. */
export async function addSummaries(
  sql: WriteSql,
  head: Pick<IndexHead, "owner" | "generation">,
  rows: readonly SummaryRow[],
): Promise<void> {
  const writer = new SegmentWriter();
  const documents = rows.map(({ id, name, conversation_id, content }): IndexedDocument => ({
    id,
    words: writer.add(id, conversation_id, encodeForIndex(content)),
    name,
  }));
  await addSegment(sql, { head, kind: "summary", writer, documents, spellings: [] });
}
