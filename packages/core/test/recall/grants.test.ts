import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import type { Engine } from "@lossless/core";
import { expandQueryTool, expandTool, toolsFor } from "../../src/tools/index.ts";
import { longTalk, main, openArchive, other } from "./archive.ts";

const child = { key: "agent:main:subagent:1", id: "sub", owner: "main" };

async function foldedArchive(engine: Engine): Promise<string[]> {
  await engine.ingest({ session: main, messages: longTalk("n", 90) });
  await engine.compact({ sessionKey: main.key, owner: main.owner, budgetTokens: 3_000, force: true });
  const { items } = await engine.listSummaries({ conversationId: 1, limit: 50 });
  return items.filter(({ kind }) => kind === "leaf").map(({ summaryId }) => summaryId);
}

describe("grants", () => {
  test("let a sub-agent expand what they name, until their tokens are used up", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    const [first = "", second = ""] = await foldedArchive(engine);
    await expect(
      engine.expand({ session: child, delegated: true, summaryIds: [first] }),
    ).rejects.toMatchObject({ code: "denied" });
    const outcome = await engine.createGrant({
      session: main,
      holderKey: child.key,
      conversationIds: [1],
      summaryIds: [first],
      tokenCap: 300,
    });
    expect(outcome.kind).toBe("granted");
    const answer = await engine.expand({
      session: child,
      delegated: true,
      summaryIds: [first],
      tokenCap: 100_000,
    });
    expect(answer.totalTokens).toBeLessThanOrEqual(300);
    expect(answer.messages.length).toBeGreaterThan(0);
    await expect(
      engine.expand({ session: child, delegated: true, summaryIds: [second] }),
    ).rejects.toBeTruthy();
    for (let i = 0; i < 20; i++)
      await engine.expand({ session: child, delegated: true, summaryIds: [first] }).catch(() => undefined);
    await expect(
      engine.expand({ session: child, delegated: true, summaryIds: [first] }),
    ).rejects.toMatchObject({ code: "denied" });
  });

  test("cover the session they were asked for, resets included, and last for more than one default call", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    const leaves = await foldedArchive(engine);
    await engine.ingest({ session: main, messages: longTalk("m", 5) });
    await engine.createGrant({ session: main, holderKey: child.key });
    const request = { session: child, delegated: true, summaryIds: leaves.slice(0, 6) };
    const answers = [
      await engine.expand(request),
      await engine.expand(request),
      await engine.expand(request),
    ];
    for (const { totalTokens, left } of answers) {
      expect(totalTokens).toBeGreaterThan(0);
      // A sub-agent has one tool.
      expect(left.step?.kind).toBe("expand_granted");
    }
    const missing = await engine.expand({ ...request, summaryIds: ["sum_0123456789abcdef"] }).catch(String);
    expect(missing).toMatch(/nothing with this id/);
  });

  test("give what a query names before the rest of the same summaries", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    await foldedArchive(engine);
    await engine.createGrant({ session: main, holderKey: child.key });
    const request = { session: child, delegated: true, tokenCap: 400 };
    const asked = await engine.expand({ ...request, query: "option 182 row 26" });
    expect(asked.messages[0]?.text).toContain("Note n-26:");
  });

  test("open no other conversation of the same owner, whatever an argument names", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    await foldedArchive(engine);
    const kitchen = { key: "agent:main:kitchen", id: "kitchen", owner: main.owner };
    await engine.ingest({ session: kitchen, messages: longTalk("k", 5) });
    await engine.createGrant({ session: main, holderKey: child.key, conversationIds: [1] });
    const asked = { session: child, delegated: true, pattern: "Note k-2" };
    expect((await engine.grep({ session: kitchen, pattern: asked.pattern })).hits.length).toBeGreaterThan(0);
    await expect(engine.grep({ ...asked, conversationId: 2 })).rejects.toMatchObject({ code: "not_found" });
    for (const scope of [{}, { allConversations: true }])
      expect(
        (await engine.grep({ ...asked, ...scope })).hits.map(({ conversationId }) => conversationId),
      ).not.toContain(2);
  });

  test("name only the tools a sub-agent has, also in its own context", async () => {
    await using archive = await openArchive({ settings: { freshTailCount: 4 } });
    const { engine } = archive;
    await engine.ingest({ session: main, messages: longTalk("n", 80) });
    await engine.ingest({ session: child, messages: longTalk("c", 80) });
    await engine.flushIndex();
    const lines = async (session: typeof main): Promise<string> => {
      const request = { sessionKey: session.key, owner: session.owner, budgetTokens: 2_500 };
      return JSON.stringify((await engine.assemble({ ...request, prompt: "bees" }))?.messages);
    };
    expect(await lines(main)).toMatch(/not shown here.*lcm_describe.*<recall.*open one with lcm_describe/);
    const own = await lines(child);
    expect(own).toMatch(/not shown here\. Nothing is lost\..*<recall/);
    expect(own).not.toContain("lcm_");
  });

  test("end when revoked or when their time is over, survive a restart, and are one at a time", async () => {
    await using archive = await openArchive({ thread: true });
    const { engine } = archive;
    const [first = ""] = await foldedArchive(engine);
    const grant = { session: main, holderKey: child.key, conversationIds: [1] };
    const outcome = await engine.createGrant(grant);
    expect(await engine.createGrant(grant)).toMatchObject({ kind: "refused", reason: "in_flight" });
    await engine.expand({ session: child, delegated: true, summaryIds: [first] });
    if (outcome.kind !== "granted") throw new Error("refused");
    expect(await engine.revokeGrants({ grantId: outcome.grant.grantId })).toBe(1);
    await expect(engine.expand({ session: child, delegated: true, summaryIds: [first] })).rejects.toThrow(
      /revoked/,
    );
    expect(await engine.createGrant({ ...grant, ttlMs: 1 })).toMatchObject({ kind: "granted" });
    await expect
      .poll(() =>
        engine
          .expand({ session: child, delegated: true, summaryIds: [first] })
          .catch((error: Error) => error.message),
      )
      .toMatch(/expired/);
  });

  test("cannot be handed on, and cannot name what is not the issuer's", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    await foldedArchive(engine);
    await engine.ingest({ session: other, messages: longTalk("o", 5) });
    expect(
      await engine.createGrant({ session: main, holderKey: child.key, conversationIds: [2] }),
    ).toMatchObject({ reason: "not_yours" });
    await engine.createGrant({ session: main, holderKey: child.key, conversationIds: [1] });
    expect(
      await engine.createGrant({ session: child, holderKey: "agent:main:subagent:2", conversationIds: [1] }),
    ).toMatchObject({
      kind: "refused",
      reason: "recursion",
    });
    expect(toolsFor(child.key)).toEqual([expandTool]);
    expect(toolsFor(main.key)).toContain(expandQueryTool);
    await expect(engine.ask({ session: child, delegated: true, prompt: "x" })).rejects.toMatchObject({
      code: "denied",
    });
  });
});

describe("owners", () => {
  test("see nothing of each other through any method, argument, id or grant", async () => {
    await using archive = await openArchive({ settings: { largeFileThresholdTokens: 1_000 } });
    const { engine } = archive;
    const summaries = await foldedArchive(engine);
    const file = `secretword ${"x y ".repeat(3_000)}`;
    await engine.ingest({
      session: main,
      messages: [{ eventId: "f", message: { role: "user", content: file } }],
    });
    await engine.ingest({ session: other, messages: longTalk("o", 20) });
    const [fileHit] = (await engine.grep({ session: main, pattern: "secretword", scope: "files" })).hits;
    await engine.createGrant({ session: main, holderKey: child.key, conversationIds: [1] });
    const ids = [...summaries, fileHit?.id ?? "", "msg_1", "msg_40", "msg_1..msg_30", "msg_80..msg_100"];
    const words = ["tulips", "secretword", "Note n-\\d+", "what did we agree on about the fence?"];
    const anyRequest = fc.record(
      {
        conversationId: fc.constantFrom(1, 2, 3),
        allConversations: fc.boolean(),
        scope: fc.constantFrom("messages" as const, "summaries" as const, "both" as const, "files" as const),
        mode: fc.constantFrom("regex" as const, "full_text" as const),
        fileIds: fc.constant([fileHit?.id ?? ""]),
        delegated: fc.boolean(),
        owner: fc.constant("main"),
      },
      { requiredKeys: [] },
    );
    const thief = fc.constantFrom(
      other,
      { ...main, owner: "other" },
      { ...child, owner: "other", key: "agent:other:subagent:9" },
    );
    await fc.assert(
      fc.asyncProperty(
        thief,
        anyRequest,
        fc.constantFrom(...ids),
        fc.constantFrom(...words),
        async (session, request, id, word) => {
          const answers = await Promise.allSettled([
            engine.grep({ ...request, session, pattern: word }),
            engine.describe({ ...request, session, id }),
            engine.expand({ ...request, session, summaryIds: [id] }),
            engine.expand({ ...request, session, query: word }),
            engine.ask({ ...request, session, prompt: word, summaryIds: [id] }),
            engine.ask({ ...request, session, prompt: word }),
            engine.createGrant({
              session,
              holderKey: session.key,
              conversationIds: [1],
              summaryIds: summaries,
            }),
          ]);
          for (const answer of answers) {
            const seen = JSON.stringify(answer.status === "fulfilled" ? answer.value : String(answer.reason));
            expect(seen).not.toMatch(/Note n-\d|secretword [xy]|"granted"/);
          }
        },
      ),
      { numRuns: 80 },
    );
  });

  test("see each other where the operator shares", async () => {
    await using archive = await openArchive({ settings: { shareAcrossOwners: true } });
    await archive.engine.ingest({ session: main, messages: longTalk("n", 3) });
    const { hits } = await archive.engine.grep({
      session: other,
      pattern: "tulips",
      mode: "full_text",
      allConversations: true,
    });
    expect(hits).toHaveLength(1);
    expect(
      (await archive.engine.describe({ session: other, id: "msg_1", allConversations: true })).type,
    ).toBe("messages");
    // An owner that is asked for by name is still a filter.
    const asked = { pattern: "tulips", mode: "full_text", allConversations: true } as const;
    expect((await archive.engine.grep({ ...asked, owner: "main" })).hits).toHaveLength(1);
    expect((await archive.engine.grep({ ...asked, owner: "other" })).hits).toHaveLength(0);
  });
});
