/** Recognises heartbeat turns: a prompt that asks whether anything needs doing, and the reply that says no. */
import type { MessageView } from "../model/message.ts";

const REPLY = /^[\s*_`>"']*HEARTBEAT_OK[\s*_`."'!]*$/;
const PROMPT = /heartbeat/i;

const textOf = (view: MessageView): string =>
  view.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");

export const isHeartbeatReply = (view: MessageView): boolean =>
  view.role === "assistant" && REPLY.test(textOf(view).trim());

/** Event ids of every heartbeat turn in the list, which is in order. A turn without its prompt is left alone. */
export function findHeartbeats(messages: readonly { eventId: string; view: MessageView }[]): string[] {
  const found: string[] = [];
  for (const [end, message] of messages.entries()) {
    if (!isHeartbeatReply(message.view)) continue;
    let start = end - 1;
    while (start >= 0 && messages[start]?.view.role !== "user") start -= 1;
    const prompt = messages[start];
    if (prompt && PROMPT.test(textOf(prompt.view))) {
      found.push(...messages.slice(start, end + 1).map(({ eventId }) => eventId));
    }
  }
  return found;
}
