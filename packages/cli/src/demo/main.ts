/**
 * `npm start`: demonstrates the main features on a sample conversation, without questions. Works in its own folder, which is recreated each time
 * and kept afterwards, so that users can try the commands it ends with. A new part of the product is one more entry in STEPS.
 */
import { describeFailure } from "@lossless/core/doors";
import { printFailure } from "../output.ts";
import { compareBytes, importAgain, showStored } from "./archive.ts";
import { searchSample } from "./search-sample.ts";
import { suggestNext } from "./next.ts";
import { openFolded } from "./open-folded.ts";
import { playConversation, showBudgets } from "./play.ts";
import { runDemo } from "./program.ts";
import { findTampering, proveArchive } from "./proof.ts";
import type { Step } from "./tour.ts";

const STEPS: readonly Step[] = [
  { title: "A long conversation in a small window", run: playConversation },
  { title: "For any budget, all of it is represented", run: showBudgets },
  { title: "Open what was folded, down to the very words", run: openFolded },
  { title: "What was stored", run: showStored },
  { title: "Import the whole transcript: nothing is stored twice", run: importAgain },
  { title: "What comes out is what went in, byte for byte", run: compareBytes },
  { title: "Search", run: searchSample },
  { title: "Prove that all of it is whole", run: proveArchive },
  { title: "Change one byte by hand: the proof names the message", run: findTampering },
  { title: "What to try next", run: suggestNext },
];

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});
try {
  await runDemo(process.argv.slice(2), STEPS);
} catch (error) {
  const failure = describeFailure(error);
  if (process.env["LCM_DEBUG"]) console.error(error);
  printFailure(failure, false);
  process.exitCode = failure.exit;
}
