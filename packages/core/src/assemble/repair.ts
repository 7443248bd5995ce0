/**
 * Makes the provider accept a chosen list of messages, by order and pairing alone: each result follows its call, ids are unique, names have
 * a valid shape, no message is empty, neighbours of one role are joined where the grammar requires it, the first is the user's.
 *
 * Nothing is invented and nothing is dropped: a call without a result, or a result without a call, becomes text that says so, in its place.
 * A row with nothing to send is not sent; its reasoning goes with its neighbour. Text is added only where the grammar requires some.
 * Repairing is idempotent.
 */
import { hash } from "node:crypto";

import {
  acceptsCallId,
  acceptsToolName,
  hasContent,
  isBlank,
  PROVIDERS,
  wantsRule,
  type ModelMessage,
  type ModelPart,
  type Provider,
} from "./grammars.ts";
import { quoteResult, readableName } from "./render.ts";

export interface RepairOptions {
  /** The provider whose grammar must hold. Absent: every provider's at once. */
  readonly provider?: Provider;
  /** Calls of the last message stay open because the host will append their results itself. */
  readonly keepsOpenCalls?: boolean;
}

export const FIRST_MESSAGE_TEXT = "[The conversation begins with the assistant's message below.]";
export const EMPTY_MESSAGE_TEXT = "[This message has no text.]";
/** Several providers refuse a blank text, even as a tool result. */
export const EMPTY_RESULT_TEXT = "[No output.]";

export function repairMessages(
  messages: readonly ModelMessage[],
  options: RepairOptions = {},
): ModelMessage[] {
  const providers = options.provider === undefined ? PROVIDERS : [options.provider];
  const plain = messages.map(normaliseRole);
  const paired = pairTools(plain, options.keepsOpenCalls ?? false);
  nameCalls(paired, providers);
  const ordered = fillEmpty(joinEmpty(placeResults(paired).map(dropBlanks)));
  const joined = providers.some((provider) => wantsRule(provider, "roles_alternate"))
    ? joinRoles(ordered)
    : ordered;
  const opens = providers.some((provider) => wantsRule(provider, "starts_with_user"));
  return opens && joined[0]?.role === "assistant" ? [textMessage(FIRST_MESSAGE_TEXT), ...joined] : joined;
}

const textPart = (text: string): ModelPart => ({ type: "text", text });
const textMessage = (text: string): ModelMessage => ({ role: "user", parts: [textPart(text)] });

/** No grammar allows instructions in the middle of a conversation: they are shown as a user message. */
function normaliseRole(message: ModelMessage): ModelMessage {
  return message.role === "system" ? { ...message, role: "user" } : message;
}

// Pairing: which result answers which call.

/** A part with the number of the pair it belongs to. */
interface Paired {
  part: ModelPart;
  pair: number | null;
}

interface PairedMessage {
  readonly role: ModelMessage["role"];
  readonly seq: number | undefined;
  readonly parts: readonly Paired[];
}

interface OpenCalls {
  readonly index: number;
  readonly calls: Paired[];
  /** Where the newest of them was answered, and the number of that pair: further parts of the same answer belong to it. */
  answered?: { readonly index: number; readonly pair: number };
}

/** A result answers the nearest earlier call with its id; a message that reuses an id closes the earlier calls. */
function pairTools(messages: readonly ModelMessage[], keepsOpenCalls: boolean): PairedMessage[] {
  const openCalls = new Map<string, OpenCalls>();
  let pairs = 0;
  const paired = messages.map(({ role, seq, parts }) => ({
    role,
    seq,
    parts: parts.map((part): Paired => ({ part, pair: null })),
  }));
  for (const [index, { role, parts }] of paired.entries()) {
    for (const entry of parts) {
      const { type, toolCallId: id } = entry.part;
      if (type === "tool_call" && role === "assistant") {
        const open = openCalls.get(id ?? "");
        if (open?.index === index) open.calls.push(entry);
        else openCalls.set(id ?? "", { index, calls: [entry] });
        if (keepsOpenCalls && index === paired.length - 1) entry.pair = pairs++;
      } else if (type === "tool_result" && id !== undefined && id !== "") {
        const open = openCalls.get(id);
        const call = open?.calls.shift();
        if (open !== undefined && call !== undefined) {
          call.pair = entry.pair = pairs++;
          open.answered = { index, pair: entry.pair };
        } else if (open?.answered?.index === index) entry.pair = open.answered.pair;
      }
    }
  }
  for (const { role, parts } of paired)
    for (const entry of parts) if (entry.pair === null) entry.part = settleLone(entry.part, role);
  return paired;
}

/** A part that belongs to no pair, in a form that a provider accepts. */
function settleLone(part: ModelPart, role: ModelMessage["role"]): ModelPart {
  if (part.type === "tool_call") return textPart(describeLoneCall(part));
  if (part.type === "tool_result") return textPart(describeLoneResult(part));
  // Providers accept reasoning only from the assistant; elsewhere it is quoted.
  if (part.type === "reasoning" && role !== "assistant") return textPart(part.text ?? "");
  return part;
}

function describeLoneCall(part: ModelPart): string {
  const body = (part.text ?? "").trim();
  const name = readableName(part.toolName) ?? "without a name";
  return `[Tool call ${name}; no result is recorded.]${body === "" ? "" : `\n${body}`}`;
}

function describeLoneResult(part: ModelPart): string {
  const body = (part.text ?? "").trim();
  const name = readableName(part.toolName) ?? "a tool";
  return `[Result of ${name}; its call is not shown here.]${body === "" ? "" : `\n${quoteResult(body)}`}`;
}

// Ids and names: of a shape the provider accepts; ids are unique in the list.

interface CallName {
  readonly toolCallId: string;
  readonly toolName: string | undefined;
}

/**
 * The first call with an id keeps it; a later one gets its message's `seq`, which never changes, as a suffix. The answer to a call has the
 * same id and name.
 */
function nameCalls(messages: readonly PairedMessage[], providers: readonly Provider[]): void {
  const taken = new Set<string>();
  const names = new Map<number, CallName>();
  for (const [index, message] of messages.entries()) {
    for (const { part, pair } of message.parts) {
      if (pair === null || part.type !== "tool_call") continue;
      const shaped = shapeId(part.toolCallId ?? "call", providers);
      let name = shaped;
      for (let attempt = 0; taken.has(name); attempt++)
        name = addSuffix(shaped, `_${message.seq ?? index}${attempt === 0 ? "" : `_${attempt}`}`, providers);
      taken.add(name);
      names.set(pair, { toolCallId: name, toolName: shapeName(part.toolName, providers) });
    }
  }
  for (const { parts } of messages)
    for (const entry of parts) {
      const name = entry.pair === null ? undefined : names.get(entry.pair);
      if (name === undefined) continue;
      const { toolCallId, toolName } = entry.part;
      if (name.toolCallId !== toolCallId || name.toolName !== toolName)
        entry.part = { ...entry.part, ...name };
    }
}

/** Replaces a name that some provider would refuse by a readable one that no other tool has. */
function shapeName(name: string | undefined, providers: readonly Provider[]): string | undefined {
  if (name === undefined || name.trim() === "") return undefined;
  if (providers.every((provider) => acceptsToolName(provider, name))) return name;
  const plain = name.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  return `${/^[a-zA-Z_]/.test(plain) ? "" : "_"}${plain.slice(0, 40)}_${hash("sha256", name).slice(0, 16)}`;
}

const accepts = (id: string, providers: readonly Provider[]): boolean =>
  providers.every((provider) => acceptsCallId(provider, id));

function shapeId(id: string, providers: readonly Provider[]): string {
  if (accepts(id, providers)) return id;
  const plain = id.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  if (plain.length <= 40 && plain !== "" && accepts(plain, providers)) return plain;
  return `${plain.slice(0, 23)}_${hash("sha256", id).slice(0, 16)}`;
}

function addSuffix(id: string, suffix: string, providers: readonly Provider[]): string {
  const whole = id + suffix;
  return accepts(whole, providers) ? whole : shapeId(id.slice(0, 39 - suffix.length) + suffix, providers);
}

// Order: each call's results directly after the message that makes it.

function placeResults(messages: readonly PairedMessage[]): ModelMessage[] {
  const results = new Map<number, Answer[]>();
  for (const [from, { parts, seq }] of messages.entries())
    for (const { part, pair } of parts)
      if (pair !== null && part.type === "tool_result")
        results.set(pair, [...(results.get(pair) ?? []), { part, from, seq }]);

  const placed: ModelMessage[] = [];
  for (const { role, seq, parts } of messages) {
    const own = parts.filter(({ part, pair }) => pair === null || part.type !== "tool_result");
    if (own.length === 0 && parts.length > 0) continue;
    placed.push({ role: role === "tool" ? "user" : role, parts: own.map(({ part }) => part), seq });
    const calls = own.filter(({ pair }) => pair !== null);
    if (calls.length > 0)
      placed.push(...groupAnswers(calls.flatMap(({ pair }) => results.get(pair ?? -1) ?? [])));
  }
  return placed;
}

interface Answer {
  readonly part: ModelPart;
  readonly from: number;
  readonly seq: number | undefined;
}

/** Results that arrived in one message stay in one. */
function groupAnswers(answers: readonly Answer[]): ModelMessage[] {
  const groups = Map.groupBy(answers, ({ from }) => from);
  return [...groups.values()].map((group) => ({
    role: "tool",
    parts: group.map(({ part }) => part),
    seq: group[0]?.seq,
  }));
}

/** Removes blank text; an answer that becomes empty says so. */
function dropBlanks(message: ModelMessage): ModelMessage {
  if (!message.parts.some(isBlank)) return message;
  const told = new Set(message.parts.flatMap((part) => (isBlank(part) ? [] : [part.toolCallId])));
  const parts = message.parts.flatMap((part) => {
    if (!isBlank(part)) return [part];
    if (part.type === "text" || told.has(part.toolCallId)) return [];
    told.add(part.toolCallId);
    return [{ ...part, text: EMPTY_RESULT_TEXT, tokens: undefined }];
  });
  return { ...message, parts };
}

/**
 * Rows that have nothing to send by themselves are not messages: hosts write one answer in several rows, some of which contain only
 * reasoning. It goes before what the same speaker said next, or else just before.
 */
function joinEmpty(messages: readonly ModelMessage[]): ModelMessage[] {
  const joined: ModelMessage[] = [];
  let waiting: ModelMessage | null = null;
  const settle = (): void => {
    const before = joined.at(-1);
    if (waiting === null) return;
    if (before?.role === waiting.role)
      joined[joined.length - 1] = { ...before, parts: reasoningFirst([...before.parts, ...waiting.parts]) };
    else joined.push(waiting);
    waiting = null;
  };
  for (const message of messages) {
    if (message.parts.length === 0) continue;
    if (waiting !== null && waiting.role !== message.role) settle();
    const merged: ModelMessage =
      waiting === null ? message : { ...waiting, parts: [...waiting.parts, ...message.parts] };
    waiting = merged.parts.some(hasContent) ? null : merged;
    if (waiting === null) joined.push(merged);
  }
  settle();
  const [first] = messages;
  return joined.length === 0 && first !== undefined ? [first] : joined;
}

/** A message that is still empty says so, because every provider requires content. */
function fillEmpty(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.map((message) => {
    const { parts } = message;
    if (!parts.some(hasContent)) return { ...message, parts: [...parts, textPart(EMPTY_MESSAGE_TEXT)] };
    // Reasoning belongs before what it led to; after the last answer it would be refused.
    return parts.at(-1)?.type === "reasoning" ? { ...message, parts: reasoningFirst(parts) } : message;
  });
}

const reasoningFirst = (parts: readonly ModelPart[]): ModelPart[] => [
  ...parts.filter(({ type }) => type === "reasoning"),
  ...parts.filter(({ type }) => type !== "reasoning"),
];

function joinRoles(messages: readonly ModelMessage[]): ModelMessage[] {
  const joined: ModelMessage[] = [];
  for (const message of messages) {
    const before = joined.at(-1);
    if (before !== undefined && before.role === message.role && message.role !== "tool")
      joined[joined.length - 1] = { ...before, parts: [...before.parts, ...message.parts] };
    else joined.push(message);
  }
  return joined;
}
