/** Summaries regenerated stand where the old ones stood; cover, graph and index stay right, and the old text is kept. */
import { DatabaseSync } from "node:sqlite";
import { mkdirSync, writeFileSync } from "node:fs";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Complete, CompleteRequest, Engine } from "@lossless/core";
import {
  exportPrompts,
  listPrompts,
  readPrompts,
  renderPrompt,
  showPrompt,
} from "../../src/repair/prompts.ts";
import { planRewrite, rewriteAll } from "../../src/repair/rewrite.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import type { TemporaryFolder } from "@lossless/testkit";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };
const talk = Array.from({ length: 120 }, (_, i) => ({
  eventId: `e${i}`,
  message: {
    role: i % 2 === 0 ? "user" : "assistant",
    content: `step ${i}: the greenhouse sensor ${i} reported ${20 + (i % 9)} degrees, so valve_${i} was opened by Mara after lunch`,
  },
}));

async function open(folder: TemporaryFolder, complete: Complete | null = null): Promise<Engine> {
  const database = folder.file("lcm.db");
  const config = {
    databasePath: database,
    freshTailCount: 4,
    leafChunkTokens: 400,
    leafTargetTokens: 150,
    condensedTargetTokens: 200,
    leafMinFanout: 2,
    condensedMinFanout: 2,
    ...(complete ? { summaryModel: "test/model" } : {}),
  };
  return openEngine({
    database,
    settings: resolveSettings({ env: {}, config }).settings,
    thread: false,
    complete,
  });
}

async function build(folder: TemporaryFolder): Promise<void> {
  const engine = await open(folder);
  await engine.ingest({ session, messages: talk });
  await engine.compact({ conversationId: 1, budgetTokens: 2_000, force: true });
  await engine.maintain({ conversationId: 1, budgetTokens: 1_000 });
  await engine.close();
}

const write: Complete = async (request: CompleteRequest) => ({
  kind: "text",
  text: `Written by a model from ${request.user.length} characters; sensors and valves of the greenhouse.\nExpand for details about: valves`,
  model: { provider: "test", model: "model" },
  inputTokens: 10,
  outputTokens: 10,
});
const problems = async (engine: Engine): Promise<unknown[]> => (await engine.verify()).problems;

describe("rewriting", () => {
  test("goes from the finest up, and each text stands in the place of the old one", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine = await open(folder, write);
    const targets = await planRewrite(engine, { conversationId: 1 });
    expect(targets.length).toBeGreaterThan(3);
    expect(targets.map((target) => target.depth)).toEqual(
      targets.map((target) => target.depth).toSorted((a, b) => a - b),
    );
    const answers = [];
    for await (const answer of rewriteAll({ engine, targets, dryRun: false })) {
      answers.push(answer);
      expect(await problems(engine)).toEqual([]);
    }
    for (const { oldId, newId, before, after } of answers) {
      expect(await engine.readSummary({ summaryId: oldId })).toMatchObject({
        state: "retired",
        content: before.content,
      });
      expect(await engine.readSummary({ summaryId: newId ?? "" })).toMatchObject({
        state: "cover",
        content: after.content,
        model: "test/model",
      });
    }
    expect((await planRewrite(engine, { conversationId: 1, isExtractive: true })).length).toBe(0);
    expect(JSON.stringify(await engine.assemble({ conversationId: 1, budgetTokens: 2_000 }))).toContain(
      "Written by a model",
    );
    await engine.close();
  });

  test("shows what would change without changing it", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine = await open(folder, write);
    const [target] = await planRewrite(engine, { conversationId: 1, depth: 0 });
    if (!target) throw new Error("no leaf");
    for await (const answer of rewriteAll({ engine, targets: [target], dryRun: true })) {
      expect(answer).toMatchObject({ newId: null, after: { model: "test/model" } });
    }
    expect((await planRewrite(engine, { conversationId: 1, summaryId: target.summaryId })).length).toBe(1);
    await engine.close();
  });

  test("puts a text that was looked at in place without another call, and refuses it once its sources have changed", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    let calls = 0;
    const engine = await open(folder, (request, signal) => {
      calls += 1;
      return write(request, signal);
    });
    const [leaf, other] = await planRewrite(engine, { conversationId: 1, depth: 0 });
    if (!leaf || !other) throw new Error("no leaves");
    const { after, sourceKeys } = await engine.rewriteSummary({ summaryId: leaf.summaryId, dryRun: true });
    const { content, model, level } = after;
    const text = { content, model, level, sourceKeys };
    const before = calls;
    const { newId } = await engine.rewriteSummary({ summaryId: leaf.summaryId, dryRun: false, text });
    expect(calls).toBe(before);
    expect(await engine.readSummary({ summaryId: newId ?? "" })).toMatchObject({
      state: "cover",
      content,
      model,
    });
    await expect(
      engine.rewriteSummary({ summaryId: other.summaryId, dryRun: false, text }),
    ).rejects.toMatchObject({ code: "database_busy", message: expect.stringContaining("changed meanwhile") });
    expect(await problems(engine)).toEqual([]);
    await engine.close();
  });

  test("refuses a text that tells of a message that was hidden meanwhile", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine = await open(folder, write);
    const [leaf] = await planRewrite(engine, { conversationId: 1, depth: 0 });
    const summaryId = leaf?.summaryId ?? "";
    const { after, sourceKeys } = await engine.rewriteSummary({ summaryId, dryRun: true });
    await engine.setBranch({ session, offBranch: ["e1"] });
    const text = { content: after.content, model: after.model, level: after.level, sourceKeys };
    await expect(engine.rewriteSummary({ summaryId, dryRun: false, text })).rejects.toMatchObject({
      code: "database_busy",
    });
    await engine.close();
  });

  test("refuses what a model wrote about a summary that changed meanwhile, and counts the call once", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine: Engine = await open(folder, async (request, signal) => {
      await engine.setBranch({ session, offBranch: ["e1"] });
      return write(request, signal);
    });
    const [leaf] = await planRewrite(engine, { conversationId: 1, depth: 0 });
    const summaryId = leaf?.summaryId ?? "";
    await expect(engine.rewriteSummary({ summaryId, dryRun: false })).rejects.toMatchObject({
      code: "database_busy",
      message: expect.stringContaining("changed meanwhile"),
    });
    expect((await engine.spend({ by: "all" }))[0]?.calls).toBe(1);
    expect(await problems(engine)).toEqual([]);
    // Nothing changes any more.
    expect((await engine.rewriteSummary({ summaryId, dryRun: false })).newId).not.toBeNull();
    await engine.close();
  });

  test("takes the same text again for sources that changed, so that it is stale no longer", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine = await open(folder, write);
    const [leaf] = await planRewrite(engine, { conversationId: 1, depth: 0 });
    const summaryId = leaf?.summaryId ?? "";
    await engine.setBranch({ session, offBranch: ["e1"] });
    const stale = await engine.readSummary({ summaryId });
    expect(stale?.isStale).toBe(true);
    const { sourceKeys } = await engine.rewriteSummary({ summaryId, dryRun: true });
    const text = { content: stale?.content ?? "", model: "test/model", level: "normal" as const, sourceKeys };
    const { newId } = await engine.rewriteSummary({ summaryId, dryRun: false, text });
    expect((await engine.readSummary({ summaryId: newId ?? "" }))?.isStale).toBe(false);
    expect(await problems(engine)).toEqual([]);
    const again = await engine.rewriteSummary({ summaryId: newId ?? "", dryRun: false, text });
    expect(again.newId).toBeNull();
    await engine.close();
  });

  test("repair takes damaged ones only, and keeps the old text when no better one can be had", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const fail: Complete = async () => ({ kind: "failure", failure: "unavailable", message: "down" });
    const broken = await open(folder, fail);
    const [first] = await planRewrite(broken, { conversationId: 1, depth: 0 });
    if (!first) throw new Error("no leaf");
    // A model that fails leaves a marked stand-in: now it is damaged.
    for await (const answer of rewriteAll({ engine: broken, targets: [first], dryRun: false }))
      expect(answer.newId).not.toBeNull();
    const damaged = await planRewrite(broken, { conversationId: 1, isDamaged: true });
    expect(damaged.map((target) => target.damage)).toEqual(["stand_in"]);
    for await (const answer of rewriteAll({
      engine: broken,
      targets: damaged,
      dryRun: false,
      mustHeal: true,
    }))
      expect(answer.newId).toBeNull();
    await broken.close();
    const engine = await open(folder, write);
    const database = new DatabaseSync(folder.file("lcm.db"));
    database.exec("DELETE FROM guards");
    database.close();
    for await (const answer of rewriteAll({ engine, targets: damaged, dryRun: false, mustHeal: true }))
      expect(answer.newId).not.toBeNull();
    expect(await planRewrite(engine, { conversationId: 1, isDamaged: true })).toEqual([]);
    expect(await problems(engine)).toEqual([]);
    await engine.close();
  });

  test("takes a summary with everything below it", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine = await open(folder);
    const top = (await planRewrite(engine, { conversationId: 1 })).at(-1);
    if (!top) throw new Error("no summary");
    const node = await engine.readSummary({ summaryId: top.summaryId });
    const subtree = await planRewrite(engine, {
      conversationId: 1,
      summaryId: top.summaryId,
      isSubtree: true,
    });
    expect(subtree.length).toBe((node?.descendantCount ?? 0) + 1);
    expect(subtree.at(-1)?.summaryId).toBe(top.summaryId);
    await engine.close();
  });
});

describe("dissolving", () => {
  test("puts the sources back, down to the messages, and everything stays right", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine = await open(folder);
    const shown = async (): Promise<number> =>
      (await engine.readConversation({ conversationId: 1 }))?.shownMessages ?? 0;
    const before = await shown();
    for (let depth = 5; depth >= 0; depth--) {
      for (const { summaryId } of await planRewrite(engine, { conversationId: 1, depth })) {
        const preview = await engine.dissolveSummary({ summaryId, dryRun: true });
        if (preview === null) continue;
        expect(await engine.dissolveSummary({ summaryId, dryRun: false })).toEqual(preview);
        expect(await problems(engine)).toEqual([]);
      }
    }
    expect(await planRewrite(engine, { conversationId: 1 })).toEqual([]);
    expect(await shown()).toBe(before);
    await engine.compact({ conversationId: 1, budgetTokens: 2_000, force: true });
    expect(await problems(engine)).toEqual([]);
    await engine.close();
  });
});

describe("transplanting", () => {
  test("copies messages, versions, files and summaries in front of another conversation, once", async () => {
    using folder = makeTemporaryFolder();
    await build(folder);
    const engine = await open(folder);
    const big = {
      eventId: "big",
      message: { role: "user", content: `see ${"lorem ipsum dolor ".repeat(12_000)}` },
    };
    await engine.ingest({
      session,
      messages: [big, { eventId: "e3", message: { role: "user", content: "another version" } }],
    });
    await engine.forget({ messageIds: [9], reason: "a test" });
    const other = { ...session, key: "agent:main:other", id: "session-2" };
    await engine.ingest({
      session: other,
      messages: [{ eventId: "x", message: { role: "user", content: "hello there" } }],
    });
    const preview = await engine.transplant({ from: 1, to: 2, dryRun: true });
    const report = await engine.transplant({ from: 1, to: 2, dryRun: false });
    expect(report).toMatchObject({ messages: preview.messages, summaries: preview.summaries });
    expect(report.summaryIds).toHaveLength(report.summaries);
    const { nodes } = await engine.readGraph({ conversationId: 2 });
    expect(nodes.length).toBeGreaterThan(0);
    for (const { publishedSeq } of nodes) expect(publishedSeq).toBeGreaterThan(report.messages);
    expect(await problems(engine)).toEqual([]);
    const [source, copy] = [
      await engine.readConversation({ conversationId: 1 }),
      await engine.readConversation({ conversationId: 2 }),
    ];
    expect(copy?.shownMessages).toBe((source?.shownMessages ?? 0) + 1);
    const { items } = await engine.listMessages({ conversationId: 2, limit: 10, direction: "newest" });
    expect(items[0]?.eventId).toBe("x");
    await expect(engine.transplant({ from: 1, to: 2, dryRun: false })).rejects.toMatchObject({
      code: "usage",
    });
    await expect(engine.transplant({ from: 2, to: 1, dryRun: true })).rejects.toThrow(/already there/);
    await engine.ingest({
      session: other,
      messages: [{ eventId: "y", message: { role: "user", content: "more" } }],
    });
    await engine.compact({ conversationId: 2, budgetTokens: 1_500, force: true });
    expect(await problems(engine)).toEqual([]);
    await engine.close();
  });
});

describe("prompts", () => {
  test("can be copied, changed, compared and used", () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("prompts");
    expect(listPrompts(path).map((entry) => entry.origin)).toEqual(
      Array.from({ length: 4 }, () => "built-in"),
    );
    expect(exportPrompts(path).written).toHaveLength(4);
    expect(listPrompts(path).some((entry) => entry.isChanged)).toBe(false);
    writeFileSync(`${path}/leaf.md`, "Only the weather, please.\n");
    expect(exportPrompts(path).kept).toHaveLength(4);
    expect(showPrompt(path, "leaf").text).toBe("Only the weather, please.");
    expect(renderPrompt(path, "leaf", { targetTokens: 100, timeZone: "UTC" }).user).toContain(
      "Only the weather, please.",
    );
    expect(renderPrompt(null, "leaf", { targetTokens: 100, timeZone: "UTC" }).user).not.toContain("weather");
  });

  test("nobody knows are refused", () => {
    using folder = makeTemporaryFolder();
    mkdirSync(folder.file("prompts"));
    writeFileSync(folder.file("prompts/leave.md"), "x");
    expect(() => readPrompts(folder.file("prompts"))).toThrow(/there are leaf/);
  });
});
