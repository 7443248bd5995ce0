/**
 * Finds messages that can contain a literal as part of a longer word. A part has the distinct words of some hundred messages of a segment, as
 * their texts spell them, compressed; it lists its messages, because numbers are committed in any order and others are between them.
 *
 * Invariant: a part with words contains every word of each of its messages. One that contained a forgotten message has no words until it is
 * rebuilt; its messages, and pending ones, have to be read.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { DoubtReader, Spelling } from "@lossless/core/adapter";
import type { IndexTerms, ReadTerms, SpellingDoubt } from "@lossless/core/adapter";
import type { IdRange } from "@lossless/core/ports";
import type { Sql, WriteSql } from "./connection.ts";
import { statement } from "./connection.ts";
import { decodeIds, encodeIds } from "./posting-blocks.ts";

/** Larger parts need less space in total, but more messages have to be read where a literal occurs. */
const PART_MESSAGES = 512;

const ADD = `
  INSERT INTO index_spellings (owner, segment, part, ids, opaque_ids, words) VALUES ($1, $2, nextval('index_numbers'), $3, $4, $5)`;
const MOVE = "UPDATE index_spellings SET segment = $3 WHERE owner = $1 AND segment = ANY($2::bigint[])";
const PARTS =
  "SELECT part, ids, opaque_ids FROM index_spellings WHERE owner = $1 AND segment = $2 ORDER BY part";
const WORDS = `
  SELECT words FROM index_spellings WHERE owner = $1 AND segment = $2 AND part = ANY($3::bigint[])`;
const DROP = "DELETE FROM index_spellings WHERE owner = $1 AND segment = $2 AND part = ANY($3::bigint[])";
const FORGET = `
  UPDATE index_spellings SET ids = $4, opaque_ids = $5, words = NULL WHERE owner = $1 AND segment = $2 AND part = $3`;
const MISSING = `
  SELECT p.segment, p.part, p.ids FROM index_heads h JOIN index_segments s USING (owner, generation)
  JOIN index_spellings p ON p.owner = s.owner AND p.segment = s.segment
  WHERE h.owner = $1 AND p.words IS NULL ORDER BY p.part LIMIT $2`;
const FILL = `
  UPDATE index_spellings SET ids = $4, opaque_ids = $5, words = $6 WHERE owner = $1 AND segment = $2 AND part = $3`;
const ALL_PARTS = `
  SELECT p.ids, p.opaque_ids, p.words FROM index_heads h JOIN index_segments s USING (owner, generation)
  JOIN index_spellings p ON p.owner = s.owner AND p.segment = s.segment
  WHERE s.kind = 'message' AND ($1::text IS NULL OR h.owner = $1)`;

export interface SpellingPart {
  readonly ids: readonly number[];
  readonly opaqueIds: readonly number[];
  /** Compressed; null when unknown. */
  readonly words: Uint8Array | null;
}

/** Collects the words of messages, which come in order of ids. */
export class SpellingWriter {
  readonly #spelling = new Spelling();
  #ids: number[] = [];
  #opaqueIds: number[] = [];
  readonly #parts: SpellingPart[] = [];

  /** Adds the words of a message while its terms are read. */
  add(messageId: number, readTerms: ReadTerms): IndexTerms {
    const terms = readTerms(this.#spelling);
    this.#ids.push(messageId);
    if (this.#spelling.takeOpaque()) this.#opaqueIds.push(messageId);
    if (this.#ids.length >= PART_MESSAGES) this.#close();
    return terms;
  }

  finish(): SpellingPart[] {
    if (this.#ids.length > 0) this.#close();
    return this.#parts;
  }

  #close(): void {
    this.#parts.push({
      ids: this.#ids,
      opaqueIds: this.#opaqueIds,
      words: compress(this.#spelling.encode()),
    });
    this.#ids = [];
    this.#opaqueIds = [];
    this.#spelling.clear();
  }
}

const compress = (words: Uint8Array): Uint8Array =>
  zstdCompressSync(words, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });

export function putSpellings(
  sql: WriteSql,
  owner: string,
  segment: number,
  parts: readonly SpellingPart[],
): void {
  for (const { ids, opaqueIds, words } of parts)
    sql.post(statement(ADD, owner, segment, encodeIds(ids), encodeIds(opaqueIds), words));
}

/** Moves the parts of segments to the one that replaces them. */
export async function moveSpellings(
  sql: WriteSql,
  owner: string,
  from: readonly number[],
  to: number,
): Promise<void> {
  await sql.change(MOVE, owner, from, to);
}

interface PartRow {
  readonly part: number;
  readonly ids: Uint8Array;
  readonly opaque_ids: Uint8Array;
}

/** Merges small consecutive parts. */
export async function mergeSpellings(sql: WriteSql, owner: string, segment: number): Promise<void> {
  const parts = (await sql.all<PartRow>(PARTS, owner, segment)).map((row) => ({
    part: row.part,
    ids: [...decodeIds(row.ids)],
    opaqueIds: [...decodeIds(row.opaque_ids)],
  }));
  for (const bundle of bundleSmall(parts)) {
    const numbers = bundle.map(({ part }) => part);
    const rows = await sql.all<{ words: Uint8Array | null }>(WORDS, owner, segment, numbers);
    const joined: SpellingPart = {
      ids: bundle.flatMap(({ ids }) => ids).toSorted(byNumber),
      opaqueIds: bundle.flatMap(({ opaqueIds }) => opaqueIds).toSorted(byNumber),
      words: joinWords(rows.map(({ words }) => words)),
    };
    sql.post(statement(DROP, owner, segment, numbers));
    putSpellings(sql, owner, segment, [joined]);
  }
}

function bundleSmall<T extends { readonly ids: readonly number[] }>(parts: readonly T[]): T[][] {
  const bundles: T[][] = [];
  let size = Infinity;
  for (const part of parts.filter(({ ids }) => ids.length <= PART_MESSAGES / 2)) {
    if (size + part.ids.length > PART_MESSAGES) {
      bundles.push([]);
      size = 0;
    }
    bundles.at(-1)?.push(part);
    size += part.ids.length;
  }
  return bundles.filter(({ length }) => length > 1);
}

function joinWords(parts: readonly (Uint8Array | null)[]): Uint8Array | null {
  const texts = parts.map((words) => (words === null ? null : decompress(words)));
  if (texts.includes(null)) return null;
  const words = new Set(texts.flatMap((text) => (text === null ? [] : text.toString().split("\n"))));
  words.delete("");
  return compress(Buffer.from([...words].join("\n")));
}

const byNumber = (a: number, b: number): number => a - b;

/** Null for damaged words. */
function decompress(words: Uint8Array): Buffer | null {
  try {
    return zstdDecompressSync(words);
  } catch {
    return null;
  }
}

/** Removes the words of parts that contain forgotten messages. */
export async function dropSpelled(
  sql: WriteSql,
  owner: string,
  segment: number,
  gone: ReadonlySet<number>,
): Promise<void> {
  for (const { part, ids, opaque_ids } of await sql.all<PartRow>(PARTS, owner, segment)) {
    const all = decodeIds(ids);
    const left = all.filter((id) => !gone.has(id));
    if (left.length === all.length) continue;
    const opaque = decodeIds(opaque_ids).filter((id) => !gone.has(id));
    sql.post(
      left.length === 0
        ? statement(DROP, owner, segment, [part])
        : statement(FORGET, owner, segment, part, encodeIds(left), encodeIds(opaque)),
    );
  }
}

export interface MissingPart {
  readonly segment: number;
  readonly part: number;
  readonly ids: readonly number[];
}

/** Parts of an owner without words. */
export async function listMissingParts(sql: Sql, owner: string, limit: number): Promise<MissingPart[]> {
  const rows = await sql.all<{ segment: number; part: number; ids: Uint8Array }>(MISSING, owner, limit);
  return rows.map(({ segment, part, ids }) => ({ segment, part, ids: [...decodeIds(ids)] }));
}

/** Restores the words of a part. The head is locked. */
export async function fillPart(
  sql: WriteSql,
  owner: string,
  { segment, part }: MissingPart,
  filled: SpellingPart,
): Promise<void> {
  const { ids, opaqueIds, words } = filled;
  await sql.change(FILL, owner, segment, part, encodeIds(ids), encodeIds(opaqueIds), words);
}

export interface StoredPart {
  readonly ids: Float64Array;
  readonly opaqueIds: Float64Array;
  /** One word per line; null when unknown or damaged. */
  readonly words: Buffer | null;
  readonly isDamaged: boolean;
}

/** The parts of an owner, or of all. */
export async function readParts(sql: Sql, owner: string | null): Promise<StoredPart[]> {
  const rows = await sql.all<{ ids: Uint8Array; opaque_ids: Uint8Array; words: Uint8Array | null }>(
    ALL_PARTS,
    owner,
  );
  return rows.map((row) => {
    const words = row.words === null ? null : decompress(row.words);
    return {
      ids: decodeIds(row.ids),
      opaqueIds: decodeIds(row.opaque_ids),
      words,
      isDamaged: row.words !== null && words === null,
    };
  });
}

/** The words that raise the doubts, and the messages whose words are not known. */
export async function findDoubtful(
  sql: Sql,
  doubts: readonly SpellingDoubt[],
  owner: string | null,
): Promise<{ words: string[][]; unresolvedIds: number[] }> {
  const reader = new DoubtReader(doubts);
  const parts = await readParts(sql, owner);
  const unresolvedIds = parts.flatMap(({ ids, opaqueIds, words }) => [
    ...(words === null || !reader.read(words) ? ids : opaqueIds),
  ]);
  return { words: reader.found, unresolvedIds };
}

/** Ids as ranges, in order. */
export function toRanges(ids: readonly number[]): IdRange[] {
  const ranges: [number, number][] = [];
  for (const id of ids.toSorted(byNumber)) {
    const last = ranges.at(-1);
    if (last !== undefined && id <= last[1] + 1) last[1] = id;
    else ranges.push([id, id]);
  }
  return ranges;
}
