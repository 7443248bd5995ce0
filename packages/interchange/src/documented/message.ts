/**
 * A message of the documented schema as one event: the host's message, rebuilt as well as its rows allow, with the original rows beside it, so
 * that nothing is lost and the same rows can be written again.
 */
import { isObject, parseObject, type JsonObject } from "@lossless/core/formats";

import { numberOf, textOf, timeOf, type SourceRow } from "./source.ts";

/** The member of an event that holds the original rows. */
const ROWS_KEY = "lossless_claw";

export interface MessageRows {
  readonly message: SourceRow;
  readonly parts: readonly SourceRow[];
}

export function renderMessageEvent({ message, parts }: MessageRows): Buffer {
  const metadata = parts.map((part) => readObject(textOf(part, "metadata")));
  const role = textOf(message, "role") ?? "user";
  const createdAt = timeOf(message, "created_at");
  const event = {
    role: role === "tool" ? "toolResult" : role,
    ...(role === "tool" ? readToolFrame(parts, metadata) : {}),
    content:
      parts.length === 0
        ? (textOf(message, "content") ?? "")
        : parts.map((part, index) => readBlock(part, metadata[index] ?? null, role)),
    timestamp: createdAt ?? undefined,
    ...readModel(metadata[0] ?? null),
    [ROWS_KEY]: { message, parts },
  };
  return Buffer.from(JSON.stringify(event));
}

/** The rows an event was made from; null for a message that came from elsewhere. */
export function readMessageRows(event: JsonObject): MessageRows | null {
  const rows = event[ROWS_KEY];
  if (!isObject(rows) || !isObject(rows["message"]) || !Array.isArray(rows["parts"])) return null;
  return { message: rows["message"] as SourceRow, parts: rows["parts"] as SourceRow[] };
}

/** The original block of a part, when it is kept; otherwise an equivalent one. */
function readBlock(part: SourceRow, metadata: JsonObject | null, role: string): unknown {
  const raw = metadata?.["raw"];
  if (isObject(raw)) return raw;
  const text = textOf(part, "text_content");
  switch (textOf(part, "part_type")) {
    case "reasoning":
      return { type: "thinking", thinking: text ?? "" };
    case "tool":
      return readToolBlock(part, text, role);
    case "file":
      return {
        type: "file",
        fileName: textOf(part, "file_name") ?? undefined,
        mimeType: textOf(part, "file_mime") ?? undefined,
        url: textOf(part, "file_url") ?? undefined,
        text: text ?? undefined,
      };
    default:
      return { type: "text", text: text ?? (typeof raw === "string" ? raw : "") };
  }
}

function readToolBlock(part: SourceRow, text: string | null, role: string): unknown {
  const output = textOf(part, "tool_output") ?? textOf(part, "tool_error");
  if (role === "tool") return { type: "text", text: output ?? text ?? "" };
  const input = textOf(part, "tool_input");
  const call = {
    type: "toolCall",
    id: textOf(part, "tool_call_id") ?? undefined,
    name: textOf(part, "tool_name") ?? undefined,
    arguments: input === null ? {} : (readObject(input) ?? input),
  };
  return output === null ? call : { ...call, output };
}

function readToolFrame(parts: readonly SourceRow[], metadata: readonly (JsonObject | null)[]): JsonObject {
  const [first] = metadata;
  const callId =
    first?.["toolCallId"] ?? parts.map((part) => textOf(part, "tool_call_id")).find((id) => id !== null);
  const name =
    first?.["toolName"] ?? parts.map((part) => textOf(part, "tool_name")).find((id) => id !== null);
  const isError = first?.["isError"];
  return {
    toolCallId: typeof callId === "string" ? callId : undefined,
    toolName: typeof name === "string" ? name : undefined,
    isError: typeof isError === "boolean" ? isError : undefined,
  };
}

function readModel(metadata: JsonObject | null): JsonObject {
  const names = {
    provider: metadata?.["modelProvider"],
    api: metadata?.["modelApi"],
    model: metadata?.["modelId"],
  };
  return Object.fromEntries(Object.entries(names).filter(([, value]) => typeof value === "string"));
}

/** Parses text that begins like an object and is one; the rest is text. */
const readObject = (text: string | null): JsonObject | null =>
  text?.startsWith("{") ? parseObject(text) : null;

/** A row of another table as a hidden event. */
export function renderRowEvent(table: string, row: SourceRow, content?: unknown): Buffer {
  return Buffer.from(JSON.stringify({ [ROWS_KEY]: { table, row }, content }));
}

/** Several short rows of a table as one hidden event. */
export function renderRowsEvent(table: string, rows: readonly SourceRow[]): Buffer {
  return Buffer.from(JSON.stringify({ [ROWS_KEY]: { table, rows } }));
}

export function readRowEvent(event: JsonObject): { table: string; rows: readonly SourceRow[] } | null {
  const rows = event[ROWS_KEY];
  if (!isObject(rows) || typeof rows["table"] !== "string") return null;
  if (isObject(rows["row"])) return { table: rows["table"], rows: [rows["row"] as SourceRow] };
  return Array.isArray(rows["rows"]) ? { table: rows["table"], rows: rows["rows"] as SourceRow[] } : null;
}

/** The event id of a message: the host's entry id if it has one, else its place. */
export function nameMessage(message: SourceRow, taken: Set<string>): string {
  const entry = textOf(message, "transcript_entry_id");
  const name =
    entry !== null && entry !== "" && !taken.has(entry)
      ? entry
      : `seq:${numberOf(message, "seq") ?? textOf(message, "message_id") ?? "?"}`;
  taken.add(name);
  return name;
}
