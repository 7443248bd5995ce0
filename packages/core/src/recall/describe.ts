/**
 * Opens one thing by its id: a summary with its neighbours in the graph, a large file in ranges of lines or bytes, a message or a range of
 * messages verbatim. What does not fit the token cap comes in pages; each page says how to get the next.
 */
import { readText } from "../message/normalize.ts";
import { EngineError } from "../model/errors.ts";
import { formatMessageId, isFileId, isSummaryId, parseMessageId } from "../model/ids.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import type { SummaryNode } from "../store/folding.ts";
import type { Grant, MessageText, RecallScope } from "../store/recall.ts";
import type { LargeFileRow, Store } from "../store/store.ts";
import { mayRead } from "./reach.ts";
import type { Reach, ScopeRequest } from "./reach.ts";
import { measureSubtree } from "./subtree.ts";
import type { SubtreeNode } from "./subtree.ts";

export interface DescribeRequest extends ScopeRequest {
  /** `sum_…`, `file_…`, `msg_…`, a range `msg_a..msg_b`, or a line that contains one of them. */
  readonly id: string;
  /** Maximum tokens of text in the result. */
  readonly tokenCap?: number;
  /** `next` of the previous result. */
  readonly after?: string;
  /** Lines of a file, from 1, both included. */
  readonly startLine?: number;
  readonly endLine?: number;
  /** Bytes of a file. */
  readonly byteOffset?: number;
  readonly byteLength?: number;
}

/** A message verbatim, or the part of it that fits. */
export interface DescribedMessage {
  readonly id: string;
  readonly eventId: string;
  readonly conversationId: number;
  readonly seq: number;
  readonly role: string;
  readonly createdAt: number;
  readonly tokens: number;
  readonly text: string;
  /** UTF-16 units of the text before and after what is shown. */
  readonly textFrom: number;
  readonly textLeft: number;
}

export type DescribeResult =
  | {
      readonly type: "summary";
      readonly id: string;
      readonly conversationId: number;
      readonly kind: "leaf" | "condensed";
      readonly depth: number;
      readonly tokenCount: number;
      /** Tokens of its sources. */
      readonly sourceTokens: number;
      /** Tokens of all summaries below it, and of all messages. */
      readonly descendantTokens: number;
      readonly messageTokens: number;
      readonly createdAt: number;
      readonly earliestAt: number;
      readonly latestAt: number;
      readonly descendantCount: number;
      readonly messageCount: number;
      readonly isStale: boolean;
      readonly model: string;
      /** Its sources: summaries, and for a leaf messages. */
      readonly parentIds: readonly string[];
      readonly sourceMessageIds: readonly string[];
      /** Summaries made from it. */
      readonly childIds: readonly string[];
      readonly fileIds: readonly string[];
      readonly subtree: readonly SubtreeNode[];
      readonly content: string;
      readonly tokenCap: number;
      readonly next: string | null;
    }
  | {
      readonly type: "file";
      readonly id: string;
      readonly conversationId: number;
      readonly fileName: string | null;
      readonly mimeType: string;
      readonly byteSize: number;
      readonly lineCount: number | null;
      readonly createdAt: number;
      readonly explorationSummary: string;
      readonly storagePath: string;
      readonly messageIds: readonly string[];
      /** Null for a file that is not text, or that is gone. */
      readonly content: string | null;
      readonly byteOffset: number;
      readonly byteEnd: number;
      readonly firstLine: number | null;
      readonly truncated: boolean;
      readonly next: string | null;
    }
  | {
      readonly type: "messages";
      readonly id: string;
      readonly conversationId: number;
      readonly messages: readonly DescribedMessage[];
      /** Messages of the range that are not shown. */
      readonly left: number;
      readonly truncated: boolean;
      readonly next: string | null;
    };

/** The subtree of a summary is listed up to this many nodes; the rest can be opened from them. */
const MAX_SUBTREE = 60;
/** A range of messages longer than this is read in pages. */
const RANGE_PAGE = 200;

interface Opener {
  readonly store: Store;
  readonly reach: Reach;
  readonly tokenCap: number;
}

export async function describe(
  store: Store,
  request: DescribeRequest,
  reach: Reach,
  tokenCap: number,
): Promise<DescribeResult> {
  const opener = { store, reach, tokenCap };
  const wanted = readReference(request.id);
  if (wanted.kind === "summary") return describeSummary(opener, wanted.id, request);
  if (wanted.kind === "file") return describeFile(opener, wanted.id, request);
  return describeRange(opener, wanted.first, wanted.last, request);
}

type Reference =
  | { readonly kind: "summary"; readonly id: string }
  | { readonly kind: "file"; readonly id: string }
  | { readonly kind: "messages"; readonly first: number; readonly last: number };

/** Finds the one id in typed or copied text. */
export function readReference(text: string): Reference {
  const range = /msg_(\d+)\s*(?:\.\.|…|–|-)\s*(?:msg_)?(\d+)/.exec(text);
  if (range)
    return {
      kind: "messages",
      first: Math.min(Number(range[1]), Number(range[2])),
      last: Math.max(Number(range[1]), Number(range[2])),
    };
  const found = [...new Set(text.match(/\b(?:sum_[0-9a-f]{16}|file_[0-9a-f]{16}|msg_\d+)\b/g) ?? [])];
  if (found.length > 1) {
    throw new EngineError("usage", `cannot open "${clip(text)}": it names ${found.length} things`, {
      hint: `open one of ${found.slice(0, 5).join(", ")}`,
    });
  }
  const id = found[0] ?? text.trim();
  if (isSummaryId(id)) return { kind: "summary", id };
  if (isFileId(id)) return { kind: "file", id };
  const messageId = parseMessageId(id);
  if (messageId !== null) return { kind: "messages", first: messageId, last: messageId };
  throw new EngineError("usage", `cannot open "${clip(text)}": it is not an id`, {
    hint: "pass sum_ or file_ with 16 hex digits, msg_ with a number, or a range such as msg_12..msg_40",
  });
}

const clip = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** Does not distinguish what may not be read from what does not exist. */
function notFound(id: string, reach: Reach, request: ScopeRequest = {}): EngineError {
  if (request.conversationId !== undefined) {
    const message = `cannot open ${id}: it is not in conversation ${request.conversationId}`;
    return new EngineError("not_found", message, { step: { kind: "widen_scope" } });
  }
  return new EngineError("not_found", `cannot open ${id}: there is nothing with this id that you may read`, {
    step: reach.grant === null ? { kind: "find_ids" } : { kind: "expand_granted", ids: [] },
  });
}

async function describeSummary(
  { store, reach, tokenCap }: Opener,
  id: string,
  request: DescribeRequest,
): Promise<DescribeResult> {
  const node = await readSummary(store, reach, id, request);
  const from = readAfter(request.after);
  const page = cutText(node.content, from, tokenCap);
  const graph = await store.readGraph({ conversationId: node.conversationId });
  const subtree = measureSubtree(graph, id, { tokenCap, maxNodes: MAX_SUBTREE });
  return {
    type: "summary",
    id,
    conversationId: node.conversationId,
    kind: node.kind,
    depth: node.depth,
    tokenCount: node.tokens,
    sourceTokens: node.sourceTokens,
    descendantTokens: subtree.descendantTokens,
    messageTokens: subtree.messageTokens,
    createdAt: node.createdAt,
    earliestAt: node.earliestAt,
    latestAt: node.latestAt,
    descendantCount: node.descendantCount,
    messageCount: node.messages,
    isStale: node.isStale,
    model: node.model,
    parentIds: node.sourceIds,
    sourceMessageIds: node.messageIds.map(formatMessageId),
    childIds: node.derivedIds,
    fileIds: node.fileIds,
    subtree: subtree.nodes,
    content: page.text,
    tokenCap,
    next: page.next,
  };
}

/** A summary the caller may read, or an error that does not distinguish a foreign one from a missing one. */
export async function readSummary(
  store: Store,
  reach: Reach,
  id: string,
  request?: ScopeRequest,
): Promise<SummaryNode> {
  const node = await store.readSummary(id, reach.owner);
  const isReadable = node !== null && mayRead(reach, node.conversationId, node.endPosition);
  if (!isReadable || !(await isGranted(store, reach.grant, [id]))) throw notFound(id, reach, request);
  return node;
}

/** Whether one of the summaries is, or is below, one that the grant names. */
async function isGranted(store: Store, grant: Grant | null, summaryIds: readonly string[]): Promise<boolean> {
  if (grant === null || grant.summaryIds.length === 0) return true;
  const seen = new Set<string>();
  const queue = [...summaryIds];
  for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
    if (grant.summaryIds.includes(id)) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    queue.push(...((await store.readSummary(id))?.derivedIds ?? []));
  }
  return false;
}

async function areGranted(
  store: Store,
  grant: Grant | null,
  messageIds: readonly number[],
): Promise<boolean> {
  if (grant === null || grant.summaryIds.length === 0) return true;
  for (const id of messageIds)
    if (!(await isGranted(store, grant, await store.listSummariesOf(id)))) return false;
  return true;
}

async function describeFile(
  { store, reach, tokenCap }: Opener,
  id: string,
  request: DescribeRequest,
): Promise<DescribeResult> {
  const [file] = await store.listFiles(readScope(reach), [id]);
  const messageIds = file === undefined ? [] : await store.readFileMessages(id);
  if (file === undefined || !(await areGranted(store, reach.grant, messageIds)))
    throw notFound(id, reach, request);
  const content = await store.readFileContent(id, reach.owner);
  const range = content === null ? null : chooseRange(file, content, request, tokenCap);
  return {
    type: "file",
    id,
    conversationId: file.conversationId,
    fileName: file.fileName,
    mimeType: file.mimeType,
    byteSize: file.byteSize,
    lineCount: file.lineCount,
    createdAt: file.createdAt,
    explorationSummary: file.explorationSummary,
    storagePath: file.blob,
    messageIds: messageIds.map(formatMessageId),
    content: range?.text ?? null,
    byteOffset: range?.from ?? 0,
    byteEnd: range?.to ?? 0,
    firstLine: range?.firstLine ?? null,
    truncated: range !== null && (range.from > 0 || range.to < file.byteSize),
    next: range !== null && range.to < range.end ? `at_${range.to}` : null,
  };
}

interface FileRange {
  readonly text: string;
  readonly from: number;
  readonly to: number;
  /** The end of the requested range. */
  readonly end: number;
  readonly firstLine: number;
}

function chooseRange(
  file: LargeFileRow,
  content: Uint8Array,
  request: DescribeRequest,
  tokenCap: number,
): FileRange | null {
  // Only a text has lines; other bytes are meaningless to a reader.
  if (file.lineCount === null) return null;
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const lineAt = (line: number): number => {
    let at = 0;
    for (let n = 1; n < line; n++) {
      const end = buffer.indexOf(10, at);
      if (end < 0) return buffer.length;
      at = end + 1;
    }
    return at;
  };
  const start =
    request.startLine !== undefined ? lineAt(request.startLine) : Math.max(0, request.byteOffset ?? 0);
  const end =
    request.endLine !== undefined
      ? lineAt(request.endLine + 1)
      : Math.min(
          buffer.length,
          request.byteLength === undefined ? buffer.length : start + request.byteLength,
        );
  const from = Math.min(end, Math.max(start, readAfter(request.after)));
  const to = wholeCharacter(buffer, fitBytes(buffer, from, end, tokenCap));
  let firstLine = 1;
  for (let at = buffer.indexOf(10); at >= 0 && at < from; at = buffer.indexOf(10, at + 1)) firstLine += 1;
  return { text: buffer.toString("utf8", from, to), from, to, end, firstLine };
}

/** The end of the page by the cap, at a line end if one is near. */
function fitBytes(buffer: Buffer, from: number, end: number, tokenCap: number): number {
  let size = Math.min(end - from, tokenCap * 8);
  while (size > 64 && estimateTextTokens(buffer.toString("utf8", from, from + size)) > tokenCap)
    size = Math.floor(size * 0.8);
  const to = from + size;
  if (to >= end) return end;
  const line = buffer.lastIndexOf(10, to - 1);
  return line > from + size / 2 ? line + 1 : to;
}

function wholeCharacter(buffer: Buffer, at: number): number {
  let end = at;
  while (end > 0 && end < buffer.length && ((buffer[end] as number) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** A range by message ids: everything of the same conversation between the two, in conversation order. */
async function describeRange(
  { store, reach, tokenCap }: Opener,
  first: number,
  last: number,
  request: DescribeRequest,
): Promise<DescribeResult> {
  const id = first === last ? formatMessageId(first) : `${formatMessageId(first)}..${formatMessageId(last)}`;
  const ends = await store.readTexts([...new Set([first, last])], readScope(reach));
  const [start, end] = [
    ends.find((text) => text.messageId === first),
    ends.find((text) => text.messageId === last),
  ];
  if (!start || !end) throw notFound(id, reach, request);
  if (start.conversationId !== end.conversationId) {
    throw new EngineError("usage", `cannot open ${id}: the range spans two conversations`, {
      hint: "open each message by itself",
    });
  }
  const ids = first === last ? [first] : await store.listRange(start.messageId, end.messageId);
  if (!(await areGranted(store, reach.grant, ids))) throw notFound(id, reach, request);
  const left = readLeft(request.after);
  const from = Math.max(0, ids.indexOf(left.messageId));
  const shown: DescribedMessage[] = [];
  let room = tokenCap;
  let at = from;
  let textFrom = left.textFrom;
  for (; at < ids.length && room > 0;) {
    const texts = await store.readTexts(ids.slice(at, at + RANGE_PAGE), readScope(reach));
    for (const text of texts) {
      const piece = cutMessage(text, textFrom, room);
      // The first message is always included, however little of it fits; a later one is left to the next page rather than cut.
      if (shown.length > 0 && piece.textLeft > 0) return finish(at);
      shown.push(piece);
      room -= estimateTextTokens(piece.text) + 8;
      if (piece.textLeft > 0) return finish(at, piece.textFrom + piece.text.length);
      at += 1;
      textFrom = 0;
      if (room <= 0) break;
    }
    if (texts.length === 0) at += RANGE_PAGE;
  }
  return finish(at);

  function finish(index: number, textAt = 0): DescribeResult {
    const rest = ids[index];
    const next = rest === undefined ? null : `${formatMessageId(rest)}@${textAt}`;
    const left = Math.max(0, ids.length - index);
    return {
      type: "messages",
      id,
      conversationId: (start as MessageText).conversationId,
      messages: shown,
      left,
      truncated: next !== null,
      next,
    };
  }
}

/** Reads by id have the same limits as searches, except time and role. */
export function readScope({ scope }: Reach): Pick<RecallScope, "owner" | "conversationIds" | "inherited"> {
  const { owner, conversationIds, inherited } = scope;
  return {
    owner,
    conversationIds,
    inherited,
  };
}

/** As much of a message as fits a number of tokens, starting at an offset in its text. */
export function cutMessage(message: MessageText, textFrom: number, tokenCap: number): DescribedMessage {
  const { messageId, eventId, conversationId, seq, role, createdAt, tokens } = message;
  const whole = readText(message.bytes);
  const page = cutText(whole, textFrom, tokenCap);
  const textLeft = whole.length - page.from - page.text.length;
  return {
    id: formatMessageId(messageId),
    eventId,
    conversationId,
    seq,
    role,
    createdAt,
    tokens,
    text: page.text,
    textFrom: page.from,
    textLeft,
  };
}

/** A page of a text. At least a few words, so that every page makes progress. */
function cutText(
  text: string,
  from: number,
  tokenCap: number,
): { text: string; from: number; next: string | null } {
  const start = Math.min(Math.max(0, from), text.length);
  let size = Math.min(text.length - start, Math.max(64, tokenCap * 6));
  while (size > 64 && estimateTextTokens(text.slice(start, start + size)) > tokenCap) {
    size = Math.max(64, Math.floor(size * 0.8));
  }
  let end = start + size;
  if (end < text.length) {
    const space = text.slice(start + Math.floor(size / 2), end).search(/\s\S*$/);
    if (space >= 0) end = start + Math.floor(size / 2) + space + 1;
    const unit = text.charCodeAt(end);
    if (unit >= 0xdc00 && unit <= 0xdfff) end -= 1;
  }
  return { text: text.slice(start, end), from: start, next: end < text.length ? `at_${end}` : null };
}

function readAfter(after: string | undefined): number {
  const at = Number(/^at_(\d{1,12})$/.exec(after ?? "at_0")?.[1]);
  if (Number.isInteger(at)) return at;
  throw badPage(after);
}

function readLeft(after: string | undefined): { messageId: number; textFrom: number } {
  if (after === undefined) return { messageId: 0, textFrom: 0 };
  const found = /^msg_(\d+)@(\d+)$/.exec(after);
  if (found) return { messageId: Number(found[1]), textFrom: Number(found[2]) };
  throw badPage(after);
}

function badPage(after: string | undefined): EngineError {
  return new EngineError("usage", `cannot continue after "${after}": it is not the end of a page`, {
    step: { kind: "next_page" },
  });
}
