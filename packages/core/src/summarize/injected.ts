/**
 * Text that a host or a plugin inserted into a user's message: reminders, skills, heartbeats, the frames of commands, our own frames.
 * Nobody typed it, so a summary never quotes it as the user's words. The rest is what the user wrote; a message that a machine wrote
 * entirely is a notice.
 */

/** Beginnings of blocks that say nothing about the work. */
const DROPPED =
  /<(system-reminder|command-message|local-command-caveat|ide_opened_file|ide_selection|env|summary|recall|lcm-restart|hook_context)(?:\s[^<>]*)?>/g;
/** A command typed by the user is shown as it was typed. */
const COMMAND = /<command-name>([^<]*)<\/command-name>|<command-args>([^<]*)<\/command-args>/g;
const TYPED = /<bash-input>([^<]*)<\/bash-input>/g;
/** Antigravity and Cursor frame what the user typed. */
const FRAME = /<\/?(?:USER_REQUEST|user_query)>/g;
const OUTPUT = /<(bash-stdout|bash-stderr|local-command-stdout|local-command-stderr)>/g;
const INTERRUPTED = /\[Request interrupted by user[^[\]]*\]/g;
/** Messages that a host writes in the user's name, by how they begin. */
const SKILL = /^\s*Base directory for this skill:/;
/** A host's periodic prompt that makes its agent check whether something needs doing: it names the answer for "nothing". */
const HEARTBEAT =
  /^\s*(?:\[[^[\]]*\]\s*)?(?:Read HEARTBEAT\.md\b|Heartbeat\b)[\s\S]*\bHEARTBEAT_OK\b|\bnothing needs (?:your )?attention\b[^\n]{0,40}\breply\b[^\n]{0,20}\bHEARTBEAT_OK\b/i;
const NOTICE =
  /^\s*(?:<[a-z][\w-]*>|Caveat: The messages below|This session is being continued from a previous conversation)/i;

export interface UserText {
  /** Empty if the user wrote none of it. */
  readonly text: string;
  readonly isNotice: boolean;
}

export function readUserText(raw: string): UserText {
  if (SKILL.test(raw) || HEARTBEAT.test(raw)) return { text: "", isNotice: true };
  const typed = dropBlocks(raw, DROPPED)
    .replace(COMMAND, (_mark, name = "", words = "") => `${name}${words === "" ? "" : ` ${words}`}`)
    .replace(TYPED, "$1")
    .replace(FRAME, "");
  const text = dropBlocks(typed, OUTPUT).replace(INTERRUPTED, "").trim();
  return { text, isNotice: NOTICE.test(text) };
}

/** The text without blocks that begin like this. The end of an unclosed one is searched once, not once for each. */
function dropBlocks(text: string, opening: RegExp): string {
  const unclosed = new Set<string>();
  let kept = "";
  let from = 0;
  for (const { 0: mark, 1: name = "", index } of text.matchAll(opening)) {
    if (index < from || unclosed.has(name)) continue;
    const closing = `</${name}>`;
    const end = text.indexOf(closing, index + mark.length);
    if (end < 0) unclosed.add(name);
    else {
      kept += text.slice(from, index);
      from = end + closing.length;
    }
  }
  return kept + text.slice(from);
}
