/**
 * A large archive for the inspector's benchmark and tests: one conversation of any length, folded as in a small window, so that it has a deep
 * graph. Kept in a folder and recreated only when missing.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Settings } from "@lossless/core";
import { MessageSource } from "./archive-messages.ts";

const SEED = 20_260;
const BATCH = 2_000;
const SESSION = { key: "agent:main:bench", id: "bench", owner: "main" };
/** Small leaves make many summaries: this many messages give thousands of them. */
const LEAF_TOKENS = 4_000;
const WINDOW_TOKENS = 32_000;

export interface LargeArchive {
  readonly database: string;
  readonly settings: Settings;
}

export async function makeLargeArchive(
  folder: string,
  messages: number,
  onProgress: (done: number) => void = () => undefined,
): Promise<LargeArchive> {
  const home = path.join(folder, `inspector-${messages}`);
  if (!existsSync(path.join(home, "lcm.db"))) {
    const partial = `${home}.partial`;
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { recursive: true });
    await fill(path.join(partial, "lcm.db"), messages, onProgress);
    renameSync(partial, home);
  }
  const database = path.join(home, "lcm.db");
  // An archive of an earlier run may have an older schema.
  await (await openEngine({ database, settings: settingsFor(database), thread: false })).close();
  return { database, settings: settingsFor(database) };
}

const settingsFor = (database: string): Settings =>
  resolveSettings({ env: {}, config: { databasePath: database, leafChunkTokens: LEAF_TOKENS } }).settings;

async function fill(database: string, messages: number, onProgress: (done: number) => void): Promise<void> {
  const engine = await openEngine({ database, settings: settingsFor(database), thread: false });
  try {
    const source = new MessageSource(SEED);
    for (let done = 0; done < messages; done += BATCH) {
      await engine.ingest({
        session: SESSION,
        messages: source.take(BATCH).map(({ eventId, bytes }) => ({ eventId, bytes })),
      });
      await engine.compact({ sessionKey: SESSION.key, budgetTokens: WINDOW_TOKENS });
      onProgress(done + BATCH);
    }
  } finally {
    await engine.close();
  }
}
