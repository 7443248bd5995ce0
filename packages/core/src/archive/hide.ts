/** Changes the reasons for hiding messages: the cover follows, and hidden messages have no vector. */
import type { Changes } from "./changes.ts";
import { readCover } from "./cover.ts";
import type { Heads } from "./heads.ts";
import { flush } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { HideableMessage, CoverPoint } from "./reads.ts";

/** Messages handled at once: each needs what covers it, and changes a few rows. */
const MESSAGES_AT_ONCE = 200;

/** A message, and its new reasons for being hidden. */
export interface HiddenChange {
  readonly message: HideableMessage;
  readonly after: number;
}

/**
 * Everything that a plan hides or shows at once: it does not see what it has not flushed. First versions only, which hide their revisions.
 */
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
