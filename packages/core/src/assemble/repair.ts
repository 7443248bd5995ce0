/**
 * Makes a chosen list of messages one that the provider accepts, by order and pairing alone: each result follows its call, ids
 * are unique, no message is empty, neighbours of one role are joined where the grammar wants it, the first is the user's.
 *
 * Nothing is invented and nothing is dropped: a call without a result, or a result without a call, becomes text that says so,
 * in its place. Repairing what was repaired changes nothing.
 */
import { hash } from "node:crypto";

import {
  acceptsCallId,
  hasContent,
  PROVIDERS,
  wantsRule,
  type ModelMessage,
  type ModelPart,
  type Provider,
} from "./grammars.ts";

export interface RepairOptions {
  /** Whose grammar must hold. Absent: every provider's at once. */
  readonly provider?: Provider;
  /** Calls of the last message stay open because the host will append their results itself. */
  readonly keepsOpenCalls?: boolean;
}

export const FIRST_MESSAGE_TEXT = "[The conversation begins with the assistant's message below.]";
export const EMPTY_MESSAGE_TEXT = "[This message has no text.]";

export function repairMessages(
  messages: readonly ModelMessage[],
  options: RepairOptions = {},
): ModelMessage[] {
  const providers = options.provider === undefined ? PROVIDERS : [options.provider];
  const plain = messages.map(normaliseRole);
  const paired = pairTools(plain, options.keepsOpenCalls ?? false);
  nameCalls(paired, providers);
  const ordered = placeResults(paired).map(fillEmpty);
  const joined = providers.some((provider) => wantsRule(provider, "roles_alternate"))
    ? joinRoles(ordered)
    : ordered;
  const opens = providers.some((provider) => wantsRule(provider, "starts_with_user"));
  return opens && joined[0]?.role === "assistant" ? [textMessage(FIRST_MESSAGE_TEXT), ...joined] : joined;
}

const textPart = (text: string): ModelPart => ({ type: "text", text });
const textMessage = (text: string): ModelMessage => ({ role: "user", parts: [textPart(text)] });

/** Instructions in the middle of a conversation are nobody's grammar: they are shown as what the user's side said. */
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
}

/** A result answers the nearest earlier call of its id; a message that reuses an id closes the calls before it. */
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
        const call = openCalls.get(id)?.calls.shift();
        if (call !== undefined) call.pair = entry.pair = pairs++;
      }
    }
  }
  for (const { role, parts } of paired)
    for (const entry of parts) if (entry.pair === null) entry.part = settleLone(entry.part, role);
  return paired;
}

/** A part that belongs to no pair, as a provider takes it. */
function settleLone(part: ModelPart, role: ModelMessage["role"]): ModelPart {
  if (part.type === "tool_call") return textPart(describeLoneCall(part));
  if (part.type === "tool_result") return textPart(describeLoneResult(part));
  // A provider takes reasoning from the assistant only; elsewhere it is quoted.
  if (part.type === "reasoning" && role !== "assistant") return textPart(part.text ?? "");
  return part;
}

function describeLoneCall(part: ModelPart): string {
  const body = (part.text ?? "").trim();
  return `[Tool call ${part.toolName ?? "without a name"}; no result is recorded.]${body === "" ? "" : `\n${body}`}`;
}

function describeLoneResult(part: ModelPart): string {
  const body = (part.text ?? "").trim();
  const name = part.toolName === undefined ? "a tool" : part.toolName;
  return `[Result of ${name}; its call is not shown here.]${body === "" ? "" : `\n${body}`}`;
}

// Ids: unique in the list, and of a shape the provider takes.

/** The first call of an id keeps it; a later one gets its message's `seq`, which never changes, as a suffix. */
function nameCalls(messages: readonly PairedMessage[], providers: readonly Provider[]): void {
  const taken = new Set<string>();
  const names = new Map<number, string>();
  for (const [index, message] of messages.entries()) {
    for (const { part, pair } of message.parts) {
      if (pair === null || part.type !== "tool_call") continue;
      const shaped = shapeId(part.toolCallId ?? "call", providers);
      let name = shaped;
      for (let attempt = 0; taken.has(name); attempt++)
        name = addSuffix(shaped, `_${message.seq ?? index}${attempt === 0 ? "" : `_${attempt}`}`, providers);
      taken.add(name);
      names.set(pair, name);
    }
  }
  for (const { parts } of messages)
    for (const entry of parts) {
      const name = entry.pair === null ? undefined : names.get(entry.pair);
      if (name !== undefined && name !== entry.part.toolCallId)
        entry.part = { ...entry.part, toolCallId: name };
    }
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

// Order: every call's results right behind the message that makes it.

function placeResults(messages: readonly PairedMessage[]): ModelMessage[] {
  const results = new Map<number, { part: ModelPart; from: number; seq: number | undefined }>();
  for (const [from, { parts, seq }] of messages.entries())
    for (const { part, pair } of parts)
      if (pair !== null && part.type === "tool_result") results.set(pair, { part, from, seq });

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

/** Results that arrived in one message stay in one. */
function groupAnswers(
  answers: readonly { part: ModelPart; from: number; seq: number | undefined }[],
): ModelMessage[] {
  const groups = Map.groupBy(answers, ({ from }) => from);
  return [...groups.values()].map((group) => ({
    role: "tool",
    parts: group.map(({ part }) => part),
    seq: group[0]?.seq,
  }));
}

/** No blank part, no message without content: what is left of such a message says so. */
function fillEmpty(message: ModelMessage): ModelMessage {
  const parts = message.parts.filter((part) => part.type !== "text" || hasContent(part));
  if (!parts.some(hasContent)) return { ...message, parts: [...parts, textPart(EMPTY_MESSAGE_TEXT)] };
  // Reasoning belongs before what it led to; behind the last answer it would be refused.
  if (parts.at(-1)?.type === "reasoning") return { ...message, parts: reasoningFirst(parts) };
  return parts.length === message.parts.length ? message : { ...message, parts };
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
