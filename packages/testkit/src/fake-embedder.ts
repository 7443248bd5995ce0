/**
 * A server on loopback that makes vectors: OpenAI's API at `/v1/embeddings`, Ollama's at `/api/embed`. The vector of a text is predictable, from
 * a table of words or from the text's letters, so that a test knows which texts are similar. Replies can be scripted one by one to simulate
 * failures; nothing here depends on time or chance.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { readBody, startLoopback } from "./loopback.ts";

export interface EmbedderRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly model: string;
  readonly texts: readonly string[];
}

/** The reply to a request instead of its vectors. */
export type EmbedderReply =
  | { readonly kind: "vectors" }
  | {
      readonly kind: "status";
      readonly status: number;
      readonly message?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly kind: "silence" }
  | { readonly kind: "cut" }
  | { readonly kind: "body"; readonly body: unknown };

export interface FakeEmbedder {
  /** `http://127.0.0.1:<port>`; append `/v1` or `/api`. */
  readonly url: string;
  readonly requests: readonly EmbedderRequest[];
  /** Replies for the next requests; after the last one, vectors again. */
  script(...replies: readonly EmbedderReply[]): void;
  close(): Promise<void>;
}

/** The vector of a text for a model. */
export type VectorOf = (text: string, model: string) => readonly number[];

export async function startFakeEmbedder(vectorOf: VectorOf = spellVector): Promise<FakeEmbedder> {
  const requests: EmbedderRequest[] = [];
  let left: EmbedderReply[] = [];
  const server = await startLoopback((incoming, response) => {
    void readRequest(incoming).then((request) => {
      requests.push(request);
      writeReply(response, request, left.shift() ?? { kind: "vectors" }, vectorOf);
      return undefined;
    });
  });
  return {
    ...server,
    requests,
    script(...replies) {
      left = [...replies];
    },
  };
}

async function readRequest(incoming: IncomingMessage): Promise<EmbedderRequest> {
  const body = JSON.parse(await readBody(incoming)) as { model: string; input: string[] };
  return { path: incoming.url ?? "", headers: incoming.headers, model: body.model, texts: body.input };
}

function writeReply(
  response: ServerResponse,
  request: EmbedderRequest,
  reply: EmbedderReply,
  vectorOf: VectorOf,
): void {
  if (reply.kind === "silence") return;
  if (reply.kind === "cut") {
    response.destroy();
    return;
  }
  const isError = reply.kind === "status";
  response.writeHead(isError ? reply.status : 200, {
    "content-type": "application/json",
    ...(isError ? reply.headers : {}),
  });
  const body = isError
    ? { error: { message: reply.message ?? "scripted error" } }
    : reply.kind === "body"
      ? reply.body
      : answerWith(request, vectorOf);
  response.end(JSON.stringify(body));
}

function answerWith({ path, model, texts }: EmbedderRequest, vectorOf: VectorOf): object {
  const vectors = texts.map((text) => vectorOf(text, model));
  const tokens = countWords(texts);
  if (path === "/api/embed") return { model, embeddings: vectors, prompt_eval_count: tokens };
  if (path !== "/v1/embeddings") return { error: { message: `there is nothing at ${path}` } };
  // In reverse order: only the index says which is whose.
  const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding })).toReversed();
  return { object: "list", model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

export const countWords = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + text.split(/\s+/).length, 0);

/** How often each letter occurs in a text: similar for similar spelling. */
export function spellVector(text: string): number[] {
  const vector = Array.from({ length: 26 }, () => 0.01);
  for (const letter of text.toLowerCase()) {
    const at = letter.charCodeAt(0) - 97;
    if (at >= 0 && at < 26) vector[at] = (vector[at] as number) + 1;
  }
  return vector;
}

/** A vector with one direction for each topic: a text points to the topics whose words it contains. */
export function makeTopicVectors(topics: readonly (readonly string[])[]): VectorOf {
  return (text) => {
    const lower = text.toLowerCase();
    return [...topics.map((words) => words.filter((word) => lower.includes(word)).length), 0.05];
  };
}
