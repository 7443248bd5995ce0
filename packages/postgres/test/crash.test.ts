/** Killing writers, and restarting the server under them, loses nothing that was acknowledged and doubles nothing. */
import { killWriters } from "@lossless/testkit/killed-writer.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { test } from "vitest";

describePostgres("what was acknowledged is stored exactly once, and the archive verifies", (server) => {
  test("after kills of the writer", async () => {
    await killWriters({ database: await server.createDatabase(), rounds: 2 });
  });

  test("after kills of two writers at once, which store the same events in one conversation", async () => {
    const database = await server.createDatabase();
    await Promise.all([killWriters({ database, rounds: 2 }), killWriters({ database, rounds: 2 })]);
  });

  test("after the server was restarted, in order and as a crash does, while one writes", async () => {
    let restarts = 0;
    await killWriters({
      database: await server.createDatabase(),
      rounds: 2,
      meanwhile: () => server.restart(restarts++ % 2 === 0 ? "immediate" : "fast"),
    });
  });
});
