/**
 * A scripted provider on loopback: one reply per request, in order, repeating the last one. It implements Anthropic's Messages API
 * (`/v1/messages`) and OpenAI's chat completions (`/v1/chat/completions`), and can simulate every failure of either: stall, close the
 * connection, answer with an error, with nothing, with thinking only, with garbage. Nothing here depends on time or chance.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { readBody, startLoopback } from "./loopback.ts";

export type FakeReply =
  /** A stream with this text; thinking comes first. */
  | { readonly kind: "text"; readonly text: string; readonly thinking?: string; readonly usage?: FakeUsage }
  /** The same as one JSON body, as from a server that cannot stream. */
  | { readonly kind: "whole"; readonly text: string; readonly usage?: FakeUsage }
  /** Begins a stream, sends this text, and then stalls. */
  | { readonly kind: "stall"; readonly text?: string }
  /** Accepts the request and never answers. */
  | { readonly kind: "silence" }
  /** Begins a stream, sends this text, and closes the connection. */
  | { readonly kind: "cut"; readonly text?: string }
  /** Ends the stream cleanly, without reporting that the answer is complete. */
  | { readonly kind: "unfinished"; readonly text: string }
  | {
      readonly kind: "status";
      readonly status: number;
      readonly message?: string;
      readonly type?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** An error inside a stream that began without one. */
  | { readonly kind: "streamError"; readonly type: string; readonly message: string }
  /** A stream with exactly this body. */
  | { readonly kind: "raw"; readonly body: string };

export interface FakeUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface ProviderRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  /** Resolves when either side closes the connection. */
  readonly closed: Promise<void>;
}

export interface FakeProvider {
  /** `http://127.0.0.1:<port>`; OpenAI's API is below `/v1`. */
  readonly url: string;
  readonly requests: readonly ProviderRequest[];
  /** Replaces the replies for the next requests. */
  script(...replies: readonly FakeReply[]): void;
  close(): Promise<void>;
}

export async function startFakeProvider(...replies: readonly FakeReply[]): Promise<FakeProvider> {
  const requests: ProviderRequest[] = [];
  let left = [...replies];
  const server = await startLoopback((incoming, response) => {
    void readRequest(incoming, response).then((request) => {
      requests.push(request);
      const reply = (left.length > 1 ? left.shift() : left[0]) ?? { kind: "status", status: 500 };
      writeReply(response, request, reply);
      return undefined;
    });
  });
  return {
    ...server,
    requests,
    script(...next) {
      left = [...next];
    },
  };
}

async function readRequest(incoming: IncomingMessage, response: ServerResponse): Promise<ProviderRequest> {
  const closed = new Promise<void>((resolve) => response.on("close", () => resolve()));
  const body = JSON.parse(await readBody(incoming)) as Record<string, unknown>;
  return { path: incoming.url ?? "", headers: incoming.headers, body, closed };
}

function writeReply(response: ServerResponse, request: ProviderRequest, reply: FakeReply): void {
  const dialect = request.path.endsWith("/messages") ? ANTHROPIC : OPENAI;
  const model = String(request.body["model"]);
  switch (reply.kind) {
    case "silence":
      return;
    case "status":
      return writeStatus(response, dialect, reply);
    case "whole":
      response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
      response.end(JSON.stringify(dialect.whole(model, reply.text, reply.usage ?? NO_USAGE)));
      return;
    default:
      response.writeHead(200, { "content-type": "text/event-stream" });
      return writeStream(response, dialect, model, reply);
  }
}

function writeStatus(
  response: ServerResponse,
  dialect: FakeDialect,
  reply: Extract<FakeReply, { kind: "status" }>,
): void {
  response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
  response.end(JSON.stringify(dialect.error(reply.type ?? "error", reply.message ?? "scripted error")));
}

type StreamReply = Exclude<FakeReply, { kind: "silence" | "status" | "whole" }>;

function writeStream(
  response: ServerResponse,
  dialect: FakeDialect,
  model: string,
  reply: StreamReply,
): void {
  if (reply.kind === "raw") {
    response.end(reply.body);
    return;
  }
  const usage = (reply.kind === "text" ? reply.usage : undefined) ?? NO_USAGE;
  const events = dialect.begin(model, usage);
  if (reply.kind === "text" && reply.thinking !== undefined) events.push(...dialect.thinking(reply.thinking));
  if ("text" in reply && reply.text !== undefined) {
    for (const piece of cutInPieces(reply.text)) events.push(dialect.piece(piece));
  }
  if (reply.kind === "streamError") events.push(dialect.error(reply.type, reply.message));
  if (reply.kind === "text") events.push(...dialect.finish(usage));
  const text = events.map((event) => renderEvent(event)).join("");
  if (reply.kind === "stall") response.write(text);
  else if (reply.kind === "cut") response.write(text, () => response.destroy());
  else response.end(reply.kind === "text" ? text + dialect.end : text);
}

const renderEvent = (event: FakeEvent): string =>
  `${typeof event["type"] === "string" ? `event: ${event["type"]}\n` : ""}data: ${JSON.stringify(event)}\n\n`;

/** Small and uneven, so that a reader gets events cut anywhere. */
function cutInPieces(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0, size = 1; at < text.length; at += size, size = (size % 7) + 1)
    pieces.push(text.slice(at, at + size));
  return pieces;
}

// ---- the two dialects

type FakeEvent = Record<string, unknown>;

interface FakeDialect {
  begin(model: string, usage: FakeUsage): FakeEvent[];
  thinking(text: string): FakeEvent[];
  piece(text: string): FakeEvent;
  finish(usage: FakeUsage): FakeEvent[];
  readonly end: string;
  error(type: string, message: string): FakeEvent;
  whole(model: string, text: string, usage: FakeUsage): FakeEvent;
}

const NO_USAGE: FakeUsage = { inputTokens: 0, outputTokens: 0 };

const ANTHROPIC: FakeDialect = {
  begin: (model, usage) => [
    {
      type: "message_start",
      message: {
        model,
        role: "assistant",
        content: [],
        usage: { input_tokens: usage.inputTokens, output_tokens: 1 },
      },
    },
    { type: "ping" },
  ],
  thinking: (text) => [
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: text } },
    { type: "content_block_stop", index: 0 },
  ],
  piece: (text) => ({ type: "content_block_delta", index: 1, delta: { type: "text_delta", text } }),
  finish: (usage) => [
    { type: "content_block_stop", index: 1 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: usage.outputTokens },
    },
    { type: "message_stop" },
  ],
  end: "",
  error: (type, message) => ({ type: "error", error: { type, message } }),
  whole: (model, text, usage) => ({
    type: "message",
    model,
    content: [
      { type: "thinking", thinking: "aside" },
      { type: "text", text },
    ],
    stop_reason: "end_turn",
    usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
  }),
};

const OPENAI: FakeDialect = {
  begin: (model) => [
    { model, choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] },
  ],
  thinking: (text) => [{ choices: [{ index: 0, delta: { reasoning_content: text }, finish_reason: null }] }],
  piece: (text) => ({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] }),
  finish: (usage) => [
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { choices: [], usage: { prompt_tokens: usage.inputTokens, completion_tokens: usage.outputTokens } },
  ],
  end: "data: [DONE]\n\n",
  error: (type, message) => ({ error: { type, message } }),
  whole: (model, text, usage) => ({
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text, reasoning_content: "aside" },
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: usage.inputTokens, completion_tokens: usage.outputTokens },
  }),
};
