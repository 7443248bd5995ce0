/** Records about sealed values: the chain has who opened which, and a new key replaces what the old one sealed. */
import { EngineError } from "../model/errors.ts";
import { formatMessageId } from "../model/ids.ts";
import type { SealedValue } from "../store/redaction.ts";
import { Changes } from "./changes.ts";
import { lockHeads } from "./heads.ts";
import { addSealedValues } from "./message-rows.ts";
import { readRows } from "./pages.ts";
import { read, together } from "./plan.ts";
import type { Plan } from "./plan.ts";

export function* planRecordUnsealing(
  messageId: number,
  ordinals: readonly number[],
  now: number,
): Plan<null> {
  const changes = new Changes();
  const [message] = yield* readRows("messages", ["message_id", "conversation_id", "seq"], {
    column: "message_id",
    keys: [messageId],
  });
  if (!message) throw new EngineError("not_found", `cannot find ${formatMessageId(messageId)}`);
  const heads = yield* lockHeads(changes, [message.conversation_id]);
  heads.of(message.conversation_id).takeRecord(changes, "unseal", { seq: message.seq, ordinals }, now);
  heads.save(now);
  return changes.done(null);
}

export function* planReplaceSealed(messageId: number, values: readonly SealedValue[]): Plan<null> {
  const changes = new Changes();
  const message_id = messageId;
  const [message] = yield* readRows("messages", ["message_id", "conversation_id"], {
    column: "message_id",
    keys: [messageId],
  });
  if (!message) return changes.done(null);
  const [, redactions, sealed] = yield* together(
    read.lockHeads([message.conversation_id]),
    read.count("redactions", { message_id }),
    read.count("sealed_values", { message_id }),
  );
  // It may have been forgotten, or re-encrypted by another process, while the values were open.
  if (redactions === 0 || sealed !== values.length) return changes.done(null);
  changes.delete("sealed_values", { message_id });
  addSealedValues(changes, messageId, values);
  return changes.done(null);
}
