/**
 * What the APIs of five providers refuse, as a check of messages in the format of pi and OpenClaw. Written from the providers' own documentation
 * and error messages, deliberately without any code of the engine's grammars, which are tested against it.
 */
import type { ContextBlock, ContextMessage } from "@lossless/core";

const NAMES: Record<string, RegExp> = {
  anthropic: /^[\w-]{1,128}$/,
  "openai-chat": /^[\w-]{1,64}$/,
  "openai-responses": /^[\w-]{1,64}$/,
  gemini: /^[A-Za-z_][\w.-]{0,63}$/,
  bedrock: /^[\w-]{1,64}$/,
};
const CALL_IDS: Record<string, RegExp> = {
  anthropic: /^[\w-]{1,64}$/,
  "openai-chat": /^[^]{1,40}$/,
  "openai-responses": /^[^]{1,64}$/,
  gemini: /^[^]+$/,
  bedrock: /^[\w-]{1,64}$/,
};
const BEGIN_WITH_USER = ["anthropic", "gemini", "bedrock"];
const TAKE_TURNS = ["gemini", "bedrock"];

/** Everything the provider would refuse; empty: it accepts the messages. */
export function listRefusals(provider: string, messages: readonly ContextMessage[]): string[] {
  const refusals = [...checkTexts(messages), ...checkCalls(provider, messages)];
  if (messages.length === 0) refusals.push("there is no message");
  if (BEGIN_WITH_USER.includes(provider) && messages[0] !== undefined && messages[0].role !== "user")
    refusals.push(`the first message is of ${messages[0].role}`);
  if (TAKE_TURNS.includes(provider)) {
    for (const [at, { role }] of messages.entries())
      if (role !== "toolResult" && messages[at - 1]?.role === role)
        refusals.push(`message ${at}: ${role} after ${role}`);
  }
  return refusals;
}

function checkTexts(messages: readonly ContextMessage[]): string[] {
  return messages.flatMap(({ role, content }, at) => {
    const wrong: string[] = [];
    if (!isWellFormed(messages[at])) wrong.push("half of a surrogate pair");
    if (!content.some(({ type }) => type !== "thinking")) wrong.push("no content");
    if (content.some(isBlankText)) wrong.push("a blank text");
    if (role !== "assistant" && content.some(({ type }) => type === "thinking" || type === "toolCall"))
      wrong.push("what only an assistant says");
    wrong.push(...content.flatMap(checkFrame));
    return wrong.map((what) => `message ${at}: ${what}`);
  });
}

const isBlankText = ({ type, text }: ContextBlock): boolean =>
  type === "text" && (typeof text !== "string" || text.trim() === "");

function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormed(member));
}

/** How the engine opens a frame around text from the archive, and the only way it closes. */
const FRAMES = [
  { begins: /^<summary id="sum_[0-9a-f]{16}" /, tag: /<\/?\s*summary\b/gi, ends: "\n</summary>" },
  { begins: /^<recall trust="untrusted">\n/, tag: /<\/?\s*recall\b/gi, ends: "\n</recall>" },
  {
    begins: /^\[Result of [^\]\n]+; its call is not shown here\.\]\n/,
    tag: /<\/?\s*tool_result\b/gi,
    ends: "\n</tool_result>",
  },
];

function checkFrame({ text }: ContextBlock): string[] {
  if (typeof text !== "string") return [];
  const frame = FRAMES.find(({ begins }) => begins.test(text));
  if (frame === undefined) return [];
  const isClosedOnce = text.match(frame.tag)?.length === 2 && text.endsWith(frame.ends);
  return isClosedOnce ? [] : [`a frame that its text can close: ${text.slice(0, 40)}`];
}

/** Each call is answered once, by the messages directly after it, under its own name. */
function checkCalls(provider: string, messages: readonly ContextMessage[]): string[] {
  const refusals: string[] = [];
  const known = new Set<string>();
  let open = new Map<string, string>();
  const close = (at: number): void => {
    for (const id of open.keys()) refusals.push(`message ${at}: no result for ${id}`);
    open = new Map();
  };
  for (const [at, message] of messages.entries()) {
    if (message.role === "toolResult") {
      const { toolCallId = "", toolName = "" } = message;
      if (open.get(toolCallId) !== toolName)
        refusals.push(`message ${at}: ${toolName} answers ${open.get(toolCallId)}`);
      open.delete(toolCallId);
      continue;
    }
    close(at);
    for (const block of message.content.filter(({ type }) => type === "toolCall")) {
      const [id, name] = [String(block.id), String(block.name)];
      if (known.has(id)) refusals.push(`message ${at}: ${id} is used twice`);
      if (!CALL_IDS[provider]?.test(id)) refusals.push(`message ${at}: the id ${JSON.stringify(id)}`);
      if (!NAMES[provider]?.test(name)) refusals.push(`message ${at}: the name ${JSON.stringify(name)}`);
      known.add(id);
      open.set(id, name);
    }
  }
  close(messages.length);
  return refusals;
}
