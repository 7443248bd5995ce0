/** The next step for a person at a shell: a command that can be typed, or what to change on the command line. */
import type { StepWords } from "../model/next-step.ts";

/** Lists with a command of another name. */
const LISTS: Readonly<Record<string, string>> = { backups: "lcm backup list", imports: "lcm doctor imports" };

export const SHELL_WORDS: StepWords = {
  list: ({ what }) => `${LISTS[what] ?? `lcm ${what} list`} shows which exist`,
  choose_database: () => "choose another file with --db; this one was not changed",
  create_database: () => "check --db, or import something to create it",
  update_schema: () =>
    "lcm doctor --apply brings it up to date, and so does every command that stores something",
  rebuild_index: () => "lcm reindex",
  verify: () => "lcm verify shows the whole list",
  restore: ({ backup }) =>
    backup === null
      ? "restore a backup (lcm backup list); without one, import the transcripts again into another --db"
      : renderCommandLine(["lcm", "restore", backup]),
  import_backup: () => "make an empty database, and import the backup: lcm import BACKUP --db postgres://…",
  restore_forgotten: () => "add --with-forgotten to restore them too, and forget them again afterwards",
  backup: () => "lcm backup",
  stop_other_programs: () => "stop the agent host and other lcm commands, then retry",
  choose_output: () => "choose another --out",
  export_archive: () => "export it with lcm export --format archive, then import that file",
  set_settings: ({ names }) => names.map((name) => `lcm config set ${name} VALUE`).join("; "),
  explain_setting: ({ name }) => `lcm config explain ${name} shows where it was set`,
  make_vault_key: () =>
    "lcm vault new-key FILE creates one; lcm config explain redactionKeyFile shows where the path was set",
  make_private: ({ path, mode }) => renderCommandLine(["chmod", mode.toString(8), path]),
  use_own_owner: () => "store under the owner that lcm roles list names, or connect as another role",
  embed_as_owner: () =>
    "run lcm worker, or lcm embed run, as the role that owns the tables: it makes the vectors of all owners",
  choose_server: () => "name an archive on a server: --db postgres://…",
  forget_or_choose_target: () =>
    "forget it here with lcm forget, or name an empty target; nothing was stored",
  skip_or_choose_target: () =>
    "name an empty target, or leave them out with --skip-existing; nothing was written",
  verify_both: () => "run lcm verify on both; the source was not changed",
  fix: () => "lcm doctor --fix",
  drop_summaries: () => "lcm doctor --fix removes the summaries that do not verify, with those above them",
  repair: ({ conversationId, summaryId }) =>
    `lcm repair --conversation ${conversationId} --summary ${summaryId} --apply`,
  rewrite_extractive: ({ conversationId }) =>
    `lcm rewrite --conversation ${conversationId} --all --extractive --apply`,
  compact: ({ conversationId, budgetTokens }) =>
    `lcm compact --conversation ${conversationId} --budget ${budgetTokens}`,
  show_spend: () => "lcm spend",
  search_words: () => "escape special characters with a backslash, or leave out --regex to search for words",
  search_regex: () => "use --regex to match it as written",
  narrow_time: () => "use a simpler expression, or --since and --before",
  next_page: () => "pass pagination.next of the previous page with --after",
  widen_scope: () => "leave out --conversation to search all of them",
  find_ids: () => "lcm search shows ids that can be opened",
  open_ids: ({ ids }) => ids.map((id) => `lcm show ${id}`).join("; "),
  expand_granted: ({ ids }) =>
    ids.length === 0 ? "lcm expand" : `lcm expand ${ids.join(" ")} --max-tokens N`,
};

/** A command line that can be pasted back into a shell. */
export function renderCommandLine(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`))
    .join(" ");
}
