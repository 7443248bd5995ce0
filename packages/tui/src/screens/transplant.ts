/** Transplant: copies a conversation with its summaries in front of another one. Asks for the other one and shows a preview. */
import type { HeadedConversation } from "@lossless/core";
import { countOf, toOneLine } from "@lossless/core/doors";
import type { Desk } from "../screen.ts";
import { makeConfirmScreen } from "./confirm.ts";

export function askTransplant(desk: Desk, from: HeadedConversation): void {
  desk.ask({
    label: `copy conversation ${from.conversationId} in front of conversation number`,
    onDone: async (text) => {
      if (text === null || text.trim() === "") return;
      const { engine, scope } = desk.archive;
      const conversationId = Number(text);
      const to = Number.isSafeInteger(conversationId)
        ? await engine.readConversation({ ...scope, conversationId })
        : null;
      if (to === null) desk.say(`there is no conversation ${toOneLine(text)}`);
      else await desk.open(makeTransplantScreen(desk, from, to));
    },
  });
}

function makeTransplantScreen(
  desk: Desk,
  from: HeadedConversation,
  to: HeadedConversation,
): ReturnType<typeof makeConfirmScreen> {
  const ids = { from: from.conversationId, to: to.conversationId };
  return makeConfirmScreen(desk, {
    name: "transplant",
    conversation: from,
    preview: async () => {
      const report = await desk.archive.engine.transplant({ ...ids, dryRun: true });
      return {
        title: "What would be copied. Nothing has been changed yet.",
        lines: (paint) => [
          { text: "" },
          { text: `From      ${toOneLine(from.heading)} (${from.conversationId})` },
          { text: `In front of ${toOneLine(to.heading)} (${to.conversationId})` },
          {
            text: `Copied    ${countOf(report.messages, "message")}, ${countOf(report.summaries, "summary", "summaries")}`,
          },
          { text: "" },
          { text: "Copies get ids of their own; the original stays as it is.", style: paint.faint },
          { text: "y does it, n leaves it.", style: paint.title },
        ],
      };
    },
    apply: async () => {
      const report = await desk.archive.change((writer) => writer.transplant({ ...ids, dryRun: false }));
      return `copied ${countOf(report.messages, "message")} in front of conversation ${report.to}`;
    },
  });
}
