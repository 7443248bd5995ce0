/** Stores some turns as a host would, and prints the event ids of each once the engine has said that they are stored. */
import { writeSync } from "node:fs";
import { openEngine } from "lossless-claw";
import { CRASH_SESSION, makeCrashEvent } from "@lossless/testkit/crash-writer.ts";

const [database = "", from = "0", to = "0", name = CRASH_SESSION.id] = process.argv.slice(2);
const session =
  name === CRASH_SESSION.id ? CRASH_SESSION : { key: `agent:main:${name}`, id: name, owner: "main" };
const engine = await openEngine({ database, thread: false });
for (let at = Number(from); at < Number(to); at += 2) {
  const messages = [makeCrashEvent(1, at), makeCrashEvent(1, at + 1)];
  if (at === Number(from))
    messages.push({
      eventId: `large-${at}`,
      message: { role: "user", content: "a line of a log\n".repeat(30_000) },
    });
  await engine.ingest({ session, messages });
  writeSync(1, messages.map(({ eventId }) => `${eventId}\n`).join(""));
}
await engine.close();
