/**
 * Installs the plugin into an existing host: a long chat of which only the end is stored at once, and the database of an older version, which is
 * adopted. Uses databases of its own, so that the others stay unchanged.
 */

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeOlderDatabase } from "@lossless/testkit/older-database.ts";
import { textOf } from "../requests.ts";
import type { Stage } from "../stage.ts";

export const HISTORY_CHAT = "agent:main:history";
const IGNORED_CHAT = "agent:main:ignored:newcomer";
export const HISTORY_DATABASE = "history/lcm.db";
/** More rows than are stored at once. The host does not show such notes to the model. */
const NOTES = 650;

export async function playNewcomer(stage: Stage): Promise<void> {
  const { stateDir } = stage.state;
  await stage.step(
    `a chat of ${NOTES} rows that the archive does not know: its next turn goes on`,
    async () => {
      await stage.playTurn("SAY the first word", HISTORY_CHAT);
      for (let note = 1; note <= NOTES; note++)
        await stage.client.request("chat.inject", { sessionKey: HISTORY_CHAT, message: `note ${note}` });
      await stage.configure({ databasePath: join(stateDir, HISTORY_DATABASE) }, /history/);
      const first = stage.model.requests.length;
      await stage.playTurn("SAY the last word", HISTORY_CHAT);
      const sent = textOf(stage.requestsSince(first)[0]!);
      assert.match(sent, /the first word|earlier messages .* are not shown here yet/);
    },
  );
  await stage.step("the rest is read in the background, and then all of it is there", async () => {
    await stage.waitForAnswer(HISTORY_CHAT, "/lcm status", /This chat: 65\d messages(.|\n)*All parts work/);
    assert.match(await stage.sendChat("/lcm verify", HISTORY_CHAT), /Proven/);
    await stage.playTurn("SAY goodbye", HISTORY_CHAT);
  });
  await stage.step("the database of an older version is taken over, and the old file stays", async () => {
    const path = join(stateDir, "older", "lcm.db");
    mkdirSync(join(stateDir, "older"));
    await writeOlderDatabase(path);
    await stage.configure({ databasePath: path }, /older/);
    await stage.waitForAnswer(IGNORED_CHAT, "/lcm status", /All parts work/);
    assert.ok(existsSync(`${path}.before-adoption`), "the old file is kept");
    assert.match(await stage.sendChat("/lcm verify", IGNORED_CHAT), /Proven: [\d,]+ messages and [1-9]/);
  });
  await stage.configure({}, /state\/lcm\.db/);
}
