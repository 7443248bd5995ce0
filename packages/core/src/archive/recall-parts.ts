/**
 * Which parts of messages are calls or results of our own tools. A result without a name belongs to the nearest earlier call with the same
 * id in its conversation.
 */
import { POSITION_STEP } from "../model/message.ts";
import { isRecallTool } from "../model/recall-tools.ts";
import { MAX_INTERVENING_MESSAGES } from "../model/tool-groups.ts";
import type { RecallParts } from "../store/recall.ts";
import { groupBy, readRows } from "./pages.ts";
import type { Asking } from "./plan.ts";
import type { Row } from "./tables.ts";

/** A group has at most this many messages that answer nothing between a call and its result, and about as many that answer something. */
export const FARTHEST_CALL = 2 * MAX_INTERVENING_MESSAGES * POSITION_STEP;

const PART_COLUMNS = ["message_id", "ordinal", "type", "tool_call_id", "tool_name"] as const;

type ToolPart = Pick<Row<"message_parts">, (typeof PART_COLUMNS)[number]>;
type Placed = Pick<Row<"messages">, "message_id" | "conversation_id" | "position">;

/** A call, and the place of its message. */
interface PlacedCall extends Placed, Pick<ToolPart, "tool_call_id" | "tool_name"> {}

export function* planRecallParts(messageIds: readonly number[]): Asking<RecallParts[]> {
  const read = yield* readRows("message_parts", PART_COLUMNS, {
    column: "message_id",
    keys: messageIds,
    order: ["message_id", "ordinal"],
  });
  const parts = read.filter(({ type }) => type !== "payload");
  const asked = parts.filter(isNameless).flatMap((part) => part.tool_call_id ?? []);
  const calls = yield* readRows("message_parts", PART_COLUMNS, {
    column: "tool_call_id",
    keys: [...new Set(asked)],
    where: { type: "tool_call" },
  });
  const positions = yield* readPositions([...parts, ...calls]);
  const placed = calls.flatMap((call) => {
    const at = positions.get(call.message_id);
    return at ? [{ ...call, ...at }] : [];
  });
  return Array.from(groupBy(parts, "message_id"), ([messageId, own]) => {
    const at = positions.get(messageId);
    const ordinals = new Set(
      own.filter((part) => isRecallPart(part, at, placed)).map(({ ordinal }) => ordinal),
    );
    return { messageId, ordinals, isAll: ordinals.size === own.length };
  }).filter(({ ordinals }) => ordinals.size > 0);
}

/** A part whose name, or that of the call it answers, looks like one of ours. */
export interface FoundPart {
  readonly id: number;
  readonly ordinal: number;
  readonly name: string;
  /** How many parts its message has, except payloads. */
  readonly parts: number;
}

/** For a database that finds such parts by an index: the rule decides which of them are. */
export function gatherRecallParts(rows: readonly FoundPart[]): RecallParts[] {
  const found = new Map<number, { ordinals: Set<number>; parts: number }>();
  for (const { id, ordinal, name, parts } of rows) {
    if (!isRecallTool(name)) continue;
    const known = found.get(id);
    if (known) known.ordinals.add(ordinal);
    else found.set(id, { ordinals: new Set([ordinal]), parts });
  }
  return Array.from(found, ([messageId, { ordinals, parts }]) => ({
    messageId,
    ordinals,
    isAll: ordinals.size === parts,
  }));
}

const isNameless = ({ type, tool_name }: ToolPart): boolean => type === "tool_result" && tool_name === null;

function* readPositions(parts: readonly ToolPart[]): Asking<ReadonlyMap<number, Placed>> {
  const keys = [...new Set(parts.map(({ message_id }) => message_id))];
  const columns = ["message_id", "conversation_id", "position"] as const;
  const rows = yield* readRows("messages", columns, { column: "message_id", keys });
  return new Map(rows.map((row) => [row.message_id, row]));
}

function isRecallPart(part: ToolPart, at: Placed | undefined, calls: readonly PlacedCall[]): boolean {
  const name = isNameless(part) && at ? nameCall(part, at, calls) : part.tool_name;
  return name !== null && isRecallTool(name);
}

/** The name of the nearest call that the result can answer. */
function nameCall(
  { tool_call_id: id }: ToolPart,
  { conversation_id, position }: Placed,
  calls: readonly PlacedCall[],
): string | null {
  const before = calls.filter(
    (call) =>
      call.tool_call_id === id &&
      call.conversation_id === conversation_id &&
      call.position <= position &&
      call.position >= position - FARTHEST_CALL,
  );
  return before.sort((a, b) => b.position - a.position)[0]?.tool_name ?? null;
}
