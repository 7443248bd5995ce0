/**
 * Documents of an archive of maps by id, with their neighbours: candidates for the ranking, texts for showing. Nothing outside the scope is
 * returned.
 */
import {
  toCandidates,
  toFoundSummary,
  toLargeFile,
  toSummaryCandidate,
  toText,
} from "@lossless/core/adapter";
import type {
  DatedId,
  CandidateDocument,
  CandidateRequest,
  IdRange,
  PlacedTime,
  RecallScope,
  Row,
  Store,
} from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { listChosen, listInOrder, readAt, readBytes } from "./read.ts";
import type { Terms } from "./terms.ts";

type MessageRow = Row<"messages">;
export type FoundSummaryRow = Row<"summaries"> & Row<"summary_refs">;

/** Neither revised nor forgotten. */
export const isCurrent = (archive: MemoryArchive, message: MessageRow): boolean =>
  message.forgotten_at === null &&
  message.newest === null &&
  (message.revises === null || archive.find("messages", message.revises)?.newest === message.message_id);

const isAt = (time: number, { since = -Infinity, before = Infinity }: RecallScope): boolean =>
  time >= since && time < before;

/** Whether a position of a conversation is in the scope, or in what a fork of it shares with its parent. */
function isPositionInScope(
  archive: MemoryArchive,
  conversationId: number,
  position: number,
  { owner, conversationIds, inherited = [] }: RecallScope,
): boolean {
  const isOwn = owner === undefined || archive.find("conversations", conversationId)?.owner === owner;
  const isNamed = conversationIds?.includes(conversationId) ?? true;
  return (
    isOwn &&
    (isNamed || inherited.some((part) => part.conversationId === conversationId && position <= part.position))
  );
}

export const isInScope = (archive: MemoryArchive, message: MessageRow, scope: RecallScope): boolean =>
  isPositionInScope(archive, message.conversation_id, message.position, scope) &&
  isAt(message.created_at, scope) &&
  (scope.role ?? message.role) === message.role;

export const listCurrent = (archive: MemoryArchive, scope: RecallScope): MessageRow[] =>
  archive.list("messages").filter((row) => isCurrent(archive, row) && isInScope(archive, row, scope));

/** The shown summaries of a scope. */
export const listFound = (archive: MemoryArchive, scope: RecallScope): FoundSummaryRow[] =>
  archive
    .list("summary_refs")
    .flatMap((ref) => {
      const summary = archive.find("summaries", ref.summary_id);
      return summary ? [{ ...summary, ...ref }] : [];
    })
    .filter(({ state }) => state === "cover" || state === "reserve")
    .filter((row) => isPositionInScope(archive, row.conversation_id, row.end_pos, scope))
    .filter((row) => isAt(row.latest_at, scope));

const isWithin = (id: number, ranges: readonly IdRange[]): boolean =>
  ranges.some(([first, last]) => first <= id && id <= last);

/** A revision has the place of its first version. */
const findFirstSeq = (archive: MemoryArchive, message: MessageRow): number =>
  (archive.find("messages", message.revises) ?? message).seq;

interface Placed extends DatedId {
  readonly position: number;
}

const byPlace = (a: Placed, b: Placed): number =>
  b.createdAt - a.createdAt || b.position - a.position || b.id - a.id;

/** The requested documents, and the newest of those that are tied. */
function listSeeds({ ids, tied }: CandidateRequest, known: readonly Placed[]): ReadonlySet<number> {
  const isTied = new Set(tied?.ids);
  const newest = known.filter(({ id }) => isTied.has(id)).toSorted(byPlace);
  return new Set([...ids, ...newest.slice(0, tied?.count ?? 0).map(({ id }) => id)]);
}

const toPlaced = (archive: MemoryArchive, row: MessageRow): Placed => ({
  id: row.message_id,
  createdAt: row.created_at,
  position: findFirstSeq(archive, row),
});

function listBeside(archive: MemoryArchive, request: CandidateRequest): MessageRow[] {
  const { reach, scope } = request;
  const current = listCurrent(archive, scope);
  const asked = listSeeds(
    request,
    current.map((row) => toPlaced(archive, row)),
  );
  const seeds = current.filter(({ message_id }) => asked.has(message_id));
  return current.filter((row) =>
    seeds.some(
      (seed) =>
        seed.message_id === row.message_id ||
        (seed.conversation_id === row.conversation_id &&
          Math.abs(row.seq - findFirstSeq(archive, seed)) <= reach),
    ),
  );
}

export const documentVerbs = (archive: MemoryArchive, terms: Terms) => {
  const readMessageCandidates = (request: CandidateRequest): CandidateDocument[] =>
    toCandidates(
      listBeside(archive, request).map((row) => ({
        ...row,
        id: row.message_id,
        stands_at: findFirstSeq(archive, row),
        words: terms.ofMessage(row).words.length,
      })),
    );
  const listPlaced = (kind: "message" | "summary", scope: RecallScope): PlacedTime[] =>
    kind === "message"
      ? listCurrent(archive, scope).map((row) => ({
          ...toPlaced(archive, row),
          conversationId: row.conversation_id,
        }))
      : listFound(archive, scope).map((row) => ({
          id: row.summary_ref,
          createdAt: row.latest_at,
          conversationId: row.conversation_id,
          position: 0,
        }));
  const listFileMessages = (file_id: string): number[] => {
    const ids = archive.filter("message_parts", { file_id }).map(({ message_id }) => message_id);
    return [...new Set(ids)].sort((a, b) => a - b);
  };
  const byAge = (a: DatedId, b: DatedId): number => b.createdAt - a.createdAt || b.id - a.id;
  return {
    async findWritten({ scope, ranges, limit }) {
      const { role: _, ...anybody } = scope;
      return archive
        .list("messages")
        .filter((row) => isInScope(archive, row, anybody))
        .filter((row) => ranges.some((range) => isAt(row.created_at, range)))
        .map((row) => ({ id: row.message_id, createdAt: row.created_at, position: row.seq }))
        .sort(byPlace)
        .slice(0, limit)
        .map(({ id, createdAt }) => ({ messageId: id, createdAt }));
    },
    async readCandidates(request) {
      if (request.kind === "message") return readMessageCandidates(request);
      const found = listFound(archive, request.scope);
      const asked = listSeeds(
        request,
        found.map((row) => ({ id: row.summary_ref, createdAt: row.latest_at, position: 0 })),
      );
      return found
        .filter(({ summary_ref }) => asked.has(summary_ref))
        .map((row, at) => {
          const { summary_ref: id, conversation_id, latest_at: created_at } = row;
          const words = terms.ofText(row.content).words.length;
          return toSummaryCandidate({ id, conversation_id, created_at, words }, at);
        });
    },
    async readTimes({ kind, ids, scope }) {
      const asked = new Set(ids);
      return listPlaced(kind, scope).filter(({ id }) => asked.has(id));
    },
    async readTexts(messageIds, scope) {
      return messageIds.flatMap((id) => {
        const row = archive.find("messages", id);
        const isShown = row && row.forgotten_at === null && isInScope(archive, row, scope);
        return isShown ? [toText({ ...row, created_at: readAt(archive, row) }, readBytes(archive, row))] : [];
      });
    },
    async listNewest({ kind, scope, within, limit }) {
      const { role: _, ...anybody } = scope;
      return listPlaced(kind, anybody)
        .filter(({ id }) => within === null || isWithin(id, within))
        .map(({ id, createdAt }) => ({ id, createdAt }))
        .sort(byAge)
        .slice(0, limit);
    },
    async readTextsWithin(ranges, scope) {
      return listCurrent(archive, scope)
        .filter(({ message_id }) => isWithin(message_id, ranges))
        .map((row) => ({
          messageId: row.message_id,
          seq: row.seq,
          role: row.role,
          createdAt: row.created_at,
          arrival: Buffer.from(readBytes(archive, row)).toString(),
        }));
    },
    async readFoundSummaries(refs, scope) {
      const found = new Map(listFound(archive, scope).map((row) => [row.summary_ref, row]));
      return refs.flatMap((ref) => found.get(ref) ?? []).map(toFoundSummary);
    },
    async listFiles(scope, fileIds) {
      const isInherited = (fileId: string): boolean =>
        listFileMessages(fileId).some((id) => {
          const row = archive.find("messages", id);
          return row && isPositionInScope(archive, row.conversation_id, row.position, scope);
        });
      const isMine = (row: Row<"large_files">): boolean =>
        scope.inherited === undefined
          ? isPositionInScope(archive, row.conversation_id, 0, scope)
          : isInherited(row.file_id);
      return archive
        .list("large_files")
        .filter(
          (row) => (fileIds?.includes(row.file_id) ?? true) && isAt(row.created_at, scope) && isMine(row),
        )
        .sort((a, b) => b.created_at - a.created_at || (a.file_id < b.file_id ? -1 : 1))
        .map(toLargeFile);
    },
    async listRange(firstId, lastId) {
      const ends = [firstId, lastId].flatMap((id) => archive.find("messages", id) ?? []);
      const [first, last] = ends;
      if (!first || first.conversation_id !== last?.conversation_id) return [];
      const rows = listInOrder(archive, first.conversation_id);
      const indexes = ends.map((end) => rows.findIndex(({ message_id }) => message_id === end.message_id));
      return rows
        .slice(Math.min(...indexes), Math.max(...indexes) + 1)
        .filter(({ revises, forgotten_at }) => revises === null && forgotten_at === null)
        .map(({ message_id }) => message_id);
    },
    async readFileMessages(fileId) {
      return listFileMessages(fileId);
    },
    async listScope(filter) {
      return listChosen(archive, filter).map(({ conversation_id }) => conversation_id);
    },
  } satisfies Partial<Store>;
};
