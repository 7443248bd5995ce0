/**
 * `/lcm` and `/lossless` in the chat. Answers are short, because they are read in a chat; they say what is stored and where. Nothing here
 * changes the archive.
 */

import { EngineError, type Settings, type StatusReport } from "@lossless/core";
import type { CommandContext, CommandDefinition } from "./host.ts";
import { compileCapturePolicy, readAgentId } from "./session.ts";
import type { EngineLease } from "./shared-engine.ts";

export interface CommandParts {
  readonly settings: Settings;
  readonly lease: Pick<EngineLease, "open">;
}

const NAMES = ["lcm", "lossless"];

const HELP = [
  "Lossless Claw keeps every message of this chat.",
  "/lcm status – what is stored, and where",
  "/lcm help – this list",
].join("\n");

export function createCommands(parts: CommandParts): CommandDefinition[] {
  return NAMES.map((name) => ({
    name,
    description: "Lossless Claw: what is stored, and where",
    acceptsArgs: true,
    handler: async (context) => ({ text: await answer(parts, context) }),
  }));
}

async function answer(parts: CommandParts, context: CommandContext): Promise<string> {
  const [word = "status"] = (context.args ?? "").trim().split(/\s+/).filter(Boolean);
  switch (word.toLowerCase()) {
    case "status":
      return await answerStatus(parts, context);
    case "help":
      return HELP;
    default:
      return `There is no "${word.slice(0, 40)}".\n${HELP}`;
  }
}

async function answerStatus(
  { settings, lease }: CommandParts,
  { sessionKey, agentId }: CommandContext,
): Promise<string> {
  if (!settings.enabled) return "Lossless Claw is switched off (enabled: false). Nothing is stored.";
  try {
    const engine = await lease.open();
    const owner = agentId ?? (sessionKey === undefined ? undefined : readAgentId(sessionKey));
    const status = await engine.status({
      ...(owner === undefined ? {} : { owner }),
      ...(sessionKey === undefined ? {} : { sessionKey }),
    });
    const isKept = sessionKey === undefined || compileCapturePolicy(settings)(sessionKey);
    return renderStatus(status, isKept);
  } catch (error) {
    return renderFailure(error);
  }
}

export function renderStatus(status: StatusReport, isKept: boolean): string {
  const lines = [describeChat(status, isKept)];
  lines.push(
    `Archive: ${count(status.messages, "message")} in ${count(status.conversations, "conversation")}, ${formatBytes(status.databaseBytes + status.filesBytes)}`,
    `Last stored: ${status.lastStoredAt === null ? "nothing yet" : new Date(status.lastStoredAt).toISOString()}`,
    `Database: ${status.databasePath}`,
  );
  lines.push(
    status.index.kind === "ready"
      ? "Search index: ready"
      : `Search index: degraded (${status.index.reason}); run lcm reindex`,
  );
  return lines.join("\n");
}

function describeChat({ conversation }: StatusReport, isKept: boolean): string {
  if (!isKept) return "This chat is not kept (a session pattern says so).";
  if (conversation === null) return "This chat: nothing stored yet";
  return `This chat: ${count(conversation.messages, "message")}, about ${conversation.shownTokens.toLocaleString("en")} tokens shown`;
}

function renderFailure(error: unknown): string {
  const hint = error instanceof EngineError && error.hint !== undefined ? `\n${error.hint}` : "";
  return `Lossless Claw cannot read its archive: ${error instanceof Error ? error.message : String(error)}${hint}`;
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function formatBytes(bytes: number): string {
  const megabytes = bytes / 1024 ** 2;
  return megabytes < 1 ? `${Math.ceil(bytes / 1024)} kB` : `${megabytes.toFixed(1)} MB`;
}
