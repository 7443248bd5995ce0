/** A job of the host's scheduler: each run is a conversation of its own, and none sees another. */

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { textOf } from "../requests.ts";
import { PATIENCE_MS, type Stage } from "../stage.ts";

const WAIT_MS = 250;
const CHAT = "agent:main:ignored:cron";

export async function playCron(stage: Stage): Promise<void> {
  await stage.step("two runs of a scheduled job are two conversations", async () => {
    const before = await countConversations(stage);
    const first = stage.model.requests.length;
    const job = await stage.client.request("cron.add", {
      name: "tide table",
      enabled: true,
      // Far in the future: the test starts the runs itself.
      schedule: { kind: "every", everyMs: 86_400_000, anchorMs: Date.now() + 86_400_000 },
      sessionTarget: "isolated",
      wakeMode: "now",
      payload: { kind: "agentTurn", message: "SAY the tide table of pier nine" },
      delivery: { mode: "none" },
    });
    const id = String(job.id);
    await runJob(stage, id);
    await runJob(stage, id);
    const requests = stage.requestsSince(first).filter((request) => /tide table/.test(request.userText));
    assert.equal(requests.length, 2, "each run asked the model once");
    for (const request of requests)
      assert.equal(countOf(textOf(request), "SAY the tide table"), 1, "a run knows nothing of another");
    assert.equal((await countConversations(stage)) - before, 2);
  });
}

async function runJob(stage: Stage, id: string): Promise<void> {
  const { runId } = await stage.client.request("cron.run", { id, mode: "force" });
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const { entries } = (await stage.client.request("cron.runs", { id, runId })) as {
      entries?: { status?: string; action?: string }[];
    };
    const ended = entries?.find((entry) => entry.action === undefined || entry.action === "finished");
    if (ended !== undefined) {
      assert.equal(ended.status, "ok", JSON.stringify(ended));
      return;
    }
    assert.ok(performance.now() < deadline, `the run of job ${id} has not ended: ${JSON.stringify(entries)}`);
    await setTimeout(WAIT_MS);
  }
}

async function countConversations(stage: Stage): Promise<number> {
  const status = await stage.sendChat("/lcm status", CHAT);
  return Number(/in (\d+) conversation/.exec(status)?.[1] ?? Number.NaN);
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}
