/** The PostgreSQL store against the contract of the port. */
import type { Store } from "@lossless/core/ports";
import { deriveMessage } from "@lossless/core/testing";
import { SqliteStore } from "@lossless/sqlite";
import { testStore } from "@lossless/testkit";
import { findPostgres, sharePostgres } from "@lossless/testkit/postgres-server.ts";
import { describe } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";

const programs = findPostgres();

describe.skipIf(programs === null)("on PostgreSQL", async () => {
  const server = await sharePostgres(programs ?? "");
  /** An archive for each folder. */
  const addresses = new Map<string, Promise<string>>();

  async function open(folder: string): Promise<Store> {
    const known = addresses.get(folder) ?? server.createDatabase();
    addresses.set(folder, known);
    return openPostgresStore({ address: await known, create: true, derive: deriveMessage }) as Promise<Store>;
  }

  const verbs = Object.entries(Object.getOwnPropertyDescriptors(SqliteStore.prototype))
    .filter(([name, { value }]) => typeof value === "function" && name !== "constructor")
    .map(([name]) => name)
    .filter((name) => name !== "backup");
  testStore("the PostgreSQL store", { open, verbs, without: ["copies"] });
});
