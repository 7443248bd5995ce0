/**
 * The capture folder beside the database: what hooks write and print, and what the watcher prepares for them. Everything in it is private to
 * the user, and nothing in it is the only copy of anything: transcripts are the truth, and a bundle can be made again.
 *
 *     <database>.capture/
 *       hooks/<agent>.sh                          the script that the agent runs; here as long as its hooks are set up
 *       spool/<agent>.<Event>.<pid>.<n>.json      one event: its session, transcript, folder and source
 *       spool/<agent>.<Event>.newest.json         the newest event while the spool is full, written over the one before
 *       spool/<agent>.lost                        how many events were written over like that
 *       bundles/<agent>.<session id>.json         what a hook prints at the next compaction of this session
 *       bundles/<agent>.<session id>.given        a bundle that was printed
 */
import { join, resolve } from "node:path";
import { nameLocally } from "@lossless/core/formats";
import type { HookAgent } from "./events.ts";

/** Hooks keep this many events, each of at most this many bytes: 4 MB when nobody reads them. */
export const SPOOL_EVENTS = 500;
export const EVENT_BYTES = 8_192;

export const findCaptureFolder = (database: string): string => `${resolve(nameLocally(database))}.capture`;
export const findSpoolFolder = (database: string): string => join(findCaptureFolder(database), "spool");
export const findBundleFolder = (database: string): string => join(findCaptureFolder(database), "bundles");
export const findHookScript = (database: string, agent: HookAgent): string =>
  join(findCaptureFolder(database), "hooks", `${agent}.sh`);
