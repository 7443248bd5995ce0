/**
 * The types of the inspector's API, shared by server and page. Rows are the engine's own; their types come from there. Types only, so that the
 * page bundles no server code.
 */
import type {
  AskResult,
  HeadedConversation,
  ExplainedItem,
  GrepResult,
  LabelUpdate,
  MessageCounts,
  MessageRow,
  Page,
  SpendGroup,
  StatsGroup,
  StatsGrouping,
  StatsResult,
  StatusResult,
  SummaryNode,
  SummaryOutline,
} from "@lossless/core";
import type { DoctorResult, Finding } from "@lossless/core/repair";
import type { Cost, DiffLine, OutlineRow, Prices, TurnSum } from "@lossless/core/doors";
import type { ReadablePart } from "@lossless/interchange/parts";

export type {
  AskResult,
  HeadedConversation,
  DiffLine,
  ExplainedItem,
  GrepResult,
  LabelUpdate,
  MessageRow,
  Page,
  SpendGroup,
  StatsGroup,
  StatsGrouping,
  SummaryNode,
  TurnSum,
};

/** With the number of messages in the context, and how many are left out and why. */
export interface CountedConversation extends HeadedConversation {
  readonly counts: MessageCounts;
}

/** Values that occur in conversations, to filter the list by. */
export interface ConversationChoices {
  readonly project: readonly string[];
  readonly agent: readonly string[];
  readonly model: readonly string[];
  readonly tag: readonly string[];
}

export interface Overview {
  readonly status: StatusResult;
  readonly conversations: Page<CountedConversation>;
  readonly spend: SpendGroup | null;
  readonly timezone: string;
  readonly version: string;
  /** What commands on the page say after `--db`, quoted for a shell; null: the archive of the settings, which they use anyway. */
  readonly database: string | null;
  /** Null: the inspector only reads. */
  readonly write: WriteAccess | null;
}

export interface WriteAccess {
  /** Sent with every request that changes something; other sites cannot read it. */
  readonly token: string;
  /** The model that regenerates summaries; null: the engine does it itself. */
  readonly model: string | null;
}

/** Tokens stored and in the context over time, of all conversations that were counted. */
export interface GrowthResult {
  readonly points: readonly {
    readonly at: number;
    readonly rawTokens: number;
    readonly contextTokens: number;
  }[];
  readonly conversations: number;
  /** The others are the smaller ones. */
  readonly counted: number;
}

export interface ConversationDetail {
  readonly conversation: HeadedConversation;
  /** Its size without folding. */
  readonly rawTokens: number;
  /** The host's own command to continue it; null if there is none. */
  readonly resume: string | null;
}

export interface PartJson extends ReadablePart {
  /** The message of a result that is shown with its call. */
  readonly ofMessage?: number;
}

export interface MessageJson {
  readonly id: number;
  /** Null when it cannot be read. */
  readonly row: MessageRow | null;
  readonly model: string | null;
  readonly parts: readonly PartJson[];
  /** Large files stored outside the message. */
  readonly fileIds: readonly string[];
  /** Why it cannot be shown. */
  readonly problem: string | null;
}

export interface MessagePage {
  readonly total: number;
  /** Number of the first item, from 0; null when the page was requested by its key. */
  readonly at: number | null;
  readonly items: readonly MessageJson[];
  readonly next: string | null;
}

export interface MessageDetail {
  readonly message: MessageJson;
  readonly revisions: readonly number[];
  /** The summaries above it, the nearest first. */
  readonly path: readonly GraphNode[];
  /** What the search `q` matches in it, as it is written there; none without `q`. */
  readonly matched: readonly string[];
}

export type GraphNode = Pick<
  SummaryOutline,
  | "summaryId"
  | "depth"
  | "state"
  | "startPosition"
  | "endPosition"
  | "messages"
  | "tokens"
  | "sourceTokens"
  | "earliestAt"
  | "latestAt"
  | "isRoot"
>;

export interface Graph {
  readonly conversation: HeadedConversation;
  readonly nodes: readonly GraphNode[];
  /** From a summary to each of its sources. */
  readonly edges: readonly (readonly [summary: string, source: string])[];
}

/** The messages under a summary, at any depth. */
export interface UnderSummary {
  readonly total: number;
  readonly at: number;
  readonly items: readonly OutlineRow[];
}

export interface ContextResult {
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

/** What a turn changed in the context. */
export interface ContextTurn {
  /** The user's message that began it. */
  readonly messageId: number;
  readonly at: number;
  readonly tokens: number;
  readonly added: number;
  readonly removed: number;
  /** Tokens at the front that are the same, in the same order. */
  readonly sharedTokens: number;
  /** Ids of new items, for the last turn only. */
  readonly newIds: readonly string[];
}

export interface ContextTurns {
  readonly budgetTokens: number;
  /** Oldest first. */
  readonly turns: readonly ContextTurn[];
}

export interface TimelinePoint {
  /** Number of the message in the order of arrival, from 0. */
  readonly index: number;
  readonly at: number;
  readonly rawTokens: number;
  readonly contextTokens: number;
}

/** Summaries that were published at the same moment. */
export interface Compaction {
  readonly index: number;
  readonly at: number;
  readonly summaries: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

export interface TimelineResult {
  readonly conversation: HeadedConversation;
  readonly points: readonly TimelinePoint[];
  readonly compactions: readonly Compaction[];
  /** Whether the archive records when each summary was published; otherwise the time it was made is used. */
  readonly isExact: boolean;
  readonly days: readonly { readonly day: string; readonly messages: number; readonly tokens: number }[];
}

export interface SpendResult {
  readonly by: string;
  readonly items: readonly SpendGroup[];
}

/** The agents' activity, and the cost of our own summaries. */
export interface StatsReply {
  readonly days: readonly StatsGroup[];
  readonly result: StatsResult;
  readonly own: SpendGroup | null;
  /** Null if no prices were given. */
  readonly cost: CostReply | null;
}

/** The cost of the tokens by the user's price file; only a problem if it cannot be read. */
export interface CostReply {
  readonly path: string;
  readonly prices: Prices | null;
  readonly agents: Cost | null;
  /** Of our own summaries. */
  readonly own: Cost | null;
  readonly problem: string | null;
}

/** Notes and steps are worded for the shell that the page was started from. */
export type SearchReply = Omit<GrepResult, "notes"> & {
  readonly notes: readonly string[];
  readonly tookMs: number;
};

export type FindingReply = Omit<Finding, "step"> & { readonly mend: string | null };
export type DoctorReply = Omit<DoctorResult, "findings"> & { readonly findings: readonly FindingReply[] };

/** The server's notification of a change. */
export interface News {
  readonly messages?: number;
  readonly summaries?: number;
  readonly problem: string | null;
}

/** The actions on an archive; see `actions.ts`. */
export type ActionRequest =
  | { readonly action: "backup" }
  | { readonly action: "mend" }
  | { readonly action: "fold"; readonly conversationId: number }
  | { readonly action: "dissolve"; readonly summaryId: string }
  | { readonly action: "rewrite"; readonly summaryId: string; readonly isSubtree: boolean }
  | { readonly action: "repair"; readonly conversationId: number | null }
  | { readonly action: "forget"; readonly messageIds: readonly number[]; readonly reason: string }
  | {
      readonly action: "forget";
      readonly pattern: string;
      readonly conversationId: number | null;
      readonly reason: string;
    };

export type Fact = readonly [name: string, value: string];

export interface ActionPreview {
  readonly title: string;
  readonly facts: readonly Fact[];
  /** What it affects, one line each. */
  readonly lines: readonly string[];
  /** What cannot be undone, or costs money; null when there is nothing to warn about. */
  readonly warning: string | null;
  /** The same on the command line. */
  readonly command: string;
  /** The text of the button. */
  readonly verb: string;
  /** Sent back to confirm; null when there is nothing to do. */
  readonly confirmation: string | null;
  /** A word that must be typed first, for actions that cannot be undone. */
  readonly mustType: string | null;
}

export interface ActionResult {
  readonly title: string;
  readonly facts: readonly Fact[];
  readonly lines: readonly string[];
  readonly warning: string | null;
  readonly changes: readonly { readonly name: string; readonly lines: readonly DiffLine[] }[];
}
