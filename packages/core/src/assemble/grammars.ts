/**
 * What each provider accepts as a list of messages, as executable rules. The list is provider-neutral: results are in messages with the
 * role `tool`, right after the assistant's message whose calls they answer; adapters turn those into blocks of a user message, items or
 * function responses without changing the order.
 *
 * `repair.ts` makes any list pass; it is tested against these rules.
 */
import type { PartType } from "../model/message.ts";

export type Provider = "anthropic" | "openai-chat" | "openai-responses" | "gemini" | "bedrock";

export const PROVIDERS: readonly Provider[] = [
  "anthropic",
  "openai-chat",
  "openai-responses",
  "gemini",
  "bedrock",
];

export interface ModelPart {
  readonly type: PartType;
  readonly text?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly toolName?: string | undefined;
  readonly isError?: boolean | undefined;
  /** `source` is the arguments of a call, not the whole call. */
  readonly holdsArguments?: boolean | undefined;
  /** Bytes of an image, or of base64 that is not in the text: they are sent and cost tokens. */
  readonly payloadBytes?: number | undefined;
  /** Its token count, if already known. */
  readonly tokens?: number | undefined;
  /** The block as it arrived, for code that writes the provider's own format. */
  readonly source?: unknown;
}

export interface ModelMessage {
  readonly role: "user" | "assistant" | "tool" | "system";
  readonly parts: readonly ModelPart[];
  /** The stored message's `seq`: repeated tool-call ids take their suffix from it. */
  readonly seq?: number | undefined;
}

export interface Violation {
  readonly rule: RuleName;
  /** Index of the offending message; −1 for the list as a whole. */
  readonly index: number;
  readonly detail: string;
}

type RuleName =
  | "not_empty_list"
  | "starts_with_user"
  | "known_role"
  | "not_empty_message"
  | "parts_in_place"
  | "call_ids"
  | "tool_names"
  | "well_formed"
  | "results_follow_calls"
  | "results_anywhere_later"
  | "roles_alternate"
  | "reasoning_is_followed";

type Rule = (messages: readonly ModelMessage[], limits: Limits) => Violation[];

interface Limits {
  /** Shape of a tool-call id. */
  readonly callId: RegExp;
  /** Shape of a tool's name. */
  readonly toolName: RegExp;
}

const ANY_ID = /^.+$/su;
const WORD_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

interface Grammar {
  readonly rules: readonly RuleName[];
  readonly limits: Limits;
}

const COMMON: readonly RuleName[] = [
  "not_empty_list",
  "known_role",
  "not_empty_message",
  "parts_in_place",
  "call_ids",
  "tool_names",
  "well_formed",
];

const GRAMMARS: Record<Provider, Grammar> = {
  // The provider joins neighbours of one role; calls must be answered in the very next message.
  anthropic: {
    rules: [...COMMON, "starts_with_user", "results_follow_calls"],
    limits: { callId: /^[a-zA-Z0-9_-]{1,64}$/, toolName: /^[a-zA-Z0-9_-]{1,128}$/ },
  },
  "openai-chat": {
    rules: [...COMMON, "results_follow_calls"],
    limits: { callId: /^.{1,40}$/su, toolName: WORD_NAME },
  },
  // Calls and outputs are separate items: each needs its partner, anywhere later.
  "openai-responses": {
    rules: [...COMMON, "results_anywhere_later", "reasoning_is_followed"],
    limits: { callId: /^.{1,64}$/su, toolName: WORD_NAME },
  },
  // A turn with function calls follows a user's or a function's turn and is answered call by call.
  gemini: {
    rules: [...COMMON, "starts_with_user", "roles_alternate", "results_follow_calls"],
    limits: { callId: ANY_ID, toolName: /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/ },
  },
  bedrock: {
    rules: [...COMMON, "starts_with_user", "roles_alternate", "results_follow_calls"],
    limits: { callId: /^[a-zA-Z0-9_-]{1,64}$/, toolName: WORD_NAME },
  },
};

/** Every rule of the provider that the list breaks; empty means it is accepted. */
export function checkGrammar(provider: Provider, messages: readonly ModelMessage[]): Violation[] {
  const { rules, limits } = GRAMMARS[provider];
  return rules.flatMap((name) => RULES[name](messages, limits));
}

export interface GrammarCheck {
  readonly provider: Provider;
  /** Empty: the provider accepts the list. */
  readonly violations: readonly Violation[];
}

/** Checks the list against every provider. */
export const checkGrammars = (messages: readonly ModelMessage[]): GrammarCheck[] =>
  PROVIDERS.map((provider) => ({ provider, violations: checkGrammar(provider, messages) }));

export const wantsRule = (provider: Provider, rule: RuleName): boolean =>
  GRAMMARS[provider].rules.includes(rule);

export const acceptsCallId = (provider: Provider, id: string): boolean =>
  id.isWellFormed() && GRAMMARS[provider].limits.callId.test(id);

export const acceptsToolName = (provider: Provider, name: string): boolean =>
  GRAMMARS[provider].limits.toolName.test(name);

/** Content that a provider does not treat as empty: reasoning alone does not count. */
export const hasContent = (part: ModelPart): boolean => part.type !== "reasoning" && !isBlank(part);

/** A text that a provider treats as empty. */
export const isBlank = ({ type, text = "", payloadBytes }: ModelPart): boolean =>
  (type === "text" || type === "tool_result") && payloadBytes === undefined && text.trim() === "";

const RULES: Record<RuleName, Rule> = {
  not_empty_list: (messages) => (messages.length > 0 ? [] : [violate("not_empty_list", -1, "no message")]),

  starts_with_user: ([first]) =>
    first === undefined || first.role === "user"
      ? []
      : [violate("starts_with_user", 0, `begins with ${first.role}`)],

  known_role: (messages) =>
    messages.flatMap(({ role }, index) =>
      role === "user" || role === "assistant" || role === "tool" ? [] : [violate("known_role", index, role)],
    ),

  not_empty_message: (messages) =>
    messages.flatMap(({ parts }, index) => {
      if (parts.some(isBlank)) return [violate("not_empty_message", index, "a blank text part")];
      return parts.some(hasContent) ? [] : [violate("not_empty_message", index, "nothing to send")];
    }),

  parts_in_place: (messages) =>
    messages.flatMap(({ role, parts }, index) =>
      parts
        .filter(({ type }) => !isAllowed(role, type))
        .map(({ type }) => violate("parts_in_place", index, `${type} in a message of role ${role}`)),
    ),

  call_ids: (messages, { callId }) => {
    const seen = new Set<string>();
    return messages.flatMap(({ parts }, index) =>
      parts.flatMap(({ type, toolCallId }) => {
        if (type !== "tool_call" && type !== "tool_result") return [];
        if (toolCallId === undefined || !callId.test(toolCallId))
          return [violate("call_ids", index, `id ${JSON.stringify(toolCallId)}`)];
        if (type === "tool_result") return [];
        if (seen.has(toolCallId)) return [violate("call_ids", index, `id ${toolCallId} is used twice`)];
        seen.add(toolCallId);
        return [];
      }),
    );
  },

  tool_names: (messages, { toolName }) => {
    const called = new Map<string, string | undefined>();
    return messages.flatMap(({ parts }, index) =>
      parts.flatMap(({ type, toolCallId = "", toolName: name }) => {
        if (type === "tool_call") called.set(toolCallId, name);
        if (type !== "tool_call" && type !== "tool_result") return [];
        if (name !== undefined && !toolName.test(name))
          return [violate("tool_names", index, `name ${JSON.stringify(name)}`)];
        if (!called.has(toolCallId) || called.get(toolCallId) === name) return [];
        return [violate("tool_names", index, `${name} answers ${called.get(toolCallId)}`)];
      }),
    );
  },

  well_formed: (messages) =>
    messages.flatMap(({ parts }, index) =>
      parts.every(({ text = "" }) => text.isWellFormed())
        ? []
        : [violate("well_formed", index, "half of a surrogate pair")],
    ),

  results_follow_calls: (messages) => {
    const found: Violation[] = [];
    for (let index = 0; index < messages.length;) {
      const calls = callIds(messages[index]);
      let end = index + 1;
      while (messages[end]?.role === "tool") end++;
      const answers = messages.slice(index + 1, end).flatMap(resultIds);
      if (messages[index]?.role === "tool")
        found.push(violate("results_follow_calls", index, "results follow no call"));
      else if (!isSameSet(calls, answers))
        found.push(
          violate("results_follow_calls", index, `calls ${calls.join()} are answered by ${answers.join()}`),
        );
      index = end;
    }
    return found;
  },

  results_anywhere_later: (messages) => {
    const open = new Set<string>();
    const found: Violation[] = [];
    for (const [index, message] of messages.entries()) {
      for (const id of resultIds(message))
        if (!open.delete(id)) found.push(violate("results_anywhere_later", index, `no open call ${id}`));
      for (const id of callIds(message)) open.add(id);
    }
    for (const id of open) found.push(violate("results_anywhere_later", -1, `no output for call ${id}`));
    return found;
  },

  roles_alternate: (messages) =>
    messages.flatMap(({ role }, index) =>
      role !== "tool" && messages[index - 1]?.role === role
        ? [violate("roles_alternate", index, `${role} follows ${role}`)]
        : [],
    ),

  reasoning_is_followed: (messages) =>
    messages.flatMap(({ parts }, index) =>
      parts.at(-1)?.type === "reasoning"
        ? [violate("reasoning_is_followed", index, "reasoning comes last")]
        : [],
    ),
};

const violate = (rule: RuleName, index: number, detail: string): Violation => ({ rule, index, detail });

function isAllowed(role: ModelMessage["role"], type: PartType): boolean {
  if (role === "tool") return type === "tool_result";
  if (type === "tool_result") return false;
  return role === "assistant" || (type !== "tool_call" && type !== "reasoning");
}

const callIds = (message: ModelMessage | undefined): string[] => listIds(message, "tool_call");

/** A result may have several parts. */
const resultIds = (message: ModelMessage | undefined): string[] => [
  ...new Set(listIds(message, "tool_result")),
];

const listIds = (message: ModelMessage | undefined, type: "tool_call" | "tool_result"): string[] =>
  (message?.parts ?? []).flatMap((part) => (part.type === type ? [part.toolCallId ?? ""] : []));

function isSameSet(left: readonly string[], right: readonly string[]): boolean {
  return (
    left.length === right.length &&
    new Set(left).size === left.length &&
    left.every((id) => right.includes(id))
  );
}
