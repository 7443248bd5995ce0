import { describe, expect, test } from "vitest";
import type { CompleteRequest, CompleteResult } from "@lossless/core";
import type { HostLlm, HostSubagents } from "../src/host/host.ts";
import { ModelAccess, type Delegate } from "../src/host/model-access.ts";

const QUESTION: CompleteRequest = {
  model: { provider: "acme", model: "small-1" },
  system: "answer from the passages",
  user: "which code?",
  maxTokens: 100,
  purpose: "ask",
  owner: "research",
};
const signal = new AbortController().signal;

const llm: HostLlm = {
  complete: async () => ({ text: "from the model", provider: "acme", model: "small-1" }),
};

interface Asked {
  complete(request: CompleteRequest, signal: AbortSignal): Promise<CompleteResult>;
}

/** A question inside the call of a tool that lends the host's sub-agents. */
function accessWith(complete: HostSubagents["complete"], own: HostLlm | null = llm): Asked {
  const access = new ModelAccess();
  access.useOwn(own ?? undefined);
  const delegate: Delegate = { subagents: { complete }, run: (task) => task(), timeoutMs: 5_000 };
  return {
    complete: (request, until) => access.lendDelegate(delegate, () => access.complete(request, until)),
  };
}

describe("a question to the folded history", () => {
  test("goes to the host's sub-agents when it has a model of its own, for the agent that asks", async () => {
    const calls: unknown[] = [];
    const access = accessWith(async (params) => {
      calls.push(params);
      return { text: "from a sub-agent" };
    });
    expect(await access.complete(QUESTION, signal)).toMatchObject({ kind: "text", text: "from a sub-agent" });
    expect(calls).toEqual([
      {
        agentId: "research",
        message: "which code?",
        extraSystemPrompt: "answer from the passages",
        model: "acme/small-1",
        timeoutMs: 5_000,
        signal,
      },
    ]);
  });

  test.each([
    ["without a model of its own", { ...QUESTION, model: null }],
    ["for a summary", { ...QUESTION, purpose: "leaf" }],
  ])("goes to the plain model %s", async (_when, request) => {
    const access = accessWith(() => Promise.reject(new Error("must not be asked")));
    expect(await access.complete(request, signal)).toMatchObject({ text: "from the model" });
  });

  test("goes to the plain model when a sub-agent cannot answer", async () => {
    for (const answer of [
      () => Promise.reject(new Error("not supported by this runtime")),
      async () => ({ text: " " }),
    ])
      expect(await accessWith(answer).complete(QUESTION, signal)).toMatchObject({ text: "from the model" });
  });

  test("fails as a whole only when there is no model either", async () => {
    const access = accessWith(() => Promise.reject(new Error("gone")), null);
    expect(await access.complete(QUESTION, signal)).toMatchObject({
      kind: "failure",
      failure: "unavailable",
    });
  });

  test("goes to the plain model when several are asked at once, because nobody can say whose each is", async () => {
    const access = new ModelAccess();
    access.useOwn(llm);
    const held = Promise.withResolvers<void>();
    const delegate: Delegate = {
      subagents: { complete: async () => ({ text: "from a sub-agent" }) },
      run: (task) => task(),
      timeoutMs: 5_000,
    };
    const first = access.lendDelegate(delegate, () => held.promise);
    const second = access.lendDelegate({ ...delegate }, () => access.complete(QUESTION, signal));
    expect(await second).toMatchObject({ text: "from the model" });
    held.resolve();
    await first;
    const alone = access.lendDelegate(delegate, () => access.complete(QUESTION, signal));
    expect(await alone).toMatchObject({ text: "from a sub-agent" });
  });

  test("ends when it is cancelled, and nobody else is asked", async () => {
    const stopping = new AbortController();
    const access = accessWith(
      () =>
        new Promise((_resolve, reject) => {
          stopping.signal.addEventListener("abort", () => reject(new Error("cancelled")));
        }),
      { complete: () => Promise.reject(new Error("must not be asked")) },
    );
    const answer = access.complete(QUESTION, stopping.signal);
    stopping.abort();
    expect(await answer).toMatchObject({ kind: "failure", failure: "aborted" });
  });
});

describe("the host's own model", () => {
  const SUMMARY: CompleteRequest = { ...QUESTION, model: null, purpose: "leaf" };
  const SESSION = { runtimeContext: { provider: "acme", modelId: "chat-9" } };

  /** A host that records which models were named ("" for none) and refuses or fails some. */
  function hostWith(failing: Readonly<Record<string, Error>> = {}) {
    const asked: string[] = [];
    const complete: HostLlm["complete"] = async ({ model = "" }) => {
      asked.push(model);
      if (failing[model] !== undefined) throw failing[model];
      return { text: "done", provider: "acme", model: model === "" ? "default" : model };
    };
    return { asked, llm: { complete } satisfies HostLlm };
  }

  function accessTo(host: { llm: HostLlm }, allowed: readonly string[]): ModelAccess {
    const access = new ModelAccess();
    access.useOwn(host.llm);
    const compaction = { provider: "acme", model: "compact-1" };
    access.hostModels = { compaction, isAllowed: (model) => allowed.includes(model) };
    return access;
  }

  test("is its compaction model, then what the session runs with, then what it chooses", async () => {
    const down = new Error("503");
    const host = hostWith({ "acme/compact-1": down, "acme/chat-9": down });
    const access = accessTo(host, ["acme/compact-1", "acme/chat-9"]);
    const situation = { runtimeContext: { ...SESSION.runtimeContext, llm: host.llm } };
    const answer = await access.lend(situation, () => access.complete(SUMMARY, signal));
    expect(answer).toMatchObject({ kind: "text", text: "done" });
    expect(host.asked).toEqual(["acme/compact-1", "acme/chat-9", ""]);
  });

  test("is left to the host where it does not let the plugin name one", async () => {
    const host = hostWith();
    const access = accessTo(host, []);
    await access.lend({ runtimeContext: { ...SESSION.runtimeContext, llm: host.llm } }, () =>
      access.complete(SUMMARY, signal),
    );
    expect(host.asked).toEqual([""]);
  });

  test("does not matter to a request that names a model", async () => {
    const host = hostWith();
    await accessTo(host, ["acme/compact-1"]).complete({ ...SUMMARY, model: QUESTION.model }, signal);
    expect(host.asked).toEqual(["acme/small-1"]);
  });

  test("answers a question when the host refuses the model that was set for questions", async () => {
    const host = hostWith({ "acme/small-1": new Error("cannot override the target model.") });
    const access = accessTo(host, []);
    expect(await access.complete(QUESTION, signal)).toMatchObject({ kind: "text", text: "done" });
    expect(host.asked).toEqual(["acme/small-1", ""]);
    const down = hostWith({ "acme/small-1": new Error("503") });
    expect(await accessTo(down, []).complete(QUESTION, signal)).toMatchObject({ failure: "unavailable" });
    expect(down.asked).toEqual(["acme/small-1"]);
  });
});
