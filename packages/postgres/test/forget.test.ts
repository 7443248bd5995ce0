/** Forgetting on a server, where several programs forget at once. */
import { deriveMessage } from "@lossless/core/testing";
import { batchOf, makeEvent, say } from "@lossless/testkit/contract/parts.ts";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import { BareClient } from "../src/testing.ts";

const ASKED = { alsoSummaryIds: [], replacements: [], reason: "asked", now: 1_000 };
const WAITING = `
  SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'VACUUM %' AND wait_event_type = 'Lock'`;

describePostgres("forgetting on PostgreSQL", (server) => {
  test("stays open for what is forgotten while the pages of an earlier forgetting are cleared", async () => {
    const address = await server.createDatabase();
    const store = await openPostgresStore({ address, create: true, derive: deriveMessage });
    onTestFinished(() => store.close());
    const other = new BareClient(address);
    await other.connect();
    onTestFinished(() => other.end());
    const { results } = await store.append(
      batchOf([makeEvent("e0", say("the stork")), makeEvent("e1", say("the heron"))]),
    );
    const [first = 0, second = 0] = results.map(({ messageId }) => messageId ?? 0);

    await store.forget({ ...ASKED, messageIds: [first] });
    // Holds up the VACUUM, and nobody else.
    await other.send("BEGIN; LOCK TABLE word_blocks IN SHARE UPDATE EXCLUSIVE MODE");
    const cleared = store.wipeFreed();
    await expect.poll(() => server.query(address, WAITING), { timeout: HANG_LIMIT_MS }).toHaveLength(1);
    await store.forget({ ...ASKED, messageIds: [second] });
    await other.send("COMMIT");
    expect(await cleared).toBe(true);
    expect(await store.isForgettingOpen()).toBe(true);
    expect(await store.wipeFreed()).toBe(true);
    expect(await store.isForgettingOpen()).toBe(false);
  });
});
