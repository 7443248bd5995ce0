/** The demo with one quick step: for what is the same whatever its steps are. */
import { importAgain } from "../src/demo/archive.ts";
import { runDemo } from "../src/demo/program.ts";

await runDemo(process.argv.slice(2), [{ title: "Import", run: importAgain }]);
