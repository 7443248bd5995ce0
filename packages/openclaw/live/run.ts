/**
 * The plugin in the real host: `npm run test:hosts`. Starts a gateway of OpenClaw with private state and a fake model on loopback, talks to
 * it over its socket, kills it, starts it again, and at the end compares the archive with what the host itself wrote: every message row
 * stored exactly once, unchanged. Needs no network once the host is in the cache. Ends only what it started.
 *
 * Names of scenes as arguments play only those; `--keep` leaves the state of the run behind for a look, `--verbose` says more.
 */

import { playLongChat } from "./scenes/long-chat.ts";
import { Stage } from "./stage.ts";

const SCENES: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  long: playLongChat,
};

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const stage = new Stage();
try {
  await stage.open();
  for (const [name, play] of Object.entries(SCENES))
    if (wanted.length === 0 || wanted.includes(name)) await play(stage);
} catch {
  // The failing step has printed its reason; the steps after it would only repeat it.
} finally {
  await stage.close();
}
stage.finish();
