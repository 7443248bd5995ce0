/**
 * Adopts the database of an older lossless-claw at the archive's path: when a command is about to write there, its history is imported into a
 * new file and the old one is kept beside it. Read-only commands refuse, and say how to adopt it.
 */
import { existsSync } from "node:fs";
import { EngineError } from "@lossless/core";
import type { Settings } from "@lossless/core";
import { countOf } from "@lossless/core/doors";
import type { Adoption } from "@lossless/interchange";
import { needsAdoption, removeLeftovers } from "@lossless/interchange/need";
import { printNote } from "./output.ts";
import { startProgress } from "./progress.ts";

/** Called before a command writes: usually does nothing; otherwise adopts the old database, with progress. */
export async function adoptOlder(
  settings: Settings,
  { isQuiet, isAsked = false }: { readonly isQuiet: boolean; readonly isAsked?: boolean },
): Promise<Adoption> {
  const { databasePath: path, largeFilesDir: filesDir, largeFileThresholdTokens } = settings;
  if (!needsAdoption(path)) {
    // An adoption that was killed after its last step left its folder, with a copy of the old database.
    removeLeftovers(path);
    return { kind: "not_needed" };
  }
  const { adoptDocumentedDatabase } = await import("lossless-claw/interchange");
  const progress = startProgress("Adopting", { isWanted: !isQuiet });
  try {
    const adoption = await adoptDocumentedDatabase({
      path,
      filesDir,
      largeFileThresholdTokens,
      settings,
      now: Date.now(),
      onProgress: ({ bytesDone, bytesTotal }) => progress.update(bytesDone, bytesTotal),
    });
    progress.finish();
    if (!isQuiet && !isAsked) noteAdoption(path, adoption);
    return adoption;
  } finally {
    progress.finish();
  }
}

function noteAdoption(path: string, adoption: Adoption): void {
  if (adoption.kind === "finished") printNote(`note: finished taking over ${path}`);
  if (adoption.kind !== "adopted") return;
  const { report, backup } = adoption;
  printNote(
    `note: ${path} was written by an older lossless-claw: ${countOf(report.imported, "row")} and ${countOf(report.summaries, "summary", "summaries")} imported, the old file is ${backup}`,
  );
}

/** Called before a command reads: refuses an old database with an error that names the command to adopt it. */
export async function refuseOlder({ databasePath: path }: Settings): Promise<void> {
  if (!needsAdoption(path)) return;
  throw new EngineError(
    "database_foreign",
    existsSync(`${path}.adopted`)
      ? `cannot read ${path}: its adoption was interrupted`
      : `cannot read ${path}: it was written by an older lossless-claw`,
    {
      hint: "lcm adopt imports it into a new file and keeps the old one; commands that write do so by themselves",
    },
  );
}
