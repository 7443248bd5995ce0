/** Ignored sessions, and the plugin switched off: nothing is stored, and the host compacts again. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { textOf } from "../requests.ts";
import type { Stage } from "../stage.ts";

const IGNORED_CHAT = "agent:main:ignored:one";
const STATELESS_CHAT = "agent:main:stateless:one";
const SETTINGS_CHAT = "agent:main:settings";
const SWITCHED_OFF_CHAT = "agent:main:switched-off";

export async function playPolicies(stage: Stage): Promise<void> {
  await stage.step("an ignored session gets the host's own compaction", () =>
    compactByHost(stage, IGNORED_CHAT),
  );
  await stage.step("a turn in a stateless session", async () => {
    await stage.playTurn("SAY nothing of this is kept", STATELESS_CHAT);
    assert.match(await stage.sendChat("/lcm status", STATELESS_CHAT), /not kept/);
  });
  await stage.step(
    "settings that cannot work are replaced and reported, and the gateway goes on",
    async () => {
      await stage.configure({ freshTailMaxTokens: 0, leafChunkTokens: 1000 }, /freshTailMaxTokens = 0/);
      assert.match(await stage.sendChat("/lcm doctor", SETTINGS_CHAT), /greater than leafTargetTokens, 2400/);
      assert.doesNotMatch(
        await stage.sendChat("/lcm config", SETTINGS_CHAT),
        /freshTailMaxTokens|leafChunkTokens/,
      );
      await stage.playTurn("SAY the chat goes on", SETTINGS_CHAT);
    },
  );
  await stage.step(
    "broken redaction stops storing; once it is right, what was said meanwhile is stored",
    async () => {
      await stage.configure({ redactPatterns: ["@key"] }, /nothing is stored.*@keys, @tokens, @cards/s);
      await stage.playTurn("SAY nothing of this is stored yet", SETTINGS_CHAT);
      await stage.configure({ redactPatterns: ["@keys"] }, /Archive:/);
      await stage.playTurn("SAY now it is", SETTINGS_CHAT);
    },
  );
  await stage.step("the plugin's own log names events and no message", async () => {
    const log = readFileSync(join(stage.state.stateDir, "logs", "lossless-claw.log"), "utf8");
    assert.match(log, /"event":"stored"/);
    assert.doesNotMatch(log, /the chat goes on/);
  });
  await stage.step(
    "the plugin is switched off while the gateway runs, and the host compacts itself",
    async () => {
      await stage.configure({ enabled: false }, /switched off/);
      await compactByHost(stage, SWITCHED_OFF_CHAT);
    },
  );
}

async function compactByHost(stage: Stage, sessionKey: string): Promise<void> {
  for (let turn = 1; turn <= 3; turn++) await stage.playTurn(`private ${turn}. BIG_REPLY 9000`, sessionKey);
  const first = stage.model.requests.length;
  await stage.sendChat("/compact", sessionKey);
  const asked = stage.model.requests
    .slice(first)
    .filter((request) => /summarization assistant/.test(textOf(request)));
  assert.ok(asked.length > 0, "the host's own summariser was asked");
}
