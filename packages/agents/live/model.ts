/**
 * A free model behind the four APIs that the agents use: Anthropic's messages, OpenAI's responses and chat completions, and Gemini's contents.
 * The last user message scripts its answer: `SAY text`, or `CALL tool {json}` for the tool with that name ending; `FILL n` makes it report a
 * prompt of n tokens, which makes an agent compact. It keeps every request, so tests can check what an agent sent. Nothing here depends on time
 * or chance.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { readBody, startLoopback } from "@lossless/testkit/loopback.ts";

export interface ModelRequest {
  /** The whole request body as text. */
  readonly body: string;
  readonly path: string;
  /** The last user message; empty after a tool's result. */
  readonly said: string;
  /** The last tool's result, if the request has one. */
  readonly toolResult: string | null;
  readonly tools: readonly ToolName[];
}

export interface ToolName {
  readonly name: string;
  readonly namespace: string | undefined;
}

type Answer =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly tool: ToolName; readonly args: string };

export interface AgentModel {
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  close(): Promise<void>;
}

type Json = Record<string, unknown>;

interface Dialect {
  /** Matches the request paths of this API. */
  readonly path: RegExp;
  read(body: Json): Pick<ModelRequest, "said" | "toolResult" | "tools">;
  write(response: ServerResponse, body: Json, answer: Answer, tokens: number, n: number, path: string): void;
}

const PLAIN_TOKENS = 100;

export async function startAgentModel(): Promise<AgentModel> {
  const requests: ModelRequest[] = [];
  const server = await startLoopback((incoming, response) => void serve(incoming, response));
  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(incoming);
    const path = incoming.url ?? "/";
    const dialect = DIALECTS.find((one) => one.path.test(path));
    if (dialect === undefined) return sendOther(response, path);
    const body = JSON.parse(text === "" ? "{}" : text) as Json;
    const request = { body: text, path, ...dialect.read(body) };
    requests.push(request);
    const tokens = Number(/\bFILL (\d+)/u.exec(request.said)?.[1] ?? PLAIN_TOKENS);
    dialect.write(response, body, choose(request), tokens, requests.length, path);
  }
  return {
    url: server.url,
    requests,
    close: () => server.close(),
  };
}

/** Answers token counts, model lists, and other requests of agents. */
function sendOther(response: ServerResponse, path: string): void {
  if (/count_?tokens/iu.test(path)) return sendJson(response, { input_tokens: 10, totalTokens: 10 });
  if (/models/u.test(path)) return sendJson(response, { data: [], models: [], object: "list" });
  response.writeHead(404).end("{}");
}

function choose({ said, toolResult, tools }: ModelRequest): Answer {
  if (toolResult !== null) return { kind: "text", text: "The tool has answered." };
  // OpenCode passes a prompt on in quotes.
  const [, name = "", args = "{}"] = /\bCALL (\w+) (\{.*?\})/u.exec(said.replaceAll('\\"', '"')) ?? [];
  const tool = name === "" ? undefined : tools.find((one) => one.name.endsWith(name));
  if (tool !== undefined) return { kind: "call", tool, args };
  return { kind: "text", text: /\bSAY ([^\n<"]+)/u.exec(said)?.[1]?.trim() ?? "Nothing to say." };
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
        .join("\n");

const ANTHROPIC: Dialect = {
  path: /^\/v1\/messages(?:\?|$)/u,
  read(body) {
    const last = list(body["messages"]).findLast(({ role }) => role === "user");
    const result = list(last?.["content"]).find(({ type }) => type === "tool_result");
    return {
      said: textOf(last?.["content"]),
      toolResult: result === undefined ? null : textOf(result["content"]),
      tools: list(body["tools"]).map(({ name }) => ({ name: String(name), namespace: undefined })),
    };
  },
  write(response, body, answer, tokens, n) {
    const usage = { input_tokens: tokens, output_tokens: 5 };
    const block =
      answer.kind === "text"
        ? { type: "text", text: answer.text }
        : {
            type: "tool_use",
            id: `toolu_${n}`,
            name: answer.tool.name,
            input: JSON.parse(answer.args) as unknown,
          };
    const stop = answer.kind === "text" ? "end_turn" : "tool_use";
    const message = {
      id: `msg_${n}`,
      type: "message",
      role: "assistant",
      model: body["model"],
      content: [block],
      stop_reason: stop,
      stop_sequence: null,
      usage,
    };
    if (body["stream"] !== true) return sendJson(response, message);
    const delta =
      answer.kind === "text"
        ? { type: "text_delta", text: answer.text }
        : { type: "input_json_delta", partial_json: answer.args };
    const begun = answer.kind === "text" ? { type: "text", text: "" } : { ...block, input: {} };
    sendEvents(response, [
      { type: "message_start", message: { ...message, content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: begun },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage },
      { type: "message_stop" },
    ]);
  },
};

const RESPONSES: Dialect = {
  path: /\/responses(?:\/compact)?(?:\?|$)/u,
  read(body) {
    const items = list(body["input"]);
    const last = items.at(-1);
    const isResult = String(last?.["type"]).endsWith("_output");
    const said = items.findLast(
      ({ role, content }) => role === "user" && !textOf(content).trimStart().startsWith("<"),
    );
    return {
      said: isResult ? "" : textOf(said?.["content"]),
      toolResult: isResult ? JSON.stringify(last?.["output"]) : null,
      tools: list(body["tools"]).flatMap((tool): ToolName[] =>
        tool["type"] === "namespace"
          ? list(tool["tools"]).map(({ name }) => ({ name: String(name), namespace: String(tool["name"]) }))
          : [{ name: String(tool["name"]), namespace: undefined }],
      ),
    };
  },
  write(response, _body, answer, tokens, n) {
    const item =
      answer.kind === "text"
        ? {
            type: "message",
            id: `item_${n}`,
            role: "assistant",
            content: [{ type: "output_text", text: answer.text }],
          }
        : {
            type: "function_call",
            id: `item_${n}`,
            call_id: `call_${n}`,
            arguments: answer.args,
            ...answer.tool,
          };
    const usage = {
      input_tokens: tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: tokens + 5,
    };
    const id = `resp_${n}`;
    sendEvents(response, [
      { type: "response.created", response: { id } },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: { id, output: [item], usage } },
    ]);
  },
};

const CHAT: Dialect = {
  path: /\/chat\/completions(?:\?|$)/u,
  read(body) {
    const messages = list(body["messages"]);
    const last = messages.findLast(({ role }) => role === "user" || role === "tool");
    const isResult = last?.["role"] === "tool";
    return {
      said: isResult ? "" : textOf(last?.["content"]),
      toolResult: isResult ? textOf(last?.["content"]) : null,
      tools: list(body["tools"]).map((tool) => ({
        name: String((tool["function"] as Json | undefined)?.["name"]),
        namespace: undefined,
      })),
    };
  },
  write(response, body, answer, tokens, n) {
    const header = { id: `chat_${n}`, created: n, model: body["model"] };
    const call = (index: number): Json => ({
      index,
      id: `call_${n}`,
      type: "function",
      function: answer.kind === "call" ? { name: answer.tool.name, arguments: answer.args } : {},
    });
    const message =
      answer.kind === "text"
        ? { role: "assistant", content: answer.text }
        : { role: "assistant", content: null, tool_calls: [call(0)] };
    const finish = answer.kind === "text" ? "stop" : "tool_calls";
    const usage = { prompt_tokens: tokens, completion_tokens: 5, total_tokens: tokens + 5 };
    if (body["stream"] !== true)
      return sendJson(response, {
        ...header,
        object: "chat.completion",
        choices: [{ index: 0, finish_reason: finish, message }],
        usage,
      });
    const chunk = (delta: object, reason: string | null): object => ({
      ...header,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    sendEvents(
      response,
      [
        chunk(message, null),
        chunk({}, finish),
        { ...header, object: "chat.completion.chunk", choices: [], usage },
      ],
      "data: [DONE]\n\n",
    );
  },
};

const GEMINI: Dialect = {
  path: /:(?:streamGenerateContent|generateContent)(?:\?|$)/u,
  read(body) {
    const last = list(body["contents"]).findLast(({ role }) => role === "user");
    const parts = list(last?.["parts"]);
    const result = parts.find((part) => part["functionResponse"] !== undefined);
    return {
      said: result === undefined ? textOf(parts) : "",
      toolResult: result === undefined ? null : JSON.stringify(result["functionResponse"]),
      tools: list(body["tools"]).flatMap((tool) =>
        list(tool["functionDeclarations"]).map(({ name }) => ({ name: String(name), namespace: undefined })),
      ),
    };
  },
  write(response, body, answer, tokens, _n, path) {
    const config = (body["generationConfig"] ?? {}) as Json;
    const isForm = config["responseMimeType"] === "application/json";
    const part = isForm
      ? {
          text: '{"reasoning":"done","next_speaker":"user","model_choice":"flash","complexity_score":1,"complexity_reasoning":""}',
        }
      : answer.kind === "text"
        ? { text: answer.text }
        : { functionCall: { name: answer.tool.name, args: JSON.parse(answer.args) as unknown } };
    const reply = {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: tokens, candidatesTokenCount: 5, totalTokenCount: tokens + 5 },
      modelVersion: "fake",
    };
    if (path.includes(":stream")) sendEvents(response, [reply]);
    else sendJson(response, reply);
  },
};

const DIALECTS: readonly Dialect[] = [ANTHROPIC, RESPONSES, CHAT, GEMINI];

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function sendEvents(response: ServerResponse, events: readonly object[], end = ""): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const event of events) {
    const name = "type" in event ? `event: ${String(event.type)}\n` : "";
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(end);
}
