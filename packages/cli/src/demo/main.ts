/**
 * `npm start`: the main job on a sample conversation, without asking anything. Works in a folder of its own that is made anew each time
 * and kept afterwards, so that the commands it ends with can be tried. A new part of the product is one more entry in STEPS.
 */
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { describeFailure } from "@lossless/core/doors";
import { printFailure } from "../output.ts";
import { style } from "../style.ts";
import { compareBytes, importAgain, showStored } from "./archive.ts";
import { searchSample } from "./find.ts";
import { showInspector } from "./inspector.ts";
import { suggestNext } from "./next.ts";
import { openFolded } from "./open-folded.ts";
import { playConversation, showBudgets } from "./play.ts";
import { findTampering, proveArchive } from "./proof.ts";
import { Tour } from "./tour.ts";
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

const HELP = `npm start [-- --folder DIR] [--web]

Shows what lossless-claw does, on a sample conversation. Everything is written to one folder:
  --folder DIR   a folder that does not exist yet (default: one in the system's folder for temporary files)
  --web          then leave the archive open in the web inspector, until Ctrl-C
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { folder: { type: "string" }, web: { type: "boolean" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const tour = new Tour(prepareFolder(values.folder));
  tour.say(`${style.title("lossless-claw")}: every message kept, folded, found and proven. A short tour.`);
  tour.say(style.faint(`Everything happens in ${tour.folder}`));
  for (const [index, step] of STEPS.entries()) {
    tour.say(`\n${style.name(String(index + 1))}  ${style.title(step.title)}\n`);
    await step.run(tour);
  }
  if (values.web) await showInspector(tour);
}

/** A folder that was named is never emptied; our own is. */
function prepareFolder(named: string | undefined): string {
  const folder =
    named === undefined ? join(tmpdir(), `lossless-claw-demo-${userInfo().uid}`) : resolve(named);
  if (named === undefined) rmSync(folder, { recursive: true, force: true });
  // Fails when somebody else has put something there, which is right.
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});
try {
  await main();
} catch (error) {
  const failure = describeFailure(error);
  if (process.env["LCM_DEBUG"]) console.error(error);
  printFailure(failure, false);
  process.exitCode = failure.exit;
}
