import { test } from "vitest";
import { makeMemoryGround, makeSqliteGround } from "./grounds.ts";
import { playSeeds } from "./simulated-seeds.ts";
const seeds = Number(process.env["N"] ?? 2);
const S = { file: "x", steps: 60, proveEvery: 10, seeds, first: 1 };
test("two sqlite", () => playSeeds({ ...S, makeGround: makeSqliteGround, processes: "two" }), 1e9);
test("two memory", () => playSeeds({ ...S, makeGround: makeMemoryGround, processes: "two" }), 1e9);
test("two real", () => playSeeds({ ...S, makeGround: makeSqliteGround, processes: "two real" }), 1e9);
