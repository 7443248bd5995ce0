/** Lists and single reads of what is stored, within what the caller may see. */
import { viewMessage } from "../message/normalize.ts";
import { EngineError } from "../model/errors.ts";
import type { LabelUpdate } from "../model/labels.ts";
import type { MessageView } from "../model/message.ts";
import type { SummaryNode, SummaryRow, SummaryState } from "../store/folding.ts";
import type {
  LargeFileRow,
  ListConversations,
  ListMessages,
  MessageBody,
  MessageCounts,
  MessageRow,
  Page,
} from "../store/store.ts";
import type { Scope } from "./conversations.ts";
import { addHeadings, headByName } from "./headings.ts";
import type { HeadedConversation } from "./headings.ts";
import type { EngineState } from "./state.ts";

const MAX_PAGE = 10_000;

export interface OneConversation extends Scope {
  readonly conversationId: number;
}

export interface OneMessage extends Scope {
  readonly messageId: number;
}

export interface ListConversationsRequest extends Scope, Omit<ListConversations, "after" | "owner"> {
  readonly after?: string | null;
}

export async function listConversations(
  { store }: EngineState,
  request: ListConversationsRequest,
): Promise<Page<HeadedConversation>> {
  const { items, next } = await store.listConversations({
    ...request,
    after: request.after ?? null,
    limit: checkLimit(request.limit),
  });
  // A caller that walks through all conversations by number shows no headings.
  const { order = "id" } = request;
  return { items: order === "id" ? items.map(headByName) : await addHeadings(store, items), next };
}

export type LabelConversationRequest = OneConversation & LabelUpdate;

/** Names, tags, pins or unlists a conversation. Null if the caller cannot see such a conversation. */
export async function labelConversation(
  { store, clock, redaction }: EngineState,
  { conversationId, owner, ...update }: LabelConversationRequest,
): Promise<HeadedConversation | null> {
  const redact = (text: string): string => redaction.applyToOrigin({ title: text }).title ?? "";
  const redacted: LabelUpdate = {
    ...update,
    name: typeof update.name === "string" ? redact(update.name) : update.name,
    addTags: update.addTags?.map(redact),
    removeTags: update.removeTags?.map(redact),
  };
  const labels = await store.label({ conversationId, owner, update: redacted, now: clock.now() });
  const row = labels && (await store.readConversation(conversationId, owner));
  return row && ((await addHeadings(store, [row]))[0] ?? null);
}

export async function readConversation(
  { store }: EngineState,
  { conversationId, owner }: OneConversation,
): Promise<HeadedConversation | null> {
  const row = await store.readConversation(conversationId, owner);
  return row && ((await addHeadings(store, [row]))[0] ?? null);
}

export type ListMessagesRequest = Scope &
  Pick<ListMessages, "conversationId" | "limit"> &
  Partial<Pick<ListMessages, "after" | "order" | "direction">>;

export async function listMessages(
  { store }: EngineState,
  request: ListMessagesRequest,
): Promise<Page<MessageRow>> {
  return store.listMessages({
    ...request,
    after: request.after ?? null,
    order: request.order ?? "position",
    direction: request.direction ?? "oldest",
    limit: checkLimit(request.limit),
  });
}

export interface ListMessageIdsRequest extends OneConversation {
  readonly at: number;
  readonly limit: number;
}

export async function listMessageIds(
  { store }: EngineState,
  request: ListMessageIdsRequest,
): Promise<number[]> {
  return store.listMessageIds({ ...request, limit: checkLimit(request.limit) });
}

export interface LocateMessageResult {
  readonly conversationId: number;
  readonly number: number;
}

export async function locateMessage(
  { store }: EngineState,
  { messageId, owner }: OneMessage,
): Promise<LocateMessageResult | null> {
  return store.locateMessage(messageId, owner);
}

export type ReadMessageResult = MessageBody & { readonly view: MessageView };

export async function readMessage(
  { store }: EngineState,
  { messageId, owner }: OneMessage,
): Promise<ReadMessageResult | null> {
  const body = await store.readMessage(messageId, owner);
  return body && { ...body, view: viewMessage(body.bytes) };
}

export async function readRevisions(
  { store }: EngineState,
  { messageId, owner }: OneMessage,
): Promise<MessageRow[]> {
  return store.readRevisions(messageId, owner);
}

export async function countMessages(
  { store }: EngineState,
  { conversationIds, owner }: Scope & { readonly conversationIds: readonly number[] },
): Promise<MessageCounts[]> {
  return store.countMessages(conversationIds, owner);
}

export async function readSummary(
  { store }: EngineState,
  { summaryId, owner }: Scope & { readonly summaryId: string },
): Promise<SummaryNode | null> {
  return store.readSummary(summaryId, owner);
}

export interface ListSummariesRequest extends OneConversation {
  readonly after?: string | null;
  readonly limit: number;
  readonly state?: SummaryState;
}

export async function listSummaries(
  { store }: EngineState,
  request: ListSummariesRequest,
): Promise<Page<SummaryRow>> {
  return store.listSummaries({
    ...request,
    after: request.after ?? null,
    limit: checkLimit(request.limit),
  });
}

export interface ListPublishedRequest {
  readonly after: string;
  readonly limit: number;
  readonly conversationId?: number;
}

export type ReadFileResult = LargeFileRow & { readonly content: Uint8Array | null };

export async function readFile(
  { store }: EngineState,
  { fileId, owner }: Scope & { readonly fileId: string },
): Promise<ReadFileResult | null> {
  const file = await store.readFile(fileId, owner);
  return file && { ...file, content: await store.readFileContent(fileId, owner) };
}

export async function listFiles(
  { store }: EngineState,
  { conversationId, ...scope }: OneConversation,
): Promise<LargeFileRow[]> {
  return store.listFiles({ ...scope, conversationIds: [conversationId] }, null);
}

function checkLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new EngineError(
      "usage",
      `cannot list ${limit} rows: the limit is a whole number from 1 to ${MAX_PAGE}`,
    );
  }
  return limit;
}
