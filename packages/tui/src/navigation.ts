/** Navigation between screens: the one place that knows them all. */
import { formatMessageId } from "@lossless/core";
import type { HeadedConversation } from "@lossless/core";
import { formatTime } from "@lossless/core/doors";
import type { Desk, Navigator, Screen } from "./screen.ts";
import { ContextScreen } from "./screens/context.ts";
import { makeDissolveScreen } from "./screens/dissolve.ts";
import { DoctorScreen } from "./screens/doctor.ts";
import { FilesScreen, makeFileScreen } from "./screens/files.ts";
import { GraphScreen } from "./screens/graph.ts";
import { HelpScreen } from "./screens/help.ts";
import { MessagesScreen } from "./screens/messages.ts";
import { makePreviousScreen } from "./screens/previous.ts";
import { RewriteScreen } from "./screens/rewrite.ts";
import { SearchScreen } from "./screens/search.ts";
import { SpendScreen } from "./screens/spend.ts";
import { TextScreen } from "./screens/text.ts";
import { TranscriptsScreen } from "./screens/transcripts.ts";
import { askTransplant } from "./screens/transplant.ts";
import type { Sought } from "./sought.ts";
import { versionOf, type Entry } from "./entries.ts";
import { readEntryText, readTurnText, renderEntryText, renderTurnText } from "./entry-text.ts";
import { describeMessage, readMessageText, renderMessageText } from "./message-text.ts";

export function createNavigator(desk: Desk): Navigator {
  const open = async (screen: Screen): Promise<boolean> => {
    await desk.open(screen);
    return true;
  };
  return {
    messages: (conversation, messageId, sought) =>
      open(new MessagesScreen(desk, conversation, messageId, sought)),
    message: (messageId) => open(makeMessageScreen(desk, messageId)),
    entry: (entry, sought = null) => open(makeEntryScreen(desk, entry, sought)),
    turn: (entry, conversation) => open(makeTurnScreen(desk, entry, conversation)),
    graph: (conversation, summaryId, sought) => open(new GraphScreen(desk, conversation, summaryId, sought)),
    context: (conversation) => open(new ContextScreen(desk, conversation, null)),
    contextBefore: (conversation, summaryId) => open(new ContextScreen(desk, conversation, { summaryId })),
    previousContext: async (conversation, summaryId) =>
      open(await makePreviousScreen(desk, conversation, summaryId)),
    files: (conversation) => open(new FilesScreen(desk, conversation)),
    file: (fileId) => open(makeFileScreen(desk, fileId)),
    search: (conversation) => open(new SearchScreen(desk, conversation)),
    spend: () => open(new SpendScreen(desk)),
    transcripts: () => open(new TranscriptsScreen(desk)),
    doctor: () => open(new DoctorScreen(desk)),
    rewrite: (conversation, summaryId) => open(new RewriteScreen(desk, conversation, summaryId)),
    repair: (conversation) => open(new RewriteScreen(desk, conversation, null)),
    dissolve: (conversation, summaryId) => open(makeDissolveScreen(desk, conversation, summaryId)),
    transplant: (conversation) => {
      askTransplant(desk, conversation);
      return Promise.resolve(true);
    },
    help: (about) => open(new HelpScreen(desk, about)),
  };
}

function makeMessageScreen(desk: Desk, messageId: number): Screen {
  const { engine, scope } = desk.archive;
  return new TextScreen(desk, {
    name: formatMessageId(messageId),
    read: async () => {
      const message = await readMessageText(engine, scope, messageId);
      return typeof message === "string"
        ? { title: message, lines: () => [] }
        : {
            title: describeMessage(message, desk.timezone),
            lines: (paint) => renderMessageText(message, paint),
          };
    },
  });
}

function makeEntryScreen(desk: Desk, entry: Entry, sought: Sought | null): Screen {
  const { engine, scope } = desk.archive;
  return new TextScreen(desk, {
    name: formatMessageId(versionOf(entry.row)),
    sought,
    read: async () => {
      const texts = await readEntryText(engine, scope, entry);
      return {
        title: describeMessage({ row: entry.row, result: entry.result?.row ?? null }, desk.timezone),
        lines: (paint) => renderEntryText(texts, paint, { foldsReasoning: false }),
      };
    },
  });
}

/** Longer turns are cut; the list of messages has all of them. */
const MAX_TURN_MESSAGES = 1_000;

function makeTurnScreen(desk: Desk, { row }: Entry, { project }: HeadedConversation): Screen {
  const { engine, scope } = desk.archive;
  let foldsReasoning = true;
  const screen: TextScreen = new TextScreen(desk, {
    name: "turn",
    keys: [{ keys: "x", does: "reasoning" }],
    act: async ({ name }) => {
      if (name !== "x") return false;
      foldsReasoning = !foldsReasoning;
      await screen.load();
      return true;
    },
    read: async () => {
      const request = { request: row, project, maxMessages: MAX_TURN_MESSAGES };
      const texts = await readTurnText(engine, scope, request);
      return {
        title: `turn from ${formatMessageId(row.messageId)} · ${formatTime(row.createdAt, desk.timezone)}`,
        lines: (paint) => renderTurnText(texts, paint, { foldsReasoning }),
      };
    },
  });
  return screen;
}
