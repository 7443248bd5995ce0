/** One chat with everything that can happen to a chat: tools, failures, commands, resets, and a gateway that is killed in the middle. */

import assert from "node:assert/strict";
import { PATIENCE_MS, type Stage } from "../stage.ts";

export const MAIN_CHAT = "agent:main:live";

export async function playMainChat(stage: Stage): Promise<void> {
  await stage.step("ten turns, one of them with a tool call", async () => {
    for (let turn = 1; turn <= 10; turn++) await stage.playTurn(writeTurn(turn), MAIN_CHAT);
    assert.ok(
      stage.model.requests.some((request) => request.answer === "tool:session_status"),
      "the model was asked to call a tool",
    );
  });
  await stage.step("the plugin in the memory slot keeps its tools beside ours", async () => {
    const { tools } = stage.model.requests.findLast((request) => request.userText.includes("SAY turn 10"))!;
    for (const name of ["memory_search", "lcm_grep", "lcm_describe"])
      assert.ok(tools.includes(name), `${name} is missing: ${tools.join()}`);
  });
  await stage.step("a turn whose model call fails", async () => {
    await assert.rejects(stage.client.runTurn(MAIN_CHAT, "FAIL_HTTP 400"));
  });
  await stage.step("the commands answer in the chat", async () => {
    const status = await stage.sendChat("/lcm status", MAIN_CHAT);
    assert.match(status, /This chat: \d+ messages/);
    assert.match(status, /lcm\.db/);
    assert.match(await stage.sendChat("/lossless nonsense", MAIN_CHAT), /There is no "nonsense"/);
    assert.match(await stage.sendChat("/lossless search turn 9", MAIN_CHAT), /msg_\d+ .*turn.* 9/);
    assert.match(await stage.sendChat("/lossless verify", MAIN_CHAT), /Proven/);
    assert.match(await stage.sendChat("/lcm rotate", MAIN_CHAT), /Nothing was changed/);
  });
  await stage.step("/reset, and three turns that know nothing of before", async () => {
    assert.match(await stage.sendChat("/reset", MAIN_CHAT), /reset/i);
    for (let turn = 1; turn <= 3; turn++) await stage.playTurn(`SAY after the reset, ${turn}`, MAIN_CHAT);
    const sent = JSON.stringify(stage.model.requests.at(-1)!.messages);
    assert.ok(sent.includes("after the reset, 1") && !sent.includes("SAY turn 9"));
  });
}

/** Kills the gateway during two turns: while the model is working, and as its answer arrives. */
export async function playKills(stage: Stage): Promise<void> {
  await stage.step("the gateway is killed while the model thinks, and started again", async () => {
    await killDuringTurn(stage, "thinking", () => undefined);
    await stage.restart();
    await stage.playTurn("what was I saying?", MAIN_CHAT);
  });
  await stage.step("the gateway is killed as the answer arrives, and started again", async () => {
    await killDuringTurn(stage, "answering", () => stage.model.release("answering"));
    await stage.restart();
    await stage.playTurn("and now?", MAIN_CHAT);
  });
  await stage.step("/new, and two turns with equal texts", async () => {
    assert.match(await stage.sendChat("/new", MAIN_CHAT), /new session/i);
    await stage.playTurn("SAY ok", MAIN_CHAT);
    await stage.playTurn("SAY ok", MAIN_CHAT);
    assert.ok(!JSON.stringify(stage.model.requests.at(-1)!.messages).includes("after the reset"));
  });
}

function writeTurn(turn: number): string {
  if (turn === 4) return "CALL_TOOL session_status {}";
  return turn === 7 ? "BIG_REPLY 20000" : `SAY turn ${turn}`;
}

/** Sends a message, holds its model call, runs `act`, and kills the gateway before it can answer. */
async function killDuringTurn(stage: Stage, key: string, act: () => void): Promise<void> {
  const cut = stage.client.runTurn(MAIN_CHAT, `HOLD ${key}`);
  cut.catch(() => undefined);
  await stage.model.waitForRequest(
    (request) => request.answer === "held" && request.userText.includes(`HOLD ${key}`),
    PATIENCE_MS,
  );
  act();
  await stage.gateway.kill();
}
