/**
 * A free and deterministic model: an OpenAI-compatible chat-completions server on loopback. A directive in the last real user message of a
 * request scripts its answer, so that a test reads as a script of turns. It keeps every request in memory, so that tests can check what a host
 * really sent. Nothing here depends on time or chance.
 *
 * Directives: `SAY text` · `CALL_TOOL name {json}` · `FAIL_HTTP code` · `OVERFLOW_ONCE key` · `BIG_REPLY characters` · `THINK text` (before the
 * reply) · `HOLD key` (the first request with this key gets no answer until `release(key)`).
 */

import type { IncomingMessage, ServerResponse } from "node:http";

import { readBody, startLoopback } from "./loopback.ts";

/** One chat-completions request, and how it was answered. */
export interface RecordedRequest {
  readonly number: number;
  readonly model: string;
  readonly stream: boolean;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly string[];
  /** The last user message written by a person; runtime context that the host appends does not count. */
  readonly userText: string;
  readonly promptTokens: number;
  /** `text`, `tool:<name>`, `overflow`, `http:<code>` or `held`. */
  answer: string;
}

export interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

export interface FakeModel {
  /** Base URL to configure as provider, ending in `/v1`. */
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  /** Resolves with the first request, past or future, that the predicate accepts. */
  waitForRequest(
    accepts: (request: RecordedRequest) => boolean,
    deadlineMs: number,
  ): Promise<RecordedRequest>;
  /** Answers the request held under this key. */
  release(key: string): void;
  /** From now on requests for summaries fail with this HTTP status; null lets them succeed again. */
  failSummaries(code: number | null): void;
  close(): Promise<void>;
}

export interface FakeModelOptions {
  /** A request estimated above this is answered with an overflow; unlimited when absent. */
  readonly contextTokens?: number;
}

type Answer =
  | { readonly kind: "text"; readonly text: string; readonly thinking?: string }
  | { readonly kind: "tool"; readonly name: string; readonly args: string }
  | { readonly kind: "overflow" }
  | { readonly kind: "http"; readonly code: number };

/** The host appends one user message of its own to each request; it starts with this marker. */
const INTERNAL_CONTEXT_MARK = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>";
const STREAM_CHUNK_CHARS = 400;
const CHARS_PER_TOKEN = 4;

export async function startFakeModel(options: FakeModelOptions = {}): Promise<FakeModel> {
  const requests: RecordedRequest[] = [];
  const spentOverflowKeys = new Set<string>();
  const spentHoldKeys = new Set<string>();
  const held = new Map<string, () => void>();
  const watchers = new Set<(request: RecordedRequest) => void>();
  let summaryFailure: number | null = null;

  async function answerCompletion(
    body: Record<string, unknown>,
    rawLength: number,
    response: ServerResponse,
  ): Promise<void> {
    const request = recordRequest(body, rawLength, requests.length + 1);
    requests.push(request);
    const holdKey =
      isSummaryRequest(request) || isQuestionRequest(request)
        ? undefined
        : matchDirective(request.userText, "HOLD", /\S+/);
    if (holdKey !== undefined && !spentHoldKeys.has(holdKey)) {
      spentHoldKeys.add(holdKey);
      request.answer = "held";
      notify(request);
      await new Promise<void>((resolve) => held.set(holdKey, resolve));
    }
    const answer: Answer =
      summaryFailure !== null && isSummaryRequest(request)
        ? { kind: "http", code: summaryFailure }
        : chooseAnswer(request, spentOverflowKeys, options.contextTokens);
    request.answer = describeAnswer(answer);
    notify(request);
    if (!response.destroyed) writeAnswer(response, request, answer);
  }

  function notify(request: RecordedRequest): void {
    for (const watcher of watchers) watcher(request);
  }

  const server = await startLoopback((incoming, response) => {
    handle(incoming, response, answerCompletion).catch((error: unknown) => {
      sendJson(response, 500, { error: { message: String(error), type: "server_error" } });
    });
  });

  return {
    url: `${server.url}/v1`,
    requests,
    waitForRequest(accepts, deadlineMs) {
      const earlier = requests.find(accepts);
      if (earlier !== undefined) return Promise.resolve(earlier);
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          watchers.delete(watcher);
          reject(new Error(`no such model request within ${deadlineMs} ms (${requests.length} others came)`));
        }, deadlineMs);
        const watcher = (request: RecordedRequest): void => {
          if (!accepts(request)) return;
          clearTimeout(timer);
          watchers.delete(watcher);
          resolve(request);
        };
        watchers.add(watcher);
      });
    },
    release(key) {
      held.get(key)?.();
      held.delete(key);
    },
    failSummaries(code) {
      summaryFailure = code;
    },
    close() {
      for (const resume of held.values()) resume();
      return server.close();
    },
  };
}

async function handle(
  incoming: IncomingMessage,
  response: ServerResponse,
  answerCompletion: (
    body: Record<string, unknown>,
    rawLength: number,
    response: ServerResponse,
  ) => Promise<void>,
): Promise<void> {
  const path = new URL(incoming.url ?? "/", "http://localhost").pathname;
  const raw = await readBody(incoming);
  if (path === "/v1/models")
    return sendJson(response, 200, { object: "list", data: [{ id: "fake-1", object: "model" }] });
  if (path !== "/v1/chat/completions")
    return sendJson(response, 404, {
      error: { message: `no such path: ${path}`, type: "invalid_request_error" },
    });
  await answerCompletion(JSON.parse(raw) as Record<string, unknown>, raw.length, response);
}

function recordRequest(body: Record<string, unknown>, rawLength: number, number: number): RecordedRequest {
  const messages = (body.messages ?? []) as ChatMessage[];
  const tools = (body.tools ?? []) as { function?: { name?: string } }[];
  return {
    number,
    model: String(body.model ?? ""),
    stream: body.stream === true,
    messages,
    tools: tools.map((tool) => tool.function?.name ?? ""),
    userText: flattenContent(
      messages.findLast((message) => message.role === "user" && !isInternalContext(message))?.content,
    ),
    promptTokens: Math.ceil(rawLength / CHARS_PER_TOKEN),
    answer: "",
  };
}

export function flattenContent(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: { text?: unknown } | null) => (typeof block?.text === "string" ? block.text : ""))
    .join("\n");
}

function isInternalContext(message: ChatMessage): boolean {
  return message.role === "user" && flattenContent(message.content).startsWith(INTERNAL_CONTEXT_MARK);
}

function chooseAnswer(
  request: RecordedRequest,
  spentOverflowKeys: Set<string>,
  contextTokens = Infinity,
): Answer {
  const { userText } = request;
  if (isSummaryRequest(request)) return { kind: "text", text: writeSummary(userText) };
  if (isQuestionRequest(request)) return { kind: "text", text: answerFromPassages(userText) };
  const code = matchDirective(userText, "FAIL_HTTP", /\d{3}/);
  if (code !== undefined) return { kind: "http", code: Number(code) };
  const overflowKey = matchDirective(userText, "OVERFLOW_ONCE", /\S+/);
  if (overflowKey !== undefined && !spentOverflowKeys.has(overflowKey)) {
    spentOverflowKeys.add(overflowKey);
    return { kind: "overflow" };
  }
  if (request.promptTokens > contextTokens) return { kind: "overflow" };
  const last = request.messages.findLast((message) => !isInternalContext(message));
  if (last?.role === "tool")
    return { kind: "text", text: `the tool said: ${flattenContent(last.content).slice(0, 200)}` };
  const call = parseToolCall(userText);
  if (call !== undefined && request.tools.includes(call.name)) return { kind: "tool", ...call };
  const thinking = matchDirective(userText, "THINK", /[^\n]+/);
  return {
    kind: "text",
    text: chooseText(userText, request.number),
    thinking,
  };
}

/** Directives inside the sources of a summary or an answer were meant for another request. */
const isSummaryRequest = (request: RecordedRequest): boolean => isAskedBy(request, /You write summaries/);
const isQuestionRequest = (request: RecordedRequest): boolean =>
  isAskedBy(request, /You answer a question about/);

function isAskedBy({ messages, tools }: RecordedRequest, system: RegExp): boolean {
  return (
    tools.length === 0 &&
    messages.some(({ role, content }) => role === "system" && system.test(flattenContent(content)))
  );
}

/** Cites the first passage. */
function answerFromPassages(userText: string): string {
  const [, id = "msg_0", words = "nothing"] = /\[(msg_\d+)\][^\n]*\n([^\n]*)/.exec(userText) ?? [];
  return `${words.slice(0, 200)} [${id}]`;
}

/** Writes a summary like a careful model: the sentences that state a number, as many as fit. */
function writeSummary(userText: string): string {
  const sources = userText.slice(userText.indexOf("Everything between the marks is data."));
  const room = Number(/at most (\d+) tokens/.exec(userText)?.[1] ?? 200) * CHARS_PER_TOKEN * 0.6;
  let text = "";
  for (const sentence of new Set(sources.match(/[^.\n]*\d[^.\n]*\./g) ?? []))
    if (text.length + sentence.length < room) text += `${sentence.trim()}\n`;
  return `${text || "Nothing with a number was said.\n"}Expand for details about: everything else`;
}

function chooseText(userText: string, number: number): string {
  const size = matchDirective(userText, "BIG_REPLY", /\d+/);
  if (size !== undefined)
    return "the quick brown fox jumps over the lazy dog. "
      .repeat(Math.ceil(Number(size) / 45))
      .slice(0, Number(size));
  const said = matchDirective(userText, "SAY", /[^\n]+/);
  return said?.trim() ?? `reply ${number}`;
}

function matchDirective(text: string, name: string, value: RegExp): string | undefined {
  return new RegExp(`\\b${name} (${value.source})`).exec(text)?.[1];
}

function parseToolCall(text: string): { name: string; args: string } | undefined {
  const match = /\bCALL_TOOL (\S+) (\{[^\n]*\})/.exec(text);
  return match === null ? undefined : { name: match[1]!, args: match[2]! };
}

function describeAnswer(answer: Answer): string {
  if (answer.kind === "tool") return `tool:${answer.name}`;
  return answer.kind === "http" ? `http:${answer.code}` : answer.kind;
}

function writeAnswer(response: ServerResponse, request: RecordedRequest, answer: Answer): void {
  if (answer.kind === "http")
    return sendJson(response, answer.code, {
      error: { message: "told to fail", type: "invalid_request_error" },
    });
  if (answer.kind === "overflow") return sendJson(response, 400, { error: describeOverflow(request) });
  if (request.stream) streamCompletion(response, request, answer);
  else sendJson(response, 200, renderCompletion(request, answer));
}

function describeOverflow(request: RecordedRequest): Record<string, unknown> {
  return {
    message: `This model's maximum context length was exceeded: the messages came to ${request.promptTokens} tokens.`,
    type: "invalid_request_error",
    param: "messages",
    code: "context_length_exceeded",
  };
}

type Completion = Extract<Answer, { kind: "text" | "tool" }>;

function renderCompletion(request: RecordedRequest, answer: Completion): Record<string, unknown> {
  const message =
    answer.kind === "text"
      ? { role: "assistant", content: answer.text }
      : { role: "assistant", content: null, tool_calls: [renderCall(request, answer)] };
  return {
    ...renderHeader(request, "chat.completion"),
    choices: [{ index: 0, finish_reason: finishReason(answer), message }],
    usage: countUsage(request, answer),
  };
}

function streamCompletion(response: ServerResponse, request: RecordedRequest, answer: Completion): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const header = renderHeader(request, "chat.completion.chunk");
  const send = (chunk: Record<string, unknown>): void =>
    void response.write(`data: ${JSON.stringify({ ...header, ...chunk })}\n\n`);
  const sendDelta = (delta: Record<string, unknown>, finish: string | null = null): void =>
    send({ choices: [{ index: 0, delta, finish_reason: finish }] });
  sendDelta({ role: "assistant", content: "" });
  if (answer.kind === "tool") sendDelta({ tool_calls: [{ index: 0, ...renderCall(request, answer) }] });
  else {
    if (answer.thinking !== undefined) sendDelta({ reasoning_content: answer.thinking });
    for (let at = 0; at < answer.text.length; at += STREAM_CHUNK_CHARS)
      sendDelta({ content: answer.text.slice(at, at + STREAM_CHUNK_CHARS) });
  }
  sendDelta({}, finishReason(answer));
  send({ choices: [], usage: countUsage(request, answer) });
  response.end("data: [DONE]\n\n");
}

function renderHeader(request: RecordedRequest, object: string): Record<string, unknown> {
  return { id: `chatcmpl-${request.number}`, object, created: request.number, model: request.model };
}

function renderCall(
  request: RecordedRequest,
  answer: Extract<Answer, { kind: "tool" }>,
): Record<string, unknown> {
  return {
    id: `call_${request.number}`,
    type: "function",
    function: { name: answer.name, arguments: answer.args },
  };
}

function finishReason(answer: Completion): string {
  return answer.kind === "tool" ? "tool_calls" : "stop";
}

function countUsage(request: RecordedRequest, answer: Completion): Record<string, number> {
  const completion = Math.ceil((answer.kind === "text" ? answer.text : answer.args).length / CHARS_PER_TOKEN);
  return {
    prompt_tokens: request.promptTokens,
    completion_tokens: completion,
    total_tokens: request.promptTokens + completion,
  };
}

function sendJson(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
