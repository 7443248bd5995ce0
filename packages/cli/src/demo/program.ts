/** The demo as a program: its options, its folder, and its steps in order. `main.ts` lists the steps. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { style } from "../style.ts";
import { showInspector } from "./inspector.ts";
import { Tour } from "./tour.ts";
import type { Step } from "./tour.ts";

const HELP = `npm start [-- --folder DIR] [--web]

Shows what lossless-claw does, on a sample conversation. Everything is written to one folder:
  --folder DIR   a folder that does not exist yet (default: one in the system's folder for temporary files)
  --web          then leave the archive open in the web inspector, until Ctrl-C
`;

/** Creates a folder, runs the steps in it, and with `--web` leaves their archive open. */
export async function runDemo(args: readonly string[], steps: readonly Step[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { folder: { type: "string" }, web: { type: "boolean" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const tour = new Tour(prepareFolder(values.folder));
  tour.say(`${style.title("lossless-claw")}: every message kept, folded, found and proven. A short tour.`);
  tour.say(style.faint(`Everything happens in ${tour.folder}`));
  for (const [index, step] of steps.entries()) {
    tour.say(`\n${style.name(String(index + 1))}  ${style.title(step.title)}\n`);
    await step.run(tour);
  }
  if (values.web) await showInspector(tour);
}

/** Names the process that uses the folder, so that a second demo leaves it alone. */
const OWNER_FILE = "demo.pid";

/** A named folder is never emptied; our own is, unless another demo is using it. */
export function prepareFolder(named: string | undefined): string {
  const folder = named === undefined ? chooseFolder() : resolve(named);
  if (named === undefined) rmSync(folder, { recursive: true, force: true });
  // Fails if somebody else has created it meanwhile, which is right.
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(join(folder, OWNER_FILE), String(process.pid));
  return folder;
}

function chooseFolder(): string {
  const usual = join(tmpdir(), `lossless-claw-demo-${userInfo().uid}`);
  return isInUse(usual) ? `${usual}-${process.pid}` : usual;
}

function isInUse(folder: string): boolean {
  try {
    process.kill(Number(readFileSync(join(folder, OWNER_FILE), "utf8")), 0);
    return true;
  } catch {
    return false;
  }
}
