/**
 * All work on a message that needs no lock: reading it, cutting out large payloads, counting tokens, analysing its text, and compressing
 * it. `deriveMessage` is the part that depends on the bytes alone; `verify` calls it again to check what is stored.
 */
import { hash } from "node:crypto";
import { commit, SALT_BYTES } from "../model/chain.ts";
import { nameModel } from "../model/complete.ts";
import { ANY_FILE_ID, renderReference } from "../model/large-file.ts";
import { HIDDEN } from "../model/message.ts";
import type { MessageView, PartView } from "../model/message.ts";
import { estimateTextTokens, MESSAGE_OVERHEAD_TOKENS } from "../text/tokens.ts";
import { encodeBody } from "../store/body.ts";
import { cutRanges, spliceRanges } from "../store/splice.ts";
import type {
  CutPayload,
  DerivedMessage,
  PreparedMessage,
  PreparedPart,
  PreparedPayload,
} from "../store/store.ts";
import { decodeTerms, encodeForIndex } from "../text/index.ts";
import type { IndexTerms, SpelledSink } from "../text/index.ts";
import { exploreContent, extensionFor } from "./explore.ts";
import { cutPayloads, findLargePayloads } from "./large-payloads.ts";
import type { Payload } from "./large-payloads.ts";
import type { RedactedValue } from "./redact.ts";
import { commitMessage } from "./vault.ts";
import type { Vault } from "./vault.ts";
import { messageTokens, searchText, viewMessage, viewParsed } from "../message/normalize.ts";
import type { JsonObject } from "../text/json-object.ts";

export interface PrepareOptions {
  /** Why the caller hides the message (bit mask). */
  readonly hidden: number;
  /** Time of the message if its bytes contain none. */
  readonly createdAt: number;
  /** The time is unknown: `createdAt` is only a guess. */
  readonly isUndated?: boolean | undefined;
  readonly largeFileThresholdTokens: number;
  readonly random: (size: number) => Uint8Array;
  /** The bytes as JSON, if they were already parsed. */
  readonly parsed?: JsonObject | undefined;
  /** Descriptions of payloads by the SHA-256 of their content; others are described by type. */
  readonly explorations?: ReadonlyMap<string, string>;
  /** What was redacted from the bytes before, and what happens to it. */
  readonly redacted?: RedactedArrival;
}

export interface RedactedArrival {
  readonly original: Uint8Array;
  readonly values: readonly RedactedValue[];
  readonly vault: Vault | null;
  readonly keepsValues: boolean;
}

export function prepareMessage(arrival: Uint8Array, options: PrepareOptions): PreparedMessage {
  const { parsed } = options;
  const view = parsed === undefined ? viewMessage(arrival) : viewParsed(arrival, parsed);
  const payloads = findLargePayloads(arrival, view, {
    thresholdTokens: options.largeFileThresholdTokens,
    estimate: estimateTextTokens,
  }).map((payload) => preparePayload(payload, options.explorations));
  const salt = options.random(SALT_BYTES);
  const derived = deriveFromView(arrival, view, payloads.map(toCut));
  const { body, encoding } = encodeBody(
    payloads.length === 0 ? arrival : cutPayloads(arrival, payloads).body,
  );
  const { commitment, redaction } = commitArrival(arrival, salt, options);
  // Every message passes here: setting members one by one takes a fraction of the time of spreading objects.
  return {
    role: derived.role,
    tokens: derived.tokens,
    parts: derived.parts,
    readTerms: derived.readTerms,
    createdAt: view.createdAt ?? options.createdAt,
    isDated: derived.isDated || options.isUndated !== true,
    hidden: view.isMessage ? options.hidden : options.hidden | HIDDEN.meta,
    body,
    encoding,
    arrivalBytes: arrival.byteLength,
    salt,
    commitment,
    redaction,
    payloads,
    calibration: readCalibration(view, derived.tokens),
    cacheUsage: readCacheUsage(view),
  };
}

function commitArrival(
  stored: Uint8Array,
  salt: Uint8Array,
  { redacted, random }: PrepareOptions,
): Pick<PreparedMessage, "commitment" | "redaction"> {
  if (redacted === undefined) return { commitment: commit(salt, stored), redaction: null };
  return commitMessage({ ...redacted, stored, salt, random });
}

/** Depends only on the arrival bytes and on what was cut out of them. */
export function deriveMessage(bytes: Uint8Array, cuts: readonly CutPayload[]): DerivedMessage {
  return deriveFromView(bytes, viewMessage(bytes), cuts);
}

function deriveFromView(bytes: Uint8Array, view: MessageView, cuts: readonly CutPayload[]): DerivedMessage {
  const shown = cuts.length === 0 ? view : viewMessage(replaceByReferences(bytes, cuts));
  return {
    role: view.role,
    isDated: view.createdAt !== undefined,
    tokens: messageTokens(shown, estimateTextTokens),
    parts: view.parts.map(toPreparedPart),
    readTerms: (spelling) => indexTerms(view, shown, spelling),
  };
}

function toPreparedPart({ type, at, length, toolCallId, toolName }: PartView): PreparedPart {
  if (toolCallId !== undefined && toolName !== undefined) return { type, at, length, toolCallId, toolName };
  if (toolCallId !== undefined) return { type, at, length, toolCallId };
  return toolName === undefined ? { type, at, length } : { type, at, length, toolName };
}

/**
 * The text around payloads is indexed in order, so that phrases are found there; from a payload each term is indexed once: a log repeats
 * the same words ten thousand times, and searching files reads it line by line anyway.
 */
function indexTerms(view: MessageView, shown: MessageView, spelling: SpelledSink | null): IndexTerms {
  const whole = encodeForIndex(view.isBookkeeping ? "" : searchText(view), spelling);
  if (shown === view || view.isBookkeeping) return whole;
  const around = encodeForIndex(searchText(shown));
  return {
    words: addMissing(around.words, whole.words),
    idents: addMissing(around.idents, whole.idents),
  };
}

function addMissing(terms: Uint8Array, more: Uint8Array): Uint8Array {
  const text = decodeTerms(terms);
  const present = new Set(text.split(" "));
  const missing = [...new Set(decodeTerms(more).split(" "))].filter((term) => !present.has(term));
  return Buffer.from([text, ...missing].filter((term) => term !== "").join(" "));
}

/** The message as a model would see it: with a reference in place of each payload. */
function replaceByReferences(bytes: Uint8Array, cuts: readonly CutPayload[]): Uint8Array {
  const inOrder = [...cuts].sort((a, b) => a.at - b.at);
  const references = inOrder.map((cut) => ({
    at: cut.at,
    length: cut.length,
    encoding: "json" as const,
    content: Buffer.from(renderReference({ ...cut, fileId: ANY_FILE_ID })),
  }));
  return spliceRanges(cutRanges(bytes, inOrder), references);
}

function preparePayload(payload: Payload, explorations: PrepareOptions["explorations"]): PreparedPayload {
  const { at, length, encoding, content, mimeType } = payload;
  const fileName = payload.fileName ?? null;
  const described = { mimeType, fileName: fileName ?? undefined };
  const sha256 = hash("sha256", content);
  return {
    at,
    length,
    encoding,
    content,
    sha256,
    fileName,
    mimeType,
    extension: extensionFor(described),
    lineCount: mimeType.startsWith("text/") || mimeType.includes("json") ? countLines(content) : null,
    explorationSummary: explorations?.get(sha256) ?? exploreContent({ ...described, bytes: content }),
  };
}

function toCut(payload: PreparedPayload): CutPayload {
  const { at, length, fileName, mimeType, explorationSummary, content } = payload;
  return { at, length, fileName, mimeType, explorationSummary, byteSize: content.byteLength };
}

function countLines(content: Uint8Array): number {
  let lines = content.byteLength > 0 && content.at(-1) !== 10 ? 1 : 0;
  for (const byte of content) if (byte === 10) lines += 1;
  return lines;
}

/** Null for reports without cache figures: they do not mean that there was no cache. */
function readCacheUsage({ role, usage, answerId }: MessageView): PreparedMessage["cacheUsage"] {
  const { inputTokens = 0, cacheReadTokens, cacheWriteTokens } = usage ?? {};
  if (role !== "assistant" || (cacheReadTokens === undefined && cacheWriteTokens === undefined)) return null;
  const cachedTokens = cacheReadTokens ?? 0;
  const promptTokens = inputTokens + cachedTokens + (cacheWriteTokens ?? 0);
  // Ids are written by others and outlive their message, so only a hash is kept. Without an id, the usage identifies it: no two requests of
  // a growing prompt are alike.
  const answer =
    answerId === undefined ? `${promptTokens} ${cachedTokens}` : hash("sha256", answerId).slice(0, 16);
  return promptTokens === 0 ? null : { answer, promptTokens, cachedTokens };
}

/** Output tokens are the only number of a report that concerns this message alone. */
function readCalibration(view: MessageView, tokens: number): PreparedMessage["calibration"] {
  const reported = view.usage?.outputTokens;
  const model = nameModel(view.model);
  if (view.role !== "assistant" || model === null || !reported) return null;
  return { model, estimated: tokens - MESSAGE_OVERHEAD_TOKENS, reported };
}
