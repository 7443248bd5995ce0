/**
 * Shared by `lcm search`, `show`, `expand` and `ask`: the scope, how a piece of stored text is shown, and the engine's notes about tools and
 * parameters, reworded for a shell.
 */
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { EngineError, hidePassword } from "@lossless/core";
import type { Engine, ScopeRequest } from "@lossless/core";
import type { Invocation } from "../../invocation.ts";
import { formatTime, indent, renderCommandLine, toIso, toOneLine, wrapToWidth } from "@lossless/core/doors";
import { renderStored, terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import {
  addOriginOptions,
  findBySession,
  parseConversationId,
  readOrigin,
  requireConversation,
} from "../shared.ts";
import type { ConversationChoice, OriginChoice } from "../shared.ts";

export interface ReachChoice extends ConversationChoice, OriginChoice {
  readonly all?: boolean;
  readonly db?: string;
  readonly owner?: string;
}

/** Scope options. Without any, everything is searched. */
export function addReachOptions(command: Command): Command {
  return addOriginOptions(command)
    .addOption(new Option("--conversation <n>", "only in this conversation").argParser(parseConversationId))
    .addOption(
      new Option("--session <key>", "only in the conversations of this session, by key or id").conflicts(
        "conversation",
      ),
    )
    .addOption(
      new Option("--all", "in all conversations (the default)").conflicts(["conversation", "session"]),
    );
}

export async function chooseReach(
  engine: Engine,
  invocation: Invocation,
  choice: ReachChoice,
): Promise<ScopeRequest> {
  const { conversation, session } = choice;
  const { scope } = invocation;
  if (conversation !== undefined) {
    const { conversationId } = await requireConversation(engine, invocation, conversation);
    return { ...scope, conversationId };
  }
  if (session === undefined) return { ...scope, allConversations: true, ...(await readOrigin(choice)) };
  const found = await findBySession(engine, invocation, session);
  if (found === null) {
    throw new EngineError("not_found", `cannot look in session ${session}: there is no such session`, {
      hint: "lcm conversations list shows every session",
    });
  }
  // A key means all of its conversations, an id the one it ran in.
  return found.sessionKey === session
    ? { ...scope, session: { key: session, owner: found.owner } }
    : { ...scope, conversationId: found.conversationId };
}

export function parseSteps(text: string): number {
  const steps = Number(text);
  if (Number.isInteger(steps) && steps >= 1 && steps <= 100) return steps;
  throw new InvalidArgumentError("It must be a whole number from 1 to 100.");
}

/** Author and time, above the text. */
export function renderHead(id: string, facts: readonly string[]): string {
  const columns = terminalColumns();
  const told = facts.join(", ");
  // The first line has room for the id; the others are indented to the text.
  const [first = "", ...rest] =
    columns === null ? [told] : wrapToWidth(`${" ".repeat(id.length + 2)}${told}`, columns - 2);
  const lines = rest.map((line) => `\n  ${style.faint(line)}`);
  return `${style.name(id)}  ${style.faint(first.trimStart())}${lines.join("")}`;
}

export interface SaidText {
  readonly id: string;
  readonly role: string;
  readonly createdAt: number;
  readonly conversationId: number;
  readonly text: string;
}

export function renderSaid(said: SaidText, timezone: string, remark?: string): string {
  const facts = [
    toOneLine(said.role),
    formatTime(said.createdAt, timezone),
    `conversation ${said.conversationId}`,
    ...(remark === undefined ? [] : [remark]),
  ];
  const isEmpty = said.text.trim() === "";
  const text = isEmpty ? indent(style.faint("(no text)")) : renderStored(said.text);
  return `${renderHead(said.id, facts)}\n${text}`;
}

const TIMES: ReadonlySet<string> = new Set(["createdAt", "earliestAt", "latestAt", "lastAt"]);

/** A row with its times as ISO text, as in all commands. */
export function withIsoTimes(row: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([key, value]: [string, unknown]) => [
      key,
      TIMES.has(key) && typeof value === "number" ? toIso(value) : value,
    ]),
  );
}

/** A follow-up command: repeats the scope options that were typed. */
export function renderFollowUp(
  words: readonly string[],
  choice: ReachChoice,
  last: readonly string[] = [],
): string {
  const { conversation, session, project, agent, exceptSession, owner, db } = choice;
  const shown = db === undefined ? undefined : hidePassword(db);
  const named = { conversation, session, project, agent, "except-session": exceptSession, owner, db: shown };
  const more = Object.entries(named).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  return renderCommandLine(["lcm", ...words, ...more, ...last]);
}
