/** The demo's end: commands that work as they are printed. */
import { renderCommandLine } from "@lossless/core/doors";
import { style } from "../style.ts";
import type { Tour } from "./tour.ts";

export async function suggestNext(tour: Tour): Promise<void> {
  const database = tour.database;
  const suggestions: readonly (readonly [says: string, words: readonly string[]])[] = [
    ["Look around in your browser: the graph, the context, plots", ["web"]],
    ["Look around in this terminal", ["tui"]],
    ["The same in numbers", ["status"]],
    [
      "See what a model with room for 8,000 tokens gets, and why",
      ["assemble", "--budget", "8k", "--explain"],
    ],
    ["Draw the graph of summaries", ["summaries", "tree"]],
    ["Fold it further", ["compact", "--budget", "32k", "--target", "10k"]],
    ["Read the end of the conversation", ["messages", "tail", "--limit", "5"]],
    ["Ask something else", ["search", "fern", "supplier"]],
    ["Get the transcript back, byte for byte", ["messages", "list", "--raw"]],
    ["See the proof fail on the changed copy", ["verify"]],
  ];
  for (const [says, words] of suggestions) {
    const path = says.includes("copy") ? database.replace(/lcm\.db$/, "copy/lcm.db") : database;
    tour.tell(style.faint(says));
    tour.tell(`  npx lcm ${renderCommandLine([...words, "--db", path])}\n`);
  }
  tour.tell(style.faint("Store your own sessions (in ~/.openclaw/lcm.db unless you name a file)"));
  tour.tell("  npx lcm import ~/.claude/projects --db my-archive.db\n");
  tour.tell("All commands: npx lcm --help");
}
