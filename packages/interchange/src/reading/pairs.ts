/** What is read together and what is left out: calls with their results, the host's own lines, empty parts. Pure; also runs in a browser. */
import type { ReadablePart } from "./parts.ts";

/** Lines of the host that are not part of the conversation. */
const HOUSEKEEPING: ReadonlySet<string> = new Set(["meta", "heartbeat"]);

export const isHousekeeping = ({ hidden }: { readonly hidden: readonly string[] }): boolean =>
  hidden.some((reason) => HOUSEKEEPING.has(reason));

/** Some providers give an empty text, or reasoning that only they can read. */
export const isBlank = ({ type, text }: Pick<ReadablePart, "type" | "text">): boolean =>
  (type === "text" || type === "reasoning") && text.trim() === "";

export interface Paired<P> {
  readonly messageId: number;
  readonly part: P;
}

export interface Pairs<P> {
  readonly resultOf: ReadonlyMap<P, Paired<P>>;
  /** Results that are shown with their calls. */
  readonly moved: ReadonlySet<P>;
}

type Pairable = Pick<ReadablePart, "type" | "toolCallId">;

/** Pairs each call with the next result under its id. Hosts repeat ids: of several open calls the first one gets it. */
export function pairCalls<P extends Pairable>(
  messages: Iterable<{ readonly id: number; readonly parts: readonly P[] }>,
): Pairs<P> {
  const resultOf = new Map<P, Paired<P>>();
  const moved = new Set<P>();
  const open = new Map<string, P[]>();
  for (const { id, parts } of messages)
    for (const part of parts) {
      if (part.toolCallId === null) continue;
      const calls = open.get(part.toolCallId) ?? [];
      if (part.type === "tool_call") open.set(part.toolCallId, [...calls, part]);
      else if (part.type === "tool_result") {
        const call = calls.shift();
        if (call === undefined) continue;
        resultOf.set(call, { messageId: id, part });
        moved.add(part);
      }
    }
  return { resultOf, moved };
}
