/**
 * Derives what the engine needs to know of a message from its arrival bytes: who speaks, which parts it has and where
 * they stand, when it was said, by which model, at what cost. The bytes stay the only truth; a view can be thrown away
 * and derived again, which is what verification does, so nothing here looks at a clock, a locale or a setting.
 * Invariant: any bytes give a view, never an exception.
 */
import { isTime } from "../model/check-arrival.ts";
import type { MessageView, ModelIdentity, PartView, ReportedUsage, Role } from "../model/message.ts";
import { IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS } from "../model/tokens.ts";
import {
  blockKind,
  makeReasoningPart,
  makeTextPart,
  placeElements,
  placeMembers,
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
import { asBuffer, endOfText, mapMembers, startOfText } from "./json-spans.ts";
import { firstString, isObject, renderBytes, renderJson, type JsonObject } from "./readable.ts";

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

/** The same for whoever has parsed these very bytes already. */
export function viewParsed(arrival: Uint8Array, value: JsonObject): MessageView {
  const bytes = asBuffer(arrival);
  return viewRoot(bytes, { value, range: rangeOfText(bytes) });
}

function viewRoot(bytes: Buffer, root: Located): MessageView {
  const found = isObject(root.value) ? findMessage(bytes, root.value, root) : null;
  return found ? viewFound(bytes, found, root.value as JsonObject) : viewNoMessage(bytes, root);
}

/** A part for whoever sends it on: with its block as it was parsed, and no place in the bytes. */
export type SentPart = Omit<PartView, "at" | "length"> & { readonly block?: unknown };

/** The same view without places, which are most of the work: a context is made of hundreds of messages at once. */
export function viewForModel(
  arrival: Uint8Array,
): Omit<MessageView, "parts"> & { readonly parts: readonly SentPart[] } {
  const root = parseRoot(asBuffer(arrival));
  const found = root && isObject(root.value) ? findMessage(null, root.value, root) : null;
  if (!found) return viewMessage(arrival);
  const view = viewFound(null, found, root?.value as JsonObject);
  if (view.parts.every((part) => part.type !== "other")) return view;
  // Blocks nobody knows are shown as they are written.
  const written = viewMessage(arrival);
  const blocks: readonly SentPart[] = view.parts;
  return {
    ...written,
    parts: written.parts.map((part, index) => ({ ...part, block: blocks[index]?.block })),
  };
}

function parseRoot(bytes: Buffer): Located | null {
  const range = rangeOfText(bytes);
  try {
    // All the rest is parsed, so that bytes behind the value make the line unreadable, not half read.
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

function viewFound(bytes: Buffer | null, found: FoundMessage, envelope: JsonObject): MessageView {
  const message = found.value;
  const role = found.role === "user" && holdsOnlyResults(message) ? "tool" : found.role;
  const drafts = readDrafts(bytes, found);
  return {
    role,
    rawRole: found.rawRole,
    parts: numberParts(drafts),
    isMessage: true,
    ...dropUndefined({
      createdAt: readTime(message) ?? readTime(envelope),
      model: readModel(message),
      usage: readUsage(message["usage"]),
      answerId:
        firstString(message, "responseId") ?? (message === envelope ? undefined : firstString(message, "id")),
      stopReason: firstString(message, "stopReason", "stop_reason", "finish_reason"),
    }),
  };
}

function readDrafts(bytes: Buffer | null, found: FoundMessage): PartDraft[] {
  if (found.shape === "message") return readMessageParts(bytes, found, found.role);
  if (found.shape === "block") return readBlock(bytes, found, null);
  return withBlock(bytes, readToolResult(bytes, found.value, found.range), found.value);
}

/** Claude Code and Gemini hand tool results over as messages of the user. */
function holdsOnlyResults(message: JsonObject): boolean {
  const content = message["content"] ?? message["parts"];
  if (!Array.isArray(content) || content.length === 0) return false;
  return content.every((block) => isObject(block) && blockKind(block) === "tool_result");
}

function readMessageParts(bytes: Buffer | null, found: FoundMessage, role: Role): PartDraft[] {
  const message = found.value;
  const placeOf = placeMembers(bytes, found);
  const locate = (key: string): Located | null => {
    const range = placeOf(key);
    return range ? { value: message[key], range } : null;
  };
  const resultOf = role === "tool" ? readResultOf(message) : null;
  const reasoning = readStringMembers(message, locate, ["reasoning_content", "reasoning", "thinking"]);
  const parts = reasoning.flatMap(({ range, text }) =>
    withBlock(bytes, [makeReasoningPart(range, text)], text),
  );
  parts.push(...readThoughts(bytes, locate("thoughts")));
  parts.push(...readBody(bytes, message, locate, resultOf));
  parts.push(...readCalls(bytes, locate));
  return resultOf ? withResultPart(bytes, found, parts, resultOf) : parts;
}

/** `content`, or Gemini's `parts`, or the members that stand in for it in messages of other kinds. */
function readBody(
  bytes: Buffer | null,
  message: JsonObject,
  locate: (key: string) => Located | null,
  resultOf: ResultOf | null,
): PartDraft[] {
  const content = locate("content") ?? locate("parts");
  const body = content ? readContent(bytes, content, resultOf) : [];
  const keys = content ? ["refusal"] : ["command", "output", "summary", "text", "refusal"];
  for (const { key, range, text } of readStringMembers(message, locate, keys)) {
    const part = makeTextPart(range, key === "command" ? `$ ${text}` : text, resultOf);
    body.push(...withBlock(bytes, [part], text));
  }
  return body;
}

/** Thoughts of Gemini: a heading and what was thought under it. */
function readThoughts(bytes: Buffer | null, list: Located | null): PartDraft[] {
  if (list === null || !Array.isArray(list.value)) return [];
  const parts: PartDraft[] = [];
  let index = 0;
  for (const range of placeElements(bytes, list)) {
    const thought: unknown = list.value[index++];
    if (!isObject(thought)) continue;
    const text = ["subject", "description"]
      .map((key) => firstString(thought, key))
      .filter(Boolean)
      .join("\n");
    parts.push(...withBlock(bytes, [makeReasoningPart(range, text)], thought));
  }
  return parts;
}

/** Members that list calls beside the content: OpenAI's chat dialect, Gemini and Kimi, Copilot. */
const CALL_LISTS = ["tool_calls", "toolCalls", "toolRequests"] as const;

function readCalls(bytes: Buffer | null, locate: (key: string) => Located | null): PartDraft[] {
  const parts: PartDraft[] = [];
  for (const key of CALL_LISTS) {
    const list = locate(key);
    if (!list || !Array.isArray(list.value)) continue;
    let index = 0;
    for (const range of placeElements(bytes, list)) {
      const value: unknown = list.value[index++];
      if (isObject(value)) parts.push(...readListedCall(bytes, { value, range }));
    }
  }
  const single = locate("function_call");
  if (single && isObject(single.value))
    parts.push(...withBlock(bytes, [readToolCall(single.range, single.value)], single.value));
  return parts;
}

interface StringMember {
  readonly key: string;
  readonly text: string;
  readonly range: Located["range"];
}

function readStringMembers(
  object: JsonObject,
  locate: (key: string) => Located | null,
  keys: readonly string[],
): StringMember[] {
  const members: StringMember[] = [];
  for (const key of keys) {
    const text = object[key];
    const located = typeof text === "string" && text !== "" ? locate(key) : null;
    if (located) members.push({ key, text: text as string, range: located.range });
  }
  return members;
}

/** Drafts become parts where they stand: they are new and nobody else's yet. */
function numberParts(drafts: readonly PartDraft[]): PartView[] {
  return drafts.map((draft, ordinal) => Object.assign(draft, { ordinal }));
}

/** A line that is no message: a header, a note of the host, a summary. What is plainly text in it can be searched. */
function viewNoMessage(bytes: Buffer, root: Located): MessageView {
  const createdAt = isObject(root.value) ? readTime(root.value) : undefined;
  const parts = numberParts(readLooseText(bytes, root));
  return { role: "other", rawRole: "", parts, isMessage: false, ...dropUndefined({ createdAt }) };
}

function readLooseText(bytes: Buffer, root: Located): PartDraft[] {
  const { value, range } = root;
  if (typeof value === "string") return [{ ...makeTextPart(range, value, null), type: "other" }];
  if (!isObject(value)) return [{ ...range, type: "other", text: renderJson(bytes, range, value).text }];
  const parts: PartDraft[] = [];
  const ranges = mapMembers(bytes, range);
  for (const key of ["content", "summary", "text"]) {
    const member = value[key];
    const memberRange = ranges.get(key);
    const isText = typeof member === "string" || (key === "content" && Array.isArray(member));
    if (memberRange && isText) parts.push(...readContent(bytes, { value: member, range: memberRange }, null));
  }
  return parts;
}

function viewUnreadable(bytes: Buffer): MessageView {
  const range = { at: 0, length: bytes.length };
  const part: PartView = { ordinal: 0, ...range, type: "other", text: renderBytes(bytes, range).text };
  return { role: "other", rawRole: "", parts: [part], isMessage: false };
}

type Known<T> = Partial<{ [K in keyof T]: Exclude<T[K], undefined> }>;

/** Called for every message that is read, so without lists of entries. */
function dropUndefined<T extends object>(object: T): Known<T> {
  const known: Record<string, unknown> = {};
  for (const key of Object.keys(object)) {
    const value = object[key as keyof T];
    if (value !== undefined) known[key] = value;
  }
  return known as Known<T>;
}

function readTime(object: JsonObject): number | undefined {
  for (const key of ["timestamp", "createdAt", "created_at", "time", "ts"]) {
    const time = parseTime(object[key]);
    if (time !== undefined) return time;
  }
  return undefined;
}

const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|[+-]\d\d:?\d\d)?)?$/i;
/** Numbers below this are seconds: as milliseconds they would lie before March 1973. */
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
  const identity = dropUndefined({
    provider: firstString(message, "provider"),
    api: firstString(message, "api"),
    model: firstString(message, "model", "model_id"),
  });
  return Object.keys(identity).length > 0 ? identity : undefined;
}

/** Usage in one meaning: `inputTokens` are those that came from no cache, as Anthropic and pi count. */
function readUsage(usage: unknown): ReportedUsage | undefined {
  if (!isObject(usage)) return undefined;
  const details = usage["prompt_tokens_details"] ?? usage["input_tokens_details"];
  const cachedInside = isObject(details) ? firstCount(details, "cached_tokens") : undefined;
  const input = firstCount(usage, "input", "input_tokens", "prompt_tokens");
  const reported = dropUndefined({
    inputTokens: input === undefined ? undefined : Math.max(0, input - (cachedInside ?? 0)),
    outputTokens: firstCount(usage, "output", "output_tokens", "completion_tokens"),
    cacheReadTokens: cachedInside ?? firstCount(usage, "cacheRead", "cache_read_input_tokens"),
    cacheWriteTokens: firstCount(usage, "cacheWrite", "cache_creation_input_tokens"),
  });
  return Object.keys(reported).length > 0 ? reported : undefined;
}

function firstCount(object: JsonObject, ...keys: readonly string[]): number | undefined {
  for (const key of keys) {
    const value = object[key];
    if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  }
  return undefined;
}

/** The readable text of an arrival, as the index holds it, without the work for everything else in a view. */
export function readSearchText(arrival: Uint8Array | string): string {
  const root = typeof arrival === "string" ? parseText(arrival) : parseRoot(asBuffer(arrival));
  const found = root && isObject(root.value) ? findMessage(null, root.value, root) : null;
  const drafts = found ? readDrafts(null, found) : [];
  // Blocks nobody knows are shown as they are written, which takes their places.
  const isPlain = found !== null && drafts.every((part) => part.type !== "other");
  if (isPlain) return searchText({ parts: drafts });
  return searchText(viewMessage(typeof arrival === "string" ? Buffer.from(arrival) : arrival));
}

/** Places are not known then, and nobody asks for them. */
function parseText(text: string): Located | null {
  try {
    return { value: JSON.parse(text) as unknown, range: { at: 0, length: text.length } };
  } catch {
    return null;
  }
}

/** All readable text of a message, part by part: what the index holds. */
export function searchText(view: { readonly parts: readonly Pick<PartView, "text">[] }): string {
  return view.parts
    .map((part) => part.text)
    .filter((text) => text !== "")
    .join("\n");
}

/** Punctuation that arguments have on the wire and their readable form has not, per line: measured on 1097 real calls. */
const ARGUMENT_LINE_TOKENS = 1.35;
/** Block type, id and name of a call or a result on the wire. */
const TOOL_FRAME_TOKENS = 8;
/** Base64 characters per token, times the bytes each stands for. */
const BYTES_PER_BASE64_TOKEN = 3;

/**
 * Tokens of a message as a provider would count it when sent: its parts, a flat price for each image and file, and the
 * frame around them. Base64 that stands in the middle of a text is paid by the character.
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
  return TOOL_FRAME_TOKENS + Math.ceil(ARGUMENT_LINE_TOKENS * part.text.split("\n").length);
}
