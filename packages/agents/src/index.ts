/** Capture from other agents: what follows their session files, and what says how that goes. */
export { makeExclusion } from "./exclusions.ts";
export { listLocations } from "./locations.ts";
export { installService, uninstallService } from "./service.ts";
export type { ServiceResult } from "./service.ts";
export { detectAgents } from "./setup/detect.ts";
export type { DetectedAgent } from "./setup/detect.ts";
export { listNotes, SETUP_AGENTS } from "./setup/hosts.ts";
export type { SetupAgent, SetupRequest } from "./setup/hosts.ts";
export { applySetup, planRemoval, planSetup } from "./setup/setup.ts";
export type { SetupEdit } from "./setup/setup.ts";
export { readWatchState, watchAlone, writeWatchState } from "./watch-state.ts";
export type { AgentState, WatchState } from "./watch-state.ts";
export { Watcher } from "./watcher.ts";
export type { WatchEvent } from "./watcher.ts";
export { HOOK_AGENTS, listHookEvents } from "./hooks/events.ts";
export type { HookAgent, HookEvent } from "./hooks/events.ts";
export { findBundleFolder, findCaptureFolder, findHookScript, findSpoolFolder } from "./hooks/folder.ts";
export { installHookScript, removeHookScript, renderHookCommand, renderHookScript } from "./hooks/script.ts";
