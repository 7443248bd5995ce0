/** What the page asks of its server, and the shapes of the answers. Rows are the engine's own; their types come from there. */
import type { ExplainedItem } from "@lossless/core/assemble/assemble.ts";
import type { FoldingStatus, StatusReport } from "@lossless/core/engine.ts";
import type { DoctorReport } from "@lossless/core/maintain/doctor.ts";
import type { AskAnswer } from "@lossless/core/retrieve/ask.ts";
import type { GrepAnswer } from "@lossless/core/retrieve/grep.ts";
import type { SpendGroup, SummaryNode, SummaryRow } from "@lossless/core/store/folding.ts";
import type { ConversationRow, MessageRow, Page } from "@lossless/core/store/store.ts";

export type { ConversationRow, DoctorReport, ExplainedItem, GrepAnswer, MessageRow, SpendGroup, SummaryNode };

export interface Overview {
  readonly status: StatusReport;
  readonly conversations: Page<ConversationRow>;
  readonly spend: SpendGroup | null;
  readonly timezone: string;
  readonly version: string;
}

export interface ConversationDetail {
  readonly conversation: ConversationRow;
  readonly folding: FoldingStatus | null;
  readonly rawTokens: number;
}

export interface PartJson {
  readonly ordinal: number;
  readonly type: "text" | "reasoning" | "tool_call" | "tool_result" | "image" | "file" | "other";
  readonly text: string;
  readonly chars: number;
  readonly toolCallId: string | null;
  readonly toolName: string | null;
  readonly isError: boolean;
  readonly mimeType: string | null;
  readonly fileName: string | null;
  readonly payloadBytes: number | null;
  readonly hasImage: boolean;
}

export interface MessageJson {
  readonly id: number;
  readonly row: MessageRow | null;
  readonly model: string | null;
  readonly parts: readonly PartJson[];
  readonly fileIds: readonly string[];
  readonly problem: string | null;
}

export interface MessagePage {
  readonly total: number;
  readonly at: number | null;
  readonly items: readonly MessageJson[];
}

export interface MessageDetail {
  readonly message: MessageJson;
  readonly revisions: readonly number[];
  /** The summaries above it, the nearest first. */
  readonly path: readonly GraphNode[];
}

export type GraphNode = Omit<SummaryRow, "content" | "model" | "conversationId">;

export interface Graph {
  readonly conversation: ConversationRow;
  readonly nodes: readonly GraphNode[];
  /** From a summary to each of its sources. */
  readonly edges: readonly (readonly [summary: string, source: string])[];
}

export interface ContextAnswer {
  readonly budgetTokens: number;
  readonly estimatedTokens: number;
  readonly mode: "whole" | "tight" | "least";
  readonly epoch: string;
  readonly fingerprint: string;
  readonly items: readonly ExplainedItem[];
  readonly shownMessages: number;
  readonly sentMessages: number;
  readonly tookMs: number;
}

export interface TimelineAnswer {
  readonly conversation: ConversationRow;
  readonly points: readonly { index: number; at: number; rawTokens: number; contextTokens: number }[];
  readonly folds: readonly { index: number; summaryId: string; tokens: number; rawTokens: number }[];
  readonly days: readonly { day: string; messages: number; tokens: number }[];
}

export interface SpendAnswer {
  readonly items: readonly SpendGroup[];
}

export type SearchReply = GrepAnswer & { readonly tookMs: number };
export type AskReply = AskAnswer;

/** What the server says when something has changed. */
export interface News {
  readonly messages?: number;
  readonly summaries?: number;
  readonly problem: string | null;
}

type Query = Readonly<Record<string, string | number | undefined>>;

async function ask<T>(path: string, query: Query = {}): Promise<T> {
  const pairs = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const search = new URLSearchParams(pairs).toString();
  const response = await fetch(search === "" ? path : `${path}?${search}`, {
    headers: { accept: "application/json" },
  });
  const body = (await response.json().catch(() => null)) as {
    error?: { message: string; hint?: string };
  } | null;
  if (response.ok && body !== null) return body as T;
  const hint = body?.error?.hint === undefined ? "" : ` (${body.error.hint})`;
  throw new Error(
    body?.error ? body.error.message + hint : `the inspector answered with status ${response.status}`,
  );
}

export const readOverview = (): Promise<Overview> => ask("/api/overview");
export const listConversations = (after: string): Promise<Page<ConversationRow>> =>
  ask("/api/conversations", { after });
export const readConversation = (id: number): Promise<ConversationDetail> => ask(`/api/conversations/${id}`);
export const listMessages = (id: number, query: Query): Promise<MessagePage> =>
  ask(`/api/conversations/${id}/messages`, query);
export const readMessage = (id: number): Promise<MessageDetail> => ask(`/api/messages/${id}`);
export const readGraph = (id: number): Promise<Graph> => ask(`/api/conversations/${id}/graph`);
export const readSummary = (id: string): Promise<SummaryNode> => ask(`/api/summaries/${id}`);
export const readContext = (id: number, budget: number): Promise<ContextAnswer> =>
  ask(`/api/conversations/${id}/context`, { budget });
export const readTimeline = (id: number): Promise<TimelineAnswer> => ask(`/api/conversations/${id}/timeline`);
export const search = (query: Query): Promise<SearchReply> => ask("/api/search", query);
export const askArchive = (query: Query): Promise<AskReply> => ask("/api/ask", query);
export const readSpend = (): Promise<SpendAnswer> => ask("/api/spend", { by: "day" });
export const examine = (): Promise<DoctorReport> => ask("/api/doctor");
