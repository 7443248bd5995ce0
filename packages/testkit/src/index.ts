/** Shared helpers of tests. Heavier tools (hosts, fake models, crash runs) are imported by file. */
export * from "./random.ts";
export * from "./scan-text-index.ts";
export * from "./shared-data.ts";
export * from "./store-contract.ts";
export * from "./temporary.ts";
