/**
 * `/lcm` and `/lossless` in the chat. Answers are short, because they are read in a chat; they report the numbers the engine acts on. Only
 * senders known to the host can change anything.
 */

import { CHAT_WORDS } from "./chat-words.ts";
import { EngineError, hintFor, isServerAddress } from "@lossless/core";
import type { Engine, Settings } from "@lossless/core";
import { planRewrite } from "@lossless/core/repair";
import type { RewriteTarget } from "@lossless/core/repair";
import { backUpInThread } from "../host/chores.ts";
import { describeEstimate, estimateFolding } from "../assemble/fold-estimate.ts";
import type { CommandContext, CommandDefinition } from "../host/host.ts";
import type { HostSettings } from "../host/host-settings.ts";
import { compileCapturePolicy, readAgentId } from "../host/session.ts";
import type { EngineLease } from "../host/shared-engine.ts";
import type { Spool } from "../capture/spool.ts";
import {
  cutAnswer,
  renderConfig,
  renderDoctor,
  renderHits,
  renderRepair,
  renderSpend,
  renderStatus,
  renderVerify,
  type Findings,
} from "./command-text.ts";

export interface CommandParts {
  readonly settings: Settings;
  /** Where the settings came from, and which of them were rejected. */
  readonly resolved: Pick<HostSettings, "defaults" | "stopped">;
  readonly lease: Pick<EngineLease, "open" | "memory">;
  readonly spool: Pick<Spool, "size" | "listAside">;
  /** Why a configured model cannot be used, from the check at startup; empty when all can. */
  readonly preflight?: () => readonly string[];
}

const NAMES = ["lcm", "lossless"];
const DAY_MS = 86_400_000;

interface Ask {
  readonly parts: CommandParts;
  readonly context: CommandContext;
  /** The text after the word. */
  readonly rest: string;
}

interface Word {
  readonly help: string;
  readonly changes: boolean;
  /** What may follow: any text, or one of these words. Absent: nothing. */
  readonly takes?: "text" | readonly string[];
  answer(ask: Ask): Promise<string>;
}

const WORDS: Readonly<Record<string, Word>> = {
  status: {
    help: "what is stored, what is folded, what does not work",
    changes: false,
    answer: answerStatus,
  },
  compact: {
    help: "fold now; words after it say what the summaries should keep",
    changes: true,
    takes: "text",
    answer: answerCompact,
  },
  search: {
    help: "find messages of this chat: /lcm search <words>",
    changes: false,
    takes: "text",
    answer: answerSearch,
  },
  spend: { help: "what summaries cost in the last week", changes: false, answer: answerSpend },
  verify: { help: "prove that every message is there, byte for byte", changes: false, answer: answerVerify },
  doctor: {
    help: "what is wrong and what to do; doctor apply does it",
    changes: false,
    takes: ["apply"],
    answer: answerDoctor,
  },
  config: { help: "settings that differ from the defaults", changes: false, answer: answerConfig },
  backup: { help: "write a proven copy of the archive beside it", changes: true, answer: answerBackup },
  rotate: { help: "nothing to rotate on this host", changes: false, answer: answerRotate },
  help: { help: "this list", changes: false, answer: async () => HELP },
};

const HELP = [
  "Lossless Claw keeps every message of this chat.",
  ...Object.entries(WORDS).map(([word, { help }]) => `/lcm ${word} – ${help}`),
].join("\n");

export function createCommands(parts: CommandParts): CommandDefinition[] {
  return NAMES.map((name) => ({
    name,
    description: "Lossless Claw: what is kept, folded and found",
    acceptsArgs: true,
    requireAuth: true,
    handler: async (context) => ({ text: cutAnswer(await answer(parts, context)) }),
  }));
}

async function answer(parts: CommandParts, context: CommandContext): Promise<string> {
  const [, name = "status", rest = ""] = /^\s*(\S+)?\s*(.*)$/s.exec(context.args ?? "") ?? [];
  const word = Object.hasOwn(WORDS, name.toLowerCase()) ? WORDS[name.toLowerCase()] : undefined;
  if (word === undefined) return `There is no "${name.slice(0, 40)}".\n${HELP}`;
  const refusal = refuseRest(name.toLowerCase(), word, rest.trim());
  if (refusal !== null) return refusal;
  if (word.changes && context.isAuthorizedSender === false)
    return "Only senders known to the host can do that.";
  if (!parts.settings.enabled && word !== WORDS["help"] && word !== WORDS["config"])
    return describeOff(parts.resolved.stopped);
  try {
    return await word.answer({ parts, context, rest: rest.trim() });
  } catch (error) {
    return renderFailure(error, await parts.spool.size().catch(() => 0));
  }
}

/** Refuses text that would be ignored: it would look as if it had been done. */
function refuseRest(name: string, { takes = [] }: Word, rest: string): string | null {
  if (takes === "text" || rest === "" || takes.includes(rest.toLowerCase())) return null;
  const allowed = [name, ...takes.map((word) => `${name} ${word}`)].map((call) => `/lcm ${call}`);
  return `There is no "/lcm ${name} ${rest.slice(0, 40)}". Nothing was done. Use ${allowed.join(" or ")}.`;
}

function describeOff(stopped: string | null): string {
  if (stopped === null) return "Lossless Claw is switched off (enabled: false). Nothing is stored.";
  return `Lossless Claw: ${stopped}. The host compacts this chat meanwhile; once the setting is corrected, the transcript is read and stored.`;
}

function ownerOf({ agentId, sessionKey }: CommandContext): string | undefined {
  return agentId ?? (sessionKey === undefined ? undefined : readAgentId(sessionKey));
}

async function examine({ parts, context }: Ask): Promise<Findings> {
  const { settings, lease, spool } = parts;
  const { sessionKey } = context;
  const owner = ownerOf(context);
  const engine = await lease.open();
  const status = await engine.status({
    owner,
    sessionKey,
  });
  return {
    status,
    isKept: sessionKey === undefined || compileCapturePolicy(settings)(sessionKey),
    outages: lease.memory.outages,
    spooledTurns: await spool.size(),
    asideFiles: await spool.listAside(),
    preflight: parts.preflight?.() ?? [],
  };
}

async function answerStatus(ask: Ask): Promise<string> {
  return renderStatus(await examine(ask));
}

async function answerDoctor(ask: Ask): Promise<string> {
  if (ask.rest.toLowerCase() === "apply") return await applyDoctor(ask);
  const findings = await examine(ask);
  return renderDoctor({ ...findings, damaged: await planRepair(ask, findings) });
}

/** Damaged summaries of this chat, lowest depth first. */
async function planRepair({ parts }: Ask, { status }: Findings): Promise<RewriteTarget[]> {
  if (status.conversation === null) return [];
  const { conversationId } = status.conversation;
  const targets = await planRewrite(await parts.lease.open(), { conversationId, isDamaged: true });
  // A summary that is not shorter than its sources loses nothing; regenerating it would cost and change little.
  return targets.filter(({ damage }) => damage !== "not_smaller");
}

/** The maximum number of repairs per answer in a chat: each may cost a model call. */
const MAX_REPAIRS = 25;

/** Repairs only what can be rebuilt from stored data. */
async function applyDoctor(ask: Ask): Promise<string> {
  if (ask.context.isAuthorizedSender === false) return "Only senders known to the host can do that.";
  const findings = await examine(ask);
  const engine = await ask.parts.lease.open();
  const done: string[] = [];
  if (findings.status.index.kind !== "ready") {
    const { messages } = await engine.reindex();
    done.push(`The search index was made again over ${messages.toLocaleString("en")} messages.`);
  }
  const damaged = await planRepair(ask, findings);
  if (damaged.length > 0) done.push(await repairSummaries(engine, damaged));
  return done.length === 0 ? "Nothing to repair here." : done.join("\n");
}

/** Lowest depth first, so that a better text below feeds the one above it. Old texts are kept and can be opened. */
async function repairSummaries(engine: Engine, damaged: readonly RewriteTarget[]): Promise<string> {
  let written = 0;
  const kept: string[] = [];
  for (const { summaryId } of damaged.slice(0, MAX_REPAIRS)) {
    try {
      const { newId } = await engine.rewriteSummary({ summaryId, dryRun: false, mustHeal: true });
      if (newId === null) kept.push(`${summaryId}: no better text could be had`);
      else written += 1;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      kept.push(`${summaryId}: ${error.message}`);
    }
  }
  return renderRepair({ written, kept, left: Math.max(0, damaged.length - MAX_REPAIRS) });
}

async function answerCompact(ask: Ask): Promise<string> {
  const { context, parts, rest } = ask;
  const owner = ownerOf(context);
  const { sessionKey } = context;
  if (sessionKey === undefined || owner === undefined) return "There is no chat here to fold.";
  const viaHost = rest === "" ? context.runtimeContext?.compactCurrent : undefined;
  if (viaHost !== undefined) return describeFold(await viaHost());
  const engine = await parts.lease.open();
  const { items } = await engine.listConversations({ owner, sessionKey, limit: 1 });
  const [conversation] = items;
  if (conversation === undefined) return "Nothing of this chat is stored yet.";
  const { conversationId, sessionId } = conversation;
  const sessionMemory = parts.lease.memory.session(sessionId);
  const budgetTokens =
    sessionMemory.baseTokens ?? (await engine.readSession({ owner, sessionId }))?.baseTokens;
  if (budgetTokens == null)
    return "The room of the model is not known before its first answer. Send a message, then try again.";
  const folded = await engine.compact({
    conversationId,
    owner,
    budgetTokens,
    force: true,
    model: sessionMemory.model,
    customInstructions: rest || undefined,
  });
  return describeFold(folded);
}

function describeFold(fold: {
  compacted: boolean;
  reason?: string;
  tokensBefore?: number;
  tokensAfter?: number;
  targetTokens?: number;
  targetReached?: boolean;
}): string {
  const count = (tokens: number | undefined): string => (tokens ?? 0).toLocaleString("en");
  const missed =
    fold.targetReached === false
      ? ` Target not reached: it was to have at most ${count(fold.targetTokens)} tokens, but ${fold.reason ?? "nothing more can be folded"}.`
      : "";
  if (!fold.compacted) return `Nothing was folded: ${fold.reason ?? "there is nothing to fold"}.${missed}`;
  return `Folded: about ${count(fold.tokensBefore)} tokens became ${count(fold.tokensAfter)}.${missed} Every message is still there.`;
}

async function answerSearch({ parts, context, rest }: Ask): Promise<string> {
  if (rest === "") return "Say what to look for: /lcm search <words>";
  const owner = ownerOf(context);
  const engine = await parts.lease.open();
  const { items } = await engine.listConversations({
    owner,
    sessionKey: context.sessionKey,
    limit: 100,
  });
  const found = await engine.search({
    query: rest,
    limit: 5,
    conversationIds: items.map((conversation) => conversation.conversationId),
    owner,
  });
  return renderHits(found, parts.settings.timezone);
}

async function answerSpend({ parts }: Ask): Promise<string> {
  const engine = await parts.lease.open();
  const since = Date.now() - 7 * DAY_MS;
  const { items } = await engine.listConversations({ limit: 1000 });
  const estimate = describeEstimate(estimateFolding(items, parts.settings));
  const spent = renderSpend(
    await engine.spend({ since, by: "day" }),
    await engine.spend({ since, by: "model" }),
  );
  return estimate === "" ? spent : `${spent}\n${estimate}`;
}

async function answerVerify({ parts }: Ask): Promise<string> {
  return renderVerify(await (await parts.lease.open()).verify());
}

async function answerConfig({ parts }: Ask): Promise<string> {
  const { settings, resolved } = parts;
  // If invalid redaction settings switched it off, nobody has set that.
  const enabled = settings.enabled || resolved.stopped !== null;
  return renderConfig({ ...settings, enabled }, resolved.defaults);
}

async function answerBackup({ parts }: Ask): Promise<string> {
  const { path, messages, files } = await backUpInThread(parts.settings);
  const isOnServer = isServerAddress(parts.settings.databasePath);
  const back = isOnServer ? "lcm import reads one into an empty database" : "lcm restore brings one back";
  const count = (value: number, word: string): string =>
    `${value.toLocaleString("en")} ${word}${value === 1 ? "" : "s"}`;
  return `A proven copy with ${count(messages, "message")} and ${count(files, "large file")} is ${path}. lcm backup list shows all of them, ${back}.`;
}

async function answerRotate(): Promise<string> {
  return "On this host transcripts are in the host's own database; there are no session files to rotate. Nothing was changed.";
}

function renderFailure(error: unknown, spooledTurns: number): string {
  const next = error instanceof EngineError ? hintFor(error, CHAT_WORDS) : undefined;
  const hint = next === undefined ? "" : `\n${next}`;
  const waiting =
    spooledTurns === 0
      ? ""
      : `\n${spooledTurns} turns wait safely in lcm-spool and are stored when it is back.`;
  return `Lossless Claw cannot read its archive: ${error instanceof Error ? error.message : String(error)}${hint}${waiting}`;
}
