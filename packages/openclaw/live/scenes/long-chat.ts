/**
 * Forty turns with tool calls in a small window. The comparison at the end of the run checks that every message is stored once; this scene
 * checks that each request fits, is valid, keeps its front, and shows folded messages as summaries.
 */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RecordedRequest } from "@lossless/testkit/fake-model.ts";
import { checkSequence, countShared, historyOf, textOf } from "../requests.ts";
import { SMALL_WINDOW, type Stage } from "../stage.ts";

export const LONG_CHAT = "agent:main:long";
const TURNS = 40;

export async function playLongChat(stage: Stage): Promise<void> {
  writeFileSync(join(stage.state.stateDir, "ws", "notes.txt"), "a line of the notes file. ".repeat(300));
  const first = stage.model.requests.length;
  await stage.client.request("sessions.patch", { key: LONG_CHAT, model: "fake/fake-small" });
  await stage.step(`${TURNS} turns with tool calls in a window of ${SMALL_WINDOW} tokens`, async () => {
    for (let turn = 1; turn <= TURNS; turn++) await stage.playTurn(writeTurn(turn), LONG_CHAT);
  });
  // The host makes requests of its own in between; those of this chat name their turn.
  const requests = stage.requestsSince(first).filter((request) => /turn \d+ asks/.test(request.userText));
  await stage.step(`every one of the ${requests.length} requests fits the window and is valid`, async () => {
    assert.equal(
      requests.every((request) => request.model === "fake-small"),
      true,
    );
    for (const request of requests) {
      assert.ok(
        request.promptTokens < SMALL_WINDOW,
        `request ${request.number} has ${request.promptTokens} tokens`,
      );
      checkSequence(request);
    }
  });
  await stage.step("what was folded stands in summaries", async () => {
    assert.match(textOf(requests.at(-1)!), /<summary id="sum_[0-9a-f]{16}"/);
    assert.doesNotMatch(textOf(requests.at(-1)!), /code 7919\. BIG_REPLY/, "the first turn is folded");
    const status = await stage.sendChat("/lcm status", LONG_CHAT);
    assert.match(status, /Folded: \d+ summar/);
    assert.doesNotMatch(status, /models are not called/, "a busy chat does not use up the guards");
  });
  await stage.step("the front of the prompt changes only with a fold", async () => {
    const breaks = requests.flatMap((request, index) => {
      const before = requests[index - 1];
      if (before === undefined) return [];
      const history = historyOf(before);
      const shared = countShared(history, historyOf(request));
      if (shared === history.length) return [];
      return [{ request, isFold: listSummaries(request) !== listSummaries(before), shared, history }];
    });
    for (const { request, isFold, shared, history } of breaks)
      console.log(
        `      request ${request.number} shares ${shared} of ${history.length}${isFold ? ", after a fold" : ""}`,
      );
    const others = breaks.filter(({ isFold }) => !isFold);
    assert.deepEqual(
      others.map(({ request }) => request.number),
      [],
      "requests whose front changed although they show the same summaries",
    );
    assert.ok(breaks.length < requests.length / 5, `${breaks.length} changes of the front`);
  });
}

/** The summaries that a request shows, in order. */
const listSummaries = (request: RecordedRequest): string =>
  (textOf(request).match(/<summary id="sum_[0-9a-f]{16}"/g) ?? []).join();

function writeTurn(turn: number): string {
  const fact = `turn ${turn} asks: keep in mind that locker ${turn} opens with code ${turn * 7919}.`;
  if (turn % 4 === 0) return `${fact} CALL_TOOL read {"path":"notes.txt"}`;
  return `${fact} BIG_REPLY ${turn % 3 === 0 ? 6000 : 2500}`;
}
