/**
 * The input of a summariser: messages or summaries in order, oldest first, already cut to one run. Times are ms UTC; `text` is the readable
 * text of the whole item, `parts` the same by block if the item is a message.
 */
import type { PartType } from "../model/message.ts";

export interface SourcePart {
  readonly type: PartType;
  readonly text: string;
  readonly toolName?: string;
  /** Of a call and of its result, where the format has one. */
  readonly toolCallId?: string;
  readonly isError?: boolean;
}

export interface SourceLine {
  readonly id: string;
  readonly kind: "message" | "summary";
  readonly role: string;
  readonly speaker?: string;
  readonly at: number | null;
  readonly text: string;
  readonly parts?: readonly SourcePart[];
}

/** Parts of a source; an item without parts is one block whose type follows from its role. */
export function partsOf(source: SourceLine): readonly SourcePart[] {
  if (source.parts !== undefined) return source.parts;
  const isResult = source.kind === "message" && (source.role === "tool" || source.role === "toolResult");
  return [{ type: isResult ? "tool_result" : "text", text: source.text }];
}

export function speakerOf(source: SourceLine): string {
  return source.speaker ?? source.role;
}
