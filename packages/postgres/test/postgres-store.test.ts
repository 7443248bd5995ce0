/** The PostgreSQL store against the contract of the port. */
import type { Store } from "@lossless/core/ports";
import { deriveMessage } from "@lossless/core/testing";
import { SqliteStore } from "@lossless/sqlite";
import { testStore } from "@lossless/testkit";
import { batchOf, findWord, makeEvent, say } from "@lossless/testkit/contract/parts.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { expect, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import { divide } from "./speak.ts";

/** Whole, and with the large tables divided. */
for (const partitions of [0, 4]) testContract(partitions);

function testContract(partitions: number): void {
  describePostgres(`on PostgreSQL, partitions: ${partitions}`, async (server) => {
    /** An archive for each folder. */
    const addresses = new Map<string, Promise<string>>();
    const openAt = (address: string): Promise<Store> =>
      openPostgresStore({ address, create: true, derive: deriveMessage });

    // Made once, and copied: making every table takes longer than most tests.
    const empty = await server.createDatabase();
    await (await openAt(divide(empty, partitions))).close();
    const template = /\w+(?=\?)/.exec(empty)?.[0];

    async function open(folder: string): Promise<Store> {
      const known = addresses.get(folder) ?? server.createDatabase(template);
      addresses.set(folder, known);
      return openAt(await known);
    }

    const verbs = Object.entries(Object.getOwnPropertyDescriptors(SqliteStore.prototype))
      .filter(([name, { value }]) => typeof value === "function" && name !== "constructor")
      .map(([name]) => name)
      .filter((name) => name !== "backup");
    testStore("the PostgreSQL store", { open, verbs, without: ["copies"] });

    test("opened to be read, it finds what is pending and writes nothing", async () => {
      const store = await open("shared");
      await store.append(batchOf([makeEvent("a", say("a walrus"))]));
      const reader = await openPostgresStore({
        address: (await addresses.get("shared")) ?? "",
        readOnly: true,
        derive: deriveMessage,
      });
      expect(await findWord(reader, "walrus", {})).toHaveLength(1);
      const refusal = { code: "database_unreadable" };
      await expect(reader.append(batchOf([makeEvent("b", say("more"))]))).rejects.toMatchObject(refusal);
      await reader.close();
      await store.close();
    });

    test("says that it cannot be copied into a file", async () => {
      const store = await open("alone");
      await expect(store.backup("copy.db", () => undefined)).rejects.toMatchObject({ code: "usage" });
      await store.close();
    });
  });
}
