/** Messages that are hidden for other reasons than before: the cover follows, and what is not shown has no vector. */
import type { Changes } from "./changes.ts";
import { readCover } from "./cover.ts";
import type { Heads } from "./heads.ts";
import { flush } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { HideableMessage, CoverPoint } from "./reads.ts";

/** Messages taken up at once: each asks for what stands over it, and changes a few rows. */
const MESSAGES_AT_ONCE = 200;

/** A message, and what hides it from now on. */
export interface HiddenChange {
  readonly message: HideableMessage;
  readonly after: number;
}

/** All that a plan changes at once: what it has not handed over it does not see. First versions only, which hide their revisions. */
export function* changeHidden(changes: Changes, heads: Heads, hidden: readonly HiddenChange[]): Asking<void> {
  for (let at = 0; at < hidden.length; at += MESSAGES_AT_ONCE) {
    if (at > 0) yield* flush(changes);
    const some = hidden.slice(at, at + MESSAGES_AT_ONCE);
    const points = some.map(({ message }) => toPoint(message));
    const cover = yield* readCover(points, heads);
    for (const { message, after } of some) {
      const { message_id, newest, hidden_now: before } = message;
      changes.update("messages", { message_id }, { hidden_now: after });
      if (after !== 0) changes.delete("message_vectors", { message_id: newest ?? message_id });
      cover.setHidden(toPoint(message), before, after);
    }
    yield* cover.save();
  }
}

const toPoint = ({ conversation_id: conversationId, position, seq }: HideableMessage): CoverPoint => ({
  conversationId,
  position,
  seq,
});
