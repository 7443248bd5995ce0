/** Reading the summary graph of an archive of maps: summaries with their neighbours, and the runs they are made from. */
import {
  makePage,
  must,
  parseCursor,
  planNextStale,
  toRunItem,
  toSummary,
  toSummaryOutline,
} from "@lossless/core/adapter";
import type { Row, RunItem, RunRow, Store } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { findOwned, readBytes } from "./read.ts";

type SummaryRecord = Row<"summaries">;

/** By their start, the lowest depth first. */
const listInOrder = (archive: MemoryArchive, conversationId: number, owner?: string): SummaryRecord[] =>
  (findOwned(archive, conversationId, owner)
    ? archive.filter("summaries", { conversation_id: conversationId })
    : []
  ).sort((a, b) => compareSpans(a, [b.start_pos, b.depth, b.summary_id]));

const compareSpans = (row: SummaryRecord, [position, depth, id]: readonly [number, number, string]): number =>
  row.start_pos - position || row.depth - depth || (row.summary_id === id ? 0 : row.summary_id < id ? -1 : 1);

function toRunItems(archive: MemoryArchive, rows: readonly RunRow[], withTexts = true): RunItem[] {
  return rows.map((row) => {
    const summary = archive.find("summaries", row.summary_id);
    const version = row.hidden === 0 && withTexts ? archive.find("messages", row.version_id) : undefined;
    return toRunItem(row, {
      bytes: version ? readBytes(archive, version) : null,
      summary: summary ? toSummary(summary) : null,
    });
  });
}

const isAscending = (a: string, b: string): number => (a < b ? -1 : 1);

export const graphVerbs = (archive: MemoryArchive) => {
  const listSources = (summaryId: string): string[] =>
    archive.sources([summaryId]).flatMap(({ source_id }) => source_id ?? []);
  return {
    async readRun(conversationId, keys, withTexts) {
      const [first, last] = [keys[0], keys.at(-1)];
      return first && last ? toRunItems(archive, archive.run(conversationId, first, last), withTexts) : [];
    },
    async readSources(summaryId) {
      return toRunItems(archive, archive.currentSources(summaryId));
    },
    async hasStale(conversationId) {
      return archive.staleSummaries(conversationId).length > 0;
    },
    async readStale(conversationId) {
      const next = archive.read(() => planNextStale(conversationId));
      if (next === null) return null;
      const summary = toSummary(must(archive.find("summaries", next.summaryId), "a stale summary"));
      return { summary, run: toRunItems(archive, next.sources) };
    },
    async readSummary(summaryId, owner) {
      const row = archive.find("summaries", summaryId);
      if (!row || !findOwned(archive, row.conversation_id, owner)) return null;
      const messageIds = archive.sources([summaryId]).flatMap(({ message_id }) => message_id ?? []);
      const files = archive.list("message_parts").filter((part) => messageIds.includes(part.message_id));
      return {
        ...toSummary(row),
        sourceIds: listSources(summaryId),
        messageIds,
        derivedIds: archive
          .derivedFrom(summaryId)
          .map((link) => link.summary_id)
          .sort(isAscending),
        fileIds: [...new Set(files.flatMap(({ file_id }) => file_id ?? []))].sort(isAscending),
      };
    },
    async readShownSummaries(summaryIds) {
      return summaryIds.flatMap((id) => {
        const row = archive.find("summaries", id);
        return row ? [{ ...toSummary(row), sourceIds: listSources(id) }] : [];
      });
    },
    async listSummaries({ conversationId, after, limit, owner, state }) {
      const [point = "", id = ""] = after === null ? ["-1.-1"] : after.split("@");
      const [position = 0, depth = 0] = parseCursor(point, 2);
      const rows = listInOrder(archive, conversationId, owner)
        .filter((row) => (state ?? row.state) === row.state && compareSpans(row, [position, depth, id]) > 0)
        .map(toSummary);
      return makePage(rows, limit, (row) => `${row.startPosition}.${row.depth}@${row.summaryId}`);
    },
    async readGraph({ conversationId, owner }) {
      const rows = listInOrder(archive, conversationId, owner);
      const ids = rows.map(({ summary_id }) => summary_id).sort(isAscending);
      return {
        nodes: rows.map(toSummaryOutline),
        edges: ids.flatMap((id) => listSources(id).map((source): [string, string] => [id, source])),
      };
    },
    async countSummaries(conversationId) {
      const rows = archive.filter("summaries", { conversation_id: conversationId });
      const published = rows.filter(({ state }) => state === "cover");
      return {
        cover: published.length,
        reserve: rows.filter(({ state }) => state === "reserve").length,
        prepared: rows.filter(({ state }) => state === "prepared").length,
        stale: published.filter(({ stale }) => stale === 1).length,
        extractive: published.filter(({ level }) => level === "extractive").length,
      };
    },
    async listSummariesOf(message_id) {
      return archive
        .filter("summary_messages", { message_id })
        .flatMap(({ summary_id }) => archive.find("summaries", summary_id) ?? [])
        .filter(({ state }) => state === "cover" || state === "reserve")
        .sort((a, b) => a.depth - b.depth || isAscending(a.summary_id, b.summary_id))
        .map(({ summary_id }) => summary_id);
    },
  } satisfies Partial<Store>;
};
