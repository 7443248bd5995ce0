/** The next step in an agent's terms: the tools it has. What only a person can do is worded as something to tell the user. */
import { LIBRARY_WORDS, type StepWords } from "../model/next-step.ts";

export const TOOL_WORDS: StepWords = {
  ...LIBRARY_WORDS,
  rebuild_index: () => "tell the user that the search index must be rebuilt; no message is affected",
  restore: () => "tell the user that the archive is damaged and a backup must be restored",
  verify: () => "tell the user to verify the archive",
  search_words: () =>
    'escape special characters with a backslash, or use mode "full_text" to search for words',
  widen_scope: () => "leave out conversationId, or pass allConversations",
  find_ids: () =>
    "lcm_grep shows ids that can be opened; allConversations searches your other conversations too",
  open_ids: ({ ids }) => `open ${ids.join(", then ")} with lcm_describe`,
  expand_granted: ({ ids }) =>
    ids.length === 0
      ? "lcm_expand with a query shows what your grant covers"
      : `call lcm_expand with summaryIds ${JSON.stringify(ids)} and a larger tokenCap`,
};
