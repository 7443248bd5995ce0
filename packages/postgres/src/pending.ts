/**
 * Documents that are stored and not in the index yet: searches read their texts, so that nothing stored is ever missed. Their terms are cached
 * while they are pending; there are few, unless a long import is running.
 */
import {
  decodeBody,
  EngineError,
  encodeForIndex,
  listPayloads,
  putTogether,
  toCutPayloads,
} from "@lossless/core/adapter";
import type { CutPart, IndexTerms, PartRecord, ReadTerms, StoredBody } from "@lossless/core/adapter";
import type { Derive, DocumentKind, RecallScope, TextTerms } from "@lossless/core/ports";
import type { Files } from "./blobs.ts";
import type { Sql, Statement } from "./connection.ts";
import { statement } from "./connection.ts";
import { splitTerms } from "./segment.ts";

/** More are read in pages, and not cached. */
export const PENDING_PAGE = 1_024;

const SCOPED = `
  ($1::text IS NULL OR p.owner = $1) AND ($2::bigint[] IS NULL OR m.conversation_id = ANY($2))
  AND ($3::bigint IS NULL OR m.created_at >= $3) AND ($4::bigint IS NULL OR m.created_at < $4)
  AND ($5::text IS NULL OR m.role = $5)`;
const BODY = "CASE WHEN m.message_id = ANY($7::bigint[]) THEN NULL ELSE m.body END AS body";
const MESSAGES = `
  SELECT m.message_id AS id, m.conversation_id, ${BODY}, m.encoding, m.arrival_bytes
  FROM index_pending p JOIN messages m USING (message_id)
  WHERE p.message_id > $6 AND ${SCOPED} ORDER BY p.message_id LIMIT ${PENDING_PAGE}`;
const SUMMARIES = `
  SELECT p.summary_ref AS id, m.conversation_id, m.content
  FROM index_pending_summaries p JOIN summary_refs r USING (summary_ref) JOIN summaries m USING (summary_id)
  WHERE ($1::text IS NULL OR p.owner = $1) AND ($2::bigint[] IS NULL OR m.conversation_id = ANY($2))
    AND ($3::bigint IS NULL OR m.latest_at >= $3) AND ($4::bigint IS NULL OR m.latest_at < $4) AND p.summary_ref > $5
  ORDER BY p.summary_ref LIMIT ${PENDING_PAGE}`;
const PAYLOADS = `
  SELECT p.*, f.storage_path, f.file_name, f.mime_type, f.byte_size, f.exploration_summary
  FROM message_parts p LEFT JOIN large_files f USING (file_id)
  WHERE p.message_id = ANY($1::bigint[]) AND p.type = 'payload' ORDER BY p.message_id, p.ordinal`;
const BODIES = `
  SELECT m.message_id AS id, m.conversation_id, m.body, m.encoding, m.arrival_bytes FROM messages m
  WHERE m.message_id = ANY($1::bigint[]) AND m.forgotten_at IS NULL ORDER BY m.message_id`;

/** A message as read for indexing. */
export interface MessageDocument {
  readonly id: number;
  readonly conversationId: number;
  readonly readTerms: ReadTerms;
}

/** Reads stored messages. Without a reader there are none. */
export interface MessageReader {
  readonly files: Files;
  readonly derive: Derive | null;
}

interface BodyRow extends Omit<StoredBody, "message_id" | "body"> {
  readonly id: number;
  readonly conversation_id: number;
  readonly body: Uint8Array | null;
  readonly arrival_bytes: number;
}

type PayloadRow = PartRecord & { readonly message_id: number };

/** Messages as documents, without those that are forgotten. */
export async function readDocuments(
  sql: Sql,
  reader: MessageReader,
  ids: readonly number[],
): Promise<MessageDocument[]> {
  if (ids.length === 0) return [];
  const rows = await sql.all<BodyRow>(BODIES, ids);
  return toDocuments(sql, reader, rows);
}

async function toDocuments(
  sql: Sql,
  reader: MessageReader,
  rows: readonly BodyRow[],
): Promise<MessageDocument[]> {
  const { files, derive } = reader;
  if (derive === null) return [];
  const stored = rows.flatMap((row) =>
    row.body === null ? [] : [{ ...row, message_id: row.id, body: row.body }],
  );
  // A body with all its payloads has the arrival length.
  const plain = new Map(stored.map((row) => [row.id, decodeBody(row, row.arrival_bytes)]));
  const cut = stored.filter((row) => plain.get(row.id)?.byteLength !== row.arrival_bytes);
  const cutIds = cut.map(({ id }) => id);
  const [payloads, contentOf] =
    cut.length === 0
      ? [[], () => null]
      : await Promise.all([sql.all<PayloadRow>(PAYLOADS, cutIds), files.readCut(sql, cutIds)]);
  const partsOf = Map.groupBy(payloads, ({ message_id }) => message_id);
  return stored.map((row) => {
    const parts = listPayloads(partsOf.get(row.id) ?? []);
    const bytes = parts.length === 0 ? plain.get(row.id) : putBack(row, parts, contentOf);
    const { readTerms } = derive(bytes ?? new Uint8Array(), toCutPayloads(parts));
    return { id: row.id, conversationId: row.conversation_id, readTerms };
  });
}

/** The text of a message without its large file, when that is gone: finding the rest is better than finding nothing. */
function putBack(
  row: StoredBody,
  parts: readonly CutPart[],
  contentOf: (name: string) => Uint8Array | null,
): Uint8Array {
  const contents = parts.map(({ file }) => (file === null ? null : contentOf(file.storage_path)));
  try {
    return putTogether(row, parts, contents);
  } catch (error) {
    if (error instanceof EngineError && error.code === "not_found") return decodeBody(row, row.arrival_bytes);
    throw error;
  }
}

/** A pending document for a search. */
export interface PendingDocument {
  readonly id: number;
  readonly terms: TextTerms;
}

const toTextTerms = ({ words, idents }: IndexTerms): TextTerms => ({
  words: splitTerms(words),
  idents: splitTerms(idents),
});

/** A document and its word count; null when it is not in the index, and then with its text, unless that is known. */
export interface Counted extends Pick<PendingRow, "id" | "conversation_id"> {
  readonly words: number | null;
  readonly body?: Uint8Array | null;
  readonly encoding?: number;
  readonly arrival_bytes?: number;
  readonly content?: string | null;
}

export type PendingRow = BodyRow & { readonly content?: string | null };

export class PendingTexts {
  /** Only messages: the text of a summary may change under its number. */
  readonly #known = new Map<number, PendingDocument>();

  /** Requests the pending documents of a scope from an id on; {@link take} reads the answer. */
  ask(kind: DocumentKind, scope: RecallScope, conversations: readonly number[] | null, after = 0): Statement {
    const { owner = null, since = null, before = null, role = null } = scope;
    return kind === "message"
      ? statement(MESSAGES, owner, conversations, since, before, role, after, this.listKnown())
      : statement(SUMMARIES, owner, conversations, since, before, after);
  }

  /** Messages whose texts need not be read again. */
  listKnown(): number[] {
    return [...this.#known.keys()];
  }

  /** Fills in the word counts of pending documents, which the index does not have. */
  async fillWords<T extends Counted>(
    sql: Sql,
    reader: MessageReader,
    kind: DocumentKind,
    rows: readonly T[],
  ): Promise<(T & { words: number })[]> {
    const knownOf = (id: number): number | undefined =>
      kind === "message" ? this.#known.get(id)?.terms.words.length : undefined;
    const unknown = rows.filter(({ id, words }) => words === null && knownOf(id) === undefined);
    const counted = await countWords(sql, reader, kind, unknown);
    return rows.map((row) => ({ ...row, words: row.words ?? knownOf(row.id) ?? counted.get(row.id) ?? 0 }));
  }

  async take(
    sql: Sql,
    reader: MessageReader,
    kind: DocumentKind,
    rows: readonly PendingRow[],
  ): Promise<PendingDocument[]> {
    if (kind === "summary") return rows.flatMap(readSummary);
    const read = await toDocuments(sql, reader, rows);
    const fresh = read.map(({ id, readTerms }): [number, PendingDocument] => [
      id,
      { id, terms: toTextTerms(readTerms(null)) },
    ]);
    const found = new Map(fresh);
    const documents = rows.flatMap(({ id }) => found.get(id) ?? this.#known.get(id) ?? []);
    if (this.#known.size + fresh.length > PENDING_PAGE) this.#known.clear();
    if (rows.length < PENDING_PAGE) for (const [id, document] of fresh) this.#known.set(id, document);
    return documents;
  }
}

const readSummary = ({ id, content }: PendingRow): PendingDocument[] =>
  typeof content === "string" ? [{ id, terms: toTextTerms(encodeForIndex(content)) }] : [];

/** The word counts of some documents' texts. */
async function countWords(
  sql: Sql,
  reader: MessageReader,
  kind: DocumentKind,
  rows: readonly Counted[],
): Promise<Map<number, number>> {
  if (kind === "summary")
    return new Map(
      rows.map(({ id, content }) => [id, splitTerms(encodeForIndex(content ?? "").words).length]),
    );
  const documents = await toDocuments(sql, reader, rows as readonly BodyRow[]);
  return new Map(documents.map(({ id, readTerms }) => [id, splitTerms(readTerms(null).words).length]));
}
