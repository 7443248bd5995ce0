/** The terminal UI: what it needs before it starts, and running it. */
export { requireTerminal, runTui } from "./run-tui.ts";
export { findSessionFolders, requireFolder } from "./transcripts.ts";
