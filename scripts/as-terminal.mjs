/**
 * Preloaded into `lcm` by scripts/record-terminal.ts: standard output counts as a terminal of a fixed width, and random ids come from a counter,
 * so that the program prints the same text on every machine.
 */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";

process.stdout.isTTY = true;
process.stdout.columns = Number(process.env["COLUMNS"]);

let drawn = 0;
crypto.randomBytes = (size) =>
  crypto.createHash("shake256", { outputLength: size }).update(`${drawn++}`).digest();
syncBuiltinESMExports();
