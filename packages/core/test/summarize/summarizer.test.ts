import { describe, expect, test } from "vitest";
import { EngineError } from "../../src/model/errors.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";
import { FALLBACK_MARKER } from "../../src/summarize/extractive.ts";
import { createSummarizer } from "../../src/summarize/summarizer.ts";
import {
  fail,
  GOOD_SUMMARY,
  hang,
  messageItem,
  openBooks,
  replyWith,
  requestFor,
  scriptModel,
  settingsFor,
  summaryItem,
  talk,
} from "./runs.ts";

const outcomes = (books: { calls: { outcome: string }[] }): string[] =>
  books.calls.map((call) => call.outcome);
const LONG = "The shipment waits. ".repeat(2000);

describe("without a model", () => {
  test("the extractive summary is the regular one: up to the full target, no mark, nothing in the ledger", async () => {
    using books = openBooks();
    const summarize = books.summarizer({ complete: null });
    const result = await summarize(requestFor(talk(60), { targetTokens: 900 }));
    expect(result).toMatchObject({ model: "extractive", level: "extractive" });
    expect(result.content).not.toContain(FALLBACK_MARKER);
    expect(result.tokens).toBeLessThanOrEqual(900);
    expect(result.tokens).toBe(estimateTextTokens(result.content));
    expect(books.calls).toEqual([]);
    expect(books.events).toEqual([]);
  });

  test("a run without text is not sent to a model", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    const summarize = books.summarizer({ complete });
    const result = await summarize(requestFor([messageItem(1, { role: "user", content: "hush" }, 1)]));
    expect(result.level).toBe("extractive");
    expect(requests).toEqual([]);
  });
});

describe("escalation", () => {
  test("a good first answer is stored with the model that gave it", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel({
      kind: "text",
      text: GOOD_SUMMARY,
      model: { provider: "anthropic", model: "small-2026" },
      inputTokens: 1234,
      outputTokens: 56,
    });
    const summarize = books.summarizer({ complete, config: { summaryModel: "anthropic/small" } });
    const result = await summarize(requestFor(talk()));
    expect(result).toMatchObject({ content: GOOD_SUMMARY, model: "anthropic/small-2026", level: "normal" });
    expect(requests[0]).toMatchObject({
      model: { provider: "anthropic", model: "small" },
      temperature: 0.2,
      purpose: "leaf",
      allowReasoning: true,
    });
    expect(books.calls).toEqual([
      {
        at: books.clock.now(),
        conversationId: 7,
        purpose: "leaf",
        provider: "anthropic",
        model: "small-2026",
        inputTokens: 1234,
        outputTokens: 56,
        durationMs: 0,
        outcome: "accepted",
      },
    ]);
    expect(books.events).toEqual([
      { kind: "spend", purpose: "leaf", model: "anthropic/small-2026", inputTokens: 1234, outputTokens: 56 },
    ]);
  });

  test("usage that nobody reported is estimated", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    await books.summarizer({ complete })(requestFor(talk()));
    const sent = requests[0];
    expect(books.calls[0]?.inputTokens).toBe(
      estimateTextTokens(sent?.system ?? "") + estimateTextTokens(sent?.user ?? ""),
    );
    expect(books.calls[0]?.outputTokens).toBe(estimateTextTokens(GOOD_SUMMARY));
  });

  test.each([
    ["nothing", "", "empty"],
    ["reasoning only", "<think>The user wants a summary, so I should", "reasoning_only"],
    ["more than the sources", LONG, "too_long"],
    ["a refusal", "I'm sorry, I can't summarize this.", "refusal"],
    [
      "another language",
      "这次会议讨论了北方分公司的发票，并决定推迟货物的运输，直到海关回复米里亚姆为止。".repeat(3),
      "wrong_language",
    ],
  ])("%s is answered with the aggressive prompt: colder, shorter", async (_what, text, reason) => {
    using books = openBooks();
    const { complete, requests } = scriptModel(text, GOOD_SUMMARY);
    const result = await books.summarizer({ complete })(requestFor(talk()));
    expect(result).toMatchObject({ content: GOOD_SUMMARY, level: "aggressive" });
    expect(outcomes(books)).toEqual([`rejected:${reason}`, "accepted"]);
    expect(requests.map((request) => request.temperature)).toEqual([0.2, 0.1]);
    const targets = requests.map((request) => Number(/at most (\d+) tokens/.exec(request.user)?.[1]));
    expect(targets[1]).toBeLessThan(targets[0] ?? 0);
  });

  test("an answer longer than its input never becomes a summary", async () => {
    using books = openBooks();
    const run = talk(4);
    const echo = run.map((item) => Buffer.from(item.bytes ?? []).toString()).join("\n");
    const { complete } = scriptModel(echo);
    const request = requestFor(run, { targetTokens: 2400 });
    const result = await books.summarizer({ complete })(request);
    expect(outcomes(books)).toEqual(["rejected:not_shorter", "rejected:not_shorter"]);
    expect(result.level).toBe("extractive");
    expect(result.tokens).toBeLessThan(request.sourceTokens);
  });

  test("an answer that used up its room is cut off and gets more of it the second time", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(
      async (request) => ({ ...replyWith(request, GOOD_SUMMARY), outputTokens: request.maxTokens }) as never,
      GOOD_SUMMARY,
    );
    const result = await books.summarizer({ complete })(requestFor(talk()));
    expect(result.level).toBe("aggressive");
    expect(outcomes(books)).toEqual(["rejected:cut_off", "accepted"]);
    expect(requests[1]?.maxTokens).toBeGreaterThan(requests[0]?.maxTokens ?? 0);
  });

  test("twice rejected by one model, the next candidate is asked from the start", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel("", "", GOOD_SUMMARY);
    const config = { summaryModel: "a/one", fallbackProviders: [{ provider: "b", model: "two" }] };
    const result = await books.summarizer({ complete, config })(requestFor(talk()));
    expect(result).toMatchObject({ model: "b/two", level: "normal" });
    expect(requests.map((request) => request.model?.model)).toEqual(["one", "one", "two"]);
    expect(requests.map((request) => request.temperature)).toEqual([0.2, 0.1, 0.2]);
  });

  test.each(["auth", "denied", "rate_limited", "unavailable", "timeout", "invalid_response"] as const)(
    "a failure (%s) goes on to the next candidate without a second try",
    async (failure) => {
      using books = openBooks();
      const { complete, requests } = scriptModel(fail(failure), GOOD_SUMMARY);
      const config = { summaryModel: "a/one", fallbackProviders: [{ provider: "b", model: "two" }] };
      const result = await books.summarizer({ complete, config })(requestFor(talk()));
      expect(result.model).toBe("b/two");
      expect(requests).toHaveLength(2);
      expect(outcomes(books)).toEqual([`failed:${failure}`, "accepted"]);
    },
  );

  test("a full window gets shortened sources, then the next candidate", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(fail("overflow"), fail("overflow"), GOOD_SUMMARY);
    const config = { summaryModel: "a/one", fallbackProviders: [{ provider: "b", model: "two" }] };
    const result = await books.summarizer({ complete, config })(requestFor(talk(80)));
    expect(result).toMatchObject({ model: "b/two", level: "normal" });
    expect(requests.map((request) => request.temperature)).toEqual([0.2, 0.1, 0.2]);
    expect(requests[1]?.user.length).toBeLessThan((requests[0]?.user.length ?? 0) * 0.7);
    expect(requests[2]?.user).toBe(requests[0]?.user);
    expect(outcomes(books)).toEqual(["failed:overflow", "failed:overflow", "accepted"]);
  });

  test("when nothing helps, a short marked extract stands in, and the ledger shows what it cost", async () => {
    using books = openBooks();
    const { complete } = scriptModel(fail("unavailable"), "", fail("invalid_response"));
    const config = { summaryModel: "a/one", fallbackProviders: [{ provider: "b", model: "two" }] };
    const result = await books.summarizer({ complete, config })(requestFor(talk(80), { targetTokens: 2400 }));
    expect(result).toMatchObject({ model: "extractive", level: "extractive" });
    expect(result.content.startsWith(FALLBACK_MARKER)).toBe(true);
    expect(result.tokens).toBeLessThanOrEqual(512);
    expect(outcomes(books)).toEqual(["failed:unavailable", "rejected:empty", "failed:invalid_response"]);
    expect(books.calls[0]).toMatchObject({ inputTokens: 0, outputTokens: 0 });
    expect(books.calls[2]?.inputTokens).toBeGreaterThan(0);
  });

  test("a model that throws although it must not counts as unavailable", async () => {
    using books = openBooks();
    const complete = (): Promise<never> => Promise.reject(new Error("host gone"));
    const result = await books.summarizer({ complete })(requestFor(talk()));
    expect(result.level).toBe("extractive");
    expect(outcomes(books)).toEqual(["failed:unavailable"]);
    expect(books.calls[0]).toMatchObject({ provider: "host", model: "default" });
  });
});

describe("the prompt", () => {
  test("carries continuity, zone, speakers and the operator's wishes, and leaves out injected context", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    const config = { timezone: "Asia/Tokyo", customInstructions: "Mention every crate." };
    const run = [
      ...talk(),
      messageItem(90, {
        role: "user",
        content: "<relevant-memories>old gossip</relevant-memories>Ship on Friday.",
        __openclaw: { senderName: "Miriam" },
      }),
    ];
    await books.summarizer({ complete, config })(requestFor(run, { previous: "The ledger was opened." }));
    const user = requests[0]?.user ?? "";
    expect(user).toContain("The ledger was opened.");
    expect(user).toContain("Mention every crate.");
    expect(user).toContain("[2026-02-14 21:30 Asia/Tokyo] Miriam: Ship on Friday.");
    expect(user).not.toContain("old gossip");
  });

  test("takes the wishes of the call over the setting's, also when they are empty", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    const summarize = books.summarizer({ complete, config: { customInstructions: "Mention every crate." } });
    await summarize(requestFor(talk(), { customInstructions: "In verse." }));
    await summarize(requestFor(talk(), { customInstructions: "" }));
    expect(requests[0]?.user).toContain("In verse.");
    expect(requests[1]?.user).not.toContain("Mention every crate.");
  });

  test("asks for no thinking, and keeps no room for it, when it is switched off", async () => {
    using books = openBooks();
    const on = scriptModel(GOOD_SUMMARY);
    const off = scriptModel(GOOD_SUMMARY);
    await books.summarizer({ complete: on.complete })(requestFor(talk()));
    await books.summarizer({ complete: off.complete, config: { enableSummaryThinking: false } })(
      requestFor(talk()),
    );
    expect(off.requests[0]?.allowReasoning).toBe(false);
    expect(off.requests[0]?.maxTokens).toBe((on.requests[0]?.maxTokens ?? 0) - 2048);
  });

  test("condenses summaries with the prompt of their depth", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    const run = [1, 2, 3, 4].map((index) => summaryItem(index, GOOD_SUMMARY.repeat(3)));
    await books.summarizer({ complete })(requestFor(run, { depth: 1, purpose: "condensed" }));
    expect(requests[0]?.user).toContain("summaries of consecutive stretches");
    expect(requests[0]?.purpose).toBe("condensed");
    expect(books.calls[0]?.purpose).toBe("condensed");
  });
});

describe("time limits and cancelling", () => {
  test("a call that takes too long is cancelled, not abandoned, and the next candidate is asked", async () => {
    using books = openBooks();
    let cancelled = 0;
    const { complete } = scriptModel(
      hang(() => cancelled++),
      GOOD_SUMMARY,
    );
    const config = {
      summaryTimeoutMs: 1,
      summaryModel: "a/one",
      fallbackProviders: [{ provider: "b", model: "two" }],
    };
    const result = await books.summarizer({ complete, config })(requestFor(talk()));
    expect(result.model).toBe("b/two");
    expect(cancelled).toBe(1);
    expect(outcomes(books)).toEqual(["failed:timeout", "accepted"]);
    expect(books.calls[0]?.inputTokens).toBeGreaterThan(0);
  });

  test("a model that does not listen to its signal does not hold the fold up", async () => {
    using books = openBooks();
    const complete = (): Promise<never> => new Promise(() => undefined);
    const result = await books.summarizer({ complete, config: { summaryTimeoutMs: 1 } })(requestFor(talk()));
    expect(result.level).toBe("extractive");
    expect(outcomes(books)).toEqual(["failed:timeout"]);
  });

  test("a limit beyond what timers can hold does not fire at once", async () => {
    using books = openBooks();
    const { complete } = scriptModel(async (request) => {
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      return replyWith(request, GOOD_SUMMARY);
    });
    const config = { summaryTimeoutMs: Number.MAX_SAFE_INTEGER };
    expect((await books.summarizer({ complete, config })(requestFor(talk()))).level).toBe("normal");
  });

  test("the caller's signal ends the call with `aborted`; the call is in the ledger and asks nobody else", async () => {
    using books = openBooks();
    const controller = new AbortController();
    let cancelled = 0;
    const waiting = hang(() => cancelled++);
    const { complete, requests } = scriptModel(async (request, signal) => {
      setImmediate(() => controller.abort());
      return (waiting as (r: typeof request, s: AbortSignal) => ReturnType<typeof complete>)(request, signal);
    });
    const config = { summaryModel: "a/one", fallbackProviders: [{ provider: "b", model: "two" }] };
    const pending = books.summarizer({ complete, config })(requestFor(talk(), { signal: controller.signal }));
    await expect(pending).rejects.toMatchObject({ code: "aborted" });
    await expect(pending).rejects.toBeInstanceOf(EngineError);
    expect(cancelled).toBe(1);
    expect(requests).toHaveLength(1);
    expect(outcomes(books)).toEqual(["failed:aborted"]);
    expect(await books.store.readGuards()).toEqual([]);
  });

  test("a signal that is already aborted starts nothing, with or without a model", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    const request = requestFor(talk(), { signal: AbortSignal.abort() });
    await expect(books.summarizer({ complete })(request)).rejects.toMatchObject({ code: "aborted" });
    await expect(books.summarizer({ complete: null })(request)).rejects.toMatchObject({ code: "aborted" });
    expect(requests).toEqual([]);
  });
});

describe("the breaker", () => {
  const config = {
    summaryModel: "a/one",
    fallbackProviders: [{ provider: "b", model: "two" }],
    circuitBreakerThreshold: 3,
    circuitBreakerCooldownMs: 60_000,
  };

  test("opens after refusals in a row, only for that model, tells once, and survives a restart", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(async (request) =>
      request.model?.provider === "a" ? fail("auth") : replyWith(request, GOOD_SUMMARY),
    );
    const asked = (): string[] => requests.splice(0).map((request) => request.model?.model ?? "");
    const summarize = books.summarizer({ complete, config });
    for (let i = 0; i < 3; i++) await summarize(requestFor(talk()));
    expect(asked()).toEqual(["one", "two", "one", "two", "one", "two"]);
    expect(books.events.filter((event) => event.kind === "degraded")).toHaveLength(1);

    await books.restart();
    await books.summarizer({ complete, config })(requestFor(talk()));
    expect(asked()).toEqual(["two"]);

    books.clock.advance(60_000);
    await books.summarizer({ complete, config })(requestFor(talk()));
    expect(asked()).toEqual(["one", "two"]);
    await books.summarizer({ complete, config })(requestFor(talk()));
    expect(asked()).toEqual(["two"]);
    expect(books.events.filter((event) => event.kind === "degraded")).toHaveLength(1);
  });

  test("closes with the first answer, which is told", async () => {
    using books = openBooks();
    let failure: "denied" | null = "denied";
    const { complete } = scriptModel(async (request) =>
      failure === null ? replyWith(request, GOOD_SUMMARY) : fail(failure),
    );
    const summarize = books.summarizer({ complete, config: { ...config, fallbackProviders: [] } });
    for (let i = 0; i < 3; i++) await summarize(requestFor(talk()));
    failure = null;
    expect((await summarize(requestFor(talk()))).level).toBe("extractive");
    books.clock.advance(60_000);
    expect((await summarize(requestFor(talk()))).level).toBe("normal");
    expect(books.events.filter((event) => event.kind !== "spend").map((event) => event.kind)).toEqual([
      "degraded",
      "recovered",
    ]);
    expect(await books.store.readGuards()).toEqual([
      { name: "breaker:a/one", failures: 0, openUntil: 0, reason: "" },
    ]);
  });

  test("an answer between two refusals starts the count again", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(
      fail("auth"),
      fail("auth"),
      GOOD_SUMMARY,
      fail("auth"),
      fail("auth"),
      GOOD_SUMMARY,
    );
    const summarize = books.summarizer({ complete, config: { ...config, fallbackProviders: [] } });
    for (let i = 0; i < 6; i++) await summarize(requestFor(talk()));
    expect(requests).toHaveLength(6);
  });
});

describe("pauses", () => {
  test("a model that keeps failing is asked less and less often, until it writes a good summary", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(
      fail("unavailable"),
      fail("timeout"),
      fail("unavailable"),
      GOOD_SUMMARY,
    );
    const summarize = books.summarizer({ complete });
    const askAfter = async (ms: number): Promise<number> => {
      books.clock.advance(ms);
      await summarize(requestFor(talk()));
      return requests.length;
    };
    expect(await askAfter(0)).toBe(1);
    expect(await askAfter(0)).toBe(2);
    expect(await askAfter(14_999)).toBe(2);
    expect(await askAfter(1)).toBe(3);
    expect(await askAfter(15_000)).toBe(3);
    expect(await askAfter(30_000)).toBe(4);
    expect(await askAfter(0)).toBe(5);
    expect(books.events.filter((event) => event.kind !== "spend").map((event) => event.kind)).toEqual([
      "degraded",
      "recovered",
    ]);
  });

  test("a provider's own word on waiting counts from the first failure, and survives a restart", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(fail("rate_limited", 90_000), GOOD_SUMMARY);
    await books.summarizer({ complete })(requestFor(talk()));
    await books.restart();
    const summarize = books.summarizer({ complete });
    books.clock.advance(89_999);
    expect((await summarize(requestFor(talk()))).level).toBe("extractive");
    expect(requests).toHaveLength(1);
    books.clock.advance(1);
    expect((await summarize(requestFor(talk()))).level).toBe("normal");
  });

  test("a model whose summaries are never accepted is paused too", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel("");
    const summarize = books.summarizer({ complete });
    for (let i = 0; i < 5; i++) await summarize(requestFor(talk()));
    expect(requests).toHaveLength(4);
  });
});

describe("the spend guard", () => {
  const config = { summaryMaxCallsPerWindow: 3, summaryCallWindowMs: 1000, summarySpendBackoffMs: 5000 };

  test("allows so many calls in a window, then none for a while, telling once; a restart changes nothing", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    const levels: string[] = [];
    const summarize = books.summarizer({ complete, config });
    for (let i = 0; i < 5; i++) levels.push((await summarize(requestFor(talk()))).level);
    expect(levels).toEqual(["normal", "normal", "normal", "extractive", "extractive"]);
    expect(requests).toHaveLength(3);

    await books.restart();
    books.clock.advance(4999);
    const after = books.summarizer({ complete, config });
    const result = await after(requestFor(talk(80), { targetTokens: 2400 }));
    expect(result.content.startsWith(FALLBACK_MARKER)).toBe(true);
    expect(result.tokens).toBeLessThanOrEqual(512);
    books.clock.advance(1);
    expect((await after(requestFor(talk()))).level).toBe("normal");
    expect(books.events.filter((event) => event.kind !== "spend").map((event) => event.kind)).toEqual([
      "degraded",
      "recovered",
    ]);
  });

  test("counts every call of an escalation and stops in the middle of one", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel("");
    const many = { ...config, summaryModel: "a/one", fallbackProviders: [{ provider: "b", model: "two" }] };
    expect((await books.summarizer({ complete, config: many })(requestFor(talk()))).level).toBe("extractive");
    expect(requests).toHaveLength(3);
  });

  test("two folds at once tell once", async () => {
    using books = openBooks();
    const { complete } = scriptModel(GOOD_SUMMARY);
    const summarize = books.summarizer({ complete, config: { ...config, summaryMaxCallsPerWindow: 1 } });
    await summarize(requestFor(talk()));
    await Promise.all([summarize(requestFor(talk())), summarize(requestFor(talk()))]);
    expect(books.events.filter((event) => event.kind === "degraded")).toHaveLength(1);
  });
});

describe("the tokens of a window", () => {
  const answer = (inputTokens: number) =>
    scriptModel(async (request) => ({
      kind: "text",
      text: GOOD_SUMMARY,
      model: request.model ?? { provider: "h", model: "m" },
      inputTokens,
      outputTokens: 100,
    }));

  test("many small calls never pause a busy chat", async () => {
    using books = openBooks();
    const { complete, requests } = answer(2900);
    const summarize = books.summarizer({ complete });
    const levels = new Set<string>();
    for (let i = 0; i < 90; i++) levels.add((await summarize(requestFor(talk()))).level);
    expect(requests).toHaveLength(90);
    expect([...levels]).toEqual(["normal"]);
  });

  test("used up, summaries are extractive until the window has room, and no longer", async () => {
    using books = openBooks();
    const { complete, requests } = answer(900);
    const config = { summaryMaxTokensPerWindow: 2000, summaryCallWindowMs: 10_000 };
    const summarize = books.summarizer({ complete, config });
    const levelOf = async (): Promise<string> => (await summarize(requestFor(talk()))).level;
    const startedAt = books.clock.now();
    expect(await levelOf()).toBe("normal");
    books.clock.advance(4000);
    expect([await levelOf(), await levelOf()]).toEqual(["normal", "extractive"]);
    expect(await books.store.readGuards()).toMatchObject([
      {
        name: "spend-window",
        openUntil: startedAt + 10_001,
        reason: "2000 of 2000 tokens within 10000 ms are used",
      },
    ]);
    await books.restart();
    books.clock.advance(6000);
    expect(await levelOf()).toBe("extractive");
    books.clock.advance(1);
    expect(await levelOf()).toBe("normal");
    expect(requests).toHaveLength(3);
    expect(books.events.filter((event) => event.kind !== "spend").map((event) => event.kind)).toEqual([
      "degraded",
      "recovered",
    ]);
  });

  test("an explicit call limit replaces the default token limit; both apply when both are set", async () => {
    using books = openBooks();
    const { complete, requests } = answer(250_000);
    const calls = { summaryMaxCallsPerWindow: 3 };
    const summarize = books.summarizer({ complete, config: calls });
    for (let i = 0; i < 4; i++) await summarize(requestFor(talk()));
    expect(requests).toHaveLength(3);

    using others = openBooks();
    const both = others.summarizer({ complete, config: { ...calls, summaryMaxTokensPerWindow: 400_000 } });
    for (let i = 0; i < 4; i++) await both(requestFor(talk()));
    expect(requests).toHaveLength(5);
  });
});

describe("the daily cap", () => {
  test("at the cap no model is called until the next day in the configured zone", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(async (request) => ({
      kind: "text",
      text: GOOD_SUMMARY,
      model: request.model ?? { provider: "h", model: "m" },
      inputTokens: 900,
      outputTokens: 100,
    }));
    // 11:00 UTC is 20:00 in Tokyo: four hours to midnight.
    const config = { spendMaxTokensPerDay: 2000, timezone: "Asia/Tokyo" };
    const levels: string[] = [];
    const summarize = books.summarizer({ complete, config });
    for (let i = 0; i < 4; i++) levels.push((await summarize(requestFor(talk()))).level);
    expect(levels).toEqual(["normal", "normal", "extractive", "extractive"]);

    await books.restart();
    books.clock.advance(4 * 3_600_000 - 1);
    expect((await books.summarizer({ complete, config })(requestFor(talk()))).level).toBe("extractive");
    books.clock.advance(1);
    expect((await books.summarizer({ complete, config })(requestFor(talk()))).level).toBe("normal");
    expect(requests).toHaveLength(3);
    expect(books.events.filter((event) => event.kind !== "spend").map((event) => event.kind)).toEqual([
      "degraded",
      "recovered",
    ]);
  });

  test("a cap that was raised works at once; a cap of 0 never calls a model", async () => {
    using books = openBooks();
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    await books.summarizer({ complete, config: { spendMaxTokensPerDay: 0 } })(requestFor(talk()));
    expect(requests).toEqual([]);
    await books.summarizer({ complete, config: { spendMaxTokensPerDay: 1_000_000 } })(requestFor(talk()));
    expect(requests).toHaveLength(1);
  });
});

describe("when the books cannot be kept", () => {
  const broken = (): Promise<never> => Promise.reject(new Error("disk full"));

  test("a ledger that cannot be read lets no call through, and says so", async () => {
    const { complete, requests } = scriptModel(GOOD_SUMMARY);
    const events: { kind: string }[] = [];
    const summarize = createSummarizer({
      store: {
        recordSpend: broken,
        countSpendCalls: broken,
        sumSpend: broken,
        readGuards: broken,
        saveGuard: broken,
      },
      settings: settingsFor(),
      complete,
      clock: { now: () => 1 },
      emit: (event) => events.push(event),
    });
    expect((await summarize(requestFor(talk()))).level).toBe("extractive");
    expect(requests).toEqual([]);
    expect(events[0]?.kind).toBe("degraded");
  });

  test("a call that cannot be recorded still gives its summary", async () => {
    using books = openBooks();
    const { complete } = scriptModel(GOOD_SUMMARY);
    const events: { kind: string }[] = [];
    const { store } = books;
    const summarize = createSummarizer({
      store: {
        recordSpend: broken,
        countSpendCalls: (since) => store.countSpendCalls(since),
        sumSpend: (request) => store.sumSpend(request),
        readGuards: () => store.readGuards(),
        saveGuard: (guard) => store.saveGuard(guard),
      },
      settings: settingsFor(),
      complete,
      clock: books.clock,
      emit: (event) => events.push(event),
    });
    expect((await summarize(requestFor(talk()))).level).toBe("normal");
    expect(events.map((event) => event.kind)).toEqual(["degraded", "spend"]);
  });
});
