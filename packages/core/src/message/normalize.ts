/**
 * Derives what the engine needs to know about a message from its arrival bytes: who speaks, its parts and their ranges, its time, its
 * model, its cost. The bytes stay the only source of truth; a view can be discarded and derived again, as verify does, so nothing here
 * depends on a clock, a locale or a setting. Invariant: any bytes give a view, never an exception.
 */
import { isTime } from "./check-arrival.ts";
import type { MessageView, ModelIdentity, PartView, ReportedUsage, Role } from "../model/message.ts";
import { IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS } from "../text/tokens.ts";
import type { Writable } from "./writable.ts";
import { blockKind } from "./block-kinds.ts";
import { isBookkeeping } from "./bookkeeping.ts";
import {
  makeReasoningPart,
  makeTextPart,
  locateElements,
  locateMember,
  readBlock,
  readContent,
  readListedCall,
  readResultOf,
  readToolCall,
  readToolResult,
  withBlock,
  withResultPart,
  type Located,
  type PartDraft,
  type ResultOf,
} from "./blocks.ts";
import { findMessage, type FoundMessage } from "./find-message.ts";
import { asBuffer, endOfText, startOfText, type JsonSource } from "./json-spans.ts";
import { firstString, renderBytes, renderJson } from "./readable.ts";
import { isObject, type JsonObject } from "../text/json-object.ts";

/**
 * The view of one arrival.
 *
 * @example viewMessage(Buffer.from('{"role":"user","content":"hi"}')).parts[0]?.text // "hi"
 */
export function viewMessage(arrival: Uint8Array): MessageView {
  const bytes = asBuffer(arrival);
  const root = parseRoot(bytes);
  return root === null ? viewUnreadable(bytes) : viewRoot(bytes, root);
}

/** The same for a caller that has already parsed these bytes. */
export function viewParsed(arrival: Uint8Array, value: JsonObject): MessageView {
  const bytes = asBuffer(arrival);
  return viewRoot(bytes, { value, range: rangeOfText(bytes) });
}

function viewRoot(bytes: Buffer, root: Located): MessageView {
  const source: JsonSource = { bytes, noted: [] };
  const found = isObject(root.value) ? findMessage(source, root.value, root) : null;
  const view = found ? viewFound(source, found, root.value as JsonObject) : viewNoMessage(source, root);
  return isBookkeeping(root.value) ? { ...view, isBookkeeping: true } : view;
}

/** A part for sending: with its parsed block, and without a byte range. */
export type SentPart = Omit<PartView, "at" | "length"> & { readonly block?: unknown };

/** The same view without byte ranges, which are most of the work: a context is made of hundreds of messages at once. */
export function viewForModel(
  arrival: Uint8Array,
): Omit<MessageView, "parts"> & { readonly parts: readonly SentPart[] } {
  const root = parseRoot(asBuffer(arrival));
  const found = root && isObject(root.value) ? findMessage(null, root.value, root) : null;
  if (!found) return viewMessage(arrival);
  const view = viewFound(null, found, root?.value as JsonObject);
  if (view.parts.every((part) => part.type !== "other")) return view;
  // Unknown blocks are shown as written.
  const written = viewMessage(arrival);
  const blocks: readonly SentPart[] = view.parts;
  return {
    ...written,
    parts: written.parts.map((part, index) => ({ ...part, block: blocks[index]?.block })),
  };
}

/** The time in the bytes, without the work for the rest of a view. */
export function readOwnTime(arrival: Uint8Array): number | undefined {
  const root = parseRoot(asBuffer(arrival));
  if (root === null || !isObject(root.value)) return undefined;
  const found = findMessage(null, root.value, root);
  return (found && readTime(found.value)) ?? readTime(root.value);
}

function parseRoot(bytes: Buffer): Located | null {
  const range = rangeOfText(bytes);
  try {
    // Everything after it is parsed, so that bytes after the value make the line unreadable, not half read.
    const value = JSON.parse(bytes.toString("utf8", range.at)) as unknown;
    return { value, range };
  } catch {
    return null;
  }
}

function rangeOfText(bytes: Buffer): Located["range"] {
  const at = startOfText(bytes);
  return { at, length: endOfText(bytes) - at };
}

/** Unknown members stay absent. Called for every message that is read, so members are set one by one. */
function viewFound(source: JsonSource | null, found: FoundMessage, envelope: JsonObject): MessageView {
  const message = found.value;
  const view: Writable<MessageView> = {
    role: found.role === "user" && holdsOnlyResults(message) ? "tool" : found.role,
    rawRole: found.rawRole,
    parts: numberParts(readDrafts(source, found)),
    isMessage: true,
  };
  const createdAt = readTime(message) ?? readTime(envelope);
  if (createdAt !== undefined) view.createdAt = createdAt;
  const model = readModel(message);
  if (model !== undefined) view.model = model;
  const usage = readUsage(message["usage"]);
  if (usage !== undefined) view.usage = usage;
  const answerId =
    firstString(message, "responseId") ?? (message === envelope ? undefined : firstString(message, "id"));
  if (answerId !== undefined) view.answerId = answerId;
  const stopReason = firstString(message, "stopReason", "stop_reason", "finish_reason");
  if (stopReason !== undefined) view.stopReason = stopReason;
  return view;
}

function readDrafts(source: JsonSource | null, found: FoundMessage): PartDraft[] {
  if (found.shape === "message") return readMessageParts(source, found, found.role);
  if (found.shape === "block") return readBlock(source, found, null);
  return withBlock(source, readToolResult(source, found.value, found.range), found.value);
}

/** Claude Code and Gemini write tool results as messages of the user. */
function holdsOnlyResults(message: JsonObject): boolean {
  const content = message["content"] ?? message["parts"];
  if (!Array.isArray(content) || content.length === 0) return false;
  return content.every((block) => isObject(block) && blockKind(block) === "tool_result");
}

const REASONING_KEYS = ["reasoning_content", "reasoning", "thinking"] as const;

function readMessageParts(source: JsonSource | null, found: FoundMessage, role: Role): PartDraft[] {
  const resultOf = role === "tool" ? readResultOf(found.value) : null;
  const parts: PartDraft[] = [];
  for (const key of REASONING_KEYS) {
    const member = locateText(source, found, key);
    if (member === null) continue;
    parts.push(...withBlock(source, [makeReasoningPart(member.range, member.value)], member.value));
  }
  addThoughts(parts, source, found);
  addBody(parts, source, found, resultOf);
  addCalls(parts, source, found);
  return resultOf ? withResultPart(source, found, parts, resultOf) : parts;
}

function locate(source: JsonSource | null, found: FoundMessage, key: string): Located | null {
  const range = locateMember(source, found, key);
  return range ? { value: found.value[key], range } : null;
}

/** A member that is a non-empty text. */
function locateText(
  source: JsonSource | null,
  found: FoundMessage,
  key: string,
): (Located & { readonly value: string }) | null {
  const value = found.value[key];
  const range = typeof value === "string" && value !== "" ? locateMember(source, found, key) : null;
  return range ? { value: value as string, range } : null;
}

/** Members that replace the content in messages of other kinds. */
const STAND_INS = ["command", "output", "summary", "text", "refusal"] as const;
const BESIDE_CONTENT = ["refusal"] as const;

/** `content`, or Gemini's `parts`, or the member that replaces it. */
function addBody(
  parts: PartDraft[],
  source: JsonSource | null,
  found: FoundMessage,
  resultOf: ResultOf | null,
): void {
  const content = locate(source, found, "content") ?? locate(source, found, "parts");
  if (content) for (const part of readContent(source, content, resultOf)) parts.push(part);
  for (const key of content ? BESIDE_CONTENT : STAND_INS) {
    const member = locateText(source, found, key);
    if (member === null) continue;
    const { value, range } = member;
    const part = makeTextPart(range, key === "command" ? `$ ${value}` : value, resultOf);
    parts.push(...withBlock(source, [part], value));
  }
}

/** Gemini's thoughts: a heading and the text under it. */
function addThoughts(parts: PartDraft[], source: JsonSource | null, found: FoundMessage): void {
  const list = locate(source, found, "thoughts");
  if (list === null || !Array.isArray(list.value)) return;
  let index = 0;
  for (const range of locateElements(source, list)) {
    const thought: unknown = list.value[index++];
    if (!isObject(thought)) continue;
    const text = ["subject", "description"]
      .map((key) => firstString(thought, key))
      .filter(Boolean)
      .join("\n");
    parts.push(...withBlock(source, [makeReasoningPart(range, text)], thought));
  }
}

/** Members that list calls beside the content: OpenAI's chat dialect, Gemini and Kimi, Copilot. */
const CALL_LISTS = ["tool_calls", "toolCalls", "toolRequests"] as const;

function addCalls(parts: PartDraft[], source: JsonSource | null, found: FoundMessage): void {
  for (const key of CALL_LISTS) {
    const list = locate(source, found, key);
    if (!list || !Array.isArray(list.value)) continue;
    let index = 0;
    for (const range of locateElements(source, list)) {
      const value: unknown = list.value[index++];
      if (isObject(value)) parts.push(...readListedCall(source, { value, range }));
    }
  }
  const single = locate(source, found, "function_call");
  if (single && isObject(single.value))
    parts.push(...withBlock(source, [readToolCall(single.range, single.value)], single.value));
}

/** Turns drafts into parts in place: they are new and not shared yet. */
function numberParts(drafts: PartDraft[]): PartView[] {
  let ordinal = 0;
  for (const draft of drafts as { ordinal?: number }[]) draft.ordinal = ordinal++;
  return drafts as PartView[];
}

/** A line that is not a message: a header, a note of the host, a summary. Its plain text can be searched. */
function viewNoMessage(source: JsonSource, root: Located): MessageView {
  const createdAt = isObject(root.value) ? readTime(root.value) : undefined;
  const parts = numberParts(readLooseText(source, root));
  const view: MessageView = { role: "other", rawRole: "", parts, isMessage: false };
  return createdAt === undefined ? view : { ...view, createdAt };
}

function readLooseText(source: JsonSource, root: Located): PartDraft[] {
  const { value, range } = root;
  if (typeof value === "string") return [{ ...makeTextPart(range, value, null), type: "other" }];
  if (!isObject(value))
    return [{ ...range, type: "other", text: renderJson(source.bytes, range, value).text }];
  const parts: PartDraft[] = [];
  for (const key of ["content", "summary", "text"]) {
    const member = value[key];
    const isText = typeof member === "string" || (key === "content" && Array.isArray(member));
    const memberRange = isText ? locateMember(source, root, key) : null;
    if (memberRange) parts.push(...readContent(source, { value: member, range: memberRange }, null));
  }
  return parts;
}

function viewUnreadable(bytes: Buffer): MessageView {
  const range = { at: 0, length: bytes.length };
  const part: PartView = { ordinal: 0, ...range, type: "other", text: renderBytes(bytes, range).text };
  return { role: "other", rawRole: "", parts: [part], isMessage: false };
}

const TIME_KEYS = ["timestamp", "createdAt", "created_at", "time", "ts"] as const;

function readTime(object: JsonObject): number | undefined {
  for (const key of TIME_KEYS) {
    const time = parseTime(object[key]);
    if (time !== undefined) return time;
  }
  return undefined;
}

const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|[+-]\d\d:?\d\d)?)?$/i;
/** Numbers below this are seconds: as milliseconds they would be before March 1973. */
const SECONDS_LIMIT = 1e11;

/** Milliseconds UTC. A time without a zone counts as UTC, so that every machine reads the same. */
function parseTime(value: unknown): number | undefined {
  if (typeof value === "string") {
    if (/^\d{9,16}(?:\.\d+)?$/.test(value)) return parseTime(Number(value));
    const match = ISO_TIME.exec(value);
    if (!match) return undefined;
    const [, day, clock = "00:00", zone = "Z"] = match;
    const time = Date.parse(`${day}T${clock}${zone.toUpperCase()}`);
    return Number.isNaN(time) ? undefined : time;
  }
  if (typeof value !== "number" || !(value > 0)) return undefined;
  const time = Math.floor(value < SECONDS_LIMIT ? value * 1000 : value);
  return isTime(time) ? time : undefined;
}

function readModel(message: JsonObject): ModelIdentity | undefined {
  const provider = firstString(message, "provider");
  const api = firstString(message, "api");
  const model = firstString(message, "model", "model_id");
  if (provider === undefined && api === undefined && model === undefined) return undefined;
  const identity: Writable<ModelIdentity> = {};
  if (provider !== undefined) identity.provider = provider;
  if (api !== undefined) identity.api = api;
  if (model !== undefined) identity.model = model;
  return identity;
}

/** Usage with one meaning: `inputTokens` are those not served from a cache, as Anthropic and pi count. */
export function readUsage(usage: unknown): ReportedUsage | undefined {
  if (!isObject(usage)) return undefined;
  const details = usage["prompt_tokens_details"] ?? usage["input_tokens_details"];
  const cachedInside = isObject(details) ? firstCount(details, "cached_tokens") : undefined;
  const input = firstCount(usage, "input", "input_tokens", "prompt_tokens");
  const output = firstCount(usage, "output", "output_tokens", "completion_tokens");
  const cacheRead = cachedInside ?? firstCount(usage, "cacheRead", "cache_read_input_tokens");
  const cacheWrite = firstCount(usage, "cacheWrite", "cache_creation_input_tokens");
  const reported: Writable<ReportedUsage> = {};
  if (input !== undefined) reported.inputTokens = Math.max(0, input - (cachedInside ?? 0));
  if (output !== undefined) reported.outputTokens = output;
  if (cacheRead !== undefined) reported.cacheReadTokens = cacheRead;
  if (cacheWrite !== undefined) reported.cacheWriteTokens = cacheWrite;
  return (input ?? output ?? cacheRead ?? cacheWrite) === undefined ? undefined : reported;
}

/** No request takes more tokens. Sums over all messages stay integers that a database can store, whatever a transcript says. */
const MAX_COUNT = 1e12;

function firstCount(object: JsonObject, ...keys: readonly string[]): number | undefined {
  for (const key of keys) {
    const value = object[key];
    if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT)
      return value;
  }
  return undefined;
}

/** The readable text of an arrival, without the work for the rest of a view; parts can be skipped. */
export function readText(arrival: Uint8Array | string, skipped: ReadonlySet<number> = NO_PARTS): string {
  return readRootText(arrival, parseArrival(arrival), skipped);
}

/** The same as searches see it: a line of the host's bookkeeping has nothing to be found by. */
export function readSearchText(
  arrival: Uint8Array | string,
  skipped: ReadonlySet<number> = NO_PARTS,
): string {
  const root = parseArrival(arrival);
  return isBookkeeping(root?.value) ? "" : readRootText(arrival, root, skipped);
}

const parseArrival = (arrival: Uint8Array | string): Located | null =>
  typeof arrival === "string" ? parseText(arrival) : parseRoot(asBuffer(arrival));

function readRootText(
  arrival: Uint8Array | string,
  root: Located | null,
  skipped: ReadonlySet<number>,
): string {
  const found = root && isObject(root.value) ? findMessage(null, root.value, root) : null;
  const drafts = found ? readDrafts(null, found) : [];
  // Unknown blocks are shown as written, which needs their ranges.
  const isPlain = found !== null && drafts.every((part) => part.type !== "other");
  const view = isPlain
    ? { parts: drafts }
    : viewMessage(typeof arrival === "string" ? Buffer.from(arrival) : arrival);
  if (skipped.size === 0) return searchText(view);
  return searchText({ parts: view.parts.filter((_part, ordinal) => !skipped.has(ordinal)) });
}

const NO_PARTS: ReadonlySet<number> = new Set();

/** Ranges are not known then, and not needed. */
function parseText(text: string): Located | null {
  try {
    return { value: JSON.parse(text) as unknown, range: { at: 0, length: text.length } };
  } catch {
    return null;
  }
}

/** All readable text of a message, part by part: what is indexed, unless it is bookkeeping. */
export function searchText(view: { readonly parts: readonly Pick<PartView, "text">[] }): string {
  return view.parts
    .map((part) => part.text)
    .filter((text) => text !== "")
    .join("\n");
}

/** Punctuation per line that arguments have on the wire but not in readable form: measured on 1097 real calls. */
const ARGUMENT_LINE_TOKENS = 1.35;
/** Block type, id and name of a call or a result on the wire. */
export const TOOL_FRAME_TOKENS = 8;
/** Base64 characters per token, times the bytes each encodes. */
const BYTES_PER_BASE64_TOKEN = 3;

/**
 * Tokens of a message as a provider would count it when sent: its parts, a flat price for each image and file, and the frame around them.
 * Base64 in the middle of a text is counted by the character.
 */
export function messageTokens(view: MessageView, estimate: (text: string) => number): number {
  let tokens = MESSAGE_OVERHEAD_TOKENS;
  for (const part of view.parts) tokens += partTokens(part, estimate);
  return tokens;
}

/** What one part adds to the tokens of its message. */
export function partTokens(
  part: Pick<PartView, "type" | "text" | "payloadBytes">,
  estimate: (text: string) => number,
): number {
  const text = part.text === "" ? 0 : estimate(part.text);
  if (part.type === "image" || part.type === "file")
    return text + (part.payloadBytes === undefined ? 0 : IMAGE_TOKENS);
  const inline = Math.ceil((part.payloadBytes ?? 0) / BYTES_PER_BASE64_TOKEN);
  return text + inline + frameTokens(part);
}

function frameTokens(part: Pick<PartView, "type" | "text">): number {
  if (part.type === "tool_result") return TOOL_FRAME_TOKENS;
  if (part.type !== "tool_call") return 0;
  return TOOL_FRAME_TOKENS + Math.ceil(ARGUMENT_LINE_TOKENS * countLines(part.text));
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
