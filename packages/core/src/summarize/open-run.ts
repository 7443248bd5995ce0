/**
 * The sources of a summary without a model that condenses others of its kind: not their lines, but the messages under them, so that nothing
 * is lost by summarising twice and a name or a figure counts as often as it was used. The newest are opened, as far as one pass can read;
 * older ones, and those that a model wrote, stay as they are.
 */
import type { RunItem } from "../store/folding.ts";

/** Tokens of messages after which no more is opened: about five full leaves, some tenths of a second of work. */
const MAX_OPENED_TOKENS = 100_000;

export async function openRun(
  run: readonly RunItem[],
  readSources: (summaryId: string) => Promise<readonly RunItem[]>,
): Promise<RunItem[]> {
  let room = MAX_OPENED_TOKENS;
  const open = async (items: readonly RunItem[]): Promise<RunItem[]> => {
    const opened: RunItem[][] = [];
    for (const item of items.toReversed()) {
      const { summary } = item;
      const isOpened = summary?.level === "extractive" && room > 0;
      if (summary === null) room -= item.tokens;
      // The messages under a summary of another conversation are not here.
      const under = isOpened ? await open(await readSources(summary.summaryId)) : [];
      opened.push(under.length === 0 ? [item] : under);
    }
    return opened.reverse().flat();
  };
  return open(run);
}
