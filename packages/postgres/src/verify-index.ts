/**
 * Compares the full-text index with the texts it was made from: every message and every summary must be pending, or have the right word count
 * and be in one segment; the sum of the hashes of all postings (field, term, document, place) in the segments must equal the sum over all texts.
 * Any added, lost or changed posting changes it. Every part of spelled words must contain the words of its messages.
 *
 * The proof is synchronous, so the index is read before it begins, and summed up while it is read.
 */
import { encodeForIndex, formatMessageId, Spelling } from "@lossless/core/adapter";
import type { IndexProof, IndexTerms, Problems as AllProblems, ReadTerms } from "@lossless/core/adapter";
import type { DocumentKind } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import { FIND_PROBLEM } from "./full-text-index.ts";
import { decodeDocuments, decodeIds, decodePlaces } from "./posting-blocks.ts";
import { FIELD, splitTerms } from "./segment.ts";
import type { PostingRow } from "./segment.ts";
import { readParts } from "./word-blocks.ts";
import type { StoredPart } from "./word-blocks.ts";

/** Collects problems. */
type Problems = Pick<AllProblems, "add">;

const MEND = "rebuild the search index; no message is affected";
const SEGMENTS =
  "SELECT s.owner, s.kind, s.segment FROM index_heads h JOIN index_segments s USING (owner, generation)";
const POSTINGS =
  "SELECT field, term, documents, places FROM index_postings WHERE owner = $1 AND segment = $2";
const DOCUMENTS = "SELECT kind, id, words FROM index_documents";
const LEFT_OUT = `
  SELECT 'message' AS kind, message_id AS id FROM index_pending
  UNION ALL SELECT 'summary', summary_ref FROM index_pending_summaries`;
const GONE = "SELECT kind, id FROM index_gone";
const SUMMARIES = `
  SELECT s.summary_id, s.conversation_id, s.content, coalesce(r.summary_ref, 0) AS ref
  FROM summaries s LEFT JOIN summary_refs r USING (summary_id) WHERE s.summary_id > $1 ORDER BY s.summary_id LIMIT 256`;
const NO_WORDS: ReadonlySet<string> = new Set();

interface Named {
  readonly kind: DocumentKind;
  readonly id: number;
}

/** Reads the index, on one snapshot of the archive. */
export async function readIndexProof(sql: Sql): Promise<(problems: Problems) => IndexProof> {
  const degraded = (await sql.get<{ problem: string | null }>(`SELECT (${FIND_PROBLEM}) AS problem`))
    ?.problem;
  const pending = nameAll(await sql.all<Named>(LEFT_OUT));
  const gone = nameAll(await sql.all<Named>(GONE));
  const kinds = { message: new KindCheck("messages"), summary: new KindCheck("summaries") };
  for (const { kind, id, words } of await sql.all<Named & { words: number }>(DOCUMENTS))
    if (!gone.has(nameOf({ kind, id })) && !pending.has(nameOf({ kind, id })))
      kinds[kind].words.set(id, words);
  for (const segment of await sql.all<{ owner: string; kind: DocumentKind; segment: number }>(SEGMENTS)) {
    const isGone = (id: number): boolean => gone.has(nameOf({ kind: segment.kind, id }));
    for (const row of await sql.all<PostingRow>(POSTINGS, segment.owner, segment.segment))
      kinds[segment.kind].addFound(row, isGone);
  }
  await expectSummaries(sql, kinds.summary, pending);
  const parts = await readParts(sql, null);
  return (problems) => new IndexCheck(problems, kinds, { pending, parts, degraded: degraded ?? null });
}

const nameOf = ({ kind, id }: Named): string => `${kind} ${id}`;
const nameAll = (list: readonly Named[]): Set<string> => new Set(list.map(nameOf));

interface SummaryText {
  readonly summary_id: string;
  readonly conversation_id: number;
  readonly content: string;
  readonly ref: number;
}

async function expectSummaries(sql: Sql, check: KindCheck, pending: ReadonlySet<string>): Promise<void> {
  for (let after = ""; ;) {
    const rows = await sql.all<SummaryText>(SUMMARIES, after);
    for (const { ref, summary_id, conversation_id, content } of rows)
      if (!pending.has(nameOf({ kind: "summary", id: ref })))
        check.expect(ref, summary_id, conversation_id, encodeForIndex(content));
    const last = rows.at(-1);
    if (!last) return;
    after = last.summary_id;
  }
}

interface IndexFacts {
  readonly pending: ReadonlySet<string>;
  readonly parts: readonly StoredPart[];
  readonly degraded: string | null;
}

class IndexCheck implements IndexProof {
  readonly #problems: Problems;
  readonly #kinds: Readonly<Record<DocumentKind, KindCheck>>;
  readonly #facts: IndexFacts;
  readonly #spellings: SpellingCheck;

  constructor(problems: Problems, kinds: Readonly<Record<DocumentKind, KindCheck>>, facts: IndexFacts) {
    this.#problems = problems;
    this.#kinds = kinds;
    this.#facts = facts;
    this.#spellings = new SpellingCheck(facts.parts, problems);
    if (facts.degraded !== null)
      problems.add("index", "index", `search is degraded: ${facts.degraded}; ${MEND}`);
  }

  expect(messageId: number, conversationId: number, readTerms: ReadTerms): void {
    if (this.#facts.pending.has(nameOf({ kind: "message", id: messageId }))) return;
    const spelling = new Spelling();
    const terms = readTerms(spelling);
    this.#kinds.message.expect(messageId, formatMessageId(messageId), conversationId, terms);
    this.#spellings.expect(messageId, spelling);
  }

  finish(): void {
    if (this.#facts.degraded !== null) return;
    this.#kinds.message.finish(this.#problems);
    this.#kinds.summary.finish(this.#problems);
  }
}

/** The index of one kind of document, and its expected content. */
class KindCheck {
  readonly words = new Map<number, number>();
  readonly #plural: string;
  readonly #found = new PostingSum();
  readonly #expected = new PostingSum();
  readonly #wrong: string[] = [];
  #documents = 0;
  #damaged = false;

  constructor(plural: string) {
    this.#plural = plural;
  }

  addFound(row: PostingRow, isGone: (id: number) => boolean): void {
    try {
      this.#found.addBlock(row, isGone);
    } catch {
      this.#damaged = true;
    }
  }

  expect(id: number, name: string, conversationId: number, { words, idents }: IndexTerms): void {
    const list = splitTerms(words);
    for (const [place, term] of list.entries()) this.#expected.add(FIELD.word, term, id, place);
    for (const term of splitTerms(idents)) this.#expected.add(FIELD.identifier, term, id, 0);
    this.#expected.add(FIELD.conversation, String(conversationId), id, 0);
    this.#documents += 1;
    const known = this.words.get(id);
    if (known === undefined) this.#wrong.push(`${name} is not in the index; ${MEND}`);
    else if (known !== list.length) this.#wrong.push(`the index has other terms for ${name}; ${MEND}`);
  }

  finish(problems: Problems): void {
    for (const text of this.#wrong) problems.add("index", "index", text);
    if (this.#damaged) problems.add("index", "index", `the index cannot be read; ${MEND}`);
    if (this.words.size !== this.#documents) {
      const count = `${this.words.size} rows for ${this.#documents} ${this.#plural}`;
      problems.add("index", "index", `the index has ${count}; ${MEND}`);
    }
    if (!this.#found.equals(this.#expected))
      problems.add("index", "index", `the index does not match the texts of the ${this.#plural}; ${MEND}`);
  }
}

/** Compares parts of spelled words with their messages. A part without words only costs time. */
class SpellingCheck {
  readonly #problems: Problems;
  readonly #partOf = new Map<number, StoredPart>();
  readonly #named = new Set<StoredPart>();
  /** The words of the part used last: messages of a part are consecutive. */
  #last: { readonly part: StoredPart; readonly words: ReadonlySet<string> } | null = null;

  constructor(parts: readonly StoredPart[], problems: Problems) {
    this.#problems = problems;
    for (const part of parts) for (const id of part.ids) this.#partOf.set(id, part);
  }

  expect(messageId: number, spelling: Spelling): void {
    const part = this.#partOf.get(messageId);
    const name = formatMessageId(messageId);
    if (part === undefined)
      return this.#problems.add("index", "index", `no part of words spells ${name}; ${MEND}`);
    if (this.#named.has(part) || (part.words === null && !part.isDamaged)) return;
    const isSpelled =
      !part.isDamaged &&
      spelling.readWords().isSubsetOf(this.#wordsOf(part)) &&
      (!spelling.takeOpaque() || part.opaqueIds.includes(messageId));
    if (isSpelled) return;
    this.#named.add(part);
    const why = part.isDamaged ? "cannot be read" : `does not spell all words of ${name}`;
    this.#problems.add("index", "index", `a part of words ${why}; ${MEND}`);
  }

  #wordsOf(part: StoredPart): ReadonlySet<string> {
    if (this.#last?.part !== part) {
      const words = part.words === null ? NO_WORDS : new Set(part.words.toString().split("\n"));
      this.#last = { part, words };
    }
    return this.#last?.words ?? NO_WORDS;
  }
}

/** A sum of hashes of postings that does not depend on their order: 64 bits in two halves. */
class PostingSum {
  #low = 0;
  #high = 0;
  #room = new Int32Array(64);

  add(field: number, term: string, id: number, place: number): void {
    this.#addAt(hashTerm(field, term, 0x811c9dc5), hashTerm(field, term, 0x9747b28c), id, place);
  }

  addBlock({ field, term, documents, places }: PostingRow, isGone: (id: number) => boolean): void {
    const one = hashTerm(field, term, 0x811c9dc5);
    const other = hashTerm(field, term, 0x9747b28c);
    if (field !== FIELD.word) {
      for (const id of decodeIds(documents)) if (!isGone(id)) this.#addAt(one, other, id, 0);
      return;
    }
    const { ids, starts } = decodeDocuments(documents);
    for (const [at, id] of ids.entries()) {
      if (isGone(id)) continue;
      const [start = 0, end = 0] = starts.subarray(at, at + 2);
      if (end - start > this.#room.length) this.#room = new Int32Array(2 * (end - start));
      const count = decodePlaces(places, start, end, this.#room);
      for (const place of this.#room.subarray(0, count)) this.#addAt(one, other, id, place);
    }
  }

  #addAt(one: number, other: number, id: number, place: number): void {
    const document = Math.imul(id | 0, 0x9e3779b1) ^ Math.imul(Math.floor(id / 2 ** 32), 0x27d4eb2f);
    this.#low = (this.#low + mix(one ^ mix(document + Math.imul(place + 1, 0x85ebca77)))) >>> 0;
    this.#high = (this.#high + mix(other + mix(document ^ Math.imul(place + 1, 0xc2b2ae3d)))) >>> 0;
  }

  equals(other: PostingSum): boolean {
    return this.#low === other.#low && this.#high === other.#high;
  }
}

function mix(value: number): number {
  const once = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return once ^ (once >>> 13);
}

function hashTerm(field: number, term: string, seed: number): number {
  let hash = seed ^ field;
  for (let at = 0; at < term.length; at++) hash = Math.imul(hash ^ term.charCodeAt(at), 0x01000193);
  return hash;
}
