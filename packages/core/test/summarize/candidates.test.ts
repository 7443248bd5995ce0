import { describe, expect, test } from "vitest";
import { listCandidates, nameCandidate } from "../../src/summarize/candidates.ts";

const none = { summaryModel: "", summaryProvider: "", fallbackProviders: [] };
const names = (...args: Parameters<typeof listCandidates>): string[] =>
  listCandidates(...args).map(nameCandidate);

describe("the order of candidates", () => {
  test.each([
    ["nothing named, no host: whoever completes chooses", none, undefined, ["host/default"]],
    ["nothing named, the host chooses", none, null, ["host/default"]],
    ["nothing named, the host's model", none, { provider: "h", model: "m" }, ["h/m"]],
    [
      "the settings' model, then the host's, then the fallbacks",
      {
        summaryModel: "small",
        summaryProvider: "anthropic",
        fallbackProviders: [{ provider: "ollama", model: "qwen3" }],
      },
      { provider: "h", model: "m" },
      ["anthropic/small", "h/m", "ollama/qwen3"],
    ],
    [
      "a provider before the slash wins",
      { ...none, summaryModel: "openai/gpt-x", summaryProvider: "anthropic" },
      undefined,
      ["openai/gpt-x"],
    ],
    [
      "only the first slash separates",
      { ...none, summaryModel: "openrouter/meta/llama", summaryProvider: "" },
      undefined,
      ["openrouter/meta/llama"],
    ],
    [
      "a bare model goes to the host's provider",
      { ...none, summaryModel: "small" },
      { provider: "h", model: "m" },
      ["h/small", "h/m"],
    ],
    [
      "each model once",
      { summaryModel: "h/m", summaryProvider: "", fallbackProviders: [{ provider: "h", model: "m" }] },
      { provider: "h", model: "m" },
      ["h/m"],
    ],
    [
      "fallbacks alone, without a host",
      { ...none, fallbackProviders: [{ provider: "a", model: "b" }] },
      undefined,
      ["a/b"],
    ],
  ] as const)("%s", (_what, settings, host, expected) => {
    expect(names(settings, host)).toEqual(expected);
  });
});
