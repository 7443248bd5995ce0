/** Which conversation a call is about, and who may see it. */
import { EngineError } from "../model/errors.ts";
import type { ConversationRow } from "../store/store.ts";
import type { EngineState } from "./state.ts";

/** What a caller may see: everything of one owner, or everything if no owner is named (the operator's view). */
export interface Scope {
  readonly owner?: string;
}

/** A conversation by its id, or the active one of a session key. */
export type ConversationChoice = Scope &
  ({ readonly conversationId: number } | { readonly sessionKey: string });

export async function findConversation(
  engine: EngineState,
  choice: ConversationChoice,
): Promise<ConversationRow | null> {
  if ("conversationId" in choice) return engine.store.readConversation(choice.conversationId, choice.owner);
  return readActive(engine, choice);
}

export async function needConversation(
  engine: EngineState,
  choice: ConversationChoice,
): Promise<ConversationRow> {
  const conversation = await findConversation(engine, choice);
  if (conversation) return conversation;
  const name =
    "conversationId" in choice ? `conversation ${choice.conversationId}` : `session ${choice.sessionKey}`;
  throw new EngineError("not_found", `cannot find ${name}`, {
    step: { kind: "list", what: "conversations" },
  });
}

/** The conversation that currently receives a session's messages. */
export async function readActive(
  { store }: EngineState,
  { owner, sessionKey }: Scope & { readonly sessionKey: string },
): Promise<ConversationRow | null> {
  const { items } = await store.listConversations({ owner, sessionKey, after: null, limit: 1 });
  return items[0] ?? null;
}
