/**
 * Reads the blocks of a message's content, in every dialect hosts write: Anthropic, OpenAI (chat and responses), Gemini, pi / OpenClaw. One
 * block gives one part, except that a tool result with its own blocks gives one part for each. Invariants: a part's range is the range of
 * its block in the arrival bytes; parts do not overlap; every tool result has at least one part of type `tool_result` with its call's id; a
 * part's text never contains base64.
 *
 * If the source is null, the caller does not need byte ranges, which cost more than all the rest: every range is `NOWHERE`, and each part
 * has its block instead.
 */
import type { ByteRange, PartType, PartView } from "../model/message.ts";
import { isRestartFrame, RESTART_TOOL } from "../model/restart-frame.ts";
import type { Writable } from "./writable.ts";
import { base64ByteLength, hideBase64, type ReadableText } from "./base64.ts";
import { blockKind } from "./block-kinds.ts";
import { findMember, findSpan, listElements, type JsonSource } from "./json-spans.ts";
import { firstString, renderJson, renderValue } from "./readable.ts";
import { isObject, type JsonObject } from "../text/json-object.ts";

export interface PartDraft extends Omit<PartView, "ordinal"> {
  /** The block, or the text in its place, when ranges are not needed. */
  readonly block?: unknown;
}

/** A parsed value and its range. */
export interface Located {
  readonly value: unknown;
  readonly range: ByteRange;
}

const NOWHERE: ByteRange = { at: 0, length: 0 };

/** The ranges of the elements of a list. */
export function locateElements(source: JsonSource | null, { value, range }: Located): readonly ByteRange[] {
  return source === null ? (value as readonly unknown[]).map(() => NOWHERE) : listElements(source, range);
}

/** The range of a member of an object; null if it has none. */
export function locateMember(
  source: JsonSource | null,
  { value, range }: Located,
  key: string,
): ByteRange | null {
  if (!Object.hasOwn(value as JsonObject, key)) return null;
  return source === null ? NOWHERE : findMember(source, range, key);
}

/** The call a tool result answers; its text blocks are results, not the user's words. */
export interface ResultOf {
  readonly toolCallId?: string | undefined;
  readonly toolName?: string | undefined;
  readonly isError?: boolean | undefined;
}

/** What a part can have besides its range, type and text; undefined members stay absent. */
interface Extras extends ResultOf {
  readonly mimeType?: string | undefined;
  readonly fileName?: string | undefined;
  readonly payloadBytes?: number | undefined;
}

const NO_EXTRAS: Extras = {};
const RESTART: Extras = { toolName: RESTART_TOOL };

/** Parts of a `content` member: a string, an array of blocks, or something unknown. */
export function readContent(
  source: JsonSource | null,
  content: Located,
  resultOf: ResultOf | null,
): PartDraft[] {
  const { value } = content;
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) {
    const { range } = content;
    const part =
      typeof value === "string" ? makeTextPart(range, value, resultOf) : readOther(source, content, resultOf);
    return withBlock(source, [part], value);
  }
  const ranges = locateElements(source, content);
  const [only] = ranges;
  if (ranges.length === 1 && only)
    return readBlock(source, { value: value[0] as unknown, range: only }, resultOf);
  const parts: PartDraft[] = [];
  let index = 0;
  for (const range of ranges) {
    for (const part of readBlock(source, { value: value[index++] as unknown, range }, resultOf))
      parts.push(part);
  }
  return parts;
}

/** Adds the block to the parts made from it, unless they have their own. The parts are new and not shared yet. */
export function withBlock(source: JsonSource | null, parts: PartDraft[], block: unknown): PartDraft[] {
  if (source !== null) return parts;
  for (const part of parts as { block?: unknown }[]) if (!("block" in part)) part.block = block;
  return parts;
}

export function readBlock(source: JsonSource | null, block: Located, resultOf: ResultOf | null): PartDraft[] {
  return withBlock(source, readParts(source, block, resultOf), block.value);
}

function readParts(source: JsonSource | null, block: Located, resultOf: ResultOf | null): PartDraft[] {
  const { value, range } = block;
  if (typeof value === "string") return [makeTextPart(range, value, resultOf)];
  if (!isObject(value)) return [readOther(source, block, resultOf)];
  switch (blockKind(value)) {
    case "text":
      return [makeTextPart(range, firstString(value, "text") ?? "", resultOf)];
    case "reasoning":
      return [makePart(range, "reasoning", hideBase64(readReasoning(value)), NO_EXTRAS)];
    case "tool_call":
      return [readToolCall(range, value)];
    case "tool_result":
      // A result inside a result is kept as an unknown block: no host nests them, and depth stays bounded.
      return resultOf ? [readOther(source, block, resultOf)] : readToolResult(source, value, range);
    case "image":
      return [readMedia(range, "image", value, resultOf)];
    case "file":
      return [readMedia(range, "file", value, resultOf)];
    case "other":
      return [readRefusal(value, range) ?? readOther(source, block, resultOf)];
  }
}

function makePart(range: ByteRange, type: PartType, readable: ReadableText, extras: Extras): PartDraft {
  const { at, length } = range;
  const part: Writable<PartDraft> = { at, length, type, text: readable.text };
  if (extras !== NO_EXTRAS) addExtras(part, extras);
  if (readable.hiddenBytes > 0) part.payloadBytes = readable.hiddenBytes;
  return part;
}

function addExtras(part: Writable<PartDraft>, extras: Extras): void {
  const { toolCallId, toolName, isError, mimeType, fileName, payloadBytes } = extras;
  if (toolCallId !== undefined) part.toolCallId = toolCallId;
  if (toolName !== undefined) part.toolName = toolName;
  if (isError !== undefined) part.isError = isError;
  if (mimeType !== undefined) part.mimeType = mimeType;
  if (fileName !== undefined) part.fileName = fileName;
  if (payloadBytes !== undefined) part.payloadBytes = payloadBytes;
}

export function makeTextPart(range: ByteRange, text: string, resultOf: ResultOf | null): PartDraft {
  if (resultOf === null && isRestartFrame(text)) return makePart(range, "text", hideBase64(text), RESTART);
  return makePart(range, resultOf ? "tool_result" : "text", hideBase64(text), resultOf ?? NO_EXTRAS);
}

export function makeReasoningPart(range: ByteRange, text: string): PartDraft {
  return makePart(range, "reasoning", hideBase64(text), NO_EXTRAS);
}

function readOther(
  source: JsonSource | null,
  { value, range }: Located,
  resultOf: ResultOf | null,
): PartDraft {
  return makePart(range, "other", renderJson(source && source.bytes, range, value), resultOf ?? NO_EXTRAS);
}

function readRefusal(block: JsonObject, range: ByteRange): PartDraft | null {
  const refusal = block["type"] === "refusal" ? firstString(block, "refusal", "text") : undefined;
  return refusal === undefined ? null : makeTextPart(range, refusal, null);
}

/** Readable reasoning only; encrypted or redacted reasoning has no text. */
function readReasoning(block: JsonObject): string {
  if (block["redacted"] === true) return "";
  const own = firstString(block, "thinking", "think", "text", "reasoning");
  if (own !== undefined) return own;
  const texts: string[] = [];
  for (const list of [block["summary"], block["content"]]) {
    if (typeof list === "string") texts.push(list);
    if (!Array.isArray(list)) continue;
    for (const item of list as unknown[]) if (isObject(item)) texts.push(firstString(item, "text") ?? "");
  }
  return texts.filter((text) => text !== "").join("\n");
}

/** A call in any dialect. OpenAI chat puts name and arguments into `function`, Gemini into `functionCall`, Grok into `kind`. */
export function readToolCall(range: ByteRange, block: JsonObject): PartDraft {
  const call = openCall(block);
  const toolName = firstString(call, "name", "toolName", "tool_type");
  const { text, hiddenBytes } = renderValue(readArguments(call) ?? {});
  const named = toolName === undefined || text === "" ? (toolName ?? text) : `${toolName}\n${text}`;
  const toolCallId = firstString(call, "call_id", "id", "toolCallId", "callId");
  return makePart(range, "tool_call", { text: named, hiddenBytes }, { toolCallId, toolName });
}

function openCall(block: JsonObject): JsonObject {
  const nested = block["function"] ?? block["functionCall"] ?? block["kind"];
  return isObject(nested) ? { ...block, ...nested } : block;
}

const ARGUMENT_KEYS = ["arguments", "input", "args", "parameters", "action"] as const;

/** The arguments of a call: usually an object; a text that is not JSON stays a text; undefined when there are none. */
export function readCallArguments(block: JsonObject): unknown {
  return readArguments(openCall(block));
}

function readArguments(call: JsonObject): unknown {
  const key = ARGUMENT_KEYS.find((name) => call[name] !== undefined && call[name] !== null);
  return key === undefined ? undefined : parseArguments(call[key]);
}

/** OpenAI sends arguments as JSON text, which may be truncated or not be JSON at all. */
function parseArguments(args: unknown): unknown {
  if (typeof args !== "string") return args;
  if (!/^\s*[[{]/.test(args)) return args;
  try {
    return JSON.parse(args) as unknown;
  } catch {
    return args;
  }
}

/**
 * An element of a list of calls. Some hosts keep the result beside the arguments; the range of the call is then only its arguments, so that
 * it does not overlap with those of the result.
 */
export function readListedCall(source: JsonSource | null, element: Located): PartDraft[] {
  const block = element.value as JsonObject;
  const results = block["result"];
  const args = Array.isArray(results) ? locateMember(source, element, "args") : null;
  const list = args === null ? null : locateMember(source, element, "result");
  if (!Array.isArray(results) || args === null || list === null)
    return withBlock(source, [readToolCall(element.range, block)], block);
  const call = { ...readToolCall(args, block), holdsArguments: true };
  const isError = block["status"] === "error" ? true : undefined;
  const { toolCallId, toolName } = call;
  const resultOf = { toolCallId, toolName, isError };
  const parts = withBlock(source, [call], block["args"]);
  let index = 0;
  for (const range of locateElements(source, { value: results, range: list })) {
    const value: unknown = results[index++];
    const isResult = isObject(value) && blockKind(value) === "tool_result";
    const answers = readBlock(source, { value, range }, isResult ? null : resultOf);
    parts.push(...answers.map((part) => ({ ...dropAbsent(resultOf), ...part })));
  }
  return parts;
}

function dropAbsent(resultOf: ResultOf): Partial<PartDraft> {
  return Object.fromEntries(Object.entries(resultOf).filter(([, value]) => value !== undefined));
}

const RESULT_ID_KEYS = [
  "tool_use_id",
  "tool_call_id",
  "toolCallId",
  "toolUseId",
  "call_id",
  "callId",
] as const;
const RESULT_CONTENT_KEYS = ["content", "output", "result", "response", "value"] as const;

/** Which call an object (a block, or a message of role tool) says it answers. */
export function readResultOf(object: JsonObject): ResultOf {
  const isError = object["isError"] ?? object["is_error"] ?? (object["success"] === false ? true : undefined);
  return {
    toolCallId: firstString(object, ...RESULT_ID_KEYS),
    toolName: firstString(object, "toolName", "tool_name", "name"),
    isError: typeof isError === "boolean" ? isError : undefined,
  };
}

export function readToolResult(source: JsonSource | null, outer: JsonObject, range: ByteRange): PartDraft[] {
  const nested = outer["functionResponse"];
  const block = isObject(nested) ? nested : outer;
  const own = readResultOf(block);
  // If a result has an id but names no call, the id is the call's.
  const resultOf = { ...own, toolCallId: own.toolCallId ?? firstString(block, "id") };
  const key = RESULT_CONTENT_KEYS.find((name) => block[name] !== undefined && block[name] !== null);
  const value = key === undefined ? undefined : block[key];
  if (key === undefined || value === undefined) return [makePart(range, "tool_result", NO_TEXT, resultOf)];
  if (typeof value === "string") return [makeTextPart(range, value, resultOf)];
  const path = block === outer ? [key] : ["functionResponse", key];
  const content = source === null ? NOWHERE : findSpan(source, path, range);
  if (Array.isArray(value) && value.length > 0 && content) {
    const parts = readContent(source, { value, range: content }, resultOf);
    return withResultPart(source, { value: outer, range }, parts, resultOf);
  }
  if (isObject(value) && typeof value["type"] === "string" && blockKind(value) === "text") {
    return [makeTextPart(range, firstString(value, "text") ?? "", resultOf)];
  }
  const inner = isObject(value) ? openResult(value) : null;
  if (inner !== null)
    return [makeTextPart(range, inner.text, { ...resultOf, isError: inner.isError ?? resultOf.isError })];
  return [makePart(range, "tool_result", renderValue(value), resultOf)];
}

/** An object around one text, otherwise with nothing but flags: the text is the result. */
function openResult(value: JsonObject): { text: string; isError: boolean | undefined } | null {
  const keys = Object.keys(value).filter((key) => typeof value[key] !== "boolean" && value[key] !== null);
  const [key] = keys;
  if (keys.length !== 1 || (key !== "output" && key !== "content")) return null;
  const text = value[key];
  return typeof text === "string" ? { text, isError: readResultOf(value).isError } : null;
}

const NO_TEXT: ReadableText = { text: "", hiddenBytes: 0 };

/**
 * A result that contains only images would look like an unanswered call to code that pairs calls with results. Such a result gets an empty
 * part whose range is the literal of its call's id.
 */
export function withResultPart(
  source: JsonSource | null,
  owner: Located,
  parts: PartDraft[],
  resultOf: ResultOf,
): PartDraft[] {
  if (resultOf.toolCallId === undefined || parts.some((part) => part.type === "tool_result")) return parts;
  const idKey = RESULT_ID_KEYS.find((key) => Object.hasOwn(owner.value as JsonObject, key));
  const idRange = idKey === undefined ? null : locateMember(source, owner, idKey);
  return idRange ? [makePart(idRange, "tool_result", NO_TEXT, resultOf), ...parts] : parts;
}

/** An image, document, sound or other file: what it is, and how large, but never its data. */
function readMedia(
  range: ByteRange,
  type: "image" | "file",
  block: JsonObject,
  resultOf: ResultOf | null,
): PartDraft {
  const source = mediaSource(block);
  const url = mediaUrl(block, source);
  const dataUrl = url?.startsWith("data:") ? url : undefined;
  const mimeType =
    firstString(source, "media_type", "mimeType", "mime_type") ??
    firstString(block, "mimeType", "media_type", "mime_type") ??
    (dataUrl === undefined ? undefined : /^data:([^;,]+)/.exec(dataUrl)?.[1]);
  const fileName =
    firstString(source, "filename", "fileName", "name") ??
    firstString(block, "filename", "fileName", "name", "title");
  const data = dataUrl === undefined ? mediaData(source) : dataUrl.slice(dataUrl.indexOf(",") + 1);
  const isEncoded = data !== undefined && looksEncoded(data) && source["type"] !== "text";
  const words = firstString(source, "text") ?? (isEncoded ? undefined : data);
  const link = dataUrl === undefined ? (url ?? firstString(source, "uri")) : undefined;
  const text = [fileName, link, words].filter((piece) => piece).join("\n");
  const payloadBytes = isEncoded ? base64ByteLength(data) : undefined;
  const extras = { ...resultOf, mimeType: mimeType?.toLowerCase(), fileName, payloadBytes };
  return makePart(range, type, hideBase64(text), extras);
}

/** Whether data is base64, by its beginning. Other data (plain text, a reference to a file) can be shown. */
function looksEncoded(data: string): boolean {
  return /^[A-Za-z0-9+/_=\r\n-]*$/.test(data.slice(0, 64));
}

/** The member that contains the data, or the block itself. */
function mediaSource(block: JsonObject): JsonObject {
  const keys = ["source", "file", "resource", "input_audio", "inlineData"];
  for (const key of keys) {
    const source = block[key];
    if (isObject(source)) return source;
  }
  return block;
}

function mediaUrl(block: JsonObject, source: JsonObject): string | undefined {
  const image = block["image_url"];
  if (isObject(image)) return firstString(image, "url");
  const fileData = firstString(source, "file_data");
  if (fileData?.startsWith("data:")) return fileData;
  const data = firstString(source, "data");
  if (data?.startsWith("data:")) return data;
  return firstString(block, "image_url") ?? firstString(source, "url", "file_url");
}

function mediaData(source: JsonObject): string | undefined {
  return firstString(source, "data", "file_data", "blob");
}
