/**
 * The plugin in the real host: `npm run test:hosts`. Starts a gateway of OpenClaw with private state and a fake model on loopback, talks to
 * it over its socket, kills it, starts it again, and at the end compares the archive with what the host itself wrote: every message row
 * stored exactly once, unchanged. Needs no network once the host is in the cache. Ends only what it started.
 *
 * Names of scenes as arguments play only those; `--keep` leaves the state of the run behind for a look, `--verbose` says more.
 */

import assert from "node:assert/strict";
import { compareWithHost } from "./compare.ts";
import { COMPACTION_CHAT, playCompaction } from "./scenes/compaction.ts";
import { playCron } from "./scenes/cron.ts";
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
  kills: playKills,
  trouble: playStorageTrouble,
  newcomer: playNewcomer,
  goodbye: sayGoodbye,
  policies: playPolicies,
};

const LEFT_ALONE = /:(ignored|stateless|switched-off)\b/;
/** Chats that went on while the plugin had another database. */
const isElsewhere = (key: string): boolean => key === TROUBLE_CHAT || key === HISTORY_CHAT;
const isKept = (key: string): boolean => !isElsewhere(key) && !LEFT_ALONE.test(key);

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name);
const stage = new Stage();
try {
  await stage.open();
  for (const [name, play] of Object.entries(SCENES)) if (isWanted(name)) await play(stage);
  await endGateway();
  if (isWanted("install")) await playInstall(stage);
  if (isWanted("host-tools")) await playHostTools(stage);
  await compareWithHost(stage, [
    // What was said while the plugin had another database is read when the gateway stops.
    { database: "lcm.db", isKept, mayHold: isElsewhere },
    ...(isWanted("trouble")
      ? [{ database: TROUBLE_DATABASE, isKept: (key: string) => key === TROUBLE_CHAT, mayHold: isKept }]
      : []),
    ...(isWanted("newcomer")
      ? [
          {
            database: HISTORY_DATABASE,
            isKept: (key: string) => key === HISTORY_CHAT,
            mayHold: (key: string) => key !== HISTORY_CHAT,
          },
        ]
      : []),
  ]);
} catch (error) {
  // The steps after one that failed would only repeat it.
  stage.tellFailure(error);
} finally {
  await stage.close();
}
stage.finish();

/** Rows that no turn handed over (commands, announcements) are read with the next turn; this is it. */
async function sayGoodbye(): Promise<void> {
  for (const [scene, key] of Object.entries({
    main: MAIN_CHAT,
    long: LONG_CHAT,
    compaction: COMPACTION_CHAT,
    "model-down": MODEL_DOWN_CHAT,
    images: PICTURE_CHAT,
    forks: PARENT_CHAT,
  }))
    if (isWanted(scene)) await stage.playTurn("SAY goodbye", key);
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
