/**
 * Numbers for people: what a conversation contains, and what the bytes of an archive are used for. Adapters count rows; this file
 * interprets them.
 */
import type { MessageCounts, StorageShares } from "../store/rows.ts";
import { countReasons } from "./nouns.ts";

export function toCounts(counted: {
  readonly conversationId: number;
  /** Of messages, revisions included. */
  readonly rows: number;
  readonly revisions: number;
  readonly shownMessages: number;
  /** How many are hidden for each set of reasons, without revisions. */
  readonly hidden: readonly { readonly hidden: number; readonly n: number }[];
}): MessageCounts {
  const { conversationId, revisions, shownMessages } = counted;
  const messages = counted.rows - revisions;
  const hiddenMessages = counted.hidden.reduce((sum, { n }) => sum + n, 0);
  return {
    conversationId,
    messages,
    revisions,
    shownMessages,
    hiddenMessages,
    hidden: countReasons(counted.hidden),
    beforeBoundary: Math.max(0, messages - hiddenMessages - shownMessages),
  };
}

/** Bytes of the database by the contents of its tables and indexes. */
export type StorageKinds = Record<"messages" | "summaries" | "indexes" | "other", number>;

export function shareStorage({
  handedIn,
  kinds,
  texts,
  largeFiles,
}: {
  readonly handedIn: number;
  readonly kinds: Readonly<StorageKinds>;
  /** Bytes of the texts of summaries, by kind: they divide the bytes of the table. */
  readonly texts: readonly { readonly kind: string; readonly bytes: number }[];
  readonly largeFiles: number;
}): StorageShares {
  const written = texts.reduce((sum, { bytes }) => sum + bytes, 0);
  const leafText = texts.find(({ kind }) => kind === "leaf")?.bytes ?? 0;
  const leaves = written === 0 ? 0 : Math.round((kinds.summaries * leafText) / written);
  const share = (bytes: number): { bytes: number; share: number | null } => ({
    bytes,
    share: handedIn === 0 ? null : bytes / handedIn,
  });
  return {
    handedInBytes: handedIn,
    messages: share(kinds.messages),
    leaves: share(leaves),
    condensed: share(kinds.summaries - leaves),
    indexes: share(kinds.indexes),
    other: share(kinds.other),
    largeFiles: share(largeFiles),
    all: share(kinds.messages + kinds.summaries + kinds.indexes + kinds.other + largeFiles),
  };
}
