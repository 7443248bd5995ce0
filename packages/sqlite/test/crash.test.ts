/** Killing the writer at any moment loses nothing it has acknowledged, doubles nothing, and leaves no half of a batch behind. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { findTracer } from "@lossless/testkit/disk-trace.ts";
import { killWriters } from "@lossless/testkit/killed-writer.ts";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { test } from "vitest";

test("what was acknowledged before a kill is stored exactly once, and the archive verifies", async () => {
  using folder = makeTemporaryFolder();
  await killWriters({
    database: folder.file("lcm.db"),
    rounds: rounds({ test: 2, soak: 8 }),
    tracer: isSoak ? await findTracer() : null,
  });
});
