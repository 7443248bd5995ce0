/**
 * Converts a run from the store to the lines a summariser reads: who said what, when, block by block. Hidden items and items whose body is
 * gone have no text and are omitted. So are calls and results of our own tools: what they found is stored elsewhere in the archive.
 * Everything comes from the arrival bytes; names of people are taken from the host's metadata.
 */
import { searchText, viewMessage } from "../message/normalize.ts";
import { firstString } from "../message/readable.ts";
import { isObject, parseObject, type JsonObject } from "../text/json-object.ts";
import { formatMessageId } from "../model/ids.ts";
import type { MessageView, PartView } from "../model/message.ts";
import { findRecallParts } from "../model/recall-tools.ts";
import type { RunItem, SummaryRow } from "../store/folding.ts";
import type { MessageText } from "../store/recall.ts";
import type { SourceLine, SourcePart } from "./source.ts";
import { formatMoment } from "./time.ts";

/** A source with its end time; null for a message. */
export interface RunSource extends SourceLine {
  readonly until: number | null;
}

/** The fields of a run's item that are read. */
type ReadItem = Pick<RunItem, "seq" | "hidden" | "createdAt" | "messageId" | "bytes" | "summary"> &
  Partial<Pick<RunItem, "isDated">>;

export function readSources(run: readonly ReadItem[]): RunSource[] {
  const read = fillTimes(run)
    .filter((item) => item.hidden === 0)
    .map((item) => ({ item, view: item.bytes === null ? null : viewMessage(item.bytes) }));
  const recall = findRecallParts(read.map(({ view }) => view?.parts ?? []));
  return read.flatMap(({ item, view }, at): RunSource[] => {
    if (item.summary !== null) return [readSummary(item.summary)];
    if (item.bytes === null || view === null) return [];
    const parts = view.parts.filter((_part, ordinal) => !recall[at]?.has(ordinal));
    if (parts.length === 0 && view.parts.length > 0) return [];
    return [readMessage(item, item.bytes, { ...view, parts })];
  });
}

/** A line without its own time gets that of the next line that has one, at the end that of the last. */
function fillTimes(run: readonly ReadItem[]): readonly ReadItem[] {
  const isDated = (item: ReadItem): boolean => item.isDated !== false;
  let known = run.findLast(isDated)?.createdAt;
  if (known === undefined || run.every(isDated)) return run;
  const filled = run.toReversed().map((item) => {
    if (isDated(item)) known = item.createdAt;
    return { ...item, createdAt: known ?? item.createdAt };
  });
  return filled.reverse();
}

function readSummary(summary: SummaryRow): RunSource {
  return {
    id: summary.summaryId,
    kind: "summary",
    role: "summary",
    at: summary.earliestAt,
    until: summary.latestAt,
    text: summary.content.replace(MARKER_LINE, "").trim(),
  };
}

/** The marker of a summary made without a model says how it was made, not what happened; a model would copy it. */
const MARKER_LINE = /^\[(?:LCM |Truncated )[^\]\n]*\][ \t]*(?:\n|$)/gm;

/** The same for messages that a search read. */
export const readMessages = (texts: readonly MessageText[]): RunSource[] =>
  readSources(texts.map((text) => ({ ...text, hidden: 0, summary: null })));

function readMessage(item: ReadItem, bytes: Uint8Array, view: MessageView): RunSource {
  const speaker = view.role === "user" ? readSpeaker(bytes) : undefined;
  return {
    id: formatMessageId(item.messageId ?? item.seq),
    kind: "message",
    role: view.role,
    speaker,
    at: readTime(view, item),
    until: null,
    text: searchText(view),
    parts: view.parts.map(toSourcePart),
  };
}

function readTime(view: MessageView, item: ReadItem): number | null {
  const at = view.createdAt ?? item.createdAt;
  return at > 0 ? at : null;
}

function toSourcePart(part: PartView): SourcePart {
  return {
    type: part.type,
    text: part.text,
    toolName: part.toolName,
    toolCallId: part.toolCallId,
    isError: part.isError,
  };
}

const MAX_SPEAKER_CHARS = 60;

/** The name of the person in a group, from the host's sender metadata or the `name` of a chat message. */
function readSpeaker(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!text.includes('"__openclaw"') && !text.includes('"name"')) return undefined;
  const root = parseObject(text.toString("utf8"));
  if (root === null) return undefined;
  const inner = isObject(root["message"]) ? root["message"] : root;
  const name = findSenderName(inner) ?? findSenderName(root) ?? firstString(inner, "name");
  // The name was chosen by a stranger: one short line, whatever it contains.
  const clean = name?.replace(/[\s\p{C}]+/gu, " ").trim();
  return clean === undefined || clean === "" ? undefined : clean.slice(0, MAX_SPEAKER_CHARS);
}

function findSenderName(holder: JsonObject): string | undefined {
  const meta = holder["__openclaw"];
  return isObject(meta) ? firstString(meta, "senderName", "senderUsername") : undefined;
}

/** The sources as shown to a model: a summary says which period it covers. */
export function showRanges(sources: readonly RunSource[], timeZone: string): SourceLine[] {
  return sources.map((source) => {
    if (source.until === null || source.until === source.at) return source;
    return { ...source, text: `(until ${formatMoment(source.until, timeZone)})\n${source.text}` };
  });
}
