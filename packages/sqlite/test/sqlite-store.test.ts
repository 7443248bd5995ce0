import { SqliteStore } from "../src/sqlite-store.ts";
import { testStore } from "@lossless/testkit";
import { join } from "node:path";

testStore("the SQLite store", {
  open: (folder) =>
    new SqliteStore({ path: join(folder, "lcm.db"), filesDir: join(folder, "lcm-files"), create: true }),
  verbs: Object.entries(Object.getOwnPropertyDescriptors(SqliteStore.prototype))
    .filter(([name, { value }]) => typeof value === "function" && name !== "constructor")
    .map(([name]) => name),
});
