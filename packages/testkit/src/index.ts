export * from "./random.ts";
export * from "./shared-data.ts";
export * from "./store-contract.ts";
export * from "./temporary.ts";
