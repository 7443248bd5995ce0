/** Finds clues in an archive of maps by reading every current text. */
import type { DocumentKind, RecallScope, Store } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { findHolding, toListing } from "../scan-text-index.ts";
import type { ScanEntry } from "../scan-text-index.ts";
import { listCurrent, listFound } from "./documents.ts";
import type { Terms } from "./terms.ts";

/** The documents of a scope, the newest first. */
function listEntries(
  archive: MemoryArchive,
  terms: Terms,
  kind: DocumentKind,
  scope: RecallScope,
): ScanEntry[] {
  const entries =
    kind === "message"
      ? listCurrent(archive, scope).map((row) => ({ id: row.message_id, terms: terms.ofMessage(row) }))
      : listFound(archive, scope).map((row) => ({ id: row.summary_ref, terms: terms.ofText(row.content) }));
  return entries.sort((a, b) => b.id - a.id);
}

export const clueVerbs = (archive: MemoryArchive, terms: Terms) =>
  ({
    async findClues({ kind, clues, scope, limit }) {
      const { owner, inherited = [] } = scope;
      const ids = scope.conversationIds?.concat(inherited.map((part) => part.conversationId));
      const conversations = archive
        .list("conversations")
        .filter((row) => (owner ?? row.owner) === row.owner && (ids?.includes(row.conversation_id) ?? true));
      const column = kind === "message" ? "message_count" : "summary_count";
      const entries = listEntries(archive, terms, kind, scope);
      const times = conversations.flatMap(({ first_at, last_at }) =>
        first_at === null || last_at === null ? [] : [first_at, last_at],
      );
      return {
        total: conversations.reduce((sum, row) => sum + row[column], 0),
        firstAt: times.length === 0 ? null : Math.min(...times),
        lastAt: times.length === 0 ? null : Math.max(...times),
        listings: clues.map((clue) => toListing(findHolding(entries, clue), limit)),
        pendingIds: [],
        hasRecallParts: kind === "message",
      };
    },
    async testClues({ kind, clues, ids }) {
      const asked = new Set(ids);
      const entries = listEntries(archive, terms, kind, {})
        .filter(({ id }) => asked.has(id))
        .reverse();
      return clues.map((clue) => findHolding(entries, clue));
    },
    /** Spelled words are unknown: every message may raise the doubt. */
    async findDoubts(doubts, scope) {
      const ids = listCurrent(archive, scope).map(({ message_id }) => message_id);
      const unresolved = ids.sort((a, b) => a - b).map((id): [number, number] => [id, id]);
      return { words: doubts.map(() => []), unresolved, isWhole: true };
    },
  }) satisfies Partial<Store>;
