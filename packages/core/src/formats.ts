/**
 * What importers and exporters are built from, besides the ports: reading JSON in place, checking what will be stored, preparing it ahead
 * of the engine, recording copies. Everything that is the same for all formats is here; a format itself is a file of the package
 * `interchange`.
 */
export { createPreparer } from "./bulk/index.ts";
export type { BatchPreparer, PackedPrepared, PrepareAhead } from "./bulk/index.ts";
export { Redaction } from "./engine/redaction.ts";
export { compileRedaction } from "./ingest/redact.ts";
export { deriveMessage, prepareMessage } from "./ingest/prepare.ts";
export { readCallArguments } from "./message/blocks.ts";
export { BOOKKEEPING_TYPES } from "./message/bookkeeping.ts";
export { checkSession, findNameProblem, isTime } from "./message/check-arrival.ts";
export { asBuffer, findRoot, iterateElements, mapMembers } from "./message/json-spans.ts";
export { viewMessage } from "./message/normalize.ts";
export { isObject, parseObject } from "./text/json-object.ts";
export type { JsonObject } from "./text/json-object.ts";
export { addHeadings } from "./engine/headings.ts";
export { NO_LABELS } from "./model/labels.ts";
export { NO_ORIGIN } from "./model/origin.ts";
export { renderRestartFrame } from "./model/restart-frame.ts";
export { hiddenMask } from "./model/message.ts";
export type { ByteRange, ImportMark } from "./model/message.ts";
export { findFreeName, formatStamp } from "./repair/copy-names.ts";
export { APPLICATION_ID } from "./store/application-id.ts";
export { nameLocally } from "./settings/local-name.ts";
export { encodeBody } from "./store/body.ts";
export { nameAdoptionFolder, recordCopy } from "./store/copies.ts";
export { flushPathSync } from "./store/flush-path.ts";
export { ByteWriter } from "./text/byte-writer.ts";
