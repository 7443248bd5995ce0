/** The program that `upgrade-kills.test.ts` kills: says that it begins, and opens an archive. */
import { openEngine } from "../src/index.ts";

process.send?.("begin");
const engine = await openEngine({ database: process.argv[2] ?? "", thread: false });
await engine.close();
process.disconnect();
