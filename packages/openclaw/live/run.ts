/**
 * The plugin in the real host: `npm run test:hosts`. Starts a gateway of OpenClaw with private state and a fake model on loopback, talks to it
 * over its socket, kills and restarts it, and after every scene and at the end compares the archive with what the host itself wrote: every
 * message row stored exactly once, unchanged. Needs no network once the host is in the cache. Ends only processes it started.
 *
 * Arguments select scenes by name; `--keep` keeps the state of the run, `--verbose` prints more.
 */

import assert from "node:assert/strict";
import { compareAfterScene, compareWithHost, type Comparison } from "./compare.ts";
import { COMPACTION_CHAT, playCompaction } from "./scenes/compaction.ts";
import { playCron } from "./scenes/cron.ts";
import { FULL_CHAT, FULL_DATABASE, playFullDisk } from "./scenes/full-disk.ts";
import { playHostTools } from "./scenes/host-tools.ts";
import { PARENT_CHAT, playForks } from "./scenes/forks.ts";
import { PICTURE_CHAT, playImages } from "./scenes/images.ts";
import { playInstall } from "./scenes/install.ts";
import { LONG_CHAT, playLongChat } from "./scenes/long-chat.ts";
import { MAIN_CHAT, playKills, playMainChat } from "./scenes/main-chat.ts";
import { MODEL_DOWN_CHAT, playModelDown } from "./scenes/model-down.ts";
import { HISTORY_CHAT, HISTORY_DATABASE, playNewcomer } from "./scenes/newcomer.ts";
import { playPolicies } from "./scenes/policies.ts";
import { playRecall } from "./scenes/recall.ts";
import { playStorageTrouble, TROUBLE_CHAT, TROUBLE_DATABASE } from "./scenes/storage-trouble.ts";
import { playWindows } from "./scenes/windows.ts";
import { Stage } from "./stage.ts";

const SCENES: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  main: playMainChat,
  long: playLongChat,
  recall: playRecall,
  compaction: playCompaction,
  cron: playCron,
  images: playImages,
  forks: playForks,
  "model-down": playModelDown,
  windows: playWindows,
  kills: playKills,
  trouble: playStorageTrouble,
  "full-disk": playFullDisk,
  newcomer: playNewcomer,
  policies: playPolicies,
};

const LEFT_ALONE = /:(ignored|stateless|switched-off)\b/;
/** Chats that continued while the plugin had another database. */
const isElsewhere = (key: string): boolean => [TROUBLE_CHAT, FULL_CHAT, HISTORY_CHAT].includes(key);
const isKept = (key: string): boolean => !isElsewhere(key) && !LEFT_ALONE.test(key);

/** Chats of a scene that continue in the main database. */
const CHATS: Readonly<Record<string, readonly string[]>> = {
  main: [MAIN_CHAT],
  long: [LONG_CHAT],
  recall: [LONG_CHAT],
  compaction: [COMPACTION_CHAT],
  images: [PICTURE_CHAT],
  forks: [PARENT_CHAT],
  "model-down": [MODEL_DOWN_CHAT],
  kills: [MAIN_CHAT],
};

/** Scenes with their own databases play the last turn themselves. */
const DATABASES: Readonly<Record<string, Comparison>> = {
  trouble: { database: TROUBLE_DATABASE, isKept: (key) => key === TROUBLE_CHAT, mayHold: isKept },
  "full-disk": {
    database: FULL_DATABASE,
    isKept: (key) => key === FULL_CHAT,
    mayHold: (key) => key !== FULL_CHAT,
  },
  newcomer: {
    database: HISTORY_DATABASE,
    isKept: (key) => key === HISTORY_CHAT,
    mayHold: (key) => key !== HISTORY_CHAT,
  },
};

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name);
const stage = new Stage();
try {
  await stage.open();
  for (const [name, play] of Object.entries(SCENES)) {
    if (!isWanted(name)) continue;
    await play(stage);
    await compareAfter(name);
  }
  await endGateway();
  if (isWanted("install")) await playInstall(stage);
  if (isWanted("host-tools")) await playHostTools(stage);
  await compareWithHost(stage, [
    // Messages sent while the plugin had another database are read when the gateway stops.
    { database: "lcm.db", isKept, mayHold: isElsewhere },
    ...Object.entries(DATABASES).flatMap(([name, own]) => (isWanted(name) ? [own] : [])),
  ]);
} catch (error) {
  // The steps after a failed one would only repeat the failure.
  stage.tellFailure(error);
} finally {
  await stage.close();
}
stage.finish();

/** Rows that no turn delivered (commands, announcements) are read with the next turn; this plays a last one. */
async function compareAfter(scene: string): Promise<void> {
  for (const chat of CHATS[scene] ?? []) await stage.playTurn("SAY goodbye", chat);
  const own = DATABASES[scene];
  const comparisons = own === undefined ? [{ database: "lcm.db", isKept }] : [own];
  const chats = own === undefined ? [...new Set(Object.values(CHATS).flat())] : [];
  await compareAfterScene(stage, scene, comparisons, chats);
}

async function endGateway(): Promise<void> {
  await stage.step("the gateway stops by itself when asked", async () => {
    stage.client.close();
    await stage.gateway.stop();
  });
  await stage.step("no turn went past the plugin, and the host found no fault with it", async () => {
    for (const output of stage.printed)
      assert.doesNotMatch(
        output(),
        /degraded to "legacy"|could not be used for a turn|context engine .* failed/i,
      );
  });
}
