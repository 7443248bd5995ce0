/**
 * What a host or a plugin put into a user's message: reminders, skills, the frames of commands, our own frames. Nobody typed that, so a
 * summary quotes none of it as the user's words. What is left is what the user wrote; a message that a machine wrote as a whole is a notice.
 */

/** Blocks that say nothing about the work. */
const DROPPED =
  /<(system-reminder|command-message|local-command-caveat|ide_opened_file|ide_selection|env|summary|recall)(?:\s[^>]*)?>[\s\S]*?<\/\1>/g;
/** A command typed by the user is shown as it was typed. */
const COMMAND = /<command-name>([^<]*)<\/command-name>|<command-args>([^<]*)<\/command-args>/g;
const TYPED = /<bash-input>([^<]*)<\/bash-input>/g;
const OUTPUT = /<(bash-stdout|bash-stderr|local-command-stdout|local-command-stderr)>[\s\S]*?<\/\1>/g;
const INTERRUPTED = /\[Request interrupted by user[^\]]*\]/g;
/** Messages that a host writes in the user's name, by how they begin. */
const SKILL = /^\s*Base directory for this skill:/;
const NOTICE =
  /^\s*(?:<[a-z][\w-]*>|Caveat: The messages below|This session is being continued from a previous conversation)/i;

export interface UserText {
  /** Empty when the user wrote nothing of it. */
  readonly text: string;
  readonly isNotice: boolean;
}

export function readUserText(raw: string): UserText {
  if (SKILL.test(raw)) return { text: "", isNotice: true };
  const text = raw
    .replace(DROPPED, "")
    .replace(COMMAND, (_mark, name = "", words = "") => `${name}${words === "" ? "" : ` ${words}`}`)
    .replace(TYPED, "$1")
    .replace(OUTPUT, "")
    .replace(INTERRUPTED, "")
    .trim();
  return { text, isNotice: NOTICE.test(text) };
}
