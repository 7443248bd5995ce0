/** The library's face. */
export type {
  Engine,
  IngestRequest,
  IngestResult,
  ProgressFn,
  Scope,
  StatusReport,
} from "./engine.ts";
export { openEngine } from "./open-engine.ts";
export type { OpenEngineOptions } from "./open-engine.ts";
export { EngineError, ERROR_CODES } from "./model/errors.ts";
export type { ErrorCode } from "./model/errors.ts";
export type { EngineEvent, EventSink } from "./model/events.ts";
export { formatMessageId, isFileId, isSummaryId, parseMessageId } from "./model/ids.ts";
export { HIDDEN, hiddenReasons, POSITION_STEP } from "./model/message.ts";
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
export { resolveSettings } from "./model/settings-resolve.ts";
export { estimateTextTokens } from "./model/tokens.ts";
export type { SearchAnswer, SearchQuestion, SearchResultHit } from "./retrieve/search.ts";
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
