/** A watcher as a process of its own, to be killed: `watch-program.ts <database> <home>`. Says "ready" on stdout. */
import { openEngine } from "lossless-claw";
import { listLocations, makeExclusion, watchAlone, Watcher } from "../src/index.ts";

const [database = "", home = ""] = process.argv.slice(2);
await watchAlone(database, async () => {
  const engine = await openEngine({ database, thread: false });
  const watcher = new Watcher({
    engine,
    locations: listLocations({}, home),
    exclude: makeExclusion([]),
    onEvent: () => process.stdout.write("stored\n"),
  });
  process.stdout.write("ready\n");
  await watcher.run(new AbortController().signal);
});
