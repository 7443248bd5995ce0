/**
 * Sends one request and reads its stream. A stalled stream is detected and cancelled; the caller's signal closes the connection. Redirects are
 * not followed, because they would carry the key along.
 */
import { isObject, parseObject } from "@lossless/core/doors";
import { Answer } from "./answer.ts";
import type { Dialect, Endpoint, RequestBody } from "./dialect.ts";
import {
  classifyStatus,
  cleanMessage,
  makeFailure,
  readProviderError,
  readRetryAfter,
  type Failure,
  type ProviderError,
} from "./failures.ts";
import { EventParser } from "./server-sent-events.ts";

/** The part of a dialect that a call needs: reading its answer. */
type Reading = Pick<Dialect, "takeEvent" | "takeWhole">;

export interface Call {
  readonly dialect: Reading;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RequestBody;
  /** The longest pause once the stream has begun. */
  readonly stallMs: number;
}

export type SendResult =
  | { readonly kind: "answer"; readonly answer: Answer }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly error: ProviderError;
      readonly retryAfterMs: number | undefined;
    }
  | { readonly kind: "broken"; readonly failure: Failure };

const MAX_BODY_CHARS = 4_000_000;
const MAX_ERROR_CHARS = 64_000;

export async function send(call: Call, signal: AbortSignal): Promise<SendResult> {
  const watch = new StallWatch(call.stallMs);
  let hasBegun = false;
  try {
    const response = await fetch(call.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", ...call.headers },
      body: JSON.stringify(call.body),
      signal: AbortSignal.any([signal, watch.signal]),
      redirect: "error",
    });
    watch.touch();
    hasBegun = response.ok;
    return response.ok ? await readAnswer(call.dialect, response, watch) : await readRefusal(response, watch);
  } catch (error) {
    return { kind: "broken", failure: explainBreak(error, { call, signal, watch, hasBegun }) };
  } finally {
    watch.stop();
  }
}

class StallWatch {
  readonly #controller = new AbortController();
  readonly #limitMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  touch(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(), this.#limitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

async function* readText(response: Response, watch: StallWatch): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    watch.touch();
    yield decoder.decode(chunk, { stream: true });
  }
}

async function readWholeText(response: Response, watch: StallWatch, limit: number): Promise<string> {
  let text = "";
  for await (const piece of readText(response, watch)) {
    text += piece;
    if (text.length > limit) return text.slice(0, limit);
  }
  return text;
}

async function readRefusal(response: Response, watch: StallWatch): Promise<SendResult> {
  const text = await readWholeText(response, watch, MAX_ERROR_CHARS);
  const body = parseObject(text);
  const error = body === null ? { type: "", message: text } : readProviderError(body);
  const retryAfterMs = readRetryAfter(response.headers, Date.now());
  return { kind: "refused", status: response.status, error, retryAfterMs };
}

async function readAnswer(dialect: Reading, response: Response, watch: StallWatch): Promise<SendResult> {
  const isStream = !(response.headers.get("content-type") ?? "").includes("application/json");
  const answer = isStream
    ? await readStream(dialect, response, watch)
    : readWhole(dialect, await readWholeText(response, watch, MAX_BODY_CHARS));
  if (answer.failure !== null) return { kind: "broken", failure: answer.failure };
  if (!answer.isFinished) return broken("invalid_response", "the connection ended before the answer did");
  return { kind: "answer", answer };
}

async function readStream(dialect: Reading, response: Response, watch: StallWatch): Promise<Answer> {
  const answer = new Answer();
  const parser = new EventParser();
  const take = (events: readonly string[]): void => {
    for (const data of events)
      if (!answer.isDone && answer.failure === null) takeEvent(dialect, answer, data);
  };
  for await (const piece of readText(response, watch)) {
    take(parser.push(piece));
    if (answer.text.length > MAX_BODY_CHARS) throw new RangeError("the answer is too large");
    if (answer.isDone || answer.failure !== null) return answer;
  }
  take(parser.end());
  return answer;
}

function takeEvent(dialect: Reading, answer: Answer, data: string): void {
  if (data.trim() === "[DONE]") {
    answer.isDone = true;
    return;
  }
  const event = parseObject(data);
  if (event === null)
    answer.failure = makeFailure(
      "invalid_response",
      "the stream contains something that is not a JSON object",
    );
  else dialect.takeEvent(answer, event);
}

function readWhole(dialect: Reading, text: string): Answer {
  const answer = new Answer();
  const body = parseObject(text);
  if (body === null) answer.failure = makeFailure("invalid_response", "the answer is not a JSON object");
  else dialect.takeWhole(answer, body);
  return answer;
}

interface BreakContext {
  readonly call: Call;
  readonly signal: AbortSignal;
  readonly watch: StallWatch;
  readonly hasBegun: boolean;
}

/** Reports only the host and a code: an address may contain a password, and so may the platform's error message. */
function explainBreak(error: unknown, { call, signal, watch, hasBegun }: BreakContext): Failure {
  if (signal.aborted) return makeFailure("aborted", "the call was cancelled");
  if (watch.signal.aborted) return makeFailure("timeout", `the stream stood still for ${call.stallMs} ms`);
  if (error instanceof RangeError) return makeFailure("invalid_response", error.message);
  const host = URL.canParse(call.url) ? new URL(call.url).host : "an address that is none";
  const code = readCode(error);
  if (/HEADERS_TIMEOUT|BODY_TIMEOUT|CONNECT_TIMEOUT|ETIMEDOUT/.test(code))
    return makeFailure("timeout", `${host} did not answer in time (${code})`);
  // The charge for a broken stream is unknown; an answer that began counts as one call.
  if (hasBegun)
    return makeFailure("invalid_response", `the connection to ${host} broke in the middle of the answer`);
  return makeFailure("unavailable", `cannot reach ${host}${code === "" ? "" : ` (${code})`}`);
}

function readCode(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = isObject(cause) ? cause["code"] : undefined;
  return typeof code === "string" ? code : "";
}

const broken = (failure: Failure["failure"], message: string): SendResult => ({
  kind: "broken",
  failure: makeFailure(failure, message),
});

/** What a call without an answer means for the caller. */
export function explainOutcome(
  outcome: Exclude<SendResult, { kind: "answer" }>,
  endpoint: Endpoint,
): Failure {
  if (outcome.kind === "broken")
    return { ...outcome.failure, message: clean(outcome.failure.message, endpoint) };
  const { status, error, retryAfterMs } = outcome;
  const failure = classifyStatus(status, error);
  // Providers repeat parts of a wrong key.
  const said = failure === "auth" ? "" : clean(error.message, endpoint);
  const message = `${endpoint.provider} answered with HTTP ${status}${said === "" ? "" : `: ${said}`}`;
  return makeFailure(failure, message, retryAfterMs);
}

function clean(message: string, { apiKey, headers }: Endpoint): string {
  return cleanMessage(message, [apiKey ?? "", ...Object.values(headers)]);
}
