/** Reading the runs that summaries are made from, with their texts. */
import { must, toRunItem, toSummary } from "@lossless/core/adapter";
import type { StoredBody } from "@lossless/core/adapter";
import type { Blobs, ItemPoint, Row, RunItem, RunRow } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { PlanReads } from "./plan-reads.ts";
import { readParts, restoreBytes } from "./read.ts";

const MESSAGE = "SELECT message_id, body, encoding, created_at FROM messages WHERE message_id = ?";
const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";

export function readRun(
  { connection, files }: StoreContext,
  conversationId: number,
  keys: readonly ItemPoint[],
  withTexts = true,
): RunItem[] {
  const first = keys[0];
  const last = keys.at(-1);
  if (!first || !last) return [];
  return connection.read(() => {
    const rows = new PlanReads(connection).run(conversationId, first, last);
    return toRunItems(connection, files, rows, withTexts);
  });
}

export const readSources = ({ connection, files }: StoreContext, summaryId: string): RunItem[] =>
  connection.read(() => toRunItems(connection, files, new PlanReads(connection).currentSources(summaryId)));

export function toRunItems(
  connection: Connection,
  files: Blobs,
  rows: readonly RunRow[],
  withTexts = true,
): RunItem[] {
  return rows.map((row) =>
    toRunItem(row, {
      bytes:
        row.version_id === null || row.hidden !== 0 || !withTexts
          ? null
          : readBytes(connection, files, row.version_id),
      summary:
        row.summary_id === null
          ? null
          : toSummary(must(connection.get<Row<"summaries">>(SUMMARY, row.summary_id), "a summary")),
    }),
  );
}

function readBytes(connection: Connection, files: Blobs, messageId: number): Uint8Array | null {
  const row = connection.get<StoredBody>(MESSAGE, messageId);
  return row ? restoreBytes(row, readParts(connection, messageId), (path) => files.read(path)) : null;
}
