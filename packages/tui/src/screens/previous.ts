/**
 * The previous context of a summary: the text that its writer was given as the text before it. `p` opens the previous context of that one, and
 * so on back to the first.
 */
import { EngineError } from "@lossless/core";
import type { HeadedConversation } from "@lossless/core";
import type { GraphNode } from "../graph-lines.ts";
import type { Desk, Screen } from "../screen.ts";
import { renderSummaryText } from "../summary-text.ts";
import { TextScreen, type TextContent } from "./text.ts";

/** Null: of the newest summary. */
export async function makePreviousScreen(
  desk: Desk,
  conversation: HeadedConversation,
  summaryId: string | null,
): Promise<Screen> {
  const id = summaryId ?? findNewest((await desk.graphs.read(conversation.conversationId)).values());
  let previousId: string | null = null;
  const read = async (): Promise<TextContent> => {
    const { engine, scope } = desk.archive;
    if (id === null) return { title: "no summary was made yet", lines: () => [] };
    const summary = await engine.readSummary({ ...scope, summaryId: id });
    if (summary === null) throw new EngineError("not_found", `cannot find summary ${id}`);
    previousId = summary.previousId;
    const previous =
      previousId === null ? null : await engine.readSummary({ ...scope, summaryId: previousId });
    if (previous === null)
      return {
        title: `${id} · no previous context`,
        lines: (paint) => [
          { text: "It was given none, or was made before the archive kept it.", style: paint.faint },
        ],
      };
    return {
      title: `${id} · was given the text of ${previous.summaryId} as what comes before`,
      lines: (paint) => renderSummaryText(previous, paint),
    };
  };
  return new TextScreen(desk, {
    name: `previous context of ${id ?? conversation.heading}`,
    conversation,
    keys: [
      { keys: "p", does: "what that one was given" },
      { keys: "s", does: "show it in the graph" },
    ],
    read,
    act: async ({ name }) => {
      if (name !== "p" && name !== "s") return false;
      if (previousId === null) desk.say("there is nothing before it");
      else if (name === "p") await desk.go.previousContext(conversation, previousId);
      else await desk.go.graph(conversation, previousId);
      return true;
    },
  });
}

/** The one published last. */
export function findNewest(nodes: Iterable<GraphNode>): string | null {
  let newest: GraphNode | null = null;
  for (const node of nodes)
    if (node.state === "cover" && node.createdAt >= (newest?.createdAt ?? 0)) newest = node;
  return newest?.summaryId ?? null;
}
