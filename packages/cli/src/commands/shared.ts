/** Shared by several commands: parsing numeric options, choosing a conversation, and rows as JSON. */
import { realpathSync } from "node:fs";
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { EngineError, formatMessageId, isSummaryId, parseMessageId } from "@lossless/core";
import type { Engine, HeadedConversation, MessageRow, OriginFilter } from "@lossless/core";
import type { Invocation } from "../invocation.ts";
import { parseTime, readTokenCount, toIso, TOKEN_COUNT_RULE, usageError } from "@lossless/core/doors";

const MAX_LIMIT = 10_000;

export function parseLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT && text.trim() !== "") return limit;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_LIMIT}.`);
}

export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a port, a number up to 65535.");
}

export function parseOffset(text: string): number {
  const offset = Number(text);
  if (Number.isSafeInteger(offset) && offset >= 0 && text.trim() !== "") return offset;
  throw new InvalidArgumentError("It must be a whole number, 0 or more.");
}

export function parseTokens(text: string): number {
  const tokens = readTokenCount(text);
  if (tokens !== null) return tokens;
  throw new InvalidArgumentError(TOKEN_COUNT_RULE);
}

export function parseSummaryName(text: string): string {
  if (isSummaryId(text)) return text;
  throw new InvalidArgumentError("It must be a summary id such as sum_0123456789abcdef.");
}

export function parseConversationId(text: string): number {
  const id = Number(text);
  if (Number.isSafeInteger(id) && id >= 1 && /^\d+$/.test(text)) return id;
  throw new InvalidArgumentError(
    "It must be the number of a conversation; lcm conversations list shows them.",
  );
}

export function parseMessageName(text: string): number {
  const id = parseMessageId(text);
  if (id !== null) return id;
  throw new InvalidArgumentError("It must be a message id such as msg_12.");
}

/** A typed time, in the time zone of the settings; undefined when absent. */
export async function readTimeOption(
  invocation: Invocation,
  option: string,
  typed: string | undefined,
): Promise<number | undefined> {
  if (typed === undefined) return undefined;
  return parseTime(typed, { now: Date.now(), timezone: await invocation.timezone(), option });
}

type Examples = readonly (readonly [line: string, says: string])[];

const examplesOf = new WeakMap<Command, Examples>();

/** Groups of commands show the first example of each of theirs. */
export function addGroupExamples(program: Command): void {
  for (const group of program.commands) {
    const examples = group.commands.flatMap((command) => examplesOf.get(command)?.slice(0, 1) ?? []);
    if (examples.length > 0 && !examplesOf.has(group)) addExamples(group, examples);
  }
}

/** Examples of a command, each with what it does: in its help before the longer text, because most readers look for them. */
export function addExamples(command: Command, examples: Examples): void {
  examplesOf.set(command, examples);
  const width = Math.max(...examples.map(([line]) => line.length));
  const lines = examples.map(([line, says]) => `  ${line.padEnd(width)}  ${says}`);
  command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** The command line that starts this program, wherever it is installed, for other programs. */
export const nameProgram = (...args: readonly string[]): string[] => [
  process.execPath,
  realpathSync(process.argv[1] ?? ""),
  ...args,
];

/** Filters for conversations by origin, as typed. */
export interface OriginChoice {
  readonly project?: string;
  readonly agent?: string;
  readonly exceptSession?: string;
}

export function addOriginOptions(command: Command): Command {
  return command
    .option("--project <folder>", "only in conversations about this project: its git root, or the folder")
    .option("--agent <name>", "only in conversations of this program: claude-code, codex, openclaw, …")
    .option("--except-session <id>", "leave out this session");
}

/** A folder below a git root means that repository. */
export async function readOrigin({ project, agent, exceptSession }: OriginChoice): Promise<OriginFilter> {
  if (project === undefined) return { agent, exceptSession };
  const { findProject } = await import("@lossless/interchange");
  return { project: findProject(project), agent, exceptSession };
}

export interface ConversationChoice {
  readonly conversation?: number;
  readonly session?: string;
}

export function addConversationOptions(command: Command): Command {
  return command
    .addOption(new Option("--conversation <n>", "the conversation").argParser(parseConversationId))
    .addOption(
      new Option("--session <key>", "the newest conversation of this session key or id").conflicts(
        "conversation",
      ),
    );
}

/** The named conversation, or the only one. */
export async function chooseConversation(
  engine: Engine,
  invocation: Invocation,
  choice: ConversationChoice,
): Promise<HeadedConversation> {
  const { scope } = invocation;
  if (choice.conversation !== undefined) return requireConversation(engine, invocation, choice.conversation);
  if (choice.session !== undefined) {
    const found = await findBySession(engine, invocation, choice.session);
    if (found !== null) return found;
    throw new EngineError("not_found", `cannot find a conversation of session "${choice.session}"`, {
      hint: "lcm conversations list shows every session",
    });
  }
  const { items } = await engine.listConversations({ ...scope, limit: 2 });
  const [only] = items;
  if (only !== undefined && items.length === 1) return only;
  if (only === undefined) {
    throw new EngineError("not_found", `cannot run lcm ${invocation.command}: nothing is stored yet`);
  }
  throw usageError(
    `cannot run lcm ${invocation.command}: there are several conversations`,
    "Choose one with --conversation N or --session KEY; lcm conversations list shows them",
  );
}

/** A session key names a family, a session id one run in it; people have either at hand. */
export async function findBySession(
  engine: Engine,
  invocation: Invocation,
  session: string,
): Promise<HeadedConversation | null> {
  const { scope } = invocation;
  const { items } = await engine.listConversations({ ...scope, sessionKey: session, limit: 1 });
  if (items[0] !== undefined) return items[0];
  const state = await engine.readSession({ ...scope, sessionId: session });
  return state?.conversationId
    ? engine.readConversation({ ...scope, conversationId: state.conversationId })
    : null;
}

export async function requireConversation(
  engine: Engine,
  { scope }: Invocation,
  conversationId: number,
): Promise<HeadedConversation> {
  const conversation = await engine.readConversation({ ...scope, conversationId });
  if (conversation !== null) return conversation;
  throw new EngineError("not_found", `cannot find conversation ${conversationId}`, {
    hint: "lcm conversations list shows every conversation",
  });
}

export function toConversationJson(row: HeadedConversation): object {
  return {
    id: row.conversationId,
    heading: row.heading,
    owner: row.owner,
    sessionKey: row.sessionKey,
    sessionId: row.sessionId,
    messages: row.messages,
    shownMessages: row.shownMessages,
    shownTokens: row.shownTokens,
    summaries: row.summaries,
    bytes: row.arrivalBytes,
    firstAt: toIso(row.firstAt),
    lastAt: toIso(row.lastAt),
    createdAt: toIso(row.createdAt),
    archivedAt: toIso(row.archivedAt),
    archiveCause: row.archiveCause,
    agent: row.agent,
    project: row.project,
    branch: row.branch,
    title: row.title,
    model: row.model,
    name: row.name,
    tags: row.tags,
    pinned: row.pinnedAt !== null,
    hidden: row.unlistedAt !== null,
  };
}

export function toMessageJson(row: MessageRow): object {
  return {
    id: formatMessageId(row.messageId),
    conversationId: row.conversationId,
    sessionId: row.sessionId,
    eventId: row.eventId,
    seq: row.seq,
    position: row.position,
    role: row.role,
    tokens: row.tokens,
    bytes: row.arrivalBytes,
    createdAt: toIso(row.createdAt),
    isDated: row.isDated,
    hidden: row.hidden,
    revises: row.revises === null ? null : formatMessageId(row.revises),
    newest: row.newest === null ? null : formatMessageId(row.newest),
    forgottenAt: toIso(row.forgottenAt),
  };
}
