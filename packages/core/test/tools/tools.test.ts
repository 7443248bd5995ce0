import { describe, expect, test } from "vitest";
import { estimateTextTokens } from "@lossless/core";
import {
  describeTool,
  expandQueryTool,
  expandTool,
  grepTool,
  MAIN_TOOLS,
  RECALL_GUIDANCE,
  SUBAGENT_TOOLS,
} from "../../src/tools/index.ts";
import { longTalk, main, openArchive, say } from "../recall/archive.ts";

describe("the tools", () => {
  test("cost a prompt little", () => {
    const described = MAIN_TOOLS.map(({ name, description }) => `${name}: ${description}`).join("\n");
    expect(estimateTextTokens(`${RECALL_GUIDANCE}\n${described}`)).toBeLessThanOrEqual(300);
    const schemas = MAIN_TOOLS.map(({ parameters }) => JSON.stringify(parameters)).join("\n");
    expect(estimateTextTokens(schemas)).toBeLessThanOrEqual(560);
  });

  test("lead from a search to the words: every id shown can be opened", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    await engine.ingest({ session: main, messages: longTalk("n", 80) });
    await engine.compact({ sessionKey: main.key, owner: main.owner, budgetTokens: 3_000, force: true });
    const context = { engine, session: main };
    const found = await grepTool.run(context, {
      pattern: "what about the greenhouse door?",
      mode: "full_text",
      limit: 10,
    });
    const asked = await expandQueryTool.run(context, { prompt: "what was agreed about compost?" });
    const ids = [
      ...new Set(
        [
          ...found.text.matchAll(/\b(?:msg_\d+|sum_[0-9a-f]{16})\b/g),
          ...asked.text.matchAll(/\bmsg_\d+\b/g),
        ].map(([id]) => id),
      ),
    ];
    expect(ids.length).toBeGreaterThan(8);
    for (const id of ids) {
      const opened = await describeTool.run(context, { id });
      expect(opened.text).toContain(id);
    }
  });

  test("never say that more is shown than was found, and give the times of what a summary stands for", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    await engine.ingest({ session: main, messages: longTalk("n", 80) });
    await engine.compact({ sessionKey: main.key, owner: main.owner, budgetTokens: 3_000, force: true });
    for (const pattern of ["what was row 41 about?", "when did we talk about bees?", "tulips", "n-17"]) {
      const found = await grepTool.run({ engine, session: main }, { pattern, mode: "full_text" });
      const [, total, shown] = /(\d+) found .*, (\d+) shown/.exec(found.text) ?? [];
      expect(Number(shown), pattern).toBeLessThanOrEqual(Number(total));
    }
    const { hits } = await engine.grep({
      session: main,
      pattern: "tulips",
      mode: "full_text",
      scope: "summaries",
    });
    const [hit] = hits;
    if (hit?.type !== "summary") throw new Error("no summary");
    const node = await engine.readSummary({ summaryId: hit.summaryId });
    expect(hit).toMatchObject({
      createdAt: node?.createdAt,
      earliestAt: node?.earliestAt,
      latestAt: node?.latestAt,
    });
    expect(hit.createdAt).toBeGreaterThan(hit.latestAt);
  });

  test("say what they cut and how to get the rest", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({
      session: main,
      messages: [...longTalk("n", 30), say("x", "user", "long ".repeat(5_000))],
    });
    const context = { engine: archive.engine, session: main };
    const page = await grepTool.run(context, { pattern: "tulips", mode: "full_text", limit: 2 });
    expect(page.text).toMatch(/4 found .* 2 shown[^]*More: after="at_2"/);
    const opened = await describeTool.run(context, { id: "msg_31", tokenCap: 100 });
    expect(opened.text).toMatch(/characters left\)[^]*More: id="msg_31", after="msg_31@\d+"/);
  });

  test("teach when arguments are wrong, and forgive numbers written as text", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 8) });
    const context = { engine: archive.engine, session: main };
    await expect(grepTool.run(context, { patern: "x" })).rejects.toThrow(/no parameter patern/);
    await expect(grepTool.run(context, {})).rejects.toThrow(/pattern is missing/);
    await expect(grepTool.run(context, { pattern: "x", limit: 500 })).rejects.toThrow(
      /limit must be a whole number from 1 to 200/,
    );
    await expect(grepTool.run(context, { pattern: "x", sort: "best" })).rejects.toThrow(
      /sort must be one of/,
    );
    const { text } = await grepTool.run(context, {
      pattern: "roses",
      mode: "full_text",
      limit: "5",
      since: null,
    });
    expect(text).toContain("found for");
    await expect(expandTool.run(context, { summaryIds: ["sum_0000000000000000"] })).rejects.toThrow(
      /for sub-agents/,
    );
    expect(SUBAGENT_TOOLS.map(({ name }) => name)).toEqual(["lcm_expand"]);
  });
});
