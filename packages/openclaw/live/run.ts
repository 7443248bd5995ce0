/**
 * The plugin in the real host: `npm run test:hosts`. Starts a gateway of OpenClaw with private state and a fake model on loopback, talks to
 * it over its socket, kills it, starts it again, and at the end compares the archive with what the host itself wrote: every message row
 * stored exactly once, unchanged. Needs no network once the host is in the cache. Ends only what it started.
 *
 * Names of scenes as arguments play only those; `--keep` leaves the state of the run behind for a look, `--verbose` says more.
 */

import assert from "node:assert/strict";
import { runHostCommand } from "@lossless/testkit/openclaw-host.ts";
import { compareWithHost } from "./compare.ts";
import { playCompaction } from "./scenes/compaction.ts";
import { playLongChat } from "./scenes/long-chat.ts";
import { playKills, playMainChat } from "./scenes/main-chat.ts";
import { playPolicies } from "./scenes/policies.ts";
import { playStorageTrouble, TROUBLE_CHAT, TROUBLE_DATABASE } from "./scenes/storage-trouble.ts";
import { PLUGIN, Stage } from "./stage.ts";

const SCENES: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  main: playMainChat,
  long: playLongChat,
  compaction: playCompaction,
  kills: playKills,
  trouble: playStorageTrouble,
  policies: playPolicies,
};

const LEFT_ALONE = /:(ignored|stateless|switched-off|configuration)\b/;

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name);
const stage = new Stage();
try {
  await stage.open();
  for (const [name, play] of Object.entries(SCENES)) if (isWanted(name)) await play(stage);
  await endGateway();
  if (isWanted("inspect")) await stage.step("the host lists and inspects the plugin", inspectPlugin);
  await compareWithHost(stage, [
    { database: "lcm.db", isKept: (key) => key !== TROUBLE_CHAT && !LEFT_ALONE.test(key) },
    ...(isWanted("trouble") ? [{ database: TROUBLE_DATABASE, isKept: (key: string) => key === TROUBLE_CHAT }] : []),
  ]);
} catch (error) {
  // A failing step has printed its reason; the steps after it would only repeat it.
  if (process.argv.includes("--verbose")) console.log(error);
} finally {
  await stage.close();
}
stage.finish();

async function endGateway(): Promise<void> {
  await stage.step("the gateway stops by itself when asked", async () => {
    stage.client.close();
    await stage.gateway.stop();
  });
  await stage.step("no turn went past the plugin, and the host found no fault with it", async () => {
    for (const output of stage.printed)
      assert.doesNotMatch(output(), /degraded to "legacy"|could not be used for a turn|context engine .* failed/i);
  });
}

async function inspectPlugin(): Promise<void> {
  const list = await runHostCommand(stage.state, ["plugins", "list"]);
  assert.match(list.output, /lossless-claw/);
  const inspect = await runHostCommand(stage.state, ["plugins", "inspect", PLUGIN, "--runtime", "--json"]);
  assert.equal(inspect.code, 0, inspect.output.slice(-2000));
  const report = JSON.parse(inspect.output.slice(inspect.output.indexOf("{"))) as Record<string, unknown>;
  const text = JSON.stringify(report);
  assert.match(text, /"status":"loaded"/);
  assert.match(text, /"contextEngineIds":\["lossless-claw"\]/);
}
