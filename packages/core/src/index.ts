/** The library's face. */
export type { AssembledContext, ExplainedItem } from "./assemble/assemble.ts";
export { checkGrammar, PROVIDERS } from "./assemble/grammars.ts";
export type { ModelMessage, ModelPart, Provider } from "./assemble/grammars.ts";
export type { ContextBlock, ContextMessage } from "./assemble/write.ts";
export type { ProgressFn } from "./engine/archive.ts";
export type { AssembleRequest } from "./engine/assemble.ts";
export type { ConversationChoice, Scope } from "./engine/conversations.ts";
export type { Engine } from "./engine/engine.ts";
export type { CompactRequest, CompactResult } from "./engine/folding.ts";
export type { IngestRequest, IngestResult } from "./engine/ingest.ts";
export type { FoldingStatus, StatusResult } from "./engine/status.ts";
export type { EmbedMessagesResult } from "./engine/vector-fill.ts";
export type { EmbedStatusResult } from "./engine/vectors.ts";
export { openEngine } from "./engine/open-engine.ts";
export type { OpenEngineOptions } from "./engine/open-engine.ts";
export type { Complete, CompleteRequest, CompleteResult, ModelRef } from "./model/complete.ts";
export type { Embed, EmbedRequest, EmbedResult } from "./model/embed.ts";
export { EngineError, ERROR_CODES } from "./model/errors.ts";
export type { ErrorCode } from "./model/errors.ts";
export type { EngineEvent, EventSink } from "./model/events.ts";
export { formatMessageId, isFileId, isSummaryId, parseMessageId } from "./model/ids.ts";
export { ATTACHMENT_PREFIX, HIDDEN, hiddenReasons, POSITION_STEP } from "./model/message.ts";
export type {
  Arrival,
  HiddenReason,
  IngestedMessage,
  IngestOutcome,
  MessageView,
  PartType,
  PartView,
  Role,
  SessionRef,
} from "./model/message.ts";
export type { Settings } from "./model/settings.ts";
export { compileSessionPatterns } from "./model/session-patterns.ts";
export { settingsJsonSchema, settingsUiHints } from "./model/settings-schema.ts";
export { resolveSettings } from "./model/settings-resolve.ts";
export { estimateTextTokens, IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS } from "./model/tokens.ts";
export { importPaths, importTranscript } from "./transfer/import.ts";
export type { ImportReport } from "./transfer/import.ts";
export { adoptDocumentedDatabase, isDocumentedDatabase } from "./transfer/documented/adopt.ts";
export { EXPORT_FORMATS } from "./transfer/format.ts";
export type { ExportFormat } from "./transfer/format.ts";
export { detectHistory, exportConversations, importHistory } from "./transfer/move.ts";
export type { ExportRequest, HistoryReport, HistoryRequest } from "./transfer/move.ts";
export type { AskResult, AskFailure, AskRequest, Passage } from "./retrieve/ask.ts";
export type { DescribeResult, DescribedMessage, DescribeRequest } from "./retrieve/describe.ts";
export type { ExpandResult, ExpandRequest } from "./retrieve/expand.ts";
export type { GrantResult, GrantRequest } from "./retrieve/grants.ts";
export type { FileHit, GrepResult, GrepHit, GrepRequest, MessageHit, SummaryHit } from "./retrieve/grep.ts";
export type { Caller } from "./retrieve/scope.ts";
export type { SearchResult, SearchRequest, SearchResultHit } from "./retrieve/search.ts";
export { MAIN_TOOLS, RECALL_GUIDANCE, SUBAGENT_TOOLS, toolsFor } from "./tools/index.ts";
export type { ToolContext, ToolDefinition, ToolResult } from "./tools/index.ts";
export type { Debt, Guard, SpendGroup, SummaryNode, SummaryRow, SummaryState } from "./store/folding.ts";
export type {
  ArchiveStatus,
  ConversationRow,
  LargeFileRow,
  MessageBody,
  MessageRow,
  Page,
  Problem,
  VerifyReport,
} from "./store/store.ts";
