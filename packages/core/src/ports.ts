/**
 * What can be plugged into the engine: a database behind the store port, a language model, an embedding model, a listener for events, a
 * clock. A port is implemented elsewhere; the contract that a store must pass is in the test tools.
 */

// A database. The port defines what the engine needs from it; the rest are the row types.
export { parseAddress } from "./model/address.ts";
export type { StoreAddress } from "./model/address.ts";
export { filesDirBeside } from "./settings/files-dir.ts";
export { makeOpenEngine } from "./engine/open-engine.ts";
export type { EngineParts } from "./engine/open-engine.ts";
export type * from "./store/open-store.ts";
export type * from "./store/store.ts";
export type * from "./store/blobs.ts";
export type * from "./store/repair.ts";
export { nameSource } from "./store/folding.ts";
export type * from "./store/folding.ts";
export type * from "./store/forks.ts";
export type * from "./store/recall.ts";
export type * from "./store/recall-scope.ts";
export type * from "./store/redaction.ts";
export type * from "./store/text-index.ts";
export type * from "./store/transfer.ts";
export type * from "./store/vectors.ts";
// Whether a text matches a clue; a text index must agree with this.
export { holdsClue, readTextTerms } from "./text/index.ts";
export type { TextClue, TextTerms } from "./text/index.ts";

// The tables of an archive, and plans: a store answers their questions and applies their changes.
export { nameOf } from "./archive/changes.ts";
export type { Changes, ChangePart, Values } from "./archive/changes.ts";
export { answerAll, answerLater } from "./archive/plan.ts";
export type { Plan, ReadsLater } from "./archive/plan.ts";
export type * from "./archive/reads.ts";
export { TABLE_NAMES, tables } from "./archive/tables.ts";
export type { Row, TableName, Value } from "./archive/tables.ts";

// Models
export type {
  Complete,
  CompleteFailureKind,
  CompleteRequest,
  CompleteResult,
  ModelRef,
} from "./model/complete.ts";
export type * from "./model/labels.ts";
export type * from "./model/origin.ts";
export type { Embed, EmbedRequest, EmbedResult } from "./model/embed.ts";

// Events, time and randomness
export type { Clock, EngineEvent, EventSink } from "./model/events.ts";
