/**
 * Everything about a message that needs no lock: reading it, cutting out large payloads, counting tokens, analysing its text, and
 * compressing it. `deriveMessage` is the part that follows from the bytes alone; `verify` calls it again to check what is stored.
 */
import { hash } from "node:crypto";
import { commit, SALT_BYTES } from "../model/chain.ts";
import { ANY_FILE_ID, renderReference } from "../model/large-file.ts";
import { HIDDEN } from "../model/message.ts";
import type { MessageView } from "../model/message.ts";
import { estimateTextTokens, MESSAGE_OVERHEAD_TOKENS } from "../model/tokens.ts";
import { encodeBody } from "../store/body.ts";
import { cutRanges, spliceRanges } from "../store/splice.ts";
import type { CutPayload, DerivedMessage, PreparedMessage, PreparedPayload } from "../store/store.ts";
import { analyzeForIndex } from "../text/index.ts";
import { exploreContent, extensionFor } from "./explore.ts";
import { cutPayloads, findLargePayloads } from "./large-payloads.ts";
import type { Payload } from "./large-payloads.ts";
import { messageTokens, searchText, viewMessage } from "../message/normalize.ts";

export interface PrepareOptions {
  /** Reasons the caller hides the message for (bit mask). */
  readonly hidden: number;
  /** Time of the message when its bytes carry none. */
  readonly createdAt: number;
  readonly largeFileThresholdTokens: number;
  readonly random: (size: number) => Uint8Array;
}

export function prepareMessage(arrival: Uint8Array, options: PrepareOptions): PreparedMessage {
  const view = viewMessage(arrival);
  const payloads = findLargePayloads(arrival, view, {
    thresholdTokens: options.largeFileThresholdTokens,
    estimate: estimateTextTokens,
  }).map(preparePayload);
  const salt = options.random(SALT_BYTES);
  const derived = deriveFromView(arrival, view, payloads.map(toCut));
  return {
    ...derived,
    createdAt: view.createdAt ?? options.createdAt,
    hidden: view.isMessage ? options.hidden : options.hidden | HIDDEN.meta,
    ...encodeBody(cutPayloads(arrival, payloads).body),
    arrivalBytes: arrival.byteLength,
    salt,
    commitment: commit(salt, arrival),
    payloads,
    calibration: readCalibration(view, derived.tokens),
  };
}

/** What follows from the bytes handed in and from what was cut out of them, and from nothing else. */
export function deriveMessage(bytes: Uint8Array, cuts: readonly CutPayload[]): DerivedMessage {
  return deriveFromView(bytes, viewMessage(bytes), cuts);
}

function deriveFromView(bytes: Uint8Array, view: MessageView, cuts: readonly CutPayload[]): DerivedMessage {
  const shown = cuts.length === 0 ? view : viewMessage(replaceByReferences(bytes, cuts));
  return {
    role: view.role,
    tokens: messageTokens(shown, estimateTextTokens),
    parts: view.parts.map(({ type, at, length, toolCallId, toolName }) => ({
      type,
      at,
      length,
      ...(toolCallId === undefined ? {} : { toolCallId }),
      ...(toolName === undefined ? {} : { toolName }),
    })),
    terms: indexTerms(view, shown),
  };
}

/**
 * The text around payloads is indexed in order, so that phrases are found there; of a payload every term, once: a log names the same
 * words ten thousand times, and searching files reads it line by line anyway.
 */
function indexTerms(view: MessageView, shown: MessageView): DerivedMessage["terms"] {
  const whole = analyzeRemembering(searchText(view));
  if (shown === view) return whole;
  const around = analyzeRemembering(searchText(shown));
  return { words: addMissing(around.words, whole.words), idents: addMissing(around.idents, whole.idents) };
}

interface StretchTerms {
  readonly words: string;
  readonly idents: readonly string[];
}

/** Longer stretches between blanks hardly ever come back. */
const MAX_REMEMBERED_CHARS = 40;
const MAX_REMEMBERED = 20_000;
const remembered = new Map<string, StretchTerms>();

/**
 * The same terms as `analyzeForIndex(text)`, in half the time: no term reaches across a blank, so what stands between two blanks is
 * analysed once and remembered, and texts repeat themselves.
 */
export function analyzeRemembering(text: string): DerivedMessage["terms"] {
  const words: string[] = [];
  const idents = new Set<string>();
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) <= BLANK) continue;
    const start = at;
    while (at < text.length && text.charCodeAt(at) > BLANK) at++;
    const found = analyzeStretch(takeStretch(text, start, at));
    if (found.words !== "") words.push(found.words);
    for (const ident of found.idents) idents.add(ident);
  }
  return { words: words.join(" "), idents: [...idents].join(" ") };
}

/** The space; every unit below it is a blank too. */
const BLANK = 0x20;

/** A number with an arrow is read over at the start of a line only, so elsewhere a blank must stand before it to tell. */
function takeStretch(text: string, start: number, end: number): string {
  const stretch = text.slice(start, end);
  const first = text.charCodeAt(start);
  const mayBeLineNumber = !(first < 128 && (first < 0x30 || first > 0x39)) && stretch.includes("→");
  if (!mayBeLineNumber) return stretch;
  let lineStart = start;
  while (text.charCodeAt(lineStart - 1) === BLANK) lineStart--;
  return lineStart === 0 || text[lineStart - 1] === "\n" ? stretch : `\t${stretch}`;
}

function analyzeStretch(stretch: string): StretchTerms {
  const known = remembered.get(stretch);
  if (known) return known;
  const { words, idents } = analyzeForIndex(stretch);
  const terms: StretchTerms = { words, idents: idents === "" ? [] : idents.split(" ") };
  if (stretch.length <= MAX_REMEMBERED_CHARS) {
    if (remembered.size >= MAX_REMEMBERED) remembered.clear();
    remembered.set(stretch, terms);
  }
  return terms;
}

function addMissing(terms: string, more: string): string {
  const present = new Set(terms.split(" "));
  const missing = [...new Set(more.split(" "))].filter((term) => !present.has(term));
  return [terms, ...missing].filter((term) => term !== "").join(" ");
}

/** The message as a model would see it: a reference stands where each payload stood. */
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

function preparePayload(payload: Payload): PreparedPayload {
  const { at, length, encoding, content, mimeType } = payload;
  const fileName = payload.fileName ?? null;
  const described = { mimeType, ...(fileName === null ? {} : { fileName }) };
  return {
    at,
    length,
    encoding,
    content,
    sha256: hash("sha256", content),
    fileName,
    mimeType,
    extension: extensionFor(described),
    lineCount: mimeType.startsWith("text/") || mimeType.includes("json") ? countLines(content) : null,
    explorationSummary: exploreContent({ ...described, bytes: content }),
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

/** Output tokens are the one number of a report that speaks of this message alone. */
function readCalibration(view: MessageView, tokens: number): PreparedMessage["calibration"] {
  const reported = view.usage?.outputTokens;
  if (view.role !== "assistant" || view.model?.model === undefined || !reported) return null;
  const { provider, model } = view.model;
  const estimated = tokens - MESSAGE_OVERHEAD_TOKENS;
  return { model: provider === undefined ? model : `${provider}/${model}`, estimated, reported };
}
