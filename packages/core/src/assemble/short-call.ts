/**
 * A bulky tool call as a stub: the call stays, because providers require it before its result, and its long arguments are cut to their
 * beginnings. The first one that was cut says how to read the whole. Text beside the call is cut as well.
 *
 * Invariant: the text costs at most `CALL_TEXT_TOKENS`, and the message at most its room.
 */
import { readCallArguments } from "../message/blocks.ts";
import { partTokens } from "../message/normalize.ts";
import { isObject } from "../text/json-object.ts";
import type { ModelPart } from "./grammars.ts";
import { CALL_STUB_TOKENS, CALL_TEXT_TOKENS } from "./pieces.ts";
import { renderCutNote, type StubText } from "./render.ts";

type Estimate = (text: string) => number;

const CHARS_PER_TOKEN = 4;
const MAX_ARGUMENTS = 12;
const TEXT_CHARS = 200;

export function shortenCallMessage(
  parts: readonly ModelPart[],
  line: Pick<StubText, "id" | "tokens" | "canOpen" | "roomTokens">,
  estimate: Estimate,
): ModelPart[] {
  const calls = parts.filter(({ type }) => type === "tool_call").length;
  const callRoom = Math.max(
    CALL_STUB_TOKENS,
    Math.floor(((line.roomTokens ?? 0) - CALL_TEXT_TOKENS) / Math.max(1, calls)),
  );
  const note = renderCutNote(line, "call");
  let room = CALL_TEXT_TOKENS;
  return parts.flatMap((part) => {
    if (part.type === "tool_call") return [shortenCall(part, note, callRoom, estimate)];
    if (part.type !== "text") return [part];
    const text = shortenText(part.text ?? "", room, estimate);
    room -= text === null ? 0 : estimate(text);
    return text === null ? [] : [{ type: "text", text } satisfies ModelPart];
  });
}

/** The text as far as it fits; null if none of it does. */
function shortenText(text: string, room: number, estimate: Estimate): string | null {
  if (estimate(text) <= room) return text;
  for (let chars = TEXT_CHARS; chars >= 10; chars = Math.floor(chars / 2)) {
    const short = cut(text, chars);
    if (estimate(short) <= room) return short;
  }
  return null;
}

function shortenCall(part: ModelPart, note: string, room: number, estimate: Estimate): ModelPart {
  const { type, toolCallId, toolName, isError } = part;
  const given = readGiven(part);
  for (let chars = room * CHARS_PER_TOKEN; chars >= 0; chars = Math.floor(chars * 0.7) - 8) {
    const short = shortenArguments(given, chars, note);
    const text = [toolName ?? "", ...Object.entries(short).map(([key, value]) => `${key}: ${value}`)].join(
      "\n",
    );
    if (partTokens({ type, text }, estimate) <= room)
      return { type, text, toolCallId, toolName, isError, source: short, holdsArguments: true };
  }
  const source = { value: note };
  return {
    type,
    text: `${toolName ?? ""}\nvalue: ${note}`,
    toolCallId,
    toolName,
    isError,
    source,
    holdsArguments: true,
  };
}

function readGiven({ holdsArguments, source }: ModelPart): Record<string, unknown> {
  const given = holdsArguments || !isObject(source) ? source : readCallArguments(source);
  return isObject(given) ? given : { value: given ?? "" };
}

type Scalar = string | number | boolean;

function shortenArguments(
  given: Record<string, unknown>,
  chars: number,
  note: string,
): Record<string, Scalar> {
  const short: Record<string, Scalar> = {};
  let isNoted = false;
  for (const [key, value] of Object.entries(given).slice(0, MAX_ARGUMENTS)) {
    if (typeof value === "number" || typeof value === "boolean") {
      short[key] = value;
      continue;
    }
    const whole = typeof value === "string" ? value : JSON.stringify(value ?? null);
    const isCut = whole.length > chars;
    short[key] = isCut ? `${cut(whole, chars)}${isNoted ? "" : ` ${note}`}` : whole;
    isNoted ||= isCut;
  }
  return short;
}

/** The beginning of a text, without splitting a surrogate pair. */
const cut = (text: string, chars: number): string =>
  text.length <= chars ? text : `${text.slice(0, Math.max(0, chars - 1)).replace(/[\ud800-\udbff]$/, "")}…`;
