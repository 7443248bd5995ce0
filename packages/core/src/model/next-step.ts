/**
 * The next step after an error, a note or a finding, as a value. The engine names the step and its parameters; each door (command line,
 * terminal UI, page, plugin, agent tools, library) has its own words for it, so that nobody is told to use a flag or a tool they do not
 * have. A door's words are a record over all kinds: if a step is missing, it does not compile.
 */

export type NextStep =
  | {
      readonly kind: "list";
      readonly what: "conversations" | "messages" | "summaries" | "backups" | "imports";
    }
  | { readonly kind: "choose_database" }
  | { readonly kind: "create_database" }
  | { readonly kind: "update_schema" }
  | { readonly kind: "rebuild_index" }
  | { readonly kind: "verify" }
  | { readonly kind: "restore"; readonly backup: string | null }
  | { readonly kind: "restore_forgotten" }
  | { readonly kind: "import_backup" }
  | { readonly kind: "backup" }
  | { readonly kind: "stop_other_programs" }
  | { readonly kind: "choose_output" }
  | { readonly kind: "export_archive" }
  | { readonly kind: "set_settings"; readonly names: readonly string[] }
  | { readonly kind: "explain_setting"; readonly name: string }
  | { readonly kind: "make_vault_key" }
  | { readonly kind: "make_private"; readonly path: string; readonly mode: number }
  | { readonly kind: "use_own_owner" }
  | { readonly kind: "embed_as_owner" }
  | { readonly kind: "choose_server" }
  | { readonly kind: "forget_or_choose_target" }
  | { readonly kind: "skip_or_choose_target" }
  | { readonly kind: "verify_both" }
  | { readonly kind: "fix" }
  | { readonly kind: "drop_summaries" }
  | { readonly kind: "repair"; readonly conversationId: number; readonly summaryId: string }
  | { readonly kind: "rewrite_extractive"; readonly conversationId: number }
  | { readonly kind: "compact"; readonly conversationId: number; readonly budgetTokens: number }
  | { readonly kind: "show_spend" }
  | { readonly kind: "search_words" }
  | { readonly kind: "search_regex" }
  | { readonly kind: "narrow_time" }
  | { readonly kind: "next_page" }
  | { readonly kind: "widen_scope" }
  | { readonly kind: "find_ids" }
  | { readonly kind: "open_ids"; readonly ids: readonly string[] }
  | { readonly kind: "expand_granted"; readonly ids: readonly string[] };

/** One door's words for every step: a sentence without its full stop, or a command that can be typed. */
export type StepWords = {
  readonly [Kind in NextStep["kind"]]: (step: Extract<NextStep, { kind: Kind }>) => string;
};

export function wordStep(step: NextStep, words: StepWords): string {
  // The compiler cannot see that the function and the step belong to the same kind.
  return (words[step.kind] as (step: NextStep) => string)(step);
}

/** Something worth knowing about a result, and what to do about it. */
export interface Note {
  readonly text: string;
  readonly step: NextStep | null;
}

/** A note as one or two sentences. */
export function wordNote({ text, step }: Note, words: StepWords): string {
  if (step === null) return text;
  const next = wordStep(step, words);
  return `${text} ${next.charAt(0).toUpperCase()}${next.slice(1)}.`;
}

/** The library's words: methods and options of the engine. */
export const LIBRARY_WORDS: StepWords = {
  list: ({ what }) => `list the ${what} to see which exist`,
  choose_database: () => "choose another database path; the file was not changed",
  create_database: () => "check the path of the database, or open it with create: true",
  update_schema: () => "open it once for writing to bring it up to date",
  rebuild_index: () => "rebuild the search index; no message is affected",
  verify: () => "verify the archive for the whole list",
  restore: ({ backup }) => (backup === null ? "restore a backup" : `restore the backup ${backup}`),
  import_backup: () => "make an empty database and import the backup into it",
  restore_forgotten: () =>
    "restore with withForgotten: true to bring them back, and forget them again afterwards",
  backup: () => "make a backup",
  stop_other_programs: () => "stop the agent host and other programs that use the archive, then retry",
  choose_output: () => "choose another output path",
  export_archive: () => "export it in the archive format, then import that file",
  set_settings: ({ names }) => `set ${names.join(" and ")}`,
  explain_setting: ({ name }) => `correct ${name} where it was set`,
  make_vault_key: () =>
    "create a key file of 32 random bytes, readable only by you, and set redactionKeyFile",
  make_private: ({ path, mode }) => `set the mode of ${path} to ${mode.toString(8)}`,
  use_own_owner: () => "store under the owner that was given to the role, or connect as another role",
  embed_as_owner: () => "make vectors as the role that owns the tables: it makes those of all owners",
  choose_server: () => "use the address of an archive on a server",
  forget_or_choose_target: () => "forget it here, or choose an empty target; nothing was stored",
  skip_or_choose_target: () => "choose an empty target, or leave them out; nothing was written",
  verify_both: () => "verify both archives; the source was not changed",
  fix: () => "let the doctor fix it",
  drop_summaries: () => "let the doctor remove the summaries that do not verify, with those above them",
  repair: ({ summaryId }) => `repair ${summaryId}`,
  rewrite_extractive: ({ conversationId }) =>
    `rewrite the summaries of conversation ${conversationId} without a model`,
  compact: ({ conversationId, budgetTokens }) =>
    `compact conversation ${conversationId} to ${budgetTokens} tokens`,
  show_spend: () => "read the spend",
  search_words: () =>
    'escape special characters with a backslash, or use mode "full_text" to search for words',
  search_regex: () => 'use mode "regex" to match it as written',
  narrow_time: () => "use a simpler expression, or narrow it with since and before",
  next_page: () => "pass next of the previous page as after",
  widen_scope: () => "leave out conversationId, or set allConversations to search all of yours",
  find_ids: () => "search first: hits carry ids that can be opened",
  open_ids: ({ ids }) => `open ${ids.join(", then ")} with describe`,
  expand_granted: ({ ids }) => `expand ${ids.join(", ")} with a larger tokenCap`,
};
