/** The way to a model that makes vectors, against a server on loopback that speaks both dialects. */
import { resolveSettings } from "@lossless/core";
import type { Embed, EmbedRequest, EmbedResult } from "@lossless/core";
import { type FakeEmbedder, spellVector, startFakeEmbedder } from "@lossless/testkit/fake-embedder.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openEmbed } from "../src/open-embed.ts";

const never = new AbortController().signal;
const KEY = "sk-test-0123456789abcdef";
let server: FakeEmbedder;

beforeEach(async () => {
  server = await startFakeEmbedder();
});
afterEach(() => server.close());

function open(path: string, env: Record<string, string> = {}, stallMs?: number): Embed {
  const embedding = { baseUrl: `${server.url}${path}`, model: "tiny" };
  const { settings } = resolveSettings({ env: {}, config: { embedding } });
  const embed = openEmbed({ settings, env, ...(stallMs === undefined ? {} : { stallMs }) });
  if (embed === null) throw new Error("no model was found");
  return embed;
}

const ask = (texts: readonly string[], changes: Partial<EmbedRequest> = {}): EmbedRequest => ({
  model: "tiny",
  purpose: "message",
  texts,
  ...changes,
});

const TEXTS = ["the first text", "another one", "zzz"];

describe.each([
  ["OpenAI's way", "/v1", "/v1/embeddings"],
  ["OpenAI's way without a path", "", "/v1/embeddings"],
  ["OpenAI's way with the whole path", "/v1/embeddings", "/v1/embeddings"],
  ["Ollama's way", "/api", "/api/embed"],
  ["Ollama's way with the whole path", "/api/embed", "/api/embed"],
])("%s", (_name, path, expectedPath) => {
  test("gives each text its vector, in order, and tells what it cost", async () => {
    const result = await open(path)(ask(TEXTS), never);
    expect(result).toEqual({
      kind: "vectors",
      vectors: TEXTS.map((text) => Float32Array.from(spellVector(text))),
      usage: { inputTokens: 6 },
    });
    expect(server.requests).toMatchObject([{ path: expectedPath, model: "tiny", texts: TEXTS }]);
  });

  test.each([
    [401, "auth"],
    [403, "denied"],
    [404, "denied"],
    [413, "overflow"],
    [500, "unavailable"],
  ])("turns HTTP %i into %s", async (status, failure) => {
    server.script({ kind: "status", status, message: "no" });
    expect(await open(path)(ask(TEXTS), never)).toMatchObject({ kind: "failure", failure });
  });

  test("tells how long a rate limit wants to be waited for", async () => {
    server.script({ kind: "status", status: 429, headers: { "retry-after": "7" } });
    const result = await open(path)(ask(TEXTS), never);
    expect(result).toMatchObject({ failure: "rate_limited", retryAfterMs: 7_000 });
  });

  test("knows a text that is too long", async () => {
    server.script({ kind: "status", status: 400, message: "the input length exceeds the context length" });
    expect(await open(path)(ask(TEXTS), never)).toMatchObject({ failure: "overflow" });
  });

  test.each([
    ["nothing", {}],
    ["words", { data: [{ embedding: ["a"] }], embeddings: [["a"]] }],
    ["an empty vector", { data: [{ embedding: [] }], embeddings: [[]] }],
    ["no list", { data: 5, embeddings: "x" }],
  ])("refuses an answer with %s", async (_what, body) => {
    server.script({ kind: "body", body });
    const result = await open(path)(ask(TEXTS), never);
    expect(result).toMatchObject({ kind: "failure", failure: "invalid_response" });
  });

  test("ends when it is cancelled, when the server is silent, and when the line is cut", async () => {
    server.script({ kind: "silence" }, { kind: "cut" });
    const controller = new AbortController();
    const waiting = open(path)(ask(TEXTS), controller.signal);
    await expect.poll(() => server.requests.length).toBe(1);
    controller.abort();
    expect(await waiting).toMatchObject({ failure: "aborted" });
    expect(await open(path)(ask(TEXTS), never)).toMatchObject({ failure: "unavailable" });
    server.script({ kind: "status", status: 200, headers: { "content-type": "text/event-stream" } });
    expect(await open(path)(ask(TEXTS), never)).toMatchObject({ failure: "invalid_response" });
  });
});

describe("the key", () => {
  const keyOf = (): string | undefined => server.requests.at(-1)?.headers.authorization;

  test("is read from a variable of its own", async () => {
    await open("/v1", { LCM_EMBEDDING_API_KEY: KEY })(ask(TEXTS), never);
    expect(keyOf()).toBe(`Bearer ${KEY}`);
  });

  test("of a provider goes nowhere but to that provider", async () => {
    await open("/v1", { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY, OLLAMA_API_KEY: KEY })(
      ask(TEXTS),
      never,
    );
    expect(keyOf()).toBeUndefined();
    await open("/api", { OPENAI_API_KEY: KEY, OLLAMA_API_KEY: "ollama-key-1" })(ask(TEXTS), never);
    expect(keyOf()).toBe("Bearer ollama-key-1");
  });

  test("is in no message", async () => {
    server.script(
      { kind: "status", status: 401, message: `wrong key ${KEY}` },
      { kind: "status", status: 400, message: `bad ${KEY}` },
    );
    const embed = open("/v1", { LCM_EMBEDDING_API_KEY: KEY });
    const results: EmbedResult[] = [await embed(ask(TEXTS), never), await embed(ask(TEXTS), never)];
    expect(JSON.stringify(results)).not.toContain("0123456789");
  });
});

test("models that were taught prefixes get them", async () => {
  const embed = open("/api");
  await embed(ask(["a"], { model: "nomic-embed-text:latest" }), never);
  await embed(ask(["a"], { model: "nomic-embed-text", purpose: "question" }), never);
  await embed(ask(["a"], { model: "intfloat/multilingual-e5-large", purpose: "question" }), never);
  await embed(ask(["a"], { model: "bge-m3", purpose: "question" }), never);
  expect(server.requests.map(({ texts }) => texts[0])).toEqual([
    "search_document: a",
    "search_query: a",
    "query: a",
    "a",
  ]);
});

test("there is none unless both address and model are named", () => {
  for (const embedding of [{}, { baseUrl: "http://127.0.0.1:1" }, { model: "tiny" }]) {
    const { settings } = resolveSettings({ env: {}, config: { embedding } });
    expect(openEmbed({ settings, env: {} })).toBeNull();
  }
});
