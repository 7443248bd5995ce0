/** The simulation on a real server: kills are errors in the midst of acts, and what was committed stays. */
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import type { PostgresServer } from "@lossless/testkit/postgres-server.ts";
import { rounds } from "@lossless/testkit/rounds.ts";
import { openStore } from "lossless-claw";
import { test } from "vitest";

import { deriveMessage } from "../../src/ingest/prepare.ts";
import { askForTables } from "./archive-tables.ts";
import type { MakeGround } from "./grounds.ts";
import { playSeeds } from "./simulated-seeds.ts";

/** The server sends whole numbers of eight bytes as text. */
const readNumbers = (row: unknown): object =>
  Object.fromEntries(
    Object.entries(row as object).map(([name, value]) => [
      name,
      typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : value,
    ]),
  );

const onServer =
  (server: PostgresServer): MakeGround =>
  async (folder) => {
    const address = await server.createDatabase();
    const filesDir = `${folder}/files`;
    return {
      openStore: ({ readOnly }) =>
        openStore(address, { readOnly, create: !readOnly, filesDir, derive: deriveMessage }),
      readTables: () => askForTables(async (sql) => (await server.query(address, sql)).map(readNumbers)),
      image: null,
      location: { address, filesDir },
    };
  };

const FILE = "packages/core/test/engine/postgres-simulation.test.ts";
const SHORT = { file: FILE, steps: 60, proveEvery: 10 };

describePostgres("everything that happens to conversations", (server) => {
  test("leaves an archive on a server whole, and every context stands for it exactly once", () =>
    playSeeds({ ...SHORT, makeGround: onServer(server), seeds: rounds({ test: 2, soak: 8 }), first: 2 }));

  test("does so with two processes that write in turns", () =>
    playSeeds({
      ...SHORT,
      makeGround: onServer(server),
      processes: "two",
      seeds: rounds({ test: 1, soak: 4 }),
      first: 21,
    }));

  test("does so with two programs either of which is killed while the other continues", () =>
    playSeeds({
      ...SHORT,
      makeGround: onServer(server),
      processes: "two real",
      seeds: rounds({ test: 1, soak: 4 }),
      first: 31,
    }));
});
