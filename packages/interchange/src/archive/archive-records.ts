/**
 * The records of the archive format `.lcmx`: one JSON object per line, its kind in `record`. This file is the format; the page about interchange
 * describes it for people. Members are written in the order given here, and none is omitted, so that equal archives give equal bytes. Members
 * added to the format later are omitted when empty, so that older archives still round-trip unchanged.
 *
 * Bytes are written as `text` where they are UTF-8 and as `base64` where they are not.
 */

import { isUtf8 } from "node:buffer";

import { EngineError, HIDDEN } from "@lossless/core";
import type { HiddenReason } from "@lossless/core";
import { type JsonObject, findNameProblem, isObject } from "@lossless/core/formats";
import type {
  MovedConversation,
  MovedFile,
  MovedLedger,
  MovedMessage,
  MovedRow,
  MovedSession,
  MovedSummary,
  MovedTurn,
  Origin,
  PreparedRedaction,
} from "@lossless/core/ports";

import { parseLine } from "../formats/format.ts";

export const ARCHIVE_VERSION = 1;

export type ArchiveRecord =
  | { readonly record: "lcmx"; readonly version: number }
  | ({ readonly record: "session" } & MovedSession)
  | ({ readonly record: "turn" } & MovedTurn)
  | ({
      readonly record: "conversation";
      readonly number: number;
      readonly summaries: number;
    } & MovedConversation)
  | ({ readonly record: "file"; readonly pieces: number } & MovedFile)
  | { readonly record: "piece"; readonly sha256: string; readonly base64: string }
  | { readonly record: "row"; readonly row: MovedRow }
  | ({ readonly record: "summary" } & MovedSummary)
  | { readonly record: "cover"; readonly summaries: readonly string[] }
  | { readonly record: "end"; readonly records: number; readonly sha256: string };

export function renderRecord(record: ArchiveRecord): string {
  if (record.record === "row") return JSON.stringify(renderRow(record.row));
  if (record.record === "conversation") return JSON.stringify(renderConversation(record));
  return JSON.stringify(record.record === "summary" ? renderSummary(record) : record);
}

function renderConversation({
  agent,
  project,
  branch,
  title,
  model,
  name,
  tags,
  pinnedAt,
  unlistedAt,
  placements,
  ...facts
}: MovedConversation): object {
  const labels = { name, tags: tags.length === 0 ? null : tags, pinnedAt, unlistedAt };
  const told = { agent, project, branch, title, model, ...labels };
  const known = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== null));
  return { ...facts, ...known, placements };
}

function renderSummary({ publishedSeq, previousId, sources, ...facts }: MovedSummary): object {
  const known = {
    publishedSeq: publishedSeq ?? undefined,
    previousId: previousId ?? undefined,
  };
  return { ...facts, ...known, sources };
}

function renderRow(row: MovedRow): object {
  if (row.kind === "ledger") {
    const { seq, change, body, at } = row;
    return { record: "ledger", seq, change, body, at };
  }
  const { kind: _kind, body, salt, commitment, redaction, ...facts } = row;
  const sealed = redaction === null ? {} : { redaction: renderRedaction(redaction) };
  const content = isUtf8(body) ? { text: Buffer.from(body).toString("utf8") } : { base64: toBase64(body) };
  const proof = { salt: toBase64(salt), commitment: toBase64(commitment) };
  return { record: "message", ...facts, ...proof, ...sealed, ...content };
}

/** The vault values of a message, still sealed. */
function renderRedaction({ keyId, keyed, values }: PreparedRedaction): object {
  return {
    keyId,
    keyed: toBase64(keyed),
    values: values.map(({ ordinal, at, length, keyId: sealedWith, nonce, sealed }) => ({
      ordinal,
      at,
      length,
      keyId: sealedWith,
      nonce: toBase64(nonce),
      sealed: toBase64(sealed),
    })),
  };
}

/** Parses the record on a line, or throws an error that says what is wrong with it. */
export function parseRecord(line: Uint8Array, lineNumber: number): ArchiveRecord {
  const parsed = parseLine(line);
  if (parsed.kind !== "entry")
    throw refuse(lineNumber, parsed.kind === "blank" ? "it is empty" : parsed.reason);
  const { entry } = parsed;
  try {
    return readRecord(entry);
  } catch (error) {
    if (error instanceof BadField) throw refuse(lineNumber, error.message);
    throw error;
  }
}

class BadField extends Error {}

function readRecord(entry: JsonObject): ArchiveRecord {
  const field = readerOf(entry);
  switch (entry["record"]) {
    case "lcmx":
      return { record: "lcmx", version: field.number("version") };
    case "session":
      return {
        record: "session",
        owner: field.name("owner"),
        sessionId: field.name("sessionId"),
        cursor: field.textOrNull("cursor"),
        lastEventId: field.textOrNull("lastEventId"),
        baseTokens: field.numberOrNull("baseTokens"),
      };
    case "turn":
      return {
        record: "turn",
        sessionId: field.name("sessionId"),
        owner: field.name("owner"),
        key: field.text("key"),
        at: field.number("at"),
      };
    case "conversation":
      return readConversation(entry);
    case "file":
      return readFile(entry);
    case "piece":
      return { record: "piece", sha256: field.text("sha256"), base64: field.text("base64") };
    case "message":
      return { record: "row", row: readMessage(entry) };
    case "ledger":
      return { record: "row", row: readLedger(entry) };
    case "summary":
      return { record: "summary", ...readSummary(entry) };
    case "cover":
      return { record: "cover", summaries: field.list("summaries").map((id) => asText(id, "summaries")) };
    case "end":
      return { record: "end", records: field.number("records"), sha256: field.text("sha256") };
    default:
      throw new BadField(`its record ${JSON.stringify(entry["record"])} is unknown`);
  }
}

function readConversation(entry: JsonObject): ArchiveRecord {
  const field = readerOf(entry);
  const readOrigin = (name: keyof Origin): string | null => (name in entry ? field.name(name) : null);
  return {
    record: "conversation",
    number: field.number("number"),
    summaries: field.number("summaries"),
    owner: field.name("owner"),
    sessionKey: field.name("sessionKey"),
    sessionId: field.name("sessionId"),
    createdAt: field.number("createdAt"),
    archivedAt: field.numberOrNull("archivedAt"),
    archiveCause: field.textOrNull("archiveCause"),
    rows: field.number("rows"),
    foldRevision: field.number("foldRevision"),
    epochSeq: field.number("epochSeq"),
    agent: readOrigin("agent"),
    project: readOrigin("project"),
    branch: readOrigin("branch"),
    title: readOrigin("title"),
    model: readOrigin("model"),
    name: "name" in entry ? field.name("name") : null,
    tags: "tags" in entry ? field.list("tags").map((tag) => asText(tag, "tags")) : [],
    pinnedAt: "pinnedAt" in entry ? field.number("pinnedAt") : null,
    unlistedAt: "unlistedAt" in entry ? field.number("unlistedAt") : null,
    placements: field.list("placements").map((placement) => {
      const inner = readerOf(asObject(placement, "placements"));
      return { sessionId: inner.name("sessionId"), start: inner.number("start"), base: inner.number("base") };
    }),
  };
}

function readFile(entry: JsonObject): ArchiveRecord {
  const field = readerOf(entry);
  const extension = field.text("extension");
  if (!/^[a-z0-9]{1,8}$/u.test(extension)) throw new BadField("its extension is not a file extension");
  return {
    record: "file",
    pieces: field.number("pieces"),
    sha256: field.text("sha256"),
    fileName: field.textOrNull("fileName"),
    mimeType: field.text("mimeType"),
    byteSize: field.number("byteSize"),
    lineCount: field.numberOrNull("lineCount"),
    extension,
    explorationSummary: field.text("explorationSummary"),
    createdAt: field.number("createdAt"),
  };
}

const ENCODINGS = ["json", "json-ascii", "base64", "raw"] as const;

function readMessage(entry: JsonObject): MovedMessage {
  const field = readerOf(entry);
  const text = entry["text"];
  return {
    kind: "message",
    seq: field.number("seq"),
    sessionId: field.name("sessionId"),
    eventId: field.name("eventId"),
    eventKind: field.oneOf("eventKind", ["entry", "provisional"]),
    position: field.number("position"),
    createdAt: field.number("createdAt"),
    ...(entry["isDated"] === false ? { isDated: false } : null),
    role: field.text("role"),
    tokens: field.number("tokens"),
    hidden: field.list("hidden").map((reason) => {
      if (typeof reason === "string" && Object.hasOwn(HIDDEN, reason)) return reason as HiddenReason;
      throw new BadField(`hidden names the unknown reason ${JSON.stringify(reason)}`);
    }),
    revises: field.numberOrNull("revises"),
    body: typeof text === "string" ? Buffer.from(text, "utf8") : fromBase64(field.text("base64")),
    cuts: field.list("cuts").map((cut) => {
      const inner = readerOf(asObject(cut, "cuts"));
      return {
        at: inner.number("at"),
        length: inner.number("length"),
        encoding: inner.oneOf("encoding", ENCODINGS),
        sha256: inner.text("sha256"),
      };
    }),
    salt: fromBase64(field.text("salt")),
    commitment: fromBase64(field.text("commitment")),
    redaction:
      entry["redaction"] === undefined ? null : readRedaction(asObject(entry["redaction"], "redaction")),
    forgottenAt: field.numberOrNull("forgottenAt"),
  };
}

function readRedaction(entry: JsonObject): PreparedRedaction {
  const field = readerOf(entry);
  return {
    keyId: field.text("keyId"),
    keyed: fromBase64(field.text("keyed")),
    values: field.list("values").map((value) => {
      const inner = readerOf(asObject(value, "values"));
      return {
        ordinal: inner.number("ordinal"),
        at: inner.number("at"),
        length: inner.number("length"),
        keyId: inner.text("keyId"),
        nonce: fromBase64(inner.text("nonce")),
        sealed: fromBase64(inner.text("sealed")),
      };
    }),
  };
}

function readLedger(entry: JsonObject): MovedLedger {
  const field = readerOf(entry);
  return {
    kind: "ledger",
    seq: field.number("seq"),
    change: field.text("change"),
    body: field.text("body"),
    at: field.number("at"),
  };
}

function readSummary(entry: JsonObject): MovedSummary {
  const field = readerOf(entry);
  return {
    summaryId: field.name("summaryId"),
    kind: field.oneOf("kind", ["leaf", "condensed"]),
    depth: field.number("depth"),
    state: field.oneOf("state", ["cover", "reserve", "prepared", "retired"]),
    startPosition: field.number("startPosition"),
    startSeq: field.number("startSeq"),
    endPosition: field.number("endPosition"),
    endSeq: field.number("endSeq"),
    messages: field.number("messages"),
    descendantCount: field.number("descendantCount"),
    tokens: field.number("tokens"),
    sourceTokens: field.number("sourceTokens"),
    earliestAt: field.number("earliestAt"),
    latestAt: field.number("latestAt"),
    content: field.text("content"),
    model: field.text("model"),
    level: field.text("level"),
    isStale: field.flag("isStale"),
    isRoot: field.flag("isRoot"),
    madeAtSeq: field.number("madeAtSeq"),
    createdAt: field.number("createdAt"),
    publishedSeq: entry["publishedSeq"] === undefined ? null : field.number("publishedSeq"),
    previousId: entry["previousId"] === undefined ? null : field.text("previousId"),
    sources: field.list("sources").map((source) => {
      if (typeof source === "string" || typeof source === "number") return source;
      throw new BadField("sources holds something that is neither a seq nor an id");
    }),
  };
}

interface FieldReader {
  text(name: string): string;
  /** The name of a session, an owner or an event: a text that the database returns unchanged. */
  name(name: string): string;
  textOrNull(name: string): string | null;
  number(name: string): number;
  numberOrNull(name: string): number | null;
  flag(name: string): boolean;
  list(name: string): readonly unknown[];
  oneOf<T extends string>(name: string, values: readonly T[]): T;
}

function readerOf(entry: JsonObject): FieldReader {
  const expect = <T>(name: string, isRight: (value: unknown) => boolean, what: string): T => {
    const value = entry[name];
    if (!isRight(value)) throw new BadField(`its ${name} is not ${what}`);
    return value as T;
  };
  const isText = (value: unknown): boolean => typeof value === "string";
  const isNumber = (value: unknown): boolean => Number.isSafeInteger(value);
  return {
    text: (name) => expect(name, isText, "a text"),
    name: (name) => {
      const problem = findNameProblem(entry[name]);
      if (problem !== null) throw new BadField(`its ${name} ${problem}`);
      return entry[name] as string;
    },
    textOrNull: (name) => expect(name, (value) => value === null || isText(value), "a text or null"),
    number: (name) => expect(name, isNumber, "a whole number"),
    numberOrNull: (name) =>
      expect(name, (value) => value === null || isNumber(value), "a whole number or null"),
    flag: (name) => expect(name, (value) => typeof value === "boolean", "true or false"),
    list: (name) => expect(name, Array.isArray, "a list"),
    oneOf: (name, values) =>
      expect(name, (value) => values.some((known) => known === value), `one of ${values.join(", ")}`),
  };
}

function asText(value: unknown, name: string): string {
  if (typeof value === "string") return value;
  throw new BadField(`${name} contains something that is not text`);
}

function asObject(value: unknown, name: string): JsonObject {
  if (isObject(value)) return value;
  throw new BadField(`${name} contains something that is not an object`);
}

const toBase64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
const fromBase64 = (text: string): Buffer => Buffer.from(text, "base64");

function refuse(lineNumber: number, reason: string): EngineError {
  return new EngineError("invalid_input", `cannot read line ${lineNumber} of the archive: ${reason}`, {
    hint: "the file was changed or damaged; export it again",
  });
}
