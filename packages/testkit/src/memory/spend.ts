/** What models cost, in an archive of maps: each call, and sums of them. */
import { addSpend, UNCAPPED_PURPOSE } from "@lossless/core/adapter";
import type { Row, SpendGroup, Store } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { change } from "./change.ts";

const SPEND_KEYS = {
  day: ({ at }: Row<"spend">, offset: number) => new Date(at + offset).toISOString().slice(0, 10),
  conversation: ({ conversation_id: id }: Row<"spend">) => (id === null ? "-" : String(id)),
  model: ({ provider, model }: Row<"spend">) => `${provider}/${model}`,
  purpose: ({ purpose }: Row<"spend">) => purpose,
  all: () => "all",
} as const;

const toGroup = (key: string, rows: readonly Row<"spend">[]): SpendGroup => ({
  key,
  calls: rows.length,
  inputTokens: rows.reduce((sum, row) => sum + row.input_tokens, 0),
  outputTokens: rows.reduce((sum, row) => sum + row.output_tokens, 0),
});

export const spendVerbs = (archive: MemoryArchive) =>
  ({
    async recordSpend(record) {
      change(archive, (changes) => addSpend(changes, archive.ids("spend", 1), record));
    },
    async sumSpend({ since, by, timeZoneOffsetMs = 0 }) {
      const rows = archive.list("spend").filter(({ at }) => at >= since);
      const groups = Map.groupBy(rows, (row) => SPEND_KEYS[by](row, timeZoneOffsetMs));
      return Array.from(groups, ([key, own]) => toGroup(key, own)).sort((a, b) => (a.key < b.key ? -1 : 1));
    },
    async countSpendCalls(since) {
      const isCounted = ({ at, purpose }: Row<"spend">): boolean =>
        at >= since && purpose !== UNCAPPED_PURPOSE;
      return archive.list("spend").filter(isCounted).length;
    },
  }) satisfies Partial<Store>;
