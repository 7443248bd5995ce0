/**
 * The port to a model that makes vectors, for programs that run outside a host: plain HTTP to Ollama, or to an OpenAI-compatible server; or a
 * model on this machine (`local-embed.ts`). The settings must name both the address and the model; otherwise nothing is sent anywhere. A key is
 * sent only to its own provider.
 */
import type { Embed, EmbedRequest, EmbedResult, Settings } from "@lossless/core";
import { given, isObject } from "@lossless/core/doors";
import type { Environment } from "@lossless/core/settings";
import { sumCounts, type Answer } from "./answer.ts";
import type { Dialect, Endpoint, RequestBody } from "./dialect.ts";
import { makeFailure } from "./failures.ts";
import { openLocalEmbed } from "./local-embed.ts";
import { explainOutcome, send } from "./send.ts";

export interface OpenEmbedOptions {
  readonly settings: Pick<Settings, "embedding">;
  readonly env: Environment;
  /** The longest pause within an answer, and before it begins. */
  readonly stallMs?: number;
}

/** A server that loads its model first, or embeds on a slow processor, is silent for long. */
const DEFAULT_STALL_MS = 110_000;
const OLLAMA_PORT = "11434";

/** Prefixes that some models were trained with, by model name. */
const PREFIXES: readonly { readonly model: RegExp; readonly message: string; readonly question: string }[] = [
  { model: /nomic-embed-text/i, message: "search_document: ", question: "search_query: " },
  { model: /(?:^|[/-])e5-(?!mistral)/i, message: "passage: ", question: "query: " },
];

/** Null when the settings name no model, or no location: an address, or a folder and a loader. */
export function openEmbed({ settings, env, stallMs }: OpenEmbedOptions): Embed | null {
  const { baseUrl, model, folder, loader } = settings.embedding;
  if (model === null) return null;
  if (folder !== null && loader !== null) return openLocalEmbed({ folder, loader, model });
  if (baseUrl === null) return null;
  const speech = chooseSpeech(baseUrl);
  const endpoint = findEndpoint(baseUrl, speech, env);
  return (request, signal) =>
    embed({ speech, endpoint, stallMs: stallMs ?? DEFAULT_STALL_MS }, request, signal);
}

/** The API of a server: its path and its result. */
interface Speech {
  readonly keyVariable: string | null;
  locate(url: URL): string;
  buildBody(model: string, texts: readonly string[]): RequestBody;
  readVectors(body: Record<string, unknown>): unknown;
  readTokens(body: Record<string, unknown>): number | null;
}

const trimSlash = (url: string): string => url.replace(/\/+$/, "");

const OLLAMA: Speech = {
  keyVariable: "OLLAMA_API_KEY",
  locate: (url) => `${trimSlash(url.href).replace(/\/api(?:\/embed)?$/, "")}/api/embed`,
  buildBody: (model, input) => ({ model, input }),
  readVectors: (body) => body["embeddings"],
  readTokens: (body) => sumCounts(body["prompt_eval_count"]),
};

const OPENAI: Speech = {
  keyVariable: null,
  locate: (url) => {
    const address = trimSlash(url.href).replace(/\/embeddings$/, "");
    return `${url.pathname === "/" ? `${address}/v1` : address}/embeddings`;
  },
  buildBody: (model, input) => ({ model, input, encoding_format: "float" }),
  readVectors: readIndexed,
  readTokens: (body) => (isObject(body["usage"]) ? sumCounts(body["usage"]["prompt_tokens"]) : null),
};

/** Ollama's own API is recognised by its path, or by its port if there is no path. */
function chooseSpeech(baseUrl: string): Speech {
  const url = new URL(baseUrl);
  const path = trimSlash(url.pathname);
  return /\/api(?:\/embed)?$/.test(path) || (path === "" && url.port === OLLAMA_PORT) ? OLLAMA : OPENAI;
}

/** The key configured for this purpose; else the provider's own, and only at the provider's own address. */
function findEndpoint(baseUrl: string, speech: Speech, env: Environment): Endpoint {
  const url = new URL(baseUrl);
  const isOpenAi = url.hostname === "api.openai.com";
  const names = ["LCM_EMBEDDING_API_KEY", ...(isOpenAi ? ["OPENAI_API_KEY"] : []), speech.keyVariable ?? ""];
  const apiKey = names.map((name) => env[name]?.trim() ?? "").find((key) => key !== "") ?? null;
  return { provider: url.hostname, api: "openai", baseUrl: speech.locate(url), apiKey, headers: {} };
}

interface CallPlan {
  readonly speech: Speech;
  readonly endpoint: Endpoint;
  readonly stallMs: number;
}

async function embed(plan: CallPlan, request: EmbedRequest, signal: AbortSignal): Promise<EmbedResult> {
  const { speech, endpoint, stallMs } = plan;
  const prefix = PREFIXES.find(({ model }) => model.test(request.model))?.[request.purpose] ?? "";
  const texts = request.texts.map((text) => prefix + text);
  const reading = new EmbeddingReading();
  const outcome = await send(
    {
      dialect: reading,
      url: endpoint.baseUrl,
      headers: {
        accept: "application/json",
        ...given({ authorization: endpoint.apiKey === null ? undefined : `Bearer ${endpoint.apiKey}` }),
      },
      body: speech.buildBody(request.model, texts),
      stallMs,
    },
    signal,
  );
  if (outcome.kind !== "answer") return explainOutcome(outcome, endpoint);
  const vectors = toVectors(speech.readVectors(reading.body));
  return vectors === null
    ? makeFailure(
        "invalid_response",
        `${endpoint.provider} answered with something that is not a list of vectors`,
      )
    : { kind: "vectors", vectors, usage: { inputTokens: speech.readTokens(reading.body) } };
}

/** Reads the complete body; vectors are never streamed. */
class EmbeddingReading implements Pick<Dialect, "takeEvent" | "takeWhole"> {
  body: Record<string, unknown> = {};

  takeEvent(answer: Answer): void {
    answer.failure = makeFailure("invalid_response", "vectors were sent as a stream");
  }

  takeWhole(answer: Answer, body: Record<string, unknown>): void {
    this.body = body;
    answer.isFinished = true;
    answer.isDone = true;
  }
}

/** Servers may answer in any order; the index names the text of a vector. */
function readIndexed(body: Record<string, unknown>): unknown {
  const data = body["data"];
  if (!Array.isArray(data) || !data.every(isObject)) return null;
  return data
    .map((entry, at) => ({
      at: typeof entry["index"] === "number" ? entry["index"] : at,
      value: entry["embedding"],
    }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

function toVectors(value: unknown): Float32Array[] | null {
  if (!Array.isArray(value)) return null;
  const isVector = (entry: unknown): entry is number[] =>
    Array.isArray(entry) && entry.length > 0 && entry.every((number) => typeof number === "number");
  return value.every(isVector) ? value.map((entry) => Float32Array.from(entry)) : null;
}
