/** Labels of a conversation: a person's name for it, and how lists show it. They prove nothing, so they are not in the chain. */
import { updateLabels } from "../model/labels.ts";
import type { Labels } from "../model/labels.ts";
import type { LabelRequest } from "../store/rows.ts";
import { Changes } from "./changes.ts";
import { readRows } from "./pages.ts";
import { read } from "./plan.ts";
import type { Plan } from "./plan.ts";
import type { Row } from "./tables.ts";

export type LabelColumns = Pick<Row<"conversations">, "name" | "tags" | "pinned_at" | "unlisted_at">;

export const LABEL_COLUMNS = ["name", "tags", "pinned_at", "unlisted_at"] as const;

export const toLabels = (row: LabelColumns): Labels => ({
  name: row.name,
  tags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
  pinnedAt: row.pinned_at,
  unlistedAt: row.unlisted_at,
});

export const fromLabels = ({ name, tags, pinnedAt, unlistedAt }: Labels): LabelColumns => ({
  name,
  tags: tags.length === 0 ? null : JSON.stringify(tags),
  pinned_at: pinnedAt,
  unlisted_at: unlistedAt,
});

/** Null if the caller cannot see such a conversation. */
export function* planLabel({ conversationId, owner, update, now }: LabelRequest): Plan<Labels | null> {
  const changes = new Changes();
  yield* read.lockHeads([conversationId]);
  const columns = ["conversation_id", "owner", ...LABEL_COLUMNS] as const;
  const by = { column: "conversation_id", keys: [conversationId] } as const;
  const [row] = yield* readRows("conversations", columns, by);
  if (!row || (owner !== undefined && row.owner !== owner)) return changes.done(null);
  const labels = updateLabels(toLabels(row), update, now);
  changes.update("conversations", { conversation_id: conversationId }, { ...fromLabels(labels) });
  return changes.done(labels);
}
