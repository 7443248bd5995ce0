/**
 * The model that writes summaries is down: the chat continues, every request fits, status reports the outage, and it ends when the model is
 * back.
 */

import assert from "node:assert/strict";
import { checkSequence, textOf } from "../requests.ts";
import { SMALL_WINDOW, type Stage } from "../stage.ts";

export const MODEL_DOWN_CHAT = "agent:main:model-down";
const TURNS = 14;

export async function playModelDown(stage: Stage): Promise<void> {
  await stage.client.request("sessions.patch", { key: MODEL_DOWN_CHAT, model: "fake/fake-small" });
  const first = stage.model.requests.length;
  stage.model.failSummaries(503);
  try {
    await stage.step(`${TURNS} turns while the model refuses to write summaries`, async () => {
      for (let turn = 1; turn <= TURNS; turn++) await stage.playTurn(writeTurn(turn), MODEL_DOWN_CHAT);
      const refused = stage.model.requests.slice(first).filter((request) => request.answer === "http:503");
      assert.ok(refused.length > 0, "summaries were asked for and refused");
    });
    const requests = stage
      .requestsSince(first)
      .filter((request) => /barge \d+ carries/.test(request.userText));
    await stage.step("every request fits, and what was folded stands in summaries all the same", async () => {
      for (const request of requests) {
        assert.ok(request.promptTokens < SMALL_WINDOW, `${request.promptTokens} tokens`);
        checkSequence(request);
      }
      assert.match(textOf(requests.at(-1)!), /<summary id="sum_[0-9a-f]{16}"/);
    });
    await stage.step("status tells it", async () => {
      const status = await stage.sendChat("/lcm status", MODEL_DOWN_CHAT);
      assert.match(status, /made without a model/);
      assert.match(status, /! models/);
    });
  } finally {
    stage.model.failSummaries(null);
  }
}

function writeTurn(turn: number): string {
  return `barge ${turn} carries ${turn * 131} crates. BIG_REPLY 9000`;
}
