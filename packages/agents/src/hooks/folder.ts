/**
 * The capture folder beside the database: what hooks write and print, and what the watcher prepares for them. Everything in it is private to the
 * user, and nothing in it is the only copy: transcripts are authoritative, and a bundle can be rebuilt.
 *
 *     <database>.capture/
 *       hooks/<agent>.sh                          the script that the agent runs; present while its hooks are set up
 *       spool/<agent>.<Event>.<pid>.<n>.json      one event: its session, transcript, folder and source
 *       spool/<agent>.<Event>.newest.json         the newest event while the spool is full, overwriting the one before
 *       spool/<agent>.lost                        how many events were overwritten
 *       bundles/<agent>.<session id>.json         what a hook prints at the next compaction of this session
 *       bundles/<agent>.<session id>.given        a bundle that was printed
 */
import { join, resolve } from "node:path";
import { nameLocally } from "@lossless/core/formats";
import type { HookAgent } from "./events.ts";

/** The spool keeps at most this many events, each of at most this many bytes: 4 MB if nothing reads them. */
export const SPOOL_EVENTS = 500;
export const EVENT_BYTES = 8_192;

export const findCaptureFolder = (database: string): string => `${resolve(nameLocally(database))}.capture`;
export const findSpoolFolder = (database: string): string => join(findCaptureFolder(database), "spool");
export const findBundleFolder = (database: string): string => join(findCaptureFolder(database), "bundles");
export const findHookScript = (database: string, agent: HookAgent): string =>
  join(findCaptureFolder(database), "hooks", `${agent}.sh`);
