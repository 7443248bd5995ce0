/**
 * Rebuilds the full-text index online: for each owner new segments, in short transactions, that are not searched until the last transaction
 * names their generation. Until then searches use the old ones, if they can. An interrupted rebuild leaves the old ones in use; the next one
 * drops its leftovers.
 *
 * Invariants: an owner has one rebuild at a time, whose number is in its head. Forgetting also removes terms from new segments; a document is
 * locked until its segment is committed, because a transaction that removed it before would find nothing to remove. A document stored under a
 * number that the pages had already passed, or locked by others, is pending when the new segments come into use.
 */
import { ANALYSIS_VERSION, EngineError } from "@lossless/core/adapter";
import type { Store } from "@lossless/core/ports";
import type { WriteSql } from "./connection.ts";
import { statement } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { lockHead, mergeSegments, purge } from "./full-text-index.ts";
import type { IndexHead } from "./full-text-index.ts";
import { addMessages, addSummaries, takeBytes } from "./index-queue.ts";
import type { SizedId, SummaryRow } from "./index-queue.ts";
import { decodeIds } from "./posting-blocks.ts";
import { FIELD } from "./segment.ts";

const BATCH = 1_024;
const OWNERS = "SELECT DISTINCT owner FROM conversations UNION SELECT owner FROM index_heads ORDER BY owner";
const COUNT = "SELECT count(*) AS n FROM messages WHERE forgotten_at IS NULL";
const BEGIN = "UPDATE index_heads SET rebuild = nextval('index_numbers') WHERE owner = $1 RETURNING rebuild";
const END = "UPDATE index_heads SET rebuild = NULL WHERE owner = $1 AND rebuild = $2";
const UNFINISHED = "SELECT segment FROM index_segments WHERE owner = $1 AND generation <> $2";
const DROP = ["index_postings", "index_spellings", "index_segments"].map(
  (table) => `DELETE FROM ${table} WHERE owner = $1 AND segment = ANY($2::bigint[])`,
);
const NEXT = `
  SELECT m.message_id AS id, m.arrival_bytes AS bytes FROM messages m JOIN conversations c USING (conversation_id)
  WHERE c.owner = $1 AND m.message_id > $2 AND m.forgotten_at IS NULL ORDER BY m.message_id LIMIT ${BATCH}
  FOR SHARE OF m SKIP LOCKED`;
const SUMMARIES = `
  SELECT r.summary_ref AS id, s.summary_id AS name, s.conversation_id, s.content
  FROM summary_refs r JOIN summaries s USING (summary_id) JOIN conversations c USING (conversation_id)
  WHERE c.owner = $1 AND r.summary_ref > $2 ORDER BY r.summary_ref LIMIT ${BATCH}
  FOR SHARE OF s`;
const TAKEN = `
  SELECT p.documents FROM index_segments s JOIN index_postings p ON p.owner = s.owner AND p.segment = s.segment AND p.field = ${FIELD.conversation}
  WHERE s.owner = $1 AND s.generation = $2 AND s.kind = 'message'`;
const END_PENDING = "DELETE FROM index_pending WHERE message_id = ANY($1::bigint[])";
const ADD_PENDING = `
  INSERT INTO index_pending (owner, message_id)
  SELECT c.owner, m.message_id FROM messages m JOIN conversations c USING (conversation_id) LEFT JOIN unnest($2::bigint[]) AS i (id) ON i.id = m.message_id
  WHERE c.owner = $1 AND m.forgotten_at IS NULL AND i.id IS NULL FOR SHARE OF m ON CONFLICT DO NOTHING`;
const END_PENDING_SUMMARIES = "DELETE FROM index_pending_summaries WHERE summary_ref = ANY($1::bigint[])";
const USE = `
  UPDATE index_heads SET generation = rebuild, rebuild = NULL, analysis = $2, problem = NULL WHERE owner = $1`;

export async function reindex(
  context: StoreContext,
  ...[derive, onProgress, signal]: Parameters<Store["reindex"]>
): Promise<number> {
  const owners = await context.sql.all<{ owner: string }>(OWNERS);
  const total = (await context.sql.get<{ n: number }>(COUNT))?.n ?? 0;
  let done = 0;
  for (const { owner } of owners) {
    done = await new Rebuild({ ...context, derive }, owner).run((mine) => {
      onProgress(done + mine, Math.max(total, done + mine));
      return signal?.aborted ?? false;
    }, done);
  }
  onProgress(done, done);
  return done;
}

/** The rebuild of one owner. */
class Rebuild {
  readonly #context: StoreContext;
  readonly #owner: string;
  #number = 0;

  constructor(context: StoreContext, owner: string) {
    this.#context = context;
    this.#owner = owner;
  }

  /** Returns the number of messages so far, including those of the owner. `isEnded` is called with the number of the owner's. */
  async run(isEnded: (mine: number) => boolean, before: number): Promise<number> {
    await this.#context.sql.write((sql) => this.#begin(sql));
    let mine = 0;
    for (let after: number | null = 0; after !== null;) {
      if (isEnded(mine)) await this.#abort();
      const from: number = after;
      const page = await this.#write((sql, head) => this.#fill(sql, head, from));
      mine += page.count;
      after = page.last;
    }
    await this.#write((sql, head) => this.#finish(sql, head));
    return before + mine;
  }

  async #begin(sql: WriteSql): Promise<void> {
    const head = await lockHead(sql, this.#owner, false);
    await this.#drop(sql, head?.generation ?? 0);
    this.#number = (await sql.get<{ rebuild: number }>(BEGIN, this.#owner))?.rebuild ?? 0;
  }

  /** Drops all segments of other generations. */
  async #drop(sql: WriteSql, generation: number): Promise<void> {
    const rows = await sql.all<{ segment: number }>(UNFINISHED, this.#owner, generation);
    const segments = rows.map(({ segment }) => segment);
    if (segments.length > 0) sql.post(...DROP.map((text) => statement(text, this.#owner, segments)));
  }

  async #abort(): Promise<never> {
    await this.#write(async (sql, head) => {
      await this.#drop(sql, head.generation);
      await sql.change(END, this.#owner, this.#number);
    });
    throw new EngineError("aborted", "cannot rebuild the index: it was cancelled", {
      hint: "searches continue with the old index",
    });
  }

  #write<T>(work: (sql: WriteSql, head: IndexHead) => Promise<T>): Promise<T> {
    return this.#context.sql.write(async (sql) => {
      const head = await lockHead(sql, this.#owner, false);
      if (head?.rebuild === this.#number) return work(sql, head);
      throw new EngineError("database_busy", "cannot rebuild the index: another program is rebuilding it", {
        hint: "wait until it is done",
      });
    });
  }

  async #fill(
    sql: WriteSql,
    head: IndexHead,
    after: number,
  ): Promise<{ count: number; last: number | null }> {
    const ids = takeBytes(await sql.all<SizedId>(NEXT, this.#owner, after));
    const next = { ...head, generation: this.#number };
    await addMessages(sql, this.#context, next, ids);
    await mergeSegments(sql, next, "message");
    return { count: ids.length, last: ids.at(-1) ?? null };
  }

  async #finish(sql: WriteSql, head: IndexHead): Promise<void> {
    await purge(sql, this.#owner);
    const lists = await sql.all<{ documents: Uint8Array }>(TAKEN, this.#owner, this.#number);
    const taken = lists.flatMap(({ documents }) => [...decodeIds(documents)]);
    sql.post(statement(END_PENDING, taken), statement(ADD_PENDING, this.#owner, taken));
    await this.#addSummaries(sql, { ...head, generation: this.#number });
    await this.#drop(sql, this.#number);
    await sql.change(USE, this.#owner, ANALYSIS_VERSION);
  }

  /** Summaries are few compared with messages, so the last transaction adds them all. */
  async #addSummaries(sql: WriteSql, head: IndexHead): Promise<void> {
    for (let after = 0; ;) {
      const rows = await sql.all<SummaryRow>(SUMMARIES, this.#owner, after);
      const ids = rows.map(({ id }) => id);
      const last = ids.at(-1);
      if (last === undefined) return;
      await addSummaries(sql, head, rows);
      sql.post(statement(END_PENDING_SUMMARIES, ids));
      after = last;
    }
  }
}
