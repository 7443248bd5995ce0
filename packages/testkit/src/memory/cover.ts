/** Reads the cover of an archive of maps, from either end. `archive/cover-reads.ts` decides what to do with the items. */
import {
  countHeld,
  countPrefix,
  countShown,
  findFloor,
  HeadTaker,
  isHiddenByBoundary,
  isSpoken,
  isUsable,
  keepApart,
  listGaps,
  MAX_SUMMARIES_BEFORE,
  takeNewest,
  toBoundary,
  toCounts,
  toCoverItem,
  toReserve,
} from "@lossless/core/adapter";
import type { Boundary, CoverItem } from "@lossless/core/adapter";
import type { CoverCounters, Row, RunRow, Store } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { findOwned, groupHidden, listInOrder } from "./read.ts";

const compare = (a: Row<"context_items">, b: Row<"context_items">): number =>
  a.start_pos - b.start_pos || a.seq - b.seq;

export const coverVerbs = (archive: MemoryArchive) => {
  const toItem = (row: RunRow): CoverItem => {
    const message = archive.find("messages", row.message_id);
    const parts =
      message === undefined || message.role === "system"
        ? []
        : archive.filter("message_parts", { message_id: row.version_id ?? 0 });
    const tools = parts.flatMap(({ type, tool_call_id: id }) => (id === null ? [] : [[type, id]]));
    return toCoverItem({
      ...row,
      role: message?.role ?? null,
      created_at: row.latest_at,
      tools: JSON.stringify(tools),
    });
  };
  const END = Number.MAX_SAFE_INTEGER;
  /** From one position up to another (exclusive), oldest first. */
  const listItems = (id: number, from = -END, before = END): CoverItem[] => {
    const [first, last] = [
      { startPosition: from, seq: -1 },
      { startPosition: before, seq: -1 },
    ];
    return archive.run(id, first, last).map(toItem);
  };
  const listShown = (conversation_id: number): Row<"context_items">[] =>
    archive.filter("context_items", { conversation_id, hidden: 0 }).sort(compare);
  const listBoundaries = (conversation_id: number): Boundary[] =>
    archive
      .filter("boundaries", { conversation_id, undone_at: null, reason: "new" })
      .sort((a, b) => a.position - b.position)
      .map(toBoundary);
  /** Shown summaries that no boundary hides, newest first. */
  const listSummariesBefore = (id: number, before: number, boundaries: readonly Boundary[]): CoverItem[] =>
    listItems(id, -END, before)
      .filter((item) => item.summaryId !== null && item.hidden === 0 && !isHiddenByBoundary(item, boundaries))
      .reverse();
  const countLeft = (row: Row<"conversations">, boundaries: readonly Boundary[]): CoverCounters => {
    const floor = findFloor(boundaries);
    if (floor === 0) return countShown(row, null);
    const after = listShown(row.conversation_id).filter(({ start_pos }) => start_pos >= floor);
    return countShown(row, {
      after: {
        messages: after.reduce((sum, { messages }) => sum + messages, 0),
        tokens: after.reduce((sum, { tokens }) => sum + tokens, 0),
      },
      retained: listSummariesBefore(row.conversation_id, floor, boundaries),
    });
  };
  const countHeldBy = (root: Row<"summaries">, boundaries: readonly Boundary[]): number | undefined => {
    const items = archive.filter("context_items", { conversation_id: root.conversation_id }).sort(compare);
    const before = items.findLast(({ start_pos }) => start_pos < root.start_pos);
    const within = items.filter(
      ({ start_pos, hidden }) => hidden === 0 && start_pos >= root.start_pos && start_pos <= root.end_pos,
    );
    return countHeld(root, before?.end_pos ?? null, within, boundaries);
  };
  const listAhead = (conversation_id: number): Row<"summaries">[] =>
    archive
      .filter("summaries", { conversation_id })
      .filter(({ state }) => state === "reserve" || state === "prepared")
      .sort((a, b) => a.start_pos - b.start_pos);
  const findUserBefore = (
    id: number,
    oldest: CoverItem,
    boundaries: readonly Boundary[],
  ): CoverItem | null => {
    const item = listItems(id, -END, END).findLast(
      (item) =>
        (item.startPosition - oldest.startPosition || item.seq - oldest.seq) < 0 &&
        item.hidden === 0 &&
        isSpoken(item),
    );
    return item && !isHiddenByBoundary(item, boundaries) ? item : null;
  };
  const listRetained = (id: number, floor: number, boundaries: readonly Boundary[]): CoverItem[] => {
    const summaries = listSummariesBefore(id, floor, boundaries).reverse();
    const inGaps = listGaps(summaries, floor).map(({ after, before }) =>
      listItems(id, after + 1, before).find(({ hidden }) => hidden === 0),
    );
    return keepApart(summaries, inGaps);
  };
  const findInherited = (ids: readonly number[], found: Map<number, number>): void => {
    for (const { parent_id, fork_pos } of ids.flatMap((id) => archive.find("conversations", id) ?? [])) {
      if (parent_id === null || fork_pos === null) continue;
      found.set(parent_id, Math.max(found.get(parent_id) ?? fork_pos, fork_pos));
      findInherited([parent_id], found);
    }
  };
  return {
    async readCoverTail({ conversationId: id, withSummaries = false, ...limits }) {
      const conversation = archive.find("conversations", id);
      if (!conversation) return null;
      const boundaries = listBoundaries(id);
      const floor = findFloor(boundaries);
      const shown = listItems(id, floor).filter(({ hidden }) => hidden === 0);
      const retained = floor > 0 ? listSummariesBefore(id, floor, boundaries) : [];
      const items = takeNewest([...shown.reverse(), ...retained], limits);
      const oldest = items.at(-1);
      return {
        conversationId: id,
        foldRevision: conversation.fold_revision,
        items,
        counters: countLeft(conversation, boundaries),
        boundaries,
        reserve: listAhead(id)
          .filter((row) => isUsable(row, boundaries))
          .map((row) =>
            toReserve(
              row,
              conversation.epoch_seq,
              row.is_root === 1 ? countHeldBy(row, boundaries) : undefined,
            ),
          ),
        summariesBefore: withSummaries
          ? listSummariesBefore(id, oldest?.startPosition ?? END, boundaries).slice(0, MAX_SUMMARIES_BEFORE)
          : [],
        newestUser: oldest ? findUserBefore(id, oldest, boundaries) : null,
      };
    },
    async readCoverHead({ conversationId: id, maxMessageTokens }) {
      const boundaries = listBoundaries(id);
      const floor = findFloor(boundaries);
      const retained = floor > 0 ? listRetained(id, floor, boundaries) : [];
      const stored = listAhead(id).filter(({ stale, depth }) => stale === 0 && depth === 0);
      const head = new HeadTaker(retained, stored, maxMessageTokens);
      const isWhole = listItems(id, floor).every((item) => head.take(item));
      const summaries = listShown(id).filter(({ summary_id }) => summary_id !== null);
      return head.finish(isWhole, countPrefix(summaries, boundaries));
    },
    async findEnds({ conversationId, stretches }) {
      const isWithin = (position: number): boolean =>
        stretches.some(
          ({ startPosition, endPosition }) => position >= startPosition && position <= endPosition,
        );
      const ids = listInOrder(archive, conversationId)
        .filter(
          ({ position, revises, hidden_now }) => revises === null && hidden_now === 0 && isWithin(position),
        )
        .map(({ message_id }) => message_id);
      return { first: ids[0] ?? null, last: ids.at(-1) ?? null };
    },
    async readSourceItems(summaryIds) {
      const isRetired = ({ summary_id }: RunRow): boolean =>
        archive.find("summaries", summary_id)?.state === "retired";
      return new Map(
        summaryIds.map((id) => {
          const rows = archive.currentSources(id);
          rows.sort((a, b) => a.start_pos - b.start_pos || a.seq - b.seq);
          return [id, rows.some(isRetired) ? [] : rows.map(toItem)];
        }),
      );
    },
    async countMessages(conversationIds, owner) {
      return conversationIds.flatMap((id) => {
        const row = findOwned(archive, id, owner);
        if (!row) return [];
        const messages = archive.filter("messages", { conversation_id: id });
        const firsts = messages.filter(({ revises }) => revises === null);
        return [
          toCounts({
            conversationId: id,
            rows: row.message_count,
            revisions: messages.length - firsts.length,
            shownMessages: countLeft(row, listBoundaries(id)).shownMessages,
            hidden: groupHidden(firsts),
          }),
        ];
      });
    },
  } satisfies Partial<Store>;
};
