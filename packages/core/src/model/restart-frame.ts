/**
 * The frame around what a hook hands to a model before and after its host's own compaction. Only the engine can close it: text inside is escaped.
 * By it the same text is recognised when it comes back in the host's transcript, where it is neither what somebody said nor worth folding again.
 */
const RESTART_TAG = "lcm-restart";
/** Parts that hold such a frame go by this name, as results of our own tools do. */
export const RESTART_TOOL = "lcm_restart";

const OPENING = `<${RESTART_TAG} `;
const CLOSING = `</${RESTART_TAG}>`;
/** What hosts put around it: their own words, and none of the user. */
const BEFORE =
  /^\s*(?:<hook_context>|(?:<system-reminder>\s*)?SessionStart hook additional context:|<local-command-stdout>[^<]*)?\s*$/;
const AFTER = /^\s*(?:<\/(?:hook_context|system-reminder)>|[^<]*<\/local-command-stdout>)?\s*$/;
/** No frame is longer. */
const MAX_LENGTH = 40_000;

/** Whether a text is such a frame and nothing else. */
export function isRestartFrame(text: string): boolean {
  if (text.length > MAX_LENGTH) return false;
  const start = text.indexOf(OPENING);
  if (start < 0) return false;
  const end = text.indexOf(CLOSING, start);
  return end > 0 && BEFORE.test(text.slice(0, start)) && AFTER.test(text.slice(end + CLOSING.length));
}

/** @example renderRestartFrame({ "as-of": "2026-02-14 11:02 UTC" }, "…") */
export function renderRestartFrame(attributes: Readonly<Record<string, string>>, body: string): string {
  const written = Object.entries(attributes).map(([name, value]) => `${name}="${value}"`);
  return `${OPENING}${written.join(" ")}>\n${body}\n${CLOSING}`;
}
