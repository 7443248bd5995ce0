/** The agent's tools in the long chat find folded messages. A sub-agent can read what it was granted, and has no tool to read anything else. */

import assert from "node:assert/strict";
import { flattenContent } from "@lossless/testkit/fake-model.ts";
import { PATIENCE_MS, type Stage } from "../stage.ts";
import { LONG_CHAT } from "./long-chat.ts";

export async function playRecall(stage: Stage): Promise<void> {
  let hit: string | undefined;
  await stage.step("the agent finds a folded fact with lcm_grep", async () => {
    const found = await callTool(stage, "lcm_grep", {
      pattern: "which code opens locker 3?",
      mode: "full_text",
    });
    assert.match(found, /23757/);
    [, hit] = /(msg_\d+)(?:(?!msg_\d).)*23757/s.exec(found) ?? [];
    assert.ok(hit !== undefined, found);
  });
  await stage.step("and opens what it found with lcm_describe", async () => {
    assert.match(
      await callTool(stage, "lcm_describe", { id: hit }),
      /turn 3 asks: keep in mind that locker 3 opens with code 23757/,
    );
  });
  await stage.step("a later search does not find what the tools answered before", async () => {
    const query = { pattern: "locker 3 opens with code", mode: "full_text", limit: 50 };
    const listHits = (text: string): string[] => [...new Set(text.match(/\bmsg_\d+/g))].toSorted();
    const before = listHits(await callTool(stage, "lcm_grep", query));
    const answers = await callTool(stage, "lcm_grep", query);
    assert.ok(before.includes(hit!), answers);
    assert.doesNotMatch(answers, /\] \(tool, /, "a result of a tool is among the hits");
  });
  await stage.step("and asks lcm_expand_query, which cites passages", async () => {
    const answer = await callTool(stage, "lcm_expand_query", {
      query: "locker 5 code",
      prompt: "Which code opens locker 5?",
    });
    assert.match(answer, /39595/);
    assert.match(answer, /msg_\d+/);
  });
  await stage.step(
    "with a model of its own the question is answered by the host's sub-agent runtime",
    async () => {
      const policy = { allowModelOverride: true, allowedModels: ["fake/fake-small"] };
      await stage.configure({ expansionModel: "fake/fake-small" }, /does not let this plugin use/, {
        // Without permission for direct calls to this model, its answer came through the sub-agents.
        entry: { subagent: policy },
      });
      const first = stage.model.requests.length;
      const answer = await callTool(stage, "lcm_expand_query", {
        query: "locker 6 code",
        prompt: "Which code opens locker 6?",
      });
      assert.match(answer, /47514/);
      const asked = stage.model.requests
        .slice(first)
        .filter(
          (request) => /Which code opens locker 6/.test(request.userText) && request.tools.length === 0,
        );
      assert.deepEqual(
        asked.map((request) => request.model),
        ["fake-small"],
      );
      assert.doesNotMatch(await stage.sendChat("/lcm status", LONG_CHAT), /! models/);
      await stage.configure({}, /All parts work/);
    },
  );
  await stage.step("a sub-agent gets lcm_expand and reads what it was granted, and nothing else", () =>
    playSubagent(stage),
  );
  await stage.step("the tools are there also when the host's tool search is on", async () => {
    await stage.configure({}, /All parts work|This chat/, { toolSearch: true });
    await stage.playTurn("SAY with tool search", LONG_CHAT);
    const { tools } = stage.model.requests.findLast((request) =>
      request.userText.includes("with tool search"),
    )!;
    for (const name of ["lcm_grep", "lcm_describe", "lcm_expand_query"])
      assert.ok(tools.includes(name), tools.join());
    await stage.configure({}, /This chat/);
  });
}

async function playSubagent(stage: Stage): Promise<void> {
  const first = stage.model.requests.length;
  const task = `SUBAGENT_TASK CALL_TOOL lcm_expand {"query":"locker 7"}`;
  await stage.playTurn(`CALL_TOOL sessions_spawn ${JSON.stringify({ task })}`, LONG_CHAT);
  const isChild = (request: { userText: string; answer: string }): boolean =>
    request.userText.includes("SUBAGENT_TASK") && !request.userText.includes("sessions_spawn");
  const child = await stage.model.waitForRequest(
    (request) => request.number > first && isChild(request) && request.tools.length > 0,
    PATIENCE_MS,
  );
  assert.ok(child.tools.includes("lcm_expand"), "the sub-agent has lcm_expand");
  assert.ok(!child.tools.includes("lcm_grep"), "and no tool that looks elsewhere");
  const after = await stage.model.waitForRequest(
    (request) =>
      request.number > child.number &&
      isChild(request) &&
      request.messages.some((message) => message.role === "tool"),
    PATIENCE_MS,
  );
  const result = flattenContent(after.messages.findLast((message) => message.role === "tool")?.content);
  assert.match(result, /locker 7 opens with code 55433/);
}

/** Makes the agent call a tool, and returns what the model received. */
async function callTool(stage: Stage, name: string, args: Record<string, unknown>): Promise<string> {
  const first = stage.model.requests.length;
  await stage.playTurn(`CALL_TOOL ${name} ${JSON.stringify(args)}`, LONG_CHAT);
  const requests = stage.requestsSince(first);
  assert.equal(requests[0]?.answer, `tool:${name}`, `the tools were ${requests[0]?.tools.join()}`);
  return flattenContent(requests.at(-1)!.messages.findLast((message) => message.role === "tool")?.content);
}
