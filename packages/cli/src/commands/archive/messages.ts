/**
 * `lcm messages list|tail|show`: prints messages, rendered or as stored. `--raw` prints the arrival bytes, one message after the other, with
 * only one in memory.
 */
import { hash } from "node:crypto";
import { Option } from "commander";
import type { Command } from "commander";
import { EngineError, formatMessageId } from "@lossless/core";
import type {
  Engine,
  LargeFileRow,
  MessageBody,
  MessageRow,
  MessageView,
  PartView,
  StoredPart,
} from "@lossless/core";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import {
  describePart,
  formatBytes,
  formatCount,
  formatTime,
  previewOf,
  toIso,
  toOneLine,
  usageError,
} from "@lossless/core/doors";
import { renderStored, terminalColumns, writeBytes } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import {
  addConversationOptions,
  addExamples,
  chooseConversation,
  parseLimit,
  parseMessageName,
  toMessageJson,
} from "../shared.ts";
import type { ConversationChoice } from "../shared.ts";

type Message = MessageBody & { readonly view: MessageView };
type Order = "position" | "arrival";

interface ListOptions extends ConversationChoice {
  readonly limit?: number;
  readonly after?: string;
  readonly order: Order;
  readonly revisions?: boolean;
  readonly raw?: boolean;
}

interface TailOptions extends ConversationChoice {
  readonly limit: number;
  readonly after?: string;
}

const LIST_LIMIT = 50;
const RAW_PAGE = 500;

export function defineMessages(program: Command): void {
  const group = program.command("messages").description("List and show messages");
  const list = addConversationOptions(group.command("list"))
    .description("List messages in order, page by page")
    .addOption(
      new Option("--order <order>", "by place, or by arrival")
        .choices(["position", "arrival"])
        .default("position"),
    )
    .option("-n, --limit <n>", `how many at most (default: ${LIST_LIMIT}; with --raw, all)`, parseLimit)
    .option("--after <cursor>", "continue after a page")
    .option("--revisions", "every revision of a changed message, not only the newest")
    .option("--raw", "the stored bytes of each message and a line feed, nothing else")
    .action(toAction(runList));
  addExamples(list, [
    ["lcm messages list --conversation 1", "the first page"],
    ["lcm messages list --session agent:main:main --limit 500", "by session"],
    ["lcm messages list --conversation 1 --raw > session.jsonl", "the transcript, byte for byte"],
  ]);
  const tail = addConversationOptions(group.command("tail"))
    .description("Show the newest messages with their text")
    .option("-n, --limit <n>", "maximum number of rows", parseLimit, 10)
    .option("--after <cursor>", "continue with older ones after a page")
    .action(toAction(runTail));
  addExamples(tail, [["lcm messages tail --conversation 1 --limit 3", "the last three"]]);
  const show = group
    .command("show")
    .description("Show one message: text, parts, ids, revisions and proof")
    .argument("<id>", "the message, such as msg_12", parseMessageName)
    .option("--raw", "the stored bytes, nothing else")
    .action(toAction(runShow));
  addExamples(show, [
    ["lcm messages show msg_12", "everything about one message"],
    ["lcm messages show msg_12 --raw | jq .", "the original through a program"],
  ]);
}

async function runList(invocation: Invocation, options: ListOptions): Promise<void> {
  if (options.raw) return writeRawList(invocation, options);
  const limit = options.limit ?? LIST_LIMIT;
  const { messages, next } = await invocation.withArchive("read", async (engine) => {
    const { conversationId } = await chooseConversation(engine, invocation, options);
    const page = await readPage(engine, invocation, { ...options, conversationId, limit });
    return { messages: await readMessages(engine, invocation, page.ids), next: page.next };
  });
  const timezone = await invocation.timezone();
  await invocation.print({
    data: {
      items: messages.map((message) => ({ ...toMessageJson(message.row), preview: previewOf(message) })),
    },
    pagination: { next, limit },
    text: () => renderList(messages, next, timezone),
  });
}

async function writeRawList(invocation: Invocation, options: ListOptions): Promise<void> {
  refuseJson(invocation);
  await invocation.withArchive("read", async (engine) => {
    const { conversationId } = await chooseConversation(engine, invocation, options);
    const isPage = options.limit !== undefined || options.after !== undefined;
    const limit = isPage ? (options.limit ?? LIST_LIMIT) : RAW_PAGE;
    for (let after = options.after ?? null; ;) {
      const page = await readPage(engine, invocation, { ...options, conversationId, limit, after });
      for (const id of page.ids) await writeRaw(engine, invocation, id, "\n");
      if (isPage || page.next === null) return;
      after = page.next;
    }
  });
}

async function runTail(invocation: Invocation, options: TailOptions): Promise<void> {
  const { limit } = options;
  const { messages, next } = await invocation.withArchive("read", async (engine) => {
    const { conversationId } = await chooseConversation(engine, invocation, options);
    const page = await readPage(engine, invocation, {
      ...options,
      conversationId,
      order: "position",
      direction: "newest",
    });
    return { messages: (await readMessages(engine, invocation, page.ids)).reverse(), next: page.next };
  });
  const timezone = await invocation.timezone();
  await invocation.print({
    data: {
      items: messages.map((message) => ({
        ...toMessageJson(message.row),
        parts: message.view.parts.map(toPartJson),
      })),
    },
    pagination: { next, limit },
    text: () =>
      messages.length === 0
        ? "No messages."
        : messages.map((message) => renderTalk(message, timezone)).join("\n\n"),
  });
}

async function runShow(
  invocation: Invocation,
  options: { readonly raw?: boolean },
  id: number,
): Promise<void> {
  if (options.raw) {
    refuseJson(invocation);
    return invocation.withArchive("read", (engine) => writeRaw(engine, invocation, id, ""));
  }
  const shown = await invocation.withArchive("read", async (engine) => {
    const message = await requireMessage(engine, invocation, id);
    const first = message.row.revises ?? id;
    const revisions = await engine.readRevisions({ ...invocation.scope, messageId: first });
    return { message, revisions, files: await readFiles(engine, invocation, message.parts) };
  });
  const timezone = await invocation.timezone();
  await invocation.print({ data: toShownJson(shown), text: () => renderMessage(shown, timezone) });
}

function refuseJson({ isJson }: Invocation): void {
  if (isJson) throw usageError("cannot print raw bytes as JSON", "Leave out --raw or --json");
}

interface PageRequest {
  readonly conversationId: number;
  readonly limit: number;
  readonly after?: string | null;
  readonly order: Order;
  readonly direction?: "oldest" | "newest";
  readonly revisions?: boolean;
}

/** A page of messages. A revised message is listed once, at the position of its first version, with its newest revision. */
async function readPage(
  engine: Engine,
  { scope }: Invocation,
  request: PageRequest,
): Promise<{ ids: number[]; next: string | null }> {
  const { conversationId, order, direction = "oldest", revisions = false } = request;
  const ids: number[] = [];
  let after = request.after ?? null;
  do {
    const limit = request.limit - ids.length;
    const page = await engine.listMessages({ ...scope, conversationId, order, direction, limit, after });
    for (const row of page.items) {
      if (revisions) ids.push(row.messageId);
      else if (row.revises === null) ids.push(row.newest ?? row.messageId);
    }
    after = page.next;
  } while (after !== null && ids.length < request.limit);
  return { ids, next: after };
}

async function readMessages(
  engine: Engine,
  invocation: Invocation,
  ids: readonly number[],
): Promise<Message[]> {
  const messages: Message[] = [];
  for (const id of ids) messages.push(await requireMessage(engine, invocation, id));
  return messages;
}

async function requireMessage(engine: Engine, { scope }: Invocation, messageId: number): Promise<Message> {
  const message = await engine.readMessage({ ...scope, messageId });
  if (message !== null) return message;
  throw new EngineError("not_found", `cannot find message ${formatMessageId(messageId)}`, {
    hint: "lcm messages list and lcm search show ids",
  });
}

async function writeRaw(
  engine: Engine,
  invocation: Invocation,
  messageId: number,
  end: string,
): Promise<void> {
  const { bytes } = await requireMessage(engine, invocation, messageId);
  await writeBytes(end === "" ? bytes : Buffer.concat([bytes, Buffer.from(end)]));
}

async function readFiles(
  engine: Engine,
  { scope }: Invocation,
  parts: readonly StoredPart[],
): Promise<LargeFileRow[]> {
  const files: LargeFileRow[] = [];
  for (const { fileId } of parts) {
    if (fileId === null) continue;
    const file = await engine.readFile({ ...scope, fileId });
    if (file !== null) {
      const { content: _content, ...row } = file;
      files.push(row);
    }
  }
  return files;
}

function renderList(messages: readonly Message[], next: string | null, timezone: string): string {
  if (messages.length === 0) return "No messages.";
  const table = renderTable(
    [
      { title: "ID", style: style.name },
      { title: "TIME", style: style.faint },
      { title: "ROLE" },
      { title: "TOKENS", align: "right" },
      { title: "HIDDEN", style: style.warning },
      { title: "TEXT", flexible: true },
    ],
    messages.map((message) => [
      formatMessageId(message.row.messageId),
      formatTime(message.row.createdAt, timezone),
      message.row.role,
      formatCount(message.row.tokens),
      message.row.hidden.join(","),
      toOneLine(previewOf(message)),
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return next === null ? table : `${table}\n\n${style.faint(`More: --after ${next}`)}`;
}

/** A message as in a chat log: author, time, and all of its text. */
function renderTalk({ row, view }: Message, timezone: string): string {
  const head = `${style.name(formatMessageId(row.messageId))}  ${style.title(row.role)}  ${style.faint(formatTime(row.createdAt, timezone))}`;
  const hidden = row.hidden.length === 0 ? "" : `  ${style.warning(`hidden: ${row.hidden.join(", ")}`)}`;
  return [`${head}${hidden}`, ...view.parts.map(renderPart)].join("\n");
}

function renderPart(part: PartView): string {
  const text = renderStored(part.text);
  if (part.type === "text") return text;
  const title = style.faint(`  [${toOneLine(describePart(part))}]`);
  return part.text.trim() === "" ? title : `${title}\n${text}`;
}

interface Shown {
  readonly message: Message;
  readonly revisions: readonly MessageRow[];
  readonly files: readonly LargeFileRow[];
}

function renderMessage({ message, revisions, files }: Shown, timezone: string): string {
  const { row, view } = message;
  const pairs: [string, string][] = [
    ["Message", style.name(formatMessageId(row.messageId))],
    [
      "Conversation",
      `${row.conversationId}, seq ${formatCount(row.seq)}, position ${formatCount(row.position)}`,
    ],
    ["Event", `${toOneLine(row.eventId)} in session ${toOneLine(row.sessionId)}`],
    [
      "Role",
      view.rawRole === "" || view.rawRole === row.role
        ? row.role
        : `${row.role} (as "${toOneLine(view.rawRole)}")`,
    ],
    ["Time", formatTime(row.createdAt, timezone)],
    ["Size", `${formatBytes(row.arrivalBytes)}, about ${formatCount(row.tokens)} tokens`],
    ["Hidden", row.hidden.length === 0 ? "no" : style.warning(row.hidden.join(", "))],
    ["SHA-256", sha256(message.bytes)],
  ];
  if (view.model?.model !== undefined) pairs.push(["Model", toOneLine(view.model.model)]);
  if (revisions.length > 1)
    pairs.push(["Revisions", revisions.map((revision) => formatMessageId(revision.messageId)).join(", ")]);
  for (const file of files)
    pairs.push(["Large file", `${file.fileId}, ${toOneLine(file.mimeType)}, ${formatBytes(file.byteSize)}`]);
  const parts = view.parts.map(
    (part) =>
      `${style.faint(`Part ${part.ordinal + 1}: ${toOneLine(describePart(part))}`)}\n${renderStored(part.text)}`,
  );
  return [renderPairs(pairs, style.faint), ...parts].join("\n\n");
}

function toShownJson({ message, revisions, files }: Shown): object {
  return {
    ...toMessageJson(message.row),
    rawRole: message.view.rawRole,
    isMessage: message.view.isMessage,
    sha256: sha256(message.bytes),
    parts: message.view.parts.map(toPartJson),
    files: files.map((file) => ({ ...file, createdAt: toIso(file.createdAt) })),
    revisions: revisions.map(toMessageJson),
  };
}

function toPartJson({
  ordinal,
  type,
  text,
  toolCallId,
  toolName,
  isError,
  mimeType,
  fileName,
  at,
  length,
}: PartView): object {
  return { ordinal, type, toolCallId, toolName, isError, mimeType, fileName, at, length, text };
}

const sha256 = (bytes: Uint8Array): string => hash("sha256", bytes);
