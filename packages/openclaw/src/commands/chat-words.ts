/** Formulates the next step for a person in a chat: with `/lcm` where possible, else with the `lcm` command. */
import { LIBRARY_WORDS } from "@lossless/core";
import type { StepWords } from "@lossless/core";

export const CHAT_WORDS: StepWords = {
  ...LIBRARY_WORDS,
  choose_database: () => "set databasePath to another file; this one was not changed",
  create_database: () => "check databasePath; the next stored turn creates the file",
  update_schema: () => "restart the host: the plugin brings it up to date when it opens",
  rebuild_index: () => "/lcm doctor apply rebuilds the search index; no message is affected",
  verify: () => "/lcm verify shows the whole list",
  backup: () => "/lcm backup",
  restore: ({ backup }) => `lcm restore ${backup ?? "PATH"}; lcm backup list shows which backups exist`,
  stop_other_programs: () => "stop other programs that use the archive, then retry",
};
