/**
 * Finds the message in a line: the object with what was said, and the host's word for who said it. Hosts write it as the line itself,
 * inside an envelope, or as one item of a message; they name the speaker by a role, or by the type of the line. Roles are decided only
 * here, because `verify` derives them again.
 *
 * Invariant: a line that names no speaker, or names one without content, is not a message.
 */
import type { Role } from "../model/message.ts";
import { locateMember, type Located } from "./blocks.ts";
import type { JsonSource } from "./json-spans.ts";
import { isObject, type JsonObject } from "../text/json-object.ts";

/** The object that is the message, and the host's word for its role. */
export interface FoundMessage extends Located {
  readonly value: JsonObject;
  readonly rawRole: string;
  readonly role: Role;
  /** `block`: the object is one block of a message. `result`: it answers a call, whatever its type says. */
  readonly shape: "message" | "block" | "result";
}

type Roles = { readonly [word: string]: Role };

/** Items of the OpenAI responses dialect appear alone, without a role. */
const RESPONSE_ITEMS: Roles = {
  function_call: "assistant",
  custom_tool_call: "assistant",
  reasoning: "assistant",
  function_call_output: "tool",
  custom_tool_call_output: "tool",
};

/** Blocks that other hosts write as lines, or as events in an envelope. */
const ITEMS: Roles = {
  ...RESPONSE_ITEMS,
  tool_call: "assistant",
  "tool.call": "assistant",
  backend_tool_call: "assistant",
  tool_result: "tool",
  "tool.result": "tool",
};

const ROLES: Roles = {
  user: "user",
  assistant: "assistant",
  model: "assistant",
  gemini: "assistant",
  system: "system",
  developer: "system",
  tool: "tool",
  toolResult: "tool",
  tool_result: "tool",
  function: "tool",
  ...RESPONSE_ITEMS,
};

/** Types of lines that name a speaker if there is no role. */
const SPEAKER_TYPES: Roles = {
  user: "user",
  assistant: "assistant",
  gemini: "assistant",
  model: "assistant",
  system: "system",
  "user.message": "user",
  "assistant.message": "assistant",
  "system.message": "system",
  USER_INPUT: "user",
  PLANNER_RESPONSE: "assistant",
};

/** A line that reports how a tool ended, with the result in its envelope. */
const COMPLETION_TYPE = "tool.execution_complete";
/** A piece of the model's output, with the block in its envelope. */
const PIECE_TYPE = "content.part";

export function findMessage(
  source: JsonSource | null,
  root: JsonObject,
  located: Located,
): FoundMessage | null {
  const rawRole = root["role"];
  if (typeof rawRole === "string") {
    const body = findBody(source, root, located);
    return { ...body, rawRole, role: roleOf(rawRole), shape: "message" };
  }
  return (
    findInside(source, root, located) ??
    findItem(root, located, ITEMS) ??
    findBySpeaker(source, root, located)
  );
}

function roleOf(rawRole: string): Role {
  return Object.hasOwn(ROLES, rawRole) ? (ROLES[rawRole] as Role) : "other";
}

type Body = Located & { readonly value: JsonObject };

/** A line may name the role itself and have the content in `message`. */
function findBody(source: JsonSource | null, root: JsonObject, located: Located): Body {
  const { message } = root;
  const isOutside = isObject(message) && holdsWords(message) && !holdsWords(root);
  const range = isOutside ? locateMember(source, located, "message") : null;
  return isOutside && range ? { value: message, range } : { value: root, range: located.range };
}

/** Members that can contain the speaker's words. */
const holdsWords = (object: JsonObject): boolean =>
  ["content", "parts", "text", "thinking", "tool_calls"].some((key) => object[key] !== undefined);

const ENVELOPES: readonly (readonly [key: string, items: Roles])[] = [
  ["message", RESPONSE_ITEMS],
  ["payload", RESPONSE_ITEMS],
  ["event", ITEMS],
];

/** The message in an envelope, by its own role or type. */
function findInside(source: JsonSource | null, root: JsonObject, located: Located): FoundMessage | null {
  for (const [key, items] of ENVELOPES) {
    const inner = root[key];
    if (!isObject(inner)) continue;
    const range = locateMember(source, located, key);
    if (!range) continue;
    const inside = { value: inner, range };
    const rawRole = inner["role"];
    if (typeof rawRole === "string") return { ...inside, rawRole, role: roleOf(rawRole), shape: "message" };
    const found = findItem(inner, inside, items) ?? findPiece(source, inner, inside);
    if (found) return found;
  }
  return null;
}

function findItem(object: JsonObject, { range }: Located, items: Roles): FoundMessage | null {
  const { type } = object;
  if (typeof type !== "string" || !Object.hasOwn(items, type)) return null;
  return { value: object, range, rawRole: type, role: items[type] as Role, shape: "block" };
}

function findPiece(source: JsonSource | null, event: JsonObject, located: Located): FoundMessage | null {
  const { part } = event;
  const range = event["type"] === PIECE_TYPE && isObject(part) ? locateMember(source, located, "part") : null;
  if (!range || !isObject(part)) return null;
  return { value: part, range, rawRole: PIECE_TYPE, role: "assistant", shape: "block" };
}

/** The message of a line that names its speaker by its type: in the line itself, or in `data`. */
function findBySpeaker(source: JsonSource | null, root: JsonObject, located: Located): FoundMessage | null {
  // Rows linked like this have the content in `message`; anything beside it is a note of the host.
  if ("parentUuid" in root || root["subtype"] !== undefined) return null;
  const { type, data } = root;
  if (typeof type !== "string") return null;
  const range = isObject(data) ? locateMember(source, located, "data") : null;
  const inside = isObject(data) && range ? { value: data, range } : { value: root, range: located.range };
  if (type === COMPLETION_TYPE && inside.value !== root)
    return { ...inside, rawRole: type, role: "tool", shape: "result" };
  const role = Object.hasOwn(SPEAKER_TYPES, type) ? (SPEAKER_TYPES[type] as Role) : roleOfStep(root);
  return role === null || !holdsWords(inside.value)
    ? null
    : { ...inside, rawRole: type, role, shape: "message" };
}

/** An agent's steps name their source: output of the model other than speech is a tool result. */
function roleOfStep(root: JsonObject): Role | null {
  const { source } = root;
  if (typeof root["step_index"] !== "number" || typeof source !== "string") return null;
  if (source.startsWith("USER")) return "user";
  return source === "MODEL" ? "tool" : "system";
}
