/**
 * Session files of the host that have grown too large. OpenClaw now keeps transcripts in its own database; files of earlier versions, and of
 * hosts that still write them, are below its `agents` folder. `autoRotateSessionFiles` decides what to do about them: by default a line in the
 * log. Only lines proven to be in the archive are removed.
 */

import { join } from "node:path";
import type { Engine, Settings } from "@lossless/core";
import { findSessionFiles } from "@lossless/interchange";
import { sweepSessionFiles } from "lossless-claw/interchange";

export async function sweepHostFiles(request: {
  readonly open: () => Promise<Engine>;
  readonly settings: Settings;
  readonly stateDir: string;
  readonly phase: "startup" | "runtime";
  /** Only the file of this session. */
  readonly sessionId?: string;
  readonly log: (line: string) => void;
}): Promise<void> {
  const { settings, phase, sessionId, log } = request;
  const { enabled, [phase]: mode } = settings.autoRotateSessionFiles;
  if (!enabled || mode === "off") return;
  const files = await findSessionFiles(join(request.stateDir, "agents"));
  const chosen =
    sessionId === undefined ? files : files.filter((file) => file.endsWith(`${sessionId}.jsonl`));
  // Most hosts have no such files; they need no log line about that at every start.
  if (chosen.length === 0) return;
  const { databasePath, largeFilesDir: filesDir } = settings;
  const engine = await request.open();
  await sweepSessionFiles({ engine, files: chosen, phase, settings, databasePath, filesDir, log });
}
