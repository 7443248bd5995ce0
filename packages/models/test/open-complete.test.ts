import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import type { Complete, CompleteRequest, CompleteResult } from "@lossless/core";
import { makeTemporaryFolder, type TemporaryFolder } from "@lossless/testkit";
import { type FakeProvider, type FakeReply, startFakeProvider } from "@lossless/testkit/fake-provider.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openComplete } from "../src/open-complete.ts";

const KEY = "sk-test-0123456789abcdef";
const never = new AbortController().signal;

let provider: FakeProvider;
let folder: TemporaryFolder;

beforeEach(async () => {
  provider = await startFakeProvider({ kind: "text", text: "Fine." });
  folder = makeTemporaryFolder();
});

afterEach(async () => {
  await provider.close();
  folder[Symbol.dispose]();
});

function request(changes: Partial<CompleteRequest> = {}): CompleteRequest {
  return {
    model: null,
    system: "Be brief.",
    user: "Sum up.",
    maxTokens: 500,
    temperature: 0.2,
    purpose: "leaf",
    ...changes,
  };
}

function open(config: Record<string, unknown>, env: Record<string, string>, stallMs?: number): Complete {
  const { settings } = resolveSettings({ env: {}, config, stateDir: folder.path });
  const complete = openComplete({
    settings,
    env,
    stateDir: folder.path,
    stallMs,
  });
  if (complete === null) throw new Error("no model was found");
  return complete;
}

const openAnthropic = (stallMs?: number): Complete =>
  open(
    { summaryModel: "anthropic/claude-x" },
    { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: provider.url },
    stallMs,
  );
const openOpenai = (stallMs?: number): Complete =>
  open(
    { summaryModel: "openai/gpt-x" },
    { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${provider.url}/v1` },
    stallMs,
  );

const DIALECTS = [
  ["Anthropic", openAnthropic, { provider: "anthropic", model: "claude-x" }],
  ["OpenAI", openOpenai, { provider: "openai", model: "gpt-x" }],
] as const;

describe.each(DIALECTS)("%s's dialect", (_name, openIt, model) => {
  const run = (...replies: FakeReply[]): Promise<CompleteResult> => {
    provider.script(...replies);
    return openIt()(request(), never);
  };

  test("reads a stream: text without thinking, usage, the model that answered", async () => {
    const text = "Zwölf Kisten 📦 warten.\nExpand for details about: customs.";
    const usage = { inputTokens: 321, outputTokens: 45 };
    expect(await run({ kind: "text", text, thinking: "Hmm, twelve.", usage })).toEqual({
      kind: "text",
      text,
      model,
      inputTokens: 321,
      outputTokens: 45,
    });
  });

  test("reads an answer that was not streamed", async () => {
    const usage = { inputTokens: 9, outputTokens: 3 };
    expect(await run({ kind: "whole", text: "In one piece.", usage })).toEqual({
      kind: "text",
      text: "In one piece.",
      model,
      inputTokens: 9,
      outputTokens: 3,
    });
  });

  test("an answer of nothing, or of thinking only, is an empty text, not a failure", async () => {
    expect(await run({ kind: "text", text: "" })).toMatchObject({ kind: "text", text: "" });
    expect(await run({ kind: "text", text: "", thinking: "Let me see" })).toMatchObject({
      kind: "text",
      text: "",
    });
  });

  test.each<[string, FakeReply, string]>([
    ["a wrong key", { kind: "status", status: 401, message: `Incorrect key ${KEY}` }, "auth"],
    ["a forbidden model", { kind: "status", status: 403 }, "denied"],
    ["an unknown model", { kind: "status", status: 404 }, "denied"],
    ["an empty purse", { kind: "status", status: 429, type: "insufficient_quota" }, "denied"],
    ["too many requests", { kind: "status", status: 429 }, "rate_limited"],
    ["a broken server", { kind: "status", status: 500 }, "unavailable"],
    ["an overloaded server", { kind: "status", status: 529 }, "unavailable"],
    [
      "a full window",
      { kind: "status", status: 400, message: "prompt is too long: 250000 tokens > 200000 maximum" },
      "overflow",
    ],
    ["a full window, by code", { kind: "status", status: 400, type: "context_length_exceeded" }, "overflow"],
    ["a request that is too large", { kind: "status", status: 413 }, "overflow"],
    ["a bad request", { kind: "status", status: 400, message: "messages: wrong" }, "invalid_response"],
    ["rubbish in the stream", { kind: "raw", body: "data: {oops\n\n" }, "invalid_response"],
    ["a page instead of a stream", { kind: "raw", body: "<html>Sign in</html>" }, "invalid_response"],
    ["a stream that ends too early", { kind: "unfinished", text: "Half a sum" }, "invalid_response"],
    ["a cut connection", { kind: "cut", text: "Half a sum" }, "invalid_response"],
    [
      "an error inside the stream",
      { kind: "streamError", type: "overloaded_error", message: "Overloaded" },
      "unavailable",
    ],
    [
      "a limit inside the stream",
      { kind: "streamError", type: "rate_limit_error", message: "Slow down" },
      "rate_limited",
    ],
  ])("%s is a failure of its kind, and no message holds the key", async (_what, reply, failure) => {
    const result = await run(reply);
    expect(result).toMatchObject({ kind: "failure", failure });
    expect(JSON.stringify(result)).not.toContain(KEY);
    expect(JSON.stringify(result)).not.toContain("0123456789abcdef");
  });

  test.each([
    [{ "retry-after": "7" }, 7000],
    [{ "retry-after-ms": "1500", "retry-after": "2" }, 1500],
    [{ "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }, 0],
    [{}, undefined],
  ])("passes on how long to wait: %j", async (headers, retryAfterMs) => {
    const result = await run({ kind: "status", status: 429, headers: headers as Record<string, string> });
    expect(result.kind === "failure" && result.retryAfterMs).toBe(retryAfterMs);
  });

  test("a stream that stands still is cancelled", async () => {
    provider.script({ kind: "stall", text: "It began" });
    const result = await openIt(20)(request(), never);
    expect(result).toMatchObject({ kind: "failure", failure: "timeout" });
    await provider.requests[0]?.closed;
  });

  test.each<FakeReply["kind"] & ("stall" | "silence")>(["stall", "silence"])(
    "the caller's signal closes the line (%s)",
    async (kind) => {
      provider.script({ kind });
      const controller = new AbortController();
      const pending = openIt()(request(), controller.signal);
      while (provider.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
      controller.abort();
      expect(await pending).toMatchObject({ kind: "failure", failure: "aborted" });
      await provider.requests[0]?.closed;
    },
  );

  test("a server that is not there is unavailable, and only its host is named", async () => {
    const complete = openIt();
    await provider.close();
    const result = await complete(request(), never);
    expect(result).toMatchObject({ kind: "failure", failure: "unavailable" });
    expect(result.kind === "failure" && result.message).toMatch(
      /^cannot reach 127\.0\.0\.1:\d+ \(ECONNREFUSED\)$/,
    );
    provider = await startFakeProvider();
  });

  test("a parameter that the model refuses is left out, and stays out", async () => {
    provider.script(
      { kind: "status", status: 400, message: "`temperature` is deprecated for this model." },
      { kind: "text", text: "Fine." },
    );
    const complete = openIt();
    expect(await complete(request(), never)).toMatchObject({ kind: "text", text: "Fine." });
    await complete(request(), never);
    expect(provider.requests.map(({ body }) => "temperature" in body)).toEqual([true, false, false]);
  });

  test("a limit above the model's is lowered to it", async () => {
    provider.script(
      { kind: "status", status: 400, message: "max_tokens: 500 > 400, which is the maximum allowed number" },
      { kind: "text", text: "Fine." },
    );
    expect(await openIt()(request(), never)).toMatchObject({ kind: "text" });
    expect(provider.requests[1]?.body["max_tokens"]).toBe(400);
  });

  test("a model that refuses again and again is given up", async () => {
    provider.script({
      kind: "status",
      status: 400,
      message: "temperature and max_tokens at most 1000 are wrong",
    });
    expect(await openIt()(request(), never)).toMatchObject({ kind: "failure", failure: "invalid_response" });
    expect(provider.requests.length).toBeLessThanOrEqual(5);
  });

  test("a redirect is not followed, because the key would go along", async () => {
    const other = await startFakeProvider({ kind: "text", text: "Got you." });
    provider.script({ kind: "status", status: 307, headers: { location: `${other.url}/v1/messages` } });
    expect(await openIt()(request(), never)).toMatchObject({ kind: "failure", failure: "unavailable" });
    expect(other.requests).toEqual([]);
    await other.close();
  });
});

describe("what is sent", () => {
  test("to Anthropic: path, key, version, body", async () => {
    await openAnthropic()(request(), never);
    const [sent] = provider.requests;
    expect(sent?.path).toBe("/v1/messages");
    expect(sent?.headers).toMatchObject({ "x-api-key": KEY, "anthropic-version": "2023-06-01" });
    expect(sent?.headers["authorization"]).toBeUndefined();
    expect(sent?.body).toEqual({
      model: "claude-x",
      max_tokens: 500,
      system: "Be brief.",
      messages: [{ role: "user", content: "Sum up." }],
      stream: true,
      temperature: 0.2,
    });
  });

  test("to OpenAI: path, key, body", async () => {
    await openOpenai()(request(), never);
    const [sent] = provider.requests;
    expect(sent?.path).toBe("/v1/chat/completions");
    expect(sent?.headers["authorization"]).toBe(`Bearer ${KEY}`);
    expect(sent?.body).toEqual({
      model: "gpt-x",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Sum up." },
      ],
      max_tokens: 500,
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0.2,
    });
  });

  test("a model that wants the newer name of the limit gets it", async () => {
    provider.script(
      {
        kind: "status",
        status: 400,
        message: "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
      },
      { kind: "text", text: "Fine." },
    );
    await openOpenai()(request(), never);
    expect(provider.requests[1]?.body).toMatchObject({ max_completion_tokens: 500 });
    expect(provider.requests[1]?.body).not.toHaveProperty("max_tokens");
  });
});

describe("which model and whose key", () => {
  test("without a model in the settings there is none, whatever keys lie around", () => {
    const { settings } = resolveSettings({ env: {}, config: {}, stateDir: folder.path });
    const env = { ANTHROPIC_API_KEY: KEY, OPENAI_API_KEY: KEY };
    expect(openComplete({ settings, env, stateDir: folder.path })).toBeNull();
  });

  test("a model without a key fails as such and says what to set", async () => {
    const result = await open({ summaryModel: "anthropic/claude-x" }, {})(request(), never);
    expect(result).toMatchObject({ kind: "failure", failure: "auth" });
    expect(result.kind === "failure" && result.message).toContain("ANTHROPIC_API_KEY");
  });

  test("the request's own model wins over the first in the settings", async () => {
    await openOpenai()(request({ model: { provider: "openai", model: "other" } }), never);
    expect(provider.requests[0]?.body["model"]).toBe("other");
  });

  test("a model named for questions alone is enough to open", async () => {
    const env = { OPENAI_BASE_URL: `${provider.url}/v1` };
    await open({ expansionModel: "openai/ask" }, env)(request(), never);
    expect(provider.requests[0]?.body["model"]).toBe("ask");
  });

  test.each([
    ["its name says Anthropic", "claude-x", "/v1/messages"],
    ["nothing says otherwise", "gpt-x", "/v1/chat/completions"],
  ])("a model without a provider: %s", async (_what, summaryModel, path) => {
    const env = {
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_BASE_URL: provider.url,
      OPENAI_API_KEY: KEY,
      OPENAI_BASE_URL: `${provider.url}/v1/`,
    };
    await open({ summaryModel }, env)(request(), never);
    expect(provider.requests[0]?.path).toBe(path);
  });

  test.each([
    ["a full address", (url: string) => url],
    ["an address without a scheme", (url: string) => url.replace("http://", "")],
    ["the address it listens on", (url: string) => url.replace("http://127.0.0.1", "0.0.0.0")],
    ["a port alone", (url: string) => url.replace("http://127.0.0.1", "")],
  ])("Ollama by %s, without a key", async (_what, write) => {
    const env = { OLLAMA_HOST: write(provider.url) };
    expect(await open({ summaryModel: "ollama/qwen3:8b" }, env)(request(), never)).toMatchObject({
      kind: "text",
    });
    expect(provider.requests[0]?.path).toBe("/v1/chat/completions");
    expect(provider.requests[0]?.headers["authorization"]).toBeUndefined();
    expect(provider.requests[0]?.body["model"]).toBe("qwen3:8b");
  });

  test("any other name works through variables of that name", async () => {
    const env = { MY_LAB_BASE_URL: `${provider.url}/v1`, MY_LAB_API_KEY: KEY };
    const result = await open({ summaryModel: "my-lab/llama/3" }, env)(request(), never);
    expect(result).toMatchObject({ kind: "text", model: { provider: "my-lab", model: "llama/3" } });
    expect(provider.requests[0]?.headers["authorization"]).toBe(`Bearer ${KEY}`);
  });

  async function writeHostFile(name: string, content: unknown): Promise<void> {
    const file = join(folder.path, name);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, JSON.stringify(content));
  }

  test.each([
    ["openclaw.json", (entry: unknown) => ({ models: { providers: { lab: entry } } })],
    ["models.json", (entry: unknown) => ({ providers: { lab: entry } })],
    ["agents/main/agent/models.json", (entry: unknown) => ({ providers: { lab: entry } })],
  ])("a custom provider of the host in %s", async (name, wrap) => {
    await writeHostFile(
      name,
      wrap({ baseUrl: `${provider.url}/v1`, apiKey: KEY, api: "openai-completions" }),
    );
    expect(await open({ summaryModel: "lab/m" }, {})(request(), never)).toMatchObject({ kind: "text" });
    expect(provider.requests[0]?.headers["authorization"]).toBe(`Bearer ${KEY}`);
  });

  test.each([
    ["itself", KEY],
    ["the name of a variable", "LAB_SECRET"],
    ["a placeholder", "${LAB_SECRET}"],
    ["a reference", { source: "env", provider: "default", id: "LAB_SECRET" }],
  ])("a host's key given as %s", async (_what, apiKey) => {
    const entry = {
      baseUrl: provider.url,
      apiKey,
      api: "anthropic-messages",
      headers: { "X-Team": "${TEAM}" },
    };
    await writeHostFile("openclaw.json", { models: { providers: { lab: entry } } });
    await open({ summaryModel: "lab/m" }, { LAB_SECRET: KEY, TEAM: "docs-team" })(request(), never);
    expect(provider.requests[0]?.headers).toMatchObject({ "x-api-key": KEY, "x-team": "docs-team" });
  });

  test("the environment wins over the host's files", async () => {
    await writeHostFile("openclaw.json", {
      models: { providers: { openai: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "wrong" } } },
    });
    expect(await openOpenai()(request(), never)).toMatchObject({ kind: "text" });
  });

  test("a way of speaking that only the host knows is denied", async () => {
    await writeHostFile("openclaw.json", {
      models: { providers: { lab: { baseUrl: provider.url, api: "bedrock" } } },
    });
    const result = await open({ summaryModel: "lab/m" }, {})(request(), never);
    expect(result).toMatchObject({ kind: "failure", failure: "denied" });
  });

  test("an address that is none, or holds a password, is never repeated", async () => {
    for (const address of ["not an address", "http://user:hunter2pass@127.0.0.1:1/v1"]) {
      const result = await open({ summaryModel: "openai/x" }, { OPENAI_BASE_URL: address })(request(), never);
      expect(result.kind).toBe("failure");
      expect(JSON.stringify(result)).not.toContain("hunter2pass");
    }
  });
});
