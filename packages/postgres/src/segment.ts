/**
 * Builds a segment of the full-text index: turns the terms of some documents into posting blocks. Segments are only added, merged and rewritten
 * as a whole; together they are the index of an owner.
 */
import { decodeTerms } from "@lossless/core/adapter";
import type { IndexTerms } from "@lossless/core/adapter";
import { decodeDocuments, decodeIds, encodeIds, PostingWriter } from "./posting-blocks.ts";
import type { PostingBlock } from "./posting-blocks.ts";

/** The kind of a term: a word of the text, an identifier, or the conversation of the document. Only words have positions. */
export const FIELD = { word: 0, identifier: 1, conversation: 2 } as const;

export interface PostingRow extends PostingBlock {
  readonly field: number;
  readonly term: string;
}

const NO_PLACES = new Uint8Array(0);

export class SegmentWriter {
  readonly #words = new Map<string, PostingWriter>();
  readonly #lists: Readonly<Record<1 | 2, Map<string, number[]>>> = { 1: new Map(), 2: new Map() };

  /** Adds the terms of a document; documents come in order of ids. Returns its word count. */
  add(id: number, conversationId: number, { words, idents }: IndexTerms): number {
    const list = splitTerms(words);
    for (const [place, word] of list.entries()) {
      let writer = this.#words.get(word);
      if (writer === undefined) this.#words.set(word, (writer = new PostingWriter()));
      writer.addPlace(id, place);
    }
    for (const identifier of splitTerms(idents)) this.#addTo(FIELD.identifier, identifier, id);
    this.#addTo(FIELD.conversation, String(conversationId), id);
    return list.length;
  }

  *finish(): Generator<PostingRow> {
    for (const [term, writer] of this.#words) yield { field: FIELD.word, term, ...writer.finish() };
    for (const field of [FIELD.identifier, FIELD.conversation] as const)
      for (const [term, ids] of this.#lists[field])
        yield { field, term, documents: encodeIds(ids), places: NO_PLACES };
  }

  #addTo(field: 1 | 2, term: string, id: number): void {
    const ids = this.#lists[field].get(term);
    if (ids) ids.push(id);
    else this.#lists[field].set(term, [id]);
  }
}

export function splitTerms(terms: Uint8Array): string[] {
  return terms.length === 0 ? [] : decodeTerms(terms).split(" ");
}

/** Merges the blocks of one term from segments without a common document. */
export function mergeBlocks(field: number, blocks: readonly PostingBlock[]): PostingBlock {
  if (field !== FIELD.word)
    return {
      documents: encodeIds(blocks.flatMap((block) => [...decodeIds(block.documents)]).sort(byNumber)),
      places: NO_PLACES,
    };
  const entries = blocks.flatMap(listDocuments).sort((a, b) => a.id - b.id);
  const writer = new PostingWriter();
  for (const { id, places } of entries) writer.addDocument(id, places);
  return writer.finish();
}

/** A block without some documents; null when nothing is left. The same block if it contains none of them. */
export function dropFromBlock(
  field: number,
  block: PostingBlock,
  gone: ReadonlySet<number>,
): PostingBlock | null {
  if (field !== FIELD.word) {
    const ids = decodeIds(block.documents);
    const left = ids.filter((id) => !gone.has(id));
    if (left.length === ids.length) return block;
    return left.length === 0 ? null : { documents: encodeIds(left), places: NO_PLACES };
  }
  const entries = listDocuments(block);
  const left = entries.filter(({ id }) => !gone.has(id));
  if (left.length === entries.length) return block;
  const writer = new PostingWriter();
  for (const { id, places } of left) writer.addDocument(id, places);
  return left.length === 0 ? null : writer.finish();
}

function listDocuments({ documents, places }: PostingBlock): { id: number; places: Uint8Array }[] {
  const { ids, starts } = decodeDocuments(documents);
  return Array.from(ids, (id, at) => ({ id, places: places.subarray(starts[at], starts[at + 1]) }));
}

const byNumber = (a: number, b: number): number => a - b;
