/** The demo with one quick step: for what is the same whatever its steps are. */
import { runDemo } from "../src/demo/program.ts";

await runDemo(process.argv.slice(2), [
  { title: "Make an archive", run: (tour) => tour.withArchive(async () => undefined) },
]);
