/** Of thousands of messages that are equally good, the newest are taken, whatever the order in which they arrived. */
import { DatabaseSync } from "node:sqlite";
import { deriveMessage } from "@lossless/core/formats";
import { makeTemporaryFolder } from "@lossless/testkit";
import { makeRandom } from "@lossless/testkit/random.ts";
import { openEngine, openStore } from "lossless-claw";
import { expect, test } from "vitest";

/** In three blocks of the index of times, and more than are read without asking it. */
const MESSAGES = 8_400;
const COUNT = 60;
const SESSION = { key: "agent:main:tied", id: "tied", owner: "main" };

/** When the message of an id was written. */
const ORDERS: Readonly<Record<string, (id: number) => number>> = {
  "they arrived in the order of time": (id) => id,
  "the newest arrived first": (id) => MESSAGES - id,
  "an old history was imported last": (id) => (id > 4_500 ? id - 4_500 : id + MESSAGES),
  "the newest lie in the middle": (id) => (id >= 5_000 && id < 5_040 ? MESSAGES + id : id % 100),
  "many are as old as others": (id) => makeRandom(id).below(40),
  "they arrived in any order": (id) => makeRandom(id).below(1_000_000),
};

test("the newest are those that a comparison of all would find", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const engine = await openEngine({ database, thread: false });
  const messages = Array.from({ length: MESSAGES }, (_, at) => ({
    eventId: `e${at}`,
    message: { role: "user", content: "pump" },
  }));
  await engine.ingest({ session: SESSION, messages });
  await engine.close();
  const ids = Array.from({ length: MESSAGES }, (_, at) => MESSAGES - at).filter((id) => id % 3 !== 0);
  for (const [name, timeOf] of Object.entries(ORDERS)) {
    const raw = new DatabaseSync(database);
    raw.function("time_of", (id) => timeOf(Number(id)));
    raw.exec("UPDATE messages SET created_at = time_of(message_id)");
    raw.close();
    const expected = ids.toSorted((a, b) => timeOf(b) - timeOf(a) || b - a).slice(0, COUNT);
    const store = await openStore(database, { readOnly: true, create: false, derive: deriveMessage });
    const found = await store.readCandidates({
      kind: "message",
      ids: [],
      tied: { ids, count: COUNT },
      reach: 0,
      scope: {},
    });
    await store.close();
    expect(
      found.map(({ id }) => id).toSorted((a, b) => a - b),
      name,
    ).toEqual(expected.toSorted((a, b) => a - b));
  }
});
