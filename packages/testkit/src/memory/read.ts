/** Reading conversations, messages, files and the state of an archive of maps. Every read that serves a caller is filtered by its owner. */
import {
  countReasons,
  decodeBody,
  makePage,
  placePage,
  parseCursor,
  putTogether,
  spliceRanges,
  toConversation,
  toCutPayloads,
  toLargeFile,
  toMessage,
  toMessageOutline,
  toPart,
  toReference,
} from "@lossless/core/adapter";
import type { CutPart, MessageColumns } from "@lossless/core/adapter";
import type {
  ConversationFilter,
  ConversationOrder,
  CutPayload,
  ListConversations,
  Row,
  ShownMessage,
  Store,
} from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";

type MessageRow = Row<"messages">;

/** Undefined for a conversation of another owner. */
export function findOwned(
  archive: MemoryArchive,
  conversationId: number | undefined,
  owner: string | undefined,
): Row<"conversations"> | undefined {
  const row = archive.find("conversations", conversationId ?? null);
  return row && (owner === undefined || row.owner === owner) ? row : undefined;
}

/** The newest first. */
export const listChosen = (
  archive: MemoryArchive,
  { owner, sessionKey, project, agent, exceptSession }: ConversationFilter,
): Row<"conversations">[] =>
  archive
    .list("conversations")
    .filter(
      (row) => (owner ?? row.owner) === row.owner && (sessionKey ?? row.session_key) === row.session_key,
    )
    .filter((row) => (project ?? row.project) === row.project && (agent ?? row.agent) === row.agent)
    .filter((row) => row.session_id !== exceptSession)
    .sort((a, b) => b.conversation_id - a.conversation_id);

/** The messages of a conversation in its order. */
export const listInOrder = (archive: MemoryArchive, conversationId: number): MessageRow[] =>
  archive
    .filter("messages", { conversation_id: conversationId })
    .sort((a, b) => a.position - b.position || a.seq - b.seq);

const listParts = (archive: MemoryArchive, messageId: number): Row<"message_parts">[] =>
  archive.filter("message_parts", { message_id: messageId }).sort((a, b) => a.ordinal - b.ordinal);

const listCuts = (archive: MemoryArchive, messageId: number): CutPart[] =>
  listParts(archive, messageId)
    .filter(({ type }) => type === "payload")
    .map((part) => ({ ...part, file: archive.find("large_files", part.file_id) ?? null }));

/** The payloads cut out of a message, according to its references. */
export const readCutPayloads = (archive: MemoryArchive, messageId: number): CutPayload[] =>
  toCutPayloads(listCuts(archive, messageId));

/** The arrival bytes. */
export function readBytes(archive: MemoryArchive, message: MessageRow): Uint8Array {
  const cuts = listCuts(archive, message.message_id);
  const contents = cuts.map(({ file }) => file && archive.content(file.storage_path));
  return putTogether(message, cuts, contents);
}

/** The displayed time: a line without one has that of the next line with one, at the end that of the last before. */
export function readAt(archive: MemoryArchive, message: MessageRow): number {
  if (message.dated === 1) return message.created_at;
  const rows = listInOrder(archive, message.conversation_id);
  const at = rows.findIndex((row) => row.message_id === message.message_id);
  const isDated = (row: MessageRow): boolean => row.dated === 1;
  const near = rows.slice(at).find(isDated) ?? rows.slice(0, at).findLast(isDated);
  return near?.created_at ?? message.created_at;
}

/** Rows without a known time come last. */
const compareTimes = (a: number | null, b: number | null): number =>
  Number(a === null) - Number(b === null) || (a ?? 0) - (b ?? 0);

/** Whether a list shows it. */
function isListed(row: Row<"conversations">, request: ListConversations): boolean {
  const { model = row.model, since = -Infinity, before = Infinity, unlisted = true, tag } = request;
  const tags = JSON.parse(row.tags ?? "[]") as string[];
  const isInTime =
    (request.since === undefined || (row.last_at ?? -Infinity) >= since) &&
    (request.before === undefined || (row.last_at ?? Infinity) < before);
  return (
    row.model === model &&
    isInTime &&
    (unlisted || row.unlisted_at === null) &&
    (tag === undefined || tags.includes(tag))
  );
}

/** Rows are given newest number first. */
function sortListed(rows: Row<"conversations">[], order: ConversationOrder): Row<"conversations">[] {
  if (order === "id") return rows;
  const byTime = (a: Row<"conversations">, b: Row<"conversations">): number =>
    (a.last_at === null || b.last_at === null ? compareTimes(a.last_at, b.last_at) : b.last_at - a.last_at) ||
    b.conversation_id - a.conversation_id;
  const byText = (a: string | null, b: string | null): number =>
    Number(a === null) - Number(b === null) || Number((a ?? "") > (b ?? "")) - Number((a ?? "") < (b ?? ""));
  return rows.toSorted((a, b) => {
    const pins = Number(a.pinned_at === null) - Number(b.pinned_at === null);
    if (pins !== 0 || order === "newest") return pins || byTime(a, b);
    if (order === "oldest")
      return compareTimes(a.last_at, b.last_at) || a.conversation_id - b.conversation_id;
    return byText(a[order], b[order]) || byTime(a, b);
  });
}

export const nameSession = (archive: MemoryArchive, message: MessageRow): MessageColumns => ({
  ...message,
  created_at: readAt(archive, message),
  session_id: archive.find("sessions", message.session_ref)?.session_id ?? "",
});

function findSession(
  archive: MemoryArchive,
  owner: string | null,
  session_id: string,
): Row<"sessions"> | undefined {
  return archive.filter("sessions", owner === null ? { session_id } : { session_id, owner })[0];
}

function toShown(archive: MemoryArchive, first: MessageRow): ShownMessage {
  const version = archive.find("messages", first.newest) ?? first;
  const references = listCuts(archive, version.message_id).flatMap((part) => {
    const file = archive.find("large_files", part.file_id);
    return file ? [toReference({ ...part, ...file })] : [];
  });
  return {
    messageId: first.message_id,
    seq: first.seq,
    createdAt: first.created_at,
    bytes: spliceRanges(decodeBody(version, version.arrival_bytes), references),
    tokens: references.length === 0 ? version.tokens : null,
  };
}

/** The number of rows for each set of hiding reasons. */
export function groupHidden(rows: readonly MessageRow[]): { hidden: number; n: number }[] {
  const hidden = rows.filter(({ hidden_now }) => hidden_now !== 0);
  return Array.from(
    Map.groupBy(hidden, ({ hidden_now }) => hidden_now),
    ([reasons, own]) => ({ hidden: reasons, n: own.length }),
  );
}

const sumOf = <T>(rows: readonly T[], of: (row: T) => number): number =>
  rows.reduce((sum, row) => sum + of(row), 0);

const latest = (times: readonly (number | null)[]): number | null =>
  times.reduce<number | null>((last, time) => (time === null ? last : Math.max(last ?? time, time)), null);

export const readVerbs = (archive: MemoryArchive) =>
  ({
    async readSession(owner, sessionId) {
      const session = findSession(archive, owner, sessionId);
      if (!session) return null;
      const [placement] = archive
        .filter("placements", { session_ref: session.session_ref })
        .sort((a, b) => b.start_position - a.start_position);
      return {
        cursor: session.cursor,
        conversationId: placement?.conversation_id ?? null,
        lastEventId: session.last_event,
        baseTokens: session.base_tokens,
      };
    },
    async knownEvents(owner, sessionId, eventIds) {
      const session_ref = findSession(archive, owner, sessionId)?.session_ref ?? 0;
      const known = new Set(archive.filter("event_ids", { session_ref }).map(({ event_id }) => event_id));
      return eventIds.filter((id) => known.has(id));
    },
    async findSessions(owner, event_id) {
      const refs = new Set(archive.filter("event_ids", { event_id }).map(({ session_ref }) => session_ref));
      return archive
        .filter("sessions", { owner })
        .filter(({ session_ref }) => refs.has(session_ref))
        .map(({ session_id }) => session_id);
    },
    async listConversations(request) {
      const { before, offset, cursorOf } = placePage(request);
      const rows = sortListed(
        listChosen(archive, request).filter((row) => row.conversation_id < before && isListed(row, request)),
        request.order ?? "id",
      );
      return makePage(rows.slice(offset).map(toConversation), request.limit, cursorOf);
    },
    async listOpenings(conversationIds, limit) {
      return conversationIds.flatMap((conversationId) =>
        listInOrder(archive, conversationId)
          .slice(0, 200)
          .filter((row) => row.role === "user" && row.hidden_now === 0 && row.revises === null)
          .slice(0, limit)
          .map((row) => ({ conversationId, messageId: row.message_id })),
      );
    },
    async readConversation(conversationId, owner) {
      const row = findOwned(archive, conversationId, owner);
      return row ? toConversation(row) : null;
    },
    async listMessages({ conversationId, after, limit, order, direction, owner }) {
      if (!findOwned(archive, conversationId, owner)) return { items: [], next: null };
      const isByPosition = order === "position";
      const sign = direction === "newest" ? -1 : 1;
      const [position = 0, seq = 0] =
        after === null ? [-sign * Infinity, 0] : parseCursor(after, isByPosition ? 2 : 1);
      const compare = (row: MessageRow): number =>
        isByPosition ? row.position - position || row.seq - seq : row.seq - position;
      const rows = listInOrder(archive, conversationId);
      if (!isByPosition) rows.sort((a, b) => a.seq - b.seq);
      const page = (sign < 0 ? rows.toReversed() : rows).filter((row) => sign * compare(row) > 0);
      const messages = page.map((row) => toMessage(nameSession(archive, row)));
      return makePage(messages, limit, (row) => (isByPosition ? `${row.position}.${row.seq}` : `${row.seq}`));
    },
    async readOutline({ conversationId, owner, after, limit }) {
      const [position, seq] = after ?? [-1, -1];
      const rows = findOwned(archive, conversationId, owner) ? listInOrder(archive, conversationId) : [];
      return toMessageOutline(
        rows
          .filter((row) => row.position > position || (row.position === position && row.seq > seq))
          .slice(0, limit)
          .map((row) => {
            const isCounted = row.hidden_now === 0 && row.revises === null;
            const tokens = isCounted ? row.tokens : 0;
            return [row.message_id, row.seq, row.position, tokens, row.created_at, row.role, row.dated];
          }),
      );
    },
    async listMessageIds({ conversationId, at, limit, owner }) {
      if (!findOwned(archive, conversationId, owner)) return [];
      const rows = listInOrder(archive, conversationId).slice(at, at + limit);
      return rows.map(({ message_id }) => message_id);
    },
    async locateMessage(messageId, owner) {
      const conversationId = archive.find("messages", messageId)?.conversation_id ?? 0;
      if (!findOwned(archive, conversationId, owner)) return null;
      const rows = listInOrder(archive, conversationId);
      return { conversationId, number: rows.findIndex(({ message_id }) => message_id === messageId) };
    },
    async readMessage(messageId, owner) {
      const message = archive.find("messages", messageId);
      if (!message || !findOwned(archive, message.conversation_id, owner)) return null;
      return {
        row: toMessage(nameSession(archive, message)),
        parts: listParts(archive, messageId).map(toPart),
        bytes: readBytes(archive, message),
      };
    },
    async readShown(messageIds) {
      return messageIds.flatMap((id) => {
        const first = archive.find("messages", id);
        return first ? [toShown(archive, first)] : [];
      });
    },
    async readRevisions(messageId, owner) {
      const rows = [
        ...archive.filter("messages", { message_id: messageId }),
        ...archive.filter("messages", { revises: messageId }),
      ];
      return rows
        .filter((row) => findOwned(archive, row.conversation_id, owner))
        .sort((a, b) => a.seq - b.seq)
        .map((row) => toMessage(nameSession(archive, row)));
    },
    async readFile(fileId, owner) {
      const file = archive.find("large_files", fileId);
      return file && findOwned(archive, file.conversation_id, owner) ? toLargeFile(file) : null;
    },
    async readFileContent(fileId, owner) {
      const file = archive.find("large_files", fileId);
      return file && findOwned(archive, file.conversation_id, owner)
        ? archive.content(file.storage_path)
        : null;
    },
    async status(owner) {
      const conversations = archive.list("conversations").filter((row) => (owner ?? row.owner) === row.owner);
      const ids = new Set(conversations.map((row) => row.conversation_id));
      const messages = archive.list("messages").filter((row) => ids.has(row.conversation_id));
      const files = archive.list("large_files").filter((row) => ids.has(row.conversation_id));
      return {
        databasePath: "memory",
        databaseBytes: 0,
        filesBytes: sumOf(files, (row) => row.byte_size),
        arrivalBytes: sumOf(conversations, (row) => row.arrival_bytes),
        schemaVersion: 0,
        conversations: conversations.length,
        activeConversations: conversations.filter((row) => row.archived_at === null).length,
        messages: sumOf(conversations, (row) => row.message_count),
        hidden: countReasons(groupHidden(messages)),
        revisions: messages.filter((row) => row.revises !== null).length,
        summaries: sumOf(conversations, (row) => row.summary_count),
        largeFiles: files.length,
        tokens: sumOf(conversations, (row) => row.shown_tokens),
        lastStoredAt: latest(conversations.map((row) => row.stored_at)),
        lastMessageAt: latest(conversations.map((row) => row.last_at)),
        index: { kind: "ready", messages: archive.count("messages", { forgotten_at: null }), pending: 0 },
      };
    },
    /** Nothing is stored in pages: only arrival bytes and files can be counted. */
    async measureStorage() {
      const handedInBytes = sumOf(archive.list("conversations"), (row) => row.arrival_bytes);
      const toShare = (bytes: number) => ({
        bytes,
        share: handedInBytes === 0 ? null : bytes / handedInBytes,
      });
      const messages = sumOf(archive.list("messages"), ({ body }) => body.byteLength);
      const textsOf = (kind: "leaf" | "condensed"): number =>
        sumOf(archive.filter("summaries", { kind }), ({ content }) => Buffer.byteLength(content));
      const [leaves, condensed] = [textsOf("leaf"), textsOf("condensed")];
      const largeFiles = sumOf(archive.list("large_files"), (row) => row.byte_size);
      return {
        handedInBytes,
        messages: toShare(messages),
        leaves: toShare(leaves),
        condensed: toShare(condensed),
        indexes: toShare(0),
        other: toShare(0),
        largeFiles: toShare(largeFiles),
        all: toShare(messages + leaves + condensed + largeFiles),
      };
    },
  }) satisfies Partial<Store>;
