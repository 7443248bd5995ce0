/**
 * Reads one conversation for an export that people or other programs read: its messages in order, newest versions only, with the bytes and the
 * view of each, and its summaries with their sources. Forgotten messages are left out; hidden ones are marked.
 */

import { setImmediate } from "node:timers/promises";

import type { MessageRow, MessageView, StoredPart } from "@lossless/core";
import { viewMessage } from "@lossless/core/formats";
import type { MovedSummary, Snapshot } from "@lossless/core/ports";

const PAGE = 200;

export interface ReadMessage {
  /** The first version, which links and places refer to. */
  readonly row: MessageRow;
  readonly bytes: Uint8Array;
  readonly view: MessageView;
  readonly parts: readonly StoredPart[];
}

/** Messages by position, one at a time. */
export async function* readMessages(store: Snapshot, conversationId: number): AsyncGenerator<ReadMessage> {
  let after: string | null = null;
  do {
    const page = await store.listMessages({
      conversationId,
      after,
      limit: PAGE,
      order: "position",
      direction: "oldest",
    });
    for (const row of page.items) {
      if (row.revises !== null || row.forgottenAt !== null) continue;
      const body = await store.readMessage(row.newest ?? row.messageId);
      if (body !== null) yield { row, bytes: body.bytes, view: viewMessage(body.bytes), parts: body.parts };
    }
    after = page.next;
    // The store works in this thread: without a pause nobody could cancel.
    await setImmediate();
  } while (after !== null);
}

/** Sources come before the summaries made from them. */
export async function* readSummaries(store: Snapshot, conversationId: number): AsyncGenerator<MovedSummary> {
  for (let offset = 0; ; offset += PAGE) {
    const page = await store.readMovedSummaries(conversationId, offset, PAGE);
    yield* page;
    if (page.length < PAGE) return;
  }
}

/** The seqs of all messages under a summary. */
export function listSeqsBelow(
  summaryId: string,
  sourcesOf: ReadonlyMap<string, readonly (number | string)[]>,
): number[] {
  const seqs: number[] = [];
  const waiting = [summaryId];
  const seen = new Set<string>();
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (seen.has(id)) continue;
    seen.add(id);
    for (const source of sourcesOf.get(id) ?? []) {
      if (typeof source === "number") seqs.push(source);
      else waiting.push(source);
    }
  }
  return seqs;
}
