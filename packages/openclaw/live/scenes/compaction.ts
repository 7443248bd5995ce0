/** Requested compaction: by a provider that refuses a prompt, and by a person. */

import assert from "node:assert/strict";
import { textOf } from "../requests.ts";
import type { Stage } from "../stage.ts";

export const COMPACTION_CHAT = "agent:main:compaction";
const REFUSED_CHAT = "agent:main:refused";

export async function playCompaction(stage: Stage): Promise<void> {
  let overflowed = 0;
  for (let turn = 1; turn <= 4; turn++)
    await stage.playTurn(`item ${turn} belongs to Ada. BIG_REPLY 9000`, COMPACTION_CHAT);
  await stage.step(
    "a provider that refuses the prompt gets a smaller one, and the turn succeeds",
    async () => {
      const first = stage.model.requests.length;
      await stage.playTurn("OVERFLOW_ONCE first SAY it fits now", COMPACTION_CHAT);
      const requests = stage.requestsSince(first);
      assert.deepEqual(
        requests.map((request) => request.answer),
        ["overflow", "text"],
      );
      assert.ok(requests[1]!.promptTokens < requests[0]!.promptTokens, "the second prompt is smaller");
      overflowed = requests[0]!.promptTokens;
    },
  );
  await stage.step("the history that is sent grows again, beyond what was refused once", async () => {
    const first = stage.model.requests.length;
    for (let turn = 5; turn <= 20; turn++)
      await stage.playTurn(`item ${turn} belongs to Grace. BIG_REPLY 4500`, COMPACTION_CHAT);
    const largest = Math.max(...stage.requestsSince(first).map((request) => request.promptTokens));
    assert.ok(largest > overflowed, `${largest} tokens at most, after ${overflowed} were refused`);
  });
  await stage.step("/compact keep names folds, and passes the instructions on", async () => {
    // More than the tail, which folding leaves alone: 30 % of the budget.
    for (let turn = 21; turn <= 28; turn++)
      await stage.playTurn(`item ${turn} belongs to Ada. BIG_REPLY 12000`, COMPACTION_CHAT);
    const first = stage.model.requests.length;
    const answer = await stage.sendChat("/compact keep names", COMPACTION_CHAT);
    assert.match(answer, /Compacted/i);
    const asked = stage.model.requests.slice(first).filter((request) => request.tools.length === 0);
    assert.ok(asked.length > 0, "a model was asked for a summary");
    assert.ok(
      asked.some((request) => textOf(request).includes("keep names")),
      "the instructions are in the prompt",
    );
    await stage.playTurn("SAY after the fold", COMPACTION_CHAT);
    assert.match(textOf(stage.requestsSince(first).at(-1)!), /<summary id="sum_/);
  });
  await stage.step(
    "a turn that the host refuses is told by status and doctor until one is answered",
    async () => {
      // The first message: there is no history to remove.
      await assert.rejects(stage.playTurn("OVERFLOW_ONCE second SAY too much", REFUSED_CHAT));
      assert.match(await stage.sendChat("/lcm status", REFUSED_CHAT), /! turns of .*the host refused a turn/);
      assert.match(await stage.sendChat("/lcm doctor", REFUSED_CHAT), /larger window/);
      await stage.playTurn("SAY it fits", REFUSED_CHAT);
      assert.doesNotMatch(await stage.sendChat("/lcm status", REFUSED_CHAT), /refused/);
      await stage.playTurn("SAY goodbye", REFUSED_CHAT);
    },
  );
}
