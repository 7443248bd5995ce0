/** Inner parts that test tools and benchmarks look at. No program uses them; they change without notice. */
export { Connection } from "./connection.ts";
export { toMatch } from "./match.ts";
export { keepSeals } from "./seals.ts";
