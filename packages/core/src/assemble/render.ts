/**
 * The lines the assembler writes itself: a summary as the documented XML, the line for messages that are not shown, and the stub in place
 * of a bulky tool result. Text from the archive is escaped and marked untrusted; the same input gives the same bytes.
 */
import { escapeXml, escapeXmlText } from "../text/escape-xml.ts";
import { formatMessageId } from "../model/ids.ts";
import { listNames } from "../text/names.ts";
import { splitMoment } from "../text/zone-format.ts";
import { STUB_TOKENS } from "./pieces.ts";

export interface SummaryText {
  readonly summaryId: string;
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  readonly descendantCount: number;
  readonly earliestAt: number | null;
  readonly latestAt: number | null;
  /** Ids of the summaries it was made from, oldest first; the public XML calls them parents. */
  readonly sourceIds: readonly string[];
  readonly content: string;
  /** Set if something below it changed after it was written: how many messages it lacks. */
  readonly lacks?: number | undefined;
}

export function renderSummary(summary: SummaryText, timeZone: string): string {
  const attributes = [
    ["id", summary.summaryId],
    ["kind", summary.kind],
    ["depth", String(summary.depth)],
    ["descendant_count", String(summary.descendantCount)],
    ["trust", "untrusted"],
    ...(summary.earliestAt === null ? [] : [["earliest_at", formatInstant(summary.earliestAt, timeZone)]]),
    ...(summary.latestAt === null ? [] : [["latest_at", formatInstant(summary.latestAt, timeZone)]]),
    ...(summary.lacks === undefined ? [] : [["lacks", describeLack(summary.lacks)]]),
  ].map(([name, value]) => `${name}="${escapeXml(value ?? "")}"`);
  const isCondensed = summary.kind === "condensed" && summary.sourceIds.length > 0;
  const parents = isCondensed
    ? [
        "  <parents>",
        ...summary.sourceIds.map((id) => `    <summary_ref id="${escapeXml(id)}"/>`),
        "  </parents>",
      ]
    : [];
  return [
    `<summary ${attributes.join(" ")}>`,
    ...parents,
    "  <content>",
    escapeXmlText(summary.content),
    "  </content>",
    "</summary>",
  ].join("\n");
}

function describeLack(messages: number): string {
  if (messages <= 0) return "later changes";
  return messages === 1 ? "1 later message" : `${messages} later messages`;
}

export interface RangeText {
  readonly messages: number;
  readonly earliestAt: number | null;
  readonly latestAt: number | null;
  /** The id that `lcm_describe` opens; see `formatRangeId`. */
  readonly rangeId: string;
}

/** The one line for everything that neither the cover nor a stand-in can show. */
export function renderRange(range: RangeText, timeZone: string, canOpen = true): string {
  const count = range.messages === 1 ? "1 message" : `${range.messages} messages`;
  const verb = range.messages === 1 ? "is" : "are";
  const span = describeSpan(range, timeZone);
  const way = canOpen ? `: search with lcm_grep, or open with lcm_describe(id="${range.rangeId}")` : "";
  return `[${count}${span} ${verb} not shown here. Nothing is lost${way}.]`;
}

/** Names a range of messages by its ends; an unknown end is left open. */
export function formatRangeId(firstId: number | null, lastId: number | null): string {
  return `${firstId === null ? "" : formatMessageId(firstId)}..${lastId === null ? "" : formatMessageId(lastId)}`;
}

function describeSpan({ earliestAt, latestAt }: RangeText, timeZone: string): string {
  if (earliestAt !== null && latestAt !== null)
    return ` from ${formatInstant(earliestAt, timeZone)} to ${formatInstant(latestAt, timeZone)}`;
  if (latestAt !== null) return ` up to ${formatInstant(latestAt, timeZone)}`;
  return earliestAt === null ? "" : ` from ${formatInstant(earliestAt, timeZone)} on`;
}

export interface StubText {
  /** Where the whole result is: a message, or a large file. */
  readonly id: string;
  readonly toolName: string | null;
  readonly tokens: number;
  /** False for a reader without the tool that opens it. */
  readonly canOpen?: boolean | undefined;
  /** The result, and the tokens its stub may have: a short stub lists names from it, a longer one shows its beginning. */
  readonly text?: string;
  readonly roomTokens?: number;
  readonly estimate?: (text: string) => number;
}

/** Replaces a bulky tool result: says what it was, how large, what it names or how it begins, and how to read it. */
export function renderStub(stub: StubText): string {
  const { text = "", roomTokens: room = 0, estimate } = stub;
  const line = renderStubLine(stub, []);
  if (room > 0 && estimate !== undefined && estimate(line) > room) return renderBriefStub(stub);
  if (text === "" || estimate === undefined) return line;
  const note = renderCutNote(stub, "output");
  const begins = room - estimate(note) < MIN_BEGINNING_TOKENS ? "" : cutToRoom(text, note, room, estimate);
  return begins === "" ? nameInside(stub, text, Math.min(room, STUB_TOKENS), estimate) : begins;
}

const MIN_BEGINNING_TOKENS = 40;
const CHARS_PER_TOKEN = 4;
const MAX_NAMES = 12;

/** The beginning of a text and the note after it, within a token limit; empty if nothing of it fits. */
function cutToRoom(text: string, note: string, room: number, estimate: (text: string) => number): string {
  let chars = Math.min(text.length, room * CHARS_PER_TOKEN);
  for (; chars >= MIN_BEGINNING_TOKENS; chars = Math.floor(chars * 0.8)) {
    const beginning = text
      .slice(0, chars)
      .replace(/[\ud800-\udbff]$/, "")
      .trimEnd();
    const cut = `${beginning}…\n${note}`;
    if (estimate(cut) <= room) return cut;
  }
  return "";
}

/** The line with as many names of the result as fit. */
function nameInside(stub: StubText, text: string, room: number, estimate: (text: string) => number): string {
  const names = listNames(text).slice(0, MAX_NAMES);
  let line = renderStubLine(stub, names);
  while (names.length > 0 && estimate(line) > room) {
    names.pop();
    line = renderStubLine(stub, names);
  }
  return line;
}

function renderStubLine(stub: StubText, names: readonly string[]): string {
  const readable = readableName(stub.toolName ?? undefined);
  const name = readable === null ? "" : ` of ${readable}`;
  const mentions = names.length === 0 ? "" : ` It names ${names.join(", ")}.`;
  const way = stub.canOpen === false ? "" : `: lcm_describe(id="${stub.id}") shows it`;
  return `[Tool output${name}, about ${stub.tokens} tokens, left out here for room.${mentions} Nothing is lost${way}.]`;
}

/** The size and the call that opens it, in as few words as possible. */
export function renderBriefStub({
  tokens,
  canOpen,
  id,
}: Pick<StubText, "id" | "tokens" | "canOpen">): string {
  const way = canOpen === false ? "" : `: lcm_describe(id="${id}")`;
  return `[About ${tokens} tokens left out${way}]`;
}

/** Follows the beginning of a long result, or of a long argument of a call. */
export function renderCutNote(
  { id, tokens, canOpen }: Pick<StubText, "id" | "tokens" | "canOpen">,
  what: "output" | "call",
): string {
  const way = canOpen === false ? "" : `: lcm_describe(id="${id}") shows it`;
  return `[Cut here for room; the whole ${what} has about ${tokens} tokens. Nothing is lost${way}.]`;
}

/** Replaces an image or a file that does not fit. */
export function renderMediaStub(type: "image" | "file", stub: Pick<StubText, "id" | "canOpen">): string {
  const way = stub.canOpen === false ? "" : `: lcm_describe(id="${stub.id}") describes it`;
  return `[${type === "image" ? "Image" : "File"} left out here for room. Nothing is lost${way}.]`;
}

/** A tool's name for a generated line, without characters that could end the line or its bracket. */
export function readableName(name: string | undefined): string | null {
  const plain = (name ?? "").replaceAll(/[^\p{L}\p{N}_.:/-]+/gu, "_").slice(0, 64);
  return plain === "" || plain === "_" ? null : plain.toWellFormed();
}

/** A tool result in a user message, where it could pass for the user's words. It is escaped, so its content cannot close the quote. */
export function quoteResult(text: string): string {
  const inner = text.replaceAll(/<(?=\/?\s*tool_result)/gi, "&lt;");
  return `<tool_result trust="untrusted">\n${inner}\n</tool_result>`;
}

/** The same summaries are shown turn after turn, and time zone rules are the slowest part of their frames. */
const instants = new Map<string, string>();
const MAX_INSTANTS = 1_000;

/** `2026-02-14T11:02:07` in the zone. */
export function formatInstant(at: number, timeZone: string): string {
  const key = `${at} ${timeZone}`;
  const known = instants.get(key);
  if (known !== undefined) return known;
  const field = splitMoment(at, timeZone);
  if (field === null) return "unknown";
  const text = `${field.year}-${field.month}-${field.day}T${field.hour}:${field.minute}:${field.second}`;
  if (instants.size >= MAX_INSTANTS) instants.clear();
  instants.set(key, text);
  return text;
}
