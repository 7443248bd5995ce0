/**
 * The frame around the text that a hook gives to a model before and after its host's own compaction. Only the engine can close it: text
 * inside is escaped. The frame identifies the same text when it returns in the host's transcript, where it is not anybody's message and not
 * worth folding again.
 */
const RESTART_TAG = "lcm-restart";
/** Parts that contain such a frame use this name, like results of our own tools. */
export const RESTART_TOOL = "lcm_restart";

const OPENING = `<${RESTART_TAG} `;
const CLOSING = `</${RESTART_TAG}>`;
/** The host's own words around it, never the user's. */
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
