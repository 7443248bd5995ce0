/** The memory store keeps the store contract. It cannot be copied to a file. */
import { deriveMessage } from "@lossless/core/testing";
import { testStore } from "../src/store-contract.ts";
import { openMemoryStore } from "../src/memory-store.ts";

testStore("the memory store", {
  open: () => openMemoryStore(deriveMessage),
  verbs: Object.keys(openMemoryStore(deriveMessage)).filter((verb) => verb !== "backup"),
  without: ["copies", "remains"],
});
