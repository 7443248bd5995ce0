/**
 * Sessions that are copies of others: one made by a person, one made for a sub-agent. The comparison at the end checks that copied rows are
 * stored once; this scene checks that the copy sees its parent's history up to the copy, and nothing later.
 */

import assert from "node:assert/strict";
import { textOf } from "../requests.ts";
import { PATIENCE_MS, type Stage } from "../stage.ts";

export const PARENT_CHAT = "agent:main:parent";

export async function playForks(stage: Stage): Promise<void> {
  let child = "";
  await stage.step("a copy of a chat sees what was said before, and nothing that is said later", async () => {
    for (let turn = 1; turn <= 3; turn++) await stage.playTurn(`SAY parent turn ${turn}`, PARENT_CHAT);
    const made = await stage.client.request("sessions.create", { parentSessionKey: PARENT_CHAT, fork: true });
    child = String(made.key);
    await stage.playTurn("SAY child turn 1", child);
    await stage.playTurn("SAY parent turn 4", PARENT_CHAT);
    const first = stage.model.requests.length;
    await stage.playTurn("SAY child turn 2", child);
    const sent = textOf(stage.requestsSince(first)[0]!);
    for (const text of ["parent turn 1", "parent turn 3", "child turn 1"])
      assert.ok(sent.includes(text), text);
    assert.ok(!sent.includes("parent turn 4"), "what the parent said later");
  });
  await stage.step("its rows are few: what was copied is not stored again", async () => {
    assert.match(await stage.sendChat("/lcm status", child), /This chat: [4-6] messages/);
    await stage.playTurn("SAY goodbye", child);
  });
  await stage.step("a sub-agent that starts with its parent's history sees it", async () => {
    const first = stage.model.requests.length;
    const spawn = { task: "SUBTASK SAY done", context: "fork" };
    await stage.playTurn(`CALL_TOOL sessions_spawn ${JSON.stringify(spawn)}`, PARENT_CHAT);
    const request = await stage.model.waitForRequest(
      ({ number, userText, tools }) =>
        number > first && /SUBTASK/.test(userText) && !userText.includes("CALL_TOOL") && tools.length > 0,
      PATIENCE_MS,
    );
    assert.ok(textOf(request).includes("parent turn 2"));
  });
}
