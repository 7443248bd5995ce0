/** The terminal UI: its requirements, and running it. */
export { requireTerminal, runTui } from "./run-tui.ts";
export { findSessionFolders, requireFolder } from "./transcripts.ts";
