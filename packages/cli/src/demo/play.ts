/**
 * The demo's first part: the sample conversation as it happened, turn by turn, in a small window. After each turn the context is assembled and
 * checked; when it reaches its threshold it is folded, as in a host.
 */
import { assert, must } from "@lossless/core";
import type { Arrival, AssembledContext, Engine } from "@lossless/core";
import { importTranscript } from "@lossless/interchange";
import type { ImportTarget } from "@lossless/interchange";
import { viewMessage } from "@lossless/core/testing";
import {
  countOf,
  describeGrammars,
  formatCompression,
  formatCount,
  formatSeconds,
  formatShare,
} from "@lossless/core/doors";
import { startProgress } from "../progress.ts";
import { style } from "../style.ts";
import { renderTable } from "../table.ts";
import type { Tour } from "./tour.ts";

export const BUDGET_TOKENS = 32_000;
const ROWS = [10, 30, 50, 100];
const BUDGETS = [2000, 8000, 32_000, 200_000];
const WINDOW_COLUMNS = 32;
const TABLE_BAR = 24;

/** The state after a turn. */
interface Moment {
  readonly turn: number;
  /** Tokens of all messages so far. */
  readonly rawTokens: number;
  readonly contextTokens: number;
}

export async function playConversation(tour: Tour): Promise<void> {
  tour.explain(
    "Six weeks of an agent's work for a small plant shop: talk, tools, logs, a pasted inventory, in English, German, Spanish, Chinese and Japanese. Its model has room for 32,000 tokens. At three quarters of that, what is old is folded into summaries; no model is needed for it.",
  );
  tour.say("");
  const startedAt = performance.now();
  const player = await tour.withArchive(async (engine) => {
    const played = new Player(tour, engine);
    // One batch: the player splits it into turns itself.
    await importTranscript({ engine: played, path: tour.sample, batchLines: 1e6, batchBytes: 2 ** 30 });
    return played;
  });
  const took = formatSeconds(performance.now() - startedAt);
  const { moments, folds, sharedChars, promptChars } = player;
  tour.say("");
  tour.tell(
    `${style.good("ok")}  ${countOf(moments.length, "turn")} in ${took}, ${countOf(folds, "fold")}. After every single turn the context`,
  );
  tour.tell("    fits its budget, stands for every message, and five providers accept it.");
  tour.tell(
    `    ${formatShare(sharedChars, promptChars)} of a prompt is the front of the one before: providers cache it.\n`,
  );
  tour.tell(renderGrowth(moments));
}

/** The target of the importer: stores turn by turn and keeps the context within its budget. */
class Player implements ImportTarget {
  readonly moments: Moment[] = [];
  folds = 0;
  /** Over all prompts: the front shared with the prompt before, and the total. */
  sharedChars = 0;
  promptChars = 0;
  readonly #tour: Tour;
  readonly #engine: Engine;
  readonly #window = startProgress("   Window", { isWanted: true });
  #rawTokens = 0;
  #coverTokens = 0;
  #prompt: readonly string[] = [];

  constructor(tour: Tour, engine: Engine) {
    this.#tour = tour;
    this.#engine = engine;
  }

  async ingest(request: Parameters<ImportTarget["ingest"]>[0]): ReturnType<ImportTarget["ingest"]> {
    const { session, messages, cursor } = request;
    // Also for a cursor without messages, which the importer writes at the end.
    const turns = messages.length === 0 ? [[]] : splitTurns(messages);
    const results = [];
    let conversationId = 0;
    for (const [index, turn] of turns.entries()) {
      const isLast = index === turns.length - 1;
      const answer = await this.#engine.ingest({
        session,
        messages: turn,
        cursor: isLast && cursor ? cursor : undefined,
      });
      results.push(...answer.results);
      conversationId = answer.conversationId;
      if (turn.length > 0) await this.#finishTurn(conversationId, turns.length);
    }
    this.#window.finish();
    return { conversationId, results, skipped: null };
  }

  readSession: ImportTarget["readSession"] = (request) => this.#engine.readSession(request);
  knownEvents: ImportTarget["knownEvents"] = (request) => this.#engine.knownEvents(request);
  findSessions: ImportTarget["findSessions"] = (request) => this.#engine.findSessions(request);
  relabelSession: ImportTarget["relabelSession"] = (request) => this.#engine.relabelSession(request);
  setBranch: ImportTarget["setBranch"] = (request) => this.#engine.setBranch(request);

  async #finishTurn(conversationId: number, turns: number): Promise<void> {
    const turn = this.moments.length + 1;
    const size = { conversationId, budgetTokens: BUDGET_TOKENS };
    const fold = await this.#engine.compact(size);
    // Tokens that a fold saves still count as said.
    this.#rawTokens += fold.tokensBefore - this.#coverTokens;
    this.#coverTokens = fold.tokensAfter;
    if (fold.compacted) {
      this.folds += 1;
      await this.#engine.maintain(size);
      this.#window.finish();
      this.#tour.tell(renderFold(turn, fold.tokensBefore, fold.tokensAfter));
    }
    const context = must(
      await this.#engine.assemble({ ...size, checkGrammars: true }),
      "the context of the sample",
    );
    checkContext(context, turn);
    this.#comparePrompt(context);
    const contextTokens = context.estimatedTokens;
    this.moments.push({ turn, rawTokens: this.#rawTokens, contextTokens });
    this.#window.update(
      contextTokens,
      BUDGET_TOKENS,
      `turn ${turn} of ${turns}, ${formatCount(contextTokens)} tokens`,
    );
  }

  #comparePrompt({ messages }: AssembledContext): void {
    const prompt = messages.map((message) => JSON.stringify(message));
    const firstChange = prompt.findIndex((message, index) => message !== this.#prompt[index]);
    const length = (list: readonly string[]): number => list.reduce((sum, text) => sum + text.length, 0);
    this.sharedChars += length(firstChange < 0 ? prompt : prompt.slice(0, firstChange));
    this.promptChars += length(prompt);
    this.#prompt = prompt;
  }
}

/** A turn begins with a user message. */
function splitTurns(messages: readonly Arrival[]): Arrival[][] {
  const turns: Arrival[][] = [[]];
  let hasUser = false;
  for (const message of messages) {
    const isUser =
      (message.hidden ?? []).length === 0 && viewMessage(must(message.bytes, "a line")).role === "user";
    if (isUser && hasUser) turns.push([]);
    hasUser ||= isUser;
    turns.at(-1)?.push(message);
  }
  return turns;
}

function checkContext(context: AssembledContext, turn: number): void {
  const { estimatedTokens, items, shownMessages } = context;
  const represented = items.reduce((sum, item) => sum + item.messages, 0);
  assert(estimatedTokens <= BUDGET_TOKENS, `turn ${turn}: ${estimatedTokens} tokens are over the budget`);
  assert(
    represented === shownMessages,
    `turn ${turn}: ${represented} of ${shownMessages} messages are there`,
  );
  for (const { provider, problem } of describeGrammars(context)) {
    assert(problem === null, `turn ${turn}: ${provider} refuses the context, ${problem}`);
  }
}

function renderFold(turn: number, before: number, after: number): string {
  const columns = (tokens: number): number =>
    Math.min(WINDOW_COLUMNS, Math.round((tokens / BUDGET_TOKENS) * WINDOW_COLUMNS));
  const [kept, full] = [columns(after), columns(before)];
  const bar =
    style.good("█".repeat(kept)) +
    style.warning("▓".repeat(full - kept)) +
    style.faint("░".repeat(WINDOW_COLUMNS - full));
  return `turn ${String(turn).padStart(3)}  ${bar}  ${formatCount(before)} tokens, folded to ${formatCount(after)}`;
}

function renderGrowth(moments: readonly Moment[]): string {
  const last = must(moments.at(-1), "the last turn");
  const rows = [...ROWS.flatMap((turn) => moments[turn - 1] ?? []), last];
  const columns = (tokens: number): number => Math.round((tokens / last.rawTokens) * TABLE_BAR);
  return renderTable(
    [
      { title: "TURNS", align: "right" },
      { title: "RAW TOKENS", align: "right" },
      { title: "CONTEXT", align: "right" },
      { title: "COMPRESSION", align: "right" },
      { title: "" },
    ],
    rows.map(({ turn, rawTokens, contextTokens }) => {
      const [kept, all] = [columns(contextTokens), columns(rawTokens)];
      return [
        formatCount(turn),
        formatCount(rawTokens),
        formatCount(contextTokens),
        formatCompression(rawTokens, contextTokens),
        style.good("█".repeat(kept)) + style.faint("░".repeat(Math.max(0, all - kept))),
      ];
    }),
    { maxWidth: null, styleTitle: style.faint },
  );
}

/** The same conversation for models with smaller and larger windows. */
export async function showBudgets(tour: Tour): Promise<void> {
  const rows = await tour.withArchive(async (engine) => {
    const { items } = await engine.listConversations({ limit: 1 });
    const conversationId = must(items[0], "the sample's conversation").conversationId;
    const lines: string[][] = [];
    for (const budgetTokens of BUDGETS) {
      const startedAt = performance.now();
      const context = must(
        await engine.assemble({ conversationId, budgetTokens }),
        "the context of the sample",
      );
      lines.push(describeBudget(context, performance.now() - startedAt));
    }
    return lines;
  });
  tour.tell(
    renderTable(
      [
        { title: "BUDGET", align: "right" },
        { title: "CONTEXT", align: "right" },
        { title: "VERBATIM", align: "right" },
        { title: "SUMMARIES", align: "right" },
        { title: "STANDS FOR", align: "right" },
        { title: "TIME", align: "right", style: style.faint },
      ],
      rows,
      { maxWidth: null, styleTitle: style.faint },
    ),
  );
}

function describeBudget(
  { budgetTokens, estimatedTokens, items }: AssembledContext,
  tookMs: number,
): string[] {
  const count = (kind: string): number => items.filter((item) => item.kind === kind).length;
  return [
    formatCount(budgetTokens),
    formatCount(estimatedTokens),
    formatCount(count("message")),
    formatCount(count("summary")),
    countOf(
      items.reduce((sum, item) => sum + item.messages, 0),
      "message",
    ),
    formatSeconds(tookMs),
  ];
}
