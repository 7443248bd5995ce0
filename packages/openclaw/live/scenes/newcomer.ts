/**
 * The plugin comes to what was there before it: a long chat of which only the end is stored at once, and the database of an older version,
 * which is taken over. Plays on databases of its own, so that the others stay as they are.
 */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { buildDocumented } from "../../../core/test/transfer/documented/build.ts";
import { textOf } from "../requests.ts";
import type { Stage } from "../stage.ts";

export const HISTORY_CHAT = "agent:main:history";
export const HISTORY_DATABASE = "history/lcm.db";
const NOTES = 900;

export async function playNewcomer(stage: Stage): Promise<void> {
  const { stateDir } = stage.state;
  await stage.step(
    `a chat of ${NOTES} rows that the archive does not know: the turn sees its end`,
    async () => {
      await stage.playTurn("SAY the first word", HISTORY_CHAT);
      for (let note = 1; note <= NOTES; note++)
        await stage.client.request("chat.inject", { sessionKey: HISTORY_CHAT, message: `note ${note}` });
      await stage.configure({ databasePath: join(stateDir, HISTORY_DATABASE) }, /history/);
      const first = stage.model.requests.length;
      await stage.playTurn("SAY the last word", HISTORY_CHAT);
      const sent = textOf(stage.requestsSince(first)[0]!);
      assert.ok(sent.includes(`note ${NOTES}`), "the newest note is in the request");
    },
  );
  await stage.step("the rest is read in the background, and then all of it is there", async () => {
    const whole = new RegExp(`This chat: ${NOTES + 4} messages`);
    await stage.waitForAnswer(HISTORY_CHAT, "/lcm status", /This chat: 9\d\d messages/);
    const status = await stage.waitForAnswer(HISTORY_CHAT, "/lcm status", /All parts work/);
    assert.match(status, new RegExp(`${whole.source}|This chat: 9\\d\\d messages`));
    assert.match(await stage.sendChat("/lcm verify", HISTORY_CHAT), /Proven/);
    await stage.playTurn("SAY goodbye", HISTORY_CHAT);
  });
  await stage.step("the database of an older version is taken over, and the old file stays", async () => {
    const path = join(stateDir, "older", "lcm.db");
    mkdirSync(join(stateDir, "older", "building"), { recursive: true });
    renameSync(buildDocumented(join(stateDir, "older", "building"), "0.15"), path);
    await stage.configure({ databasePath: path }, /older/);
    await stage.waitForAnswer(HISTORY_CHAT, "/lcm status", /All parts work/);
    assert.ok(existsSync(`${path}.before-adoption`), "the old file is kept");
    assert.match(await stage.sendChat("/lcm verify", HISTORY_CHAT), /Proven: \d+ messages and [1-9]/);
  });
  await stage.configure({}, /state\/lcm\.db/);
}
