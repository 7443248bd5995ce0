/** Capture from other agents: what follows their session files, and what says how that goes. */
export { makeExclusion } from "./exclusions.ts";
export { listPlaces } from "./places.ts";
export { installService, uninstallService } from "./service.ts";
export type { ServiceResult } from "./service.ts";
export { applySetup, findAgentFolder, planRemoval, planSetup } from "./setup.ts";
export type { SetupAgent, SetupEdit, SetupRequest } from "./setup.ts";
export { readWatchState, watchAlone, writeWatchState } from "./watch-state.ts";
export type { AgentState, WatchState } from "./watch-state.ts";
export { Watcher } from "./watcher.ts";
export type { WatchEvent } from "./watcher.ts";
export { HOOK_AGENTS, listHookEvents } from "./hooks/events.ts";
export type { HookAgent, HookEvent } from "./hooks/events.ts";
export { findBundleFolder, findCaptureFolder, findHookScript, findSpoolFolder } from "./hooks/folder.ts";
export { installHookScript, removeHookScript, renderHookCommand, renderHookScript } from "./hooks/script.ts";
