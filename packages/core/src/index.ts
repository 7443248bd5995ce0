/**
 * The engine: parameters and results of its verbs, errors, settings, and the tools that agents call. The library above this package, which
 * knows the databases, opens it.
 *
 * Loading this file loads no engine; `openEngine` does, where the engine runs. There are further entry points for code that needs more than
 * the engine: `/ports` (to bring a database or a model), `/adapter` (what a database adapter is built from), `/thread` (the thread an
 * engine works in), `/settings` (to show and change settings), `/repair` (an operator's verbs), `/formats` (to read or write a format of
 * conversations), `/doors` (shared by programs in front of the engine) and `/testing` (for test tools and benchmarks only). Nothing else of
 * this package can be imported.
 */

// Opening
export type { OpenEngine, OpenEngineOptions } from "./engine/open-engine.ts";
export type { ProgressFn } from "./engine/archive.ts";
export type { ConversationChoice, Scope } from "./engine/conversations.ts";
export type { Engine } from "./engine/engine.ts";

// Errors and events
export { assert, EngineError, ERROR_CODES, hintFor, must } from "./model/errors.ts";
export type { ErrorCode } from "./model/errors.ts";
export type { EngineEvent } from "./model/events.ts";
export { LIBRARY_WORDS, wordNote, wordStep } from "./model/next-step.ts";
export type { StepWords } from "./model/next-step.ts";

// Settings: what opening needs; the rest is in `/settings`
export { hidePassword, isServerAddress, settleAddress } from "./model/address.ts";
export { resolveSettings } from "./settings/settings-resolve.ts";
export type { Settings } from "./settings/settings.ts";

// Storing messages
export type { IngestRequest, IngestResult } from "./engine/ingest.ts";
export { ATTACHMENT_PREFIX, HIDDEN, hiddenReasons, POSITION_STEP } from "./model/message.ts";
export type {
  Arrival,
  HiddenReason,
  IngestedMessage,
  ArrivalKind,
  ModelIdentity,
  SessionRef,
} from "./model/message.ts";

// What is stored
export { formatMessageId, isFileId, isSummaryId, makeImportId, parseMessageId } from "./model/ids.ts";
export type { MessageView, PartType, PartView, Role } from "./model/message.ts";
export {
  estimateSentTokens,
  estimateTextTokens,
  IMAGE_TOKENS,
  MESSAGE_OVERHEAD_TOKENS,
} from "./text/tokens.ts";
export type {
  ConversationOrder,
  ConversationRow,
  LargeFileRow,
  MessageBody,
  MessageCounts,
  MessageRow,
  Outline,
  OutlineRequest,
  Page,
  StoredPart,
} from "./store/store.ts";
export type { SummaryGraph, SummaryNode, SummaryOutline, SummaryRow, SummaryState } from "./store/folding.ts";

export type { ListConversationsRequest } from "./engine/browse.ts";
export type { HeadedConversation } from "./engine/headings.ts";
export type { AgentFigures, StatsGroup, StatsGrouping, StatsRequest, StatsResult } from "./engine/stats.ts";
export type { Labels, LabelUpdate } from "./model/labels.ts";
export type { Origin, OriginFilter, OriginUpdate } from "./model/origin.ts";

// Folding
export type { CompactRequest, CompactResult } from "./engine/folding.ts";
export type { RewriteResult } from "./engine/rewrite.ts";
export type { DissolveResult } from "./store/repair.ts";
export type { Debt, Guard, SpendGroup } from "./store/folding.ts";
export { sumWindow } from "./summarize/guards.ts";

// The context
export type { AssembledContext, ExplainedItem } from "./assemble/assemble.ts";
export { checkGrammar, PROVIDERS } from "./assemble/grammars.ts";
export type { ModelMessage, ModelPart, Provider } from "./assemble/grammars.ts";
export type { ContextBlock, ContextMessage } from "./assemble/write.ts";
export type { AssembleRequest } from "./engine/assemble.ts";

// Finding and opening
export type { EmbedMessagesResult } from "./engine/vector-fill.ts";
export type { EmbedStatusResult } from "./engine/vectors.ts";
export type { AskFailure, AskRequest, AskResult, Passage } from "./recall/ask.ts";
export type { DescribedMessage, DescribeRequest, DescribeResult } from "./recall/describe.ts";
export type { ExpandedSummary, ExpandRequest, ExpandResult } from "./recall/expand.ts";
export type { GrantRequest, GrantResult } from "./recall/grants.ts";
export type {
  FileHit,
  FoundConversation,
  GrepHit,
  GrepMode,
  GrepRequest,
  GrepResult,
  GrepScope,
  GrepSort,
  MessageHit,
  SummaryHit,
} from "./recall/grep.ts";
export type { Caller, ScopeRequest } from "./recall/reach.ts";
export type { SearchRequest, SearchResult, SearchResultHit } from "./recall/search.ts";

// The state of the archive
export type { FoldingStatus, StatusResult } from "./engine/status.ts";
export type { ArchiveStatus, Problem, StorageShares, VerifyResult } from "./store/store.ts";

// Models
export { nameModel } from "./model/complete.ts";
export type { Complete, CompleteRequest, CompleteResult, ModelRef } from "./model/complete.ts";
export type { Embed, EmbedRequest, EmbedResult } from "./model/embed.ts";
export { listCandidates, parseModelRef } from "./summarize/candidates.ts";

// Tools for agents
export {
  describeTool,
  expandQueryTool,
  expandTool,
  grepTool,
  MAIN_TOOLS,
  RECALL_GUIDANCE,
  SUBAGENT_TOOLS,
  toolsFor,
} from "./tools/index.ts";
export { formatTime, ORIGIN_PROPERTIES, readParams } from "./tools/tool.ts";
export type { ToolContext, ToolDefinition, ToolResult, ToolSchema } from "./tools/tool.ts";
export { TOOL_WORDS } from "./tools/tool-words.ts";
