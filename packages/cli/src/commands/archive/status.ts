/**
 * `lcm status`: what is stored, how large it is, and whether anything needs attention. With a session, or when there is only one
 * conversation, also how it is folded.
 */
import type { Command } from "commander";
import { EngineError, must } from "@lossless/core";
import type {
  HeadedConversation,
  Debt,
  Engine,
  FoldingStatus,
  Guard,
  MessageCounts,
  StatusResult,
  StorageShares,
} from "@lossless/core";
import { listSpooledTurns } from "@lossless/core/repair";
import type { SpooledTurns } from "@lossless/core/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import {
  countOf,
  describeGuard,
  formatBytes,
  formatCompression,
  formatCount,
  formatShare,
  formatTime,
  measureRaw,
  toIso,
  toOneLine,
} from "@lossless/core/doors";
import { style } from "../../style.ts";
import { renderPairs } from "../../table.ts";
import type { HookState, readWatchState } from "@lossless/agents";
import { addExamples, findBySession, toConversationJson } from "../shared.ts";
import { renderAgents, toAgentJson } from "./watch.ts";

interface Folding extends FoldingStatus {
  /** Tokens of all shown messages, unfolded. */
  readonly rawTokens: number;
  readonly counts: MessageCounts;
}

type StatusOutput = StatusResult & {
  readonly folding: Folding | null;
  readonly storage: StorageShares | null;
  /** Turns that a host keeps on this machine until the database can store them. */
  readonly waitingTurns: number;
  readonly watcher: Awaited<ReturnType<typeof readWatchState>>;
  readonly hooks: readonly HookState[];
};

export function defineStatus(program: Command): void {
  const command = program
    .command("status")
    .description("Show what is stored, its size, and what needs attention")
    .option("--session <key>", "how the newest conversation of this session key or id is folded")
    .action(toAction(runStatus));
  addExamples(command, [
    ["lcm status", "the archive of your settings"],
    ["lcm status --session agent:main:main", "one session: context, summaries, compaction owed"],
    ["lcm status --db team.db", "another archive"],
    ["lcm status --owner main --json", "one agent's share, for a program"],
  ]);
}

async function runStatus(invocation: Invocation, { session }: { readonly session?: string }): Promise<void> {
  const work = async (engine: Engine): Promise<StatusOutput> => {
    const sessionKey = await chooseSession(engine, invocation, session);
    const status = await engine.status({
      ...invocation.scope,
      sessionKey: sessionKey ?? undefined,
    });
    return {
      ...status,
      folding: await completeFolding(engine, invocation, status),
      // Takes as long as reading the file; people use the doctor or the disk.
      storage: invocation.isJson ? await engine.measureStorage() : null,
      waitingTurns: (await listWaiting(invocation)).times.length,
      ...(await readCapture(invocation)),
    };
  };
  const report = await invocation
    .withArchive("read", work)
    .catch((error: unknown) => sayWaiting(invocation, error));
  const timezone = await invocation.timezone();
  await invocation.print({ data: toStatusJson(report), text: () => renderStatus(report, timezone) });
}

const listWaiting = async (invocation: Invocation): Promise<SpooledTurns> =>
  listSpooledTurns((await invocation.settings()).settings.databasePath);

/** While a server is unreachable, only the turns waiting on this machine can be reported. */
async function sayWaiting(invocation: Invocation, error: unknown): Promise<never> {
  if (!(error instanceof EngineError) || error.code !== "database_unreachable") throw error;
  const { folder, times } = await listWaiting(invocation);
  const notes = (await readCapture(invocation)).hooks.reduce((sum, { waiting }) => sum + waiting, 0);
  const waiting = [
    ...(times.length > 0 ? [`${countOf(times.length, "turn")} in ${folder}`] : []),
    ...(notes > 0 ? [`${countOf(notes, "note")} of hooks`] : []),
  ];
  const said =
    waiting.length === 0
      ? "nothing waits for it on this machine"
      : `waiting for it on this machine: ${waiting.join(", ")}`;
  throw new EngineError(error.code, `${error.message}; ${said}`, {
    hint: "check that the server runs and that the address is right; waiting turns are stored, in order, when it is back",
    cause: error,
  });
}

async function readCapture(invocation: Invocation): Promise<Pick<StatusOutput, "watcher" | "hooks">> {
  const { databasePath } = (await invocation.settings()).settings;
  const { readHookStates, readWatchState } = await import("@lossless/agents");
  return { watcher: await readWatchState(databasePath), hooks: readHookStates(databasePath) };
}

/** The named session, or the only one. */
async function chooseSession(
  engine: Engine,
  invocation: Invocation,
  session: string | undefined,
): Promise<string | null> {
  if (session === undefined) {
    const { items } = await engine.listConversations({ ...invocation.scope, limit: 2 });
    return items.length === 1 ? (items[0]?.sessionKey ?? null) : null;
  }
  const found = await findBySession(engine, invocation, session);
  if (found !== null) return found.sessionKey;
  throw new EngineError("not_found", `cannot find a conversation of session ${session}`, {
    hint: "lcm conversations list shows every session",
  });
}

async function completeFolding(
  engine: Engine,
  { scope }: Invocation,
  { conversation, folding }: StatusResult,
): Promise<Folding | null> {
  if (conversation === null || folding === null) return null;
  const rawTokens = await measureRaw(engine, scope, conversation.conversationId, folding.contextTokens);
  const { conversationId } = conversation;
  const [counts] = await engine.countMessages({ ...scope, conversationIds: [conversationId] });
  return { ...folding, rawTokens, counts: must(counts, `the counts of conversation ${conversationId}`) };
}

function toStatusJson({ conversation, folding, guards, watcher, hooks, ...status }: StatusOutput): object {
  return {
    ...status,
    lastStoredAt: toIso(status.lastStoredAt),
    lastMessageAt: toIso(status.lastMessageAt),
    conversation: conversation && toConversationJson(conversation),
    folding: folding && {
      ...folding,
      debt: folding.debt && toDebtJson(folding.debt),
      compression: folding.contextTokens === 0 ? null : folding.rawTokens / folding.contextTokens,
    },
    guards: guards.map(toGuardJson),
    watcher: watcher && {
      ...watcher,
      startedAt: toIso(watcher.startedAt),
      agents: watcher.agents.map(toAgentJson),
    },
    hooks: hooks.map((state) => ({ ...state, lastAt: toIso(state.lastAt) })),
  };
}

const toDebtJson = (debt: Debt): object => ({
  ...debt,
  requestedAt: toIso(debt.requestedAt),
  nextAttemptAt: toIso(debt.nextAttemptAt),
  leaseUntil: toIso(debt.leaseUntil),
});

export const toGuardJson = (guard: Guard): object => ({ ...guard, openUntil: toIso(guard.openUntil) });

function renderStatus(status: StatusOutput, timezone: string): string {
  const blocks = [renderPairs(describeArchive(status, timezone), style.faint)];
  if (status.conversation !== null && status.folding !== null) {
    blocks.push(renderPairs(describeFolding(status.conversation, status.folding, timezone), style.faint));
  }
  if (status.watcher !== null || status.hooks.length > 0) blocks.push(renderCapture(status, timezone));
  return blocks.join("\n\n");
}

function renderCapture({ watcher, hooks }: StatusOutput, timezone: string): string {
  const lines = renderAgents(watcher?.agents ?? [], Date.now(), { hooks, timezone });
  const agents = lines.map((line, at): [string, string] => [at === 0 ? "Agents" : "", line]);
  return renderPairs([["Watcher", describeWatcher(watcher, timezone)], ...agents], style.faint);
}

function describeWatcher(watcher: StatusOutput["watcher"], timezone: string): string {
  if (watcher?.isRunning !== true) return style.warning("not running; lcm watch starts it");
  return `running since ${formatTime(watcher.startedAt, timezone)}${watcher.hasEvents ? "" : ", by polling"}`;
}

function describeArchive(status: StatusOutput, timezone: string): [string, string][] {
  const pairs: [string, string][] = [
    [
      "Database",
      `${status.databasePath} (${formatBytes(status.databaseBytes)}, schema ${status.schemaVersion})`,
    ],
    [
      "Conversations",
      `${formatCount(status.conversations)} (${formatCount(status.activeConversations)} active)`,
    ],
    ["Messages", `${formatCount(status.messages)}${describeRevisions(status)}`],
    ["Hidden", describeHidden(status.hidden)],
    ["Summaries", formatCount(status.summaries)],
    ["Tokens shown", formatCount(status.tokens)],
    ["Original size", formatBytes(status.arrivalBytes)],
    [
      "Large files",
      status.largeFiles === 0
        ? "none"
        : `${formatCount(status.largeFiles)} (${formatBytes(status.filesBytes)})`,
    ],
    ["Last message", formatTime(status.lastMessageAt, timezone)],
    ["Last stored", formatTime(status.lastStoredAt, timezone)],
    ["Search index", describeIndex(status)],
    ...(status.waitingTurns === 0
      ? []
      : [
          [
            "Waiting",
            style.warning(
              `${countOf(status.waitingTurns, "turn")} on this machine, until the host stores them`,
            ),
          ] as [string, string],
        ]),
    ...status.guards.map((guard): [string, string] => [
      "Paused",
      style.warning(describeGuard(guard, timezone)),
    ]),
  ];
  if (!status.enabled) pairs.unshift(["Storing", style.warning("switched off (enabled: false)")]);
  return pairs;
}

const describeRevisions = ({ revisions }: { readonly revisions: number }, where = "among them"): string =>
  revisions === 0 ? "" : ` (${countOf(revisions, "revision")} ${where})`;

/** Which messages of a conversation the context represents, and what happens to the others. */
export function describeCounts(counts: MessageCounts): string {
  const parts = [`${formatCount(counts.shownMessages)} in the context`, ...listLeftOut(counts)];
  return `${formatCount(counts.messages)}: ${parts.join(", ")}${describeRevisions(counts, "besides them")}`;
}

/** What the context leaves out, and why. */
export function listLeftOut({ hiddenMessages, hidden, beforeBoundary }: MessageCounts): string[] {
  return [
    ...(hiddenMessages > 0 ? [`${formatCount(hiddenMessages)} hidden (${describeHidden(hidden)})`] : []),
    ...(beforeBoundary > 0 ? [`${formatCount(beforeBoundary)} before a boundary`] : []),
  ];
}

function describeHidden(hidden: StatusResult["hidden"]): string {
  const reasons = Object.entries(hidden).filter(([, count]) => count > 0);
  return reasons.length === 0
    ? "none"
    : reasons.map(([reason, count]) => `${formatCount(count)} ${reason}`).join(", ");
}

function describeIndex({ index }: StatusResult): string {
  if (index.kind === "ready" && index.pending > 0)
    return style.good(`ready, ${formatCount(index.pending)} newest messages waiting`);
  if (index.kind === "ready") return style.good("ready");
  return style.warning(`degraded: ${index.reason}; run lcm reindex`);
}

function describeFolding(
  { conversationId, heading }: HeadedConversation,
  folding: Folding,
  timezone: string,
): [string, string][] {
  const { contextTokens, contextMessages, rawTokens, foldRevision, debt, counts } = folding;
  return [
    ["Conversation", `${toOneLine(heading)} ${style.name(String(conversationId))}`],
    ["Messages", describeCounts(counts)],
    ["Context", `${formatCount(contextTokens)} tokens for ${countOf(contextMessages, "message")}`],
    [
      "Compression",
      `${formatCompression(rawTokens, contextTokens)} (${formatCount(rawTokens)} tokens as they are)`,
    ],
    ["Summaries", describeSummaries(folding)],
    ["Epoch", `${formatCount(foldRevision)} changes of the folded part`],
    ["Owed", debt === null ? "nothing" : style.warning(describeDebt(debt, timezone))],
    ["Prompt cache", describeCache(folding)],
  ];
}

function describeSummaries({ summaries }: Folding): string {
  const { cover, reserve, prepared, stale, extractive } = summaries;
  const marks = [
    `${formatCount(extractive)} extractive`,
    stale === 0 ? "0 stale" : style.warning(`${formatCount(stale)} stale`),
  ];
  return `${formatCount(cover)} (${marks.join(", ")}), ${countOf(reserve, "stand-in")}, ${formatCount(prepared)} prepared`;
}

function describeDebt(debt: Debt, timezone: string): string {
  const parts = [
    `compaction for ${formatCount(debt.budgetTokens)} tokens since ${formatTime(debt.requestedAt, timezone)}`,
    ...(debt.attempts === 0
      ? []
      : [`${countOf(debt.attempts, "try", "tries")}, next ${formatTime(debt.nextAttemptAt, timezone)}`]),
    ...(debt.leaseUntil !== null && debt.leaseUntil > Date.now() ? ["being worked on"] : []),
    ...(debt.lastFailure === null ? [] : [toOneLine(debt.lastFailure)]),
  ];
  return parts.join("; ");
}

function describeCache({ cache }: Folding): string {
  if (cache === null || cache.cachedTokens === 0) return "not reported by the provider";
  const { requests, promptTokens, cachedTokens } = cache;
  return `${formatShare(cachedTokens, promptTokens)} of ${formatCount(promptTokens)} prompt tokens in ${countOf(requests, "request")}`;
}
