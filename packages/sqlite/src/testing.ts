/** Internals for test tools and benchmarks. No program uses them; they change without notice. */
export { Connection } from "./connection.ts";
export { toMatch } from "./match.ts";
export { keepSeals } from "./seals.ts";
