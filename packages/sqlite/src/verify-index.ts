/**
 * Compares the full-text index with the texts it was made from, in bounded memory: every message and every summary must have a row with the
 * right number of terms, and the sum of the hashes of all postings (term, column, row, place) in the index must equal the sum over all
 * texts. Any posting added, lost or changed shifts one of the two. Every block of words must spell the words of its messages.
 */
import { decodeTerms, encodeForIndex, formatMessageId, Spelling } from "@lossless/core/adapter";
import type { IndexProof, IndexTerms, Problems, ReadTerms } from "@lossless/core/adapter";
import { allRows, eachRow } from "./connection.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { scopeTerm } from "./full-text-index.ts";
import { blockOf, readBlock } from "./word-blocks.ts";

const COLUMNS = ["words", "idents", "scope"] as const;
const MAX_RECENT_BLOCKS = 8;
const MEND = "rebuild the search index; no message is affected";
const PENDING = "SELECT message_id FROM index_pending";
const SUMMARIES = `
  SELECT s.summary_id, s.conversation_id, s.content, coalesce(r.summary_ref, 0) AS ref
  FROM summaries s LEFT JOIN summary_refs r USING (summary_id) WHERE s.summary_id > ? ORDER BY s.summary_id LIMIT 256`;

export class IndexCheck implements IndexProof {
  #connection: Connection;
  #messages: TableCheck | null = null;
  #summaries: TableCheck | null = null;
  /** Messages that wait to be indexed. */
  #pending: ReadonlySet<number>;
  #blocks: BlockCheck;

  constructor({ connection, index }: StoreContext, problems: Problems) {
    this.#connection = connection;
    const head = index.readHead();
    this.#pending = new Set(connection.list<[number]>(PENDING).map(([id]) => id));
    this.#blocks = new BlockCheck(connection, problems);
    const reason = head.problem;
    if (reason !== null) {
      problems.add("index", "index", `search is degraded: ${reason}; ${MEND}`);
      return;
    }
    this.#messages = new TableCheck(connection, head.tables.message, "messages", problems);
    this.#summaries = new TableCheck(connection, head.tables.summary, "summaries", problems);
  }

  /** Records what the index must contain for a message, and checks its row and its block of words. */
  expect(messageId: number, conversationId: number, readTerms: ReadTerms): void {
    if (this.#pending.has(messageId)) return;
    const spelling = new Spelling();
    const terms = readTerms(spelling);
    this.#messages?.expect(messageId, formatMessageId(messageId), conversationId, terms);
    this.#blocks.expect(messageId, spelling);
  }

  finish(): void {
    if (this.#summaries) this.#expectSummaries(this.#summaries);
    this.#messages?.finish();
    this.#summaries?.finish();
  }

  #expectSummaries(check: TableCheck): void {
    for (let after = ""; ;) {
      const rows = this.#connection.all<{
        summary_id: string;
        conversation_id: number;
        content: string;
        ref: number;
      }>(SUMMARIES, after);
      for (const row of rows)
        check.expect(row.ref, row.summary_id, row.conversation_id, encodeForIndex(row.content));
      const last = rows.at(-1);
      if (!last) return;
      after = last.summary_id;
    }
  }
}

/** One table of the index against its expected content. */
class TableCheck {
  #connection: Connection;
  #table: string;
  #what: string;
  #problems: Problems;
  #usable = true;
  #expectedRows = 0;
  #expected = new TermSum();

  constructor(connection: Connection, table: string, what: string, problems: Problems) {
    this.#connection = connection;
    this.#table = table;
    this.#what = what;
    this.#problems = problems;
  }

  expect(rowId: number, name: string, conversationId: number, terms: IndexTerms): void {
    if (!this.#usable) return;
    const texts = [decodeTerms(terms.words), decodeTerms(terms.idents), scopeTerm(conversationId)];
    const counts = texts.map((text, column) => this.#expected.addText(text, column, rowId));
    this.#expectedRows += 1;
    const sizes = this.#readSizes(rowId);
    if (sizes === null) this.#problems.add("index", name, `${name} is not in the index; ${MEND}`);
    else if (sizes.some((size, column) => size !== counts[column])) {
      this.#problems.add("index", name, `the index has other terms for ${name}; ${MEND}`);
    }
  }

  finish(): void {
    if (!this.#usable) return;
    try {
      this.#checkRows();
      this.#checkTerms();
    } catch (error) {
      this.#problems.add("index", "index", `the index cannot be read: ${(error as Error).message}; ${MEND}`);
    }
  }

  #checkRows(): void {
    const rows =
      this.#connection.get<{ n: number }>(`SELECT count(*) AS n FROM ${this.#table}_docsize`)?.n ?? 0;
    if (rows !== this.#expectedRows) {
      this.#problems.add(
        "index",
        "index",
        `the index has ${rows} rows for ${this.#expectedRows} ${this.#what}; ${MEND}`,
      );
    }
  }

  #checkTerms(): void {
    const connection = this.#connection;
    connection.exec(
      `CREATE VIRTUAL TABLE IF NOT EXISTS temp.index_postings USING fts5vocab (main, ${this.#table}, 'instance')`,
    );
    const found = new TermSum();
    // Prepared here and not cached: the table is dropped below.
    const terms = connection.database.prepare(TERMS);
    const postings = connection.database.prepare(POSTINGS_OF_TERM);
    for (const sums of eachRow<PostingSums & { term: string; last: string }>(terms)) {
      const isInOne = sums.col === sums.last;
      const inColumns = isInOne ? [sums] : allRows<PostingSums>(postings, sums.term);
      for (const each of inColumns) found.addPostings(sums.term, COLUMNS.indexOf(each.col), each);
    }
    connection.exec("DROP TABLE temp.index_postings");
    if (!found.equals(this.#expected)) {
      this.#problems.add(
        "index",
        "index",
        `the index does not match the texts of the ${this.#what}; ${MEND}`,
      );
    }
  }

  #readSizes(rowId: number): number[] | null {
    try {
      const row = this.#connection.get<{ sz: Uint8Array }>(
        `SELECT sz FROM ${this.#table}_docsize WHERE id = ?`,
        rowId,
      );
      return row ? decodeVarints(row.sz).slice(0, COLUMNS.length) : null;
    } catch (error) {
      this.#usable = false;
      this.#problems.add("index", "index", `the index cannot be read: ${(error as Error).message}; ${MEND}`);
      return null;
    }
  }
}

/** Blocks of words against the messages they must spell. A missing one only costs time. */
class BlockCheck {
  #connection: Connection;
  #problems: Problems;
  /** Recently read blocks; messages of a conversation follow each other, so few are read again. */
  #recent = new Map<number, ReturnType<typeof readBlock>>();
  #named = new Set<number>();

  constructor(connection: Connection, problems: Problems) {
    this.#connection = connection;
    this.#problems = problems;
  }

  expect(messageId: number, spelling: Spelling): void {
    const number = blockOf(messageId);
    const block = this.#read(number);
    if (block === null || this.#named.has(number)) return;
    const isSpelled =
      block !== "damaged" &&
      spelling.readWords().isSubsetOf(block.words) &&
      (!spelling.takeOpaque() || block.opaqueIds.has(messageId));
    if (isSpelled) return;
    this.#named.add(number);
    const why =
      block === "damaged" ? "cannot be read" : `does not spell all words of ${formatMessageId(messageId)}`;
    this.#problems.add("index", "index", `block ${number} of words ${why}; ${MEND}`);
  }

  #read(number: number): ReturnType<typeof readBlock> {
    let block = this.#recent.get(number);
    if (block === undefined) {
      block = readBlock(this.#connection, number);
      const [oldest] = this.#recent.keys();
      if (this.#recent.size >= MAX_RECENT_BLOCKS && oldest !== undefined) this.#recent.delete(oldest);
      this.#recent.set(number, block);
    }
    return block;
  }
}

/** SQLite's sums over the postings of one term in one column, modulo 2^32. */
interface PostingSums {
  readonly col: (typeof COLUMNS)[number];
  readonly n: number;
  readonly rows: number;
  readonly places: number;
  readonly products: number;
}

const SUMS = `
  count(*) AS n, sum(doc) & 4294967295 AS rows, sum(offset) & 4294967295 AS places,
  sum((doc * offset) & 4294967295) & 4294967295 AS products`;
/** One pass, without sorting: the postings come in order of their terms. Looking up each term would take six times as long. */
const TERMS = `SELECT term, min(col) AS col, max(col) AS last, ${SUMS} FROM temp.index_postings GROUP BY term`;
/** For the few terms that are in several columns. */
const POSTINGS_OF_TERM = `SELECT col, ${SUMS} FROM temp.index_postings WHERE term = ? GROUP BY col`;

/** The weight of a posting is linear in row, place and their product, so that SQLite can add them up without returning each one. */
function weigh(n: number, rows: number, places: number, products: number): number {
  return (
    (n + Math.imul(rows, 0x9e3779b1) + Math.imul(places, 0x85ebca77) + Math.imul(products, 0xc2b2ae3d)) | 0
  );
}

/** An order-free sum of the hashes of postings, 64 bits in two halves. */
class TermSum {
  #low = 0;
  #high = 0;

  addText(text: string, column: number, row: number): number {
    if (text === "") return 0;
    const terms = text.split(" ");
    for (const [place, term] of terms.entries())
      this.#addTerm(term, column, weigh(1, row, place, Math.imul(row, place)));
    return terms.length;
  }

  addPostings(term: string, column: number, { n, rows, places, products }: PostingSums): void {
    this.#addTerm(term, column, weigh(n, rows, places, products));
  }

  #addTerm(term: string, column: number, weight: number): void {
    let low = 0x811c9dc5 ^ column;
    let high = 0x9747b28c + column;
    for (let i = 0; i < term.length; i++) {
      const unit = term.charCodeAt(i);
      low = Math.imul(low ^ unit, 0x01000193);
      high = Math.imul(high + unit, 0x85ebca6b) ^ (high >>> 13);
    }
    this.#low = (this.#low + Math.imul(low, weight)) >>> 0;
    this.#high = (this.#high + Math.imul(high, weight)) >>> 0;
  }

  equals(other: TermSum): boolean {
    return this.#low === other.#low && this.#high === other.#high;
  }
}

/** SQLite's variable-length integers, most significant group first. */
function decodeVarints(bytes: Uint8Array): number[] {
  const values: number[] = [];
  let value = 0;
  for (const byte of bytes) {
    value = value * 128 + (byte & 0x7f);
    if ((byte & 0x80) === 0) {
      values.push(value);
      value = 0;
    }
  }
  return values;
}
