/**
 * Exports as text: Markdown to read, OpenAI messages to feed to programs. Both show the newest versions and leave hidden rows out. Stored text
 * is always quoted: in Markdown inside fences that it cannot close. The page is in `../page/`.
 */

import type { MessageView, PartView } from "@lossless/core";
import { addHeadings } from "@lossless/core/formats";
import type { ListedConversation, Snapshot, Store } from "@lossless/core/ports";

import { readMessages, type ReadMessage } from "../archive/conversation-reader.ts";
import { chooseConversations, type ExportOptions, type ExportResult } from "../archive/export-archive.ts";
import { escapeHtml } from "../reading/markup.ts";
import { readToolArguments } from "./tool-arguments.ts";
import { writeWholeFile } from "./whole-file.ts";

export type TextFormat = "markdown" | "openai";

/** With its title in lists. */
type HeadedExport = ListedConversation & { readonly heading: string };

/** How one format writes the pieces of an export. */
interface TextStyle {
  readonly begin: (conversations: readonly HeadedExport[]) => string;
  readonly conversation: (conversation: HeadedExport) => string;
  readonly message: (message: ReadMessage) => string;
  readonly endConversation: () => string;
  readonly end: () => string;
}

export async function exportText(
  store: Store,
  format: TextFormat,
  options: ExportOptions,
): Promise<ExportResult> {
  const counts = { conversations: 0, messages: 0, summaries: 0, files: 0 };
  const { bytes } = await store.withSnapshot((snapshot) =>
    writeWholeFile(options.out, renderAll(snapshot, STYLES[format](), options, counts), {
      signal: options.signal,
    }),
  );
  return { path: options.out, ...counts, bytes };
}

async function* renderAll(
  store: Snapshot,
  style: TextStyle,
  options: ExportOptions,
  counts: { conversations: number; messages: number },
): AsyncGenerator<string> {
  const conversations = await addHeadings(store, await chooseConversations(store, options));
  const total = conversations.reduce((sum, { rows }) => sum + rows, 0);
  yield style.begin(conversations);
  let done = 0;
  for (const conversation of conversations) {
    counts.conversations += 1;
    yield style.conversation(conversation);
    for await (const message of readMessages(store, conversation.conversationId)) {
      if (message.row.hidden.length > 0) continue;
      counts.messages += 1;
      yield style.message(message);
      if (counts.messages % 100 === 0)
        options.onProgress?.({ done: Math.min(total, done + message.row.seq), total });
    }
    done += conversation.rows;
    options.onProgress?.({ done, total });
    yield style.endConversation();
  }
  yield style.end();
}

const TITLES: Readonly<Record<PartView["type"], string>> = {
  text: "Text",
  reasoning: "Reasoning",
  tool_call: "Tool call",
  tool_result: "Tool result",
  image: "Image",
  file: "File",
  other: "Other",
};

const titleOf = (part: PartView): string =>
  part.toolName === undefined ? TITLES[part.type] : `${TITLES[part.type]}: ${part.toolName}`;
const describeMedia = (part: PartView): string =>
  [part.mimeType, part.payloadBytes === undefined ? undefined : `${part.payloadBytes} bytes`]
    .filter(Boolean)
    .join(", ");
const toIso = (time: number): string => new Date(time).toISOString();
/** Where and when it took place; ids come last. */
function describeSource(conversation: HeadedExport): string {
  const { project, agent, branch, model, createdAt, lastAt, owner, sessionKey } = conversation;
  const known = { project, agent, branch, model };
  return [
    ...Object.entries(known).flatMap(([name, value]) => (value === null ? [] : [`${name} ${value}`])),
    `last message ${toIso(lastAt ?? createdAt)}`,
    `owner ${owner}`,
    `session ${sessionKey}`,
  ].join(", ");
}
const nothing = (): string => "";

const MARKDOWN: TextStyle = {
  begin: nothing,
  conversation: (conversation) =>
    `# ${escapeMarkdown(conversation.heading)}\n\n${escapeMarkdown(describeSource(conversation))}\n\n`,
  message: ({ row, view }) => {
    const parts = view.parts.map((part) => (part.type === "text" ? quote(part.text) : fold(part))).join("\n");
    return `## ${nameSpeaker(view)} · ${toIso(row.createdAt)} · msg_${row.messageId}\n\n${parts}\n`;
  },
  endConversation: () => "---\n\n",
  end: nothing,
};

/** A fence longer than any run of backticks inside, so that no text can close it. */
function fence(text: string): string {
  const longest = (text.match(/`+/gu) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
  const mark = "`".repeat(longest + 1);
  return `${mark}text\n${text}\n${mark}\n`;
}

const quote = (text: string): string => fence(text);
const fold = (part: PartView): string =>
  `<details><summary>${escapeHtml([titleOf(part), describeMedia(part)].filter((word) => word !== "").join(", "))}</summary>\n\n${fence(part.text)}\n</details>\n`;

const nameSpeaker = (view: MessageView): string =>
  ({ user: "User", assistant: "Assistant", system: "System", tool: "Tool", other: "Other" })[view.role];

function escapeMarkdown(text: string): string {
  return text.replaceAll(/[\\`*_{}[\]<>#|!]/gu, String.raw`\$&`).replaceAll(/[\r\n]+/gu, " ");
}

/** One conversation per line, in the shape that training and evaluation tools read. */
function createOpenAiStyle(): TextStyle {
  let isFirst = true;
  return {
    begin: nothing,
    conversation: ({ sessionKey, owner }) => {
      isFirst = true;
      return `{"session_key":${JSON.stringify(sessionKey)},"owner":${JSON.stringify(owner)},"messages":[`;
    },
    message: ({ view, bytes }) => {
      const messages = toOpenAi(view, bytes).map((message) => JSON.stringify(message));
      const comma = isFirst || messages.length === 0 ? "" : ",";
      if (messages.length > 0) isFirst = false;
      return comma + messages.join(",");
    },
    endConversation: () => "]}\n",
    end: nothing,
  };
}

const STYLES: Readonly<Record<TextFormat, () => TextStyle>> = {
  markdown: () => MARKDOWN,
  openai: createOpenAiStyle,
};

/** A message in OpenAI's chat dialect; results of several calls become a message each. */
function toOpenAi(view: MessageView, bytes: Uint8Array): object[] {
  const textOf = (parts: readonly PartView[]): string =>
    parts
      .map((part) => part.text)
      .filter((text) => text !== "")
      .join("\n");
  const results = view.parts.filter((part) => part.type === "tool_result");
  const answers = [...new Set(results.map((part) => part.toolCallId))].map((id) => ({
    role: "tool",
    tool_call_id: id,
    content: textOf(results.filter((part) => part.toolCallId === id)),
  }));
  const spoken = textOf(
    view.parts.filter(
      (part) =>
        part.type === "text" || part.type === "other" || part.type === "image" || part.type === "file",
    ),
  );
  const calls = view.parts.filter((part) => part.type === "tool_call");
  const role = view.role === "other" ? "system" : view.role;
  const toolCalls = calls.map((part) => ({
    id: part.toolCallId ?? "",
    type: "function",
    function: { name: part.toolName ?? "", arguments: renderArguments(readToolArguments(part, bytes)) },
  }));
  const isEmpty = spoken === "" && calls.length === 0;
  const own =
    isEmpty && answers.length > 0
      ? []
      : [
          {
            role: role === "tool" ? "user" : role,
            content: spoken,
            tool_calls: calls.length === 0 ? undefined : toolCalls,
          },
        ];
  if (role === "tool" && answers.length === 0) return [{ role: "tool", content: spoken }];
  // In a message that makes calls and holds their results, its own text comes first.
  return calls.length > 0 ? [...own, ...answers] : [...answers, ...own];
}

const renderArguments = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? {});
