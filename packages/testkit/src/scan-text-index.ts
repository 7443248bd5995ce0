/**
 * A text index that scans: for a store of maps and arrays, and as the reference for every other index. It knows only the port and the rule for
 * when a text matches a clue.
 */
import { holdsClue, readTextTerms } from "@lossless/core/ports";
import type {
  ClueListing,
  ClueRequest,
  CluesFound,
  DocumentKind,
  DoubtsFound,
  IdRange,
  RecallScope,
  TextClue,
  TextIndex,
  TextTerms,
} from "@lossless/core/ports";

/** A current document, from the store that owns the index. */
export interface ScanDocument {
  readonly id: number;
  readonly owner: string;
  readonly conversationId: number;
  readonly position: number;
  readonly createdAt: number;
  /** Null for a summary. */
  readonly role: string | null;
  readonly text: string;
}

/** The indexed content of a document. */
export interface ScanEntry {
  readonly id: number;
  readonly terms: TextTerms;
}

interface Entry extends ScanDocument, ScanEntry {}

export class ScanTextIndex implements TextIndex {
  readonly #entries: Record<DocumentKind, Map<number, Entry>> = { message: new Map(), summary: new Map() };

  /** Adds a document, replacing the one with the same id. */
  add(kind: DocumentKind, document: ScanDocument): void {
    this.#entries[kind].set(document.id, { ...document, terms: readTextTerms(document.text) });
  }

  /** Removes a document that was revised, forgotten or replaced. */
  remove(kind: DocumentKind, id: number): void {
    this.#entries[kind].delete(id);
  }

  async findClues({ kind, clues, scope, limit }: ClueRequest): Promise<CluesFound> {
    const entries = this.#list(kind, scope);
    const times = entries.map(({ createdAt }) => createdAt);
    return {
      total: entries.length,
      firstAt: times.length === 0 ? null : Math.min(...times),
      lastAt: times.length === 0 ? null : Math.max(...times),
      listings: clues.map((clue) => toListing(findHolding(entries, clue), limit)),
      pendingIds: [],
      hasRecallParts: kind === "message",
    };
  }

  async testClues({ kind, clues, ids }: Parameters<TextIndex["testClues"]>[0]): Promise<number[][]> {
    const entries = ids.flatMap((id) => this.#entries[kind].get(id) ?? []);
    return clues.map((clue) => findHolding(entries, clue));
  }

  /** Spelled words are unknown: every message may raise the doubt. */
  async findDoubts(doubts: readonly unknown[], scope: RecallScope): Promise<DoubtsFound> {
    const ids = this.#list("message", scope).map(({ id }): IdRange => [id, id]);
    return { words: doubts.map(() => []), unresolved: ids.toReversed(), isWhole: true };
  }

  /** The documents of a scope, the newest first. */
  #list(kind: DocumentKind, scope: RecallScope): Entry[] {
    return [...this.#entries[kind].values()]
      .filter((entry) => isInScope(entry, scope))
      .toSorted((a, b) => b.id - a.id);
  }
}

function isInScope(
  entry: Entry,
  { owner, conversationIds, inherited = [], since, before, role }: RecallScope,
): boolean {
  const isNamed =
    conversationIds === undefined ||
    conversationIds.includes(entry.conversationId) ||
    inherited.some((part) => part.conversationId === entry.conversationId && entry.position <= part.position);
  return (
    isNamed &&
    (owner === undefined || entry.owner === owner) &&
    (since === undefined || entry.createdAt >= since) &&
    (before === undefined || entry.createdAt < before) &&
    (role === undefined || entry.role === null || entry.role === role)
  );
}

/** The documents that match a clue, in their order. */
export const findHolding = (entries: readonly ScanEntry[], clue: TextClue): number[] =>
  entries.filter(({ terms }) => holdsClue(terms, clue)).map(({ id }) => id);

/** The input is ordered newest first. */
export function toListing(ids: readonly number[], limit: number): ClueListing {
  const listed = ids.slice(0, limit + 1);
  return {
    ids: listed,
    frequency: ids.length,
    listedFrom: ids.length > limit ? (listed.at(-1) ?? null) : null,
  };
}
