/**
 * Recall as the engine offers it: search, describe, expand, ask and grants. Resolves who asks and what they may see, clamps what a grant
 * allows, then hands over to `retrieve/`; decides nothing about ranking or rendering itself.
 */
import type { Complete, CompleteResult, ModelRef } from "../model/complete.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import type { Settings } from "../model/settings.ts";
import { DEFAULT_ANSWER_TOKENS, finishAnswer, gatherPassages } from "../retrieve/ask.ts";
import type {
  AskAnswer,
  AskFailure,
  AskFailureCode,
  AskRequest,
  Gathered,
  Written,
} from "../retrieve/ask.ts";
import { checkCitations } from "../retrieve/citations.ts";
import { describe } from "../retrieve/describe.ts";
import type { Described, DescribeRequest } from "../retrieve/describe.ts";
import { DEFAULT_EXPAND_DEPTH, expand } from "../retrieve/expand.ts";
import type { ExpandAnswer, ExpandRequest } from "../retrieve/expand.ts";
import { createGrant } from "../retrieve/grants.ts";
import type { GrantOutcome, GrantRequest } from "../retrieve/grants.ts";
import { grepFullText, MAX_LIMIT } from "../retrieve/grep.ts";
import type { GrepAnswer, GrepRequest } from "../retrieve/grep.ts";
import { ASK_SYSTEM, MAX_ROUNDS, Reading, readReply } from "../retrieve/read-on.ts";
import { grepRegex, readAsWords } from "../retrieve/regex.ts";
import { RegexScanner } from "../retrieve/regex-scanner.ts";
import type { Meaning } from "../retrieve/meaning.ts";
import { resolveReach } from "../retrieve/scope.ts";
import type { Reach, ScopeRequest } from "../retrieve/scope.ts";
import type { Store } from "../store/store.ts";
import { nameCandidate, parseModelRef } from "../summarize/candidates.ts";
import { GuardBook } from "../summarize/guards.ts";
import { callModel } from "../summarize/model-call.ts";

export interface RecallOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly emit: EventSink;
  readonly complete: Complete | null;
  /** The vector of a question, or why there is none. */
  readonly embedQuestion: (request: { text: string; signal?: AbortSignal }) => Promise<Meaning>;
}

const MAX_TIMEOUT_MS = 600_000;
/** Of a grant's tokens, what one call gets that does not say how much it wants: the grant must last for more than one. */
const GRANT_CALL_SHARE = 0.25;

export class Recall {
  #store: Store;
  #settings: Settings;
  #clock: Clock;
  #emit: EventSink;
  #complete: Complete | null;
  #embedQuestion: RecallOptions["embedQuestion"];
  #guards: GuardBook;
  #scanner = new RegexScanner();
  /** Sessions with an answer under way: one at a time each. */
  #asking = new Set<string>();

  constructor(options: RecallOptions) {
    this.#store = options.store;
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#emit = options.emit;
    this.#complete = options.complete;
    this.#embedQuestion = options.embedQuestion;
    this.#guards = new GuardBook(options);
  }

  async grep(request: GrepRequest): Promise<GrepAnswer> {
    const reach = await this.#reach(request);
    if (reach.grant && reach.grant.summaryIds.length > 0) {
      throw new EngineError("denied", "cannot search: the grant of this session is for named summaries", {
        step: { kind: "expand_granted", ids: reach.grant.summaryIds },
      });
    }
    const now = this.#clock.now();
    if (request.scope !== "files" && request.mode === "full_text")
      return grepFullText(this.#store, request, reach, {
        now,
        embedQuestion: () => this.#findMeaning(request, request.pattern),
      });
    const found = await this.#grepRegex(request, reach);
    const words = readAsWords(request.pattern);
    if (found.total > 0 || found.truncated || request.scope === "files" || words === "") return found;
    const answer = await grepFullText(this.#store, { ...request, pattern: words, mode: "full_text" }, reach, {
      now,
    });
    const notes = answer.notes.filter(({ step }) => step?.kind !== "search_regex");
    return {
      ...answer,
      notes: [
        {
          text: "No text matches the regular expression; this is what full text finds for its words.",
          step: null,
        },
        ...notes,
      ],
    };
  }

  #grepRegex(request: GrepRequest, reach: Reach): Promise<GrepAnswer> {
    const pattern = request.mode === "full_text" ? escapePattern(request.pattern) : request.pattern;
    return grepRegex(this.#store, this.#scanner, { ...request, pattern }, reach, Date.now());
  }

  async describe(request: DescribeRequest): Promise<Described> {
    const reach = await this.#reach(request);
    const tokenCap = this.#cap(request.tokenCap, reach);
    const described = await describe(this.#store, request, reach, tokenCap);
    await this.#charge(
      reach,
      described.type === "messages"
        ? described.messages.reduce((sum, { tokens }) => sum + tokens, 0)
        : tokenCap,
    );
    return described;
  }

  async expand(request: ExpandRequest): Promise<ExpandAnswer> {
    const reach = await this.#reach(request);
    const summaryIds = await this.#chooseSummaries(request, reach);
    const answer = await expand(this.#store, { ...request, summaryIds }, reach, {
      firstIds: await this.#findMentions(request, reach),
      tokenCap: this.#cap(request.tokenCap, reach),
      maxDepth: Math.min(request.maxDepth ?? DEFAULT_EXPAND_DEPTH, reach.grant?.maxDepth ?? Infinity),
    });
    await this.#charge(reach, answer.totalTokens);
    return answer;
  }

  /** The named summaries, or those full text finds. */
  async #chooseSummaries(request: ExpandRequest, reach: Reach): Promise<readonly string[]> {
    if (request.summaryIds && request.summaryIds.length > 0) return request.summaryIds;
    const query = request.query?.trim() ?? "";
    if (query === "")
      throw new EngineError("usage", "cannot expand: name summaryIds or a query", {
        step: { kind: "find_ids" },
      });
    if (reach.grant && reach.grant.summaryIds.length > 0) return reach.grant.summaryIds;
    const found = await grepFullText(
      this.#store,
      { ...request, pattern: query, scope: "summaries", limit: 10, sort: "relevance" },
      reach,
      { now: this.#clock.now() },
    );
    return found.hits.flatMap((hit) => (hit.type === "summary" ? [hit.summaryId] : []));
  }

  /** The messages that hold what was asked for: they come first where a query chose the summaries. */
  async #findMentions(request: ExpandRequest, reach: Reach): Promise<number[]> {
    const pattern = request.query?.trim() ?? "";
    if (pattern === "") return [];
    const { hits } = await grepFullText(
      this.#store,
      { pattern, scope: "messages", limit: MAX_LIMIT, sort: "relevance" },
      reach,
      { now: this.#clock.now() },
    );
    return hits.flatMap((hit) => (hit.type === "message" ? [hit.messageId] : []));
  }

  async ask(request: AskRequest): Promise<AskAnswer> {
    if (request.delegated) {
      throw new EngineError("denied", "cannot ask: a sub-agent cannot send another one", {
        step: { kind: "expand_granted", ids: [] },
      });
    }
    const started = Date.now();
    const maxTokens = request.maxTokens ?? DEFAULT_ANSWER_TOKENS;
    const gathered = request.gathered ?? (await this.#gather(request));
    const isWritten = this.#complete !== null && !request.withoutModel && gathered.passages.length > 0;
    if (!isWritten) return finishAnswer(gathered, null, null, maxTokens);
    const asked = await this.#write(request, gathered, maxTokens, started);
    return finishAnswer(asked.gathered, asked.written, asked.failure, maxTokens);
  }

  async #gather(request: AskRequest): Promise<Gathered> {
    const reach = await this.#reach(request);
    return gatherPassages(this.#store, request, reach, {
      tokenCap: this.#cap(request.tokenCap, reach),
      embedQuestion: (text) => this.#findMeaning(request, text),
    });
  }

  /** A vector that came with the request, or a new one. */
  async #findMeaning(
    request: { readonly meaning?: Meaning; readonly signal?: AbortSignal },
    text: string,
  ): Promise<Meaning> {
    const { meaning, signal } = request;
    return meaning ?? this.#embedQuestion({ text, signal });
  }

  /** An answer from the passages and from what the model reads on, by the deadline; else what was read until then. */
  async #write(
    request: AskRequest,
    gathered: Gathered,
    maxTokens: number,
    started: number,
  ): Promise<WriteOutcome & { gathered: Gathered }> {
    const origin = request.session?.key ?? "";
    if (this.#asking.has(origin)) {
      const busy = fail(
        "DELEGATED_EXPANSION_IN_FLIGHT",
        "another question of this session is being answered",
      );
      return { ...busy, gathered };
    }
    this.#asking.add(origin);
    try {
      const reach = await this.#reach(request);
      const { passages } = gathered;
      const tokenCap = this.#cap(request.tokenCap, reach);
      const reading = new Reading(this.#store, request, reach, { tokenCap, passages });
      const limitMs = Math.min(request.timeoutMs ?? this.#settings.delegationTimeoutMs, MAX_TIMEOUT_MS);
      const outcome = await this.#readAndWrite(request, reading, maxTokens, started + limitMs);
      return {
        ...outcome,
        gathered: {
          ...gathered,
          passages: reading.finish(passages),
          expandedSummaryCount: gathered.expandedSummaryCount + reading.countSummaries(),
          truncated: gathered.truncated || outcome.failure !== null,
        },
      };
    } finally {
      this.#asking.delete(origin);
    }
  }

  async #readAndWrite(
    request: AskRequest,
    reading: Reading,
    maxTokens: number,
    deadline: number,
  ): Promise<WriteOutcome> {
    await reading.findLeads();
    for (let roundsLeft = MAX_ROUNDS - 1; ; roundsLeft--) {
      if (!(await this.#guards.allowsCall()))
        return fail("DELEGATED_EXPANSION_SPAWN_FAILED", "the spending rules allow no model call now");
      const result = await this.#callModel(request, reading.render(roundsLeft), {
        conversationId: reading.conversationId,
        maxTokens,
        timeoutMs: Math.max(1, deadline - Date.now()),
      });
      if (result.kind === "failure") return fail(failureCode(result), result.message);
      const reply = readReply(result.text);
      if (reply.kind === "answer") return checkWritten(reply.text, reading.listIds());
      if (roundsLeft === 0 || !reading.canReadOn)
        return fail("DELEGATED_EXPANSION_REPLY_INVALID", "the model read on instead of answering");
      await reading.readOn(reply.commands);
    }
  }

  async #callModel(
    request: AskRequest,
    user: string,
    options: {
      readonly conversationId: number | null;
      readonly maxTokens: number;
      readonly timeoutMs: number;
    },
  ): Promise<CompleteResult> {
    const model = parseModelRef(this.#settings.expansionModel, this.#settings.expansionProvider) ?? null;
    const { conversationId, maxTokens, timeoutMs } = options;
    const started = Date.now();
    const call = {
      model,
      system: ASK_SYSTEM,
      user,
      maxTokens,
      temperature: 0.1,
      purpose: "ask",
      owner: request.session?.owner,
    };
    const signal = request.signal ?? new AbortController().signal;
    const result = await callModel(this.#complete as Complete, call, { signal, timeoutMs });
    await this.#record(model, result, conversationId, Date.now() - started);
    return result;
  }

  async #record(
    asked: ModelRef | null,
    result: CompleteResult,
    conversationId: number | null,
    durationMs: number,
  ): Promise<void> {
    const isText = result.kind === "text";
    const ref = isText ? result.model : asked;
    const inputTokens = (isText ? result.inputTokens : null) ?? 0;
    const outputTokens = (isText ? result.outputTokens : null) ?? 0;
    await this.#store.recordSpend({
      at: this.#clock.now(),
      conversationId,
      purpose: "ask",
      provider: ref?.provider ?? "host",
      model: ref?.model ?? "default",
      inputTokens,
      outputTokens,
      durationMs,
      outcome: isText ? "accepted" : result.failure,
    });
    this.#emit({ kind: "spend", purpose: "ask", model: nameCandidate(ref), inputTokens, outputTokens });
  }

  async createGrant(request: GrantRequest): Promise<GrantOutcome> {
    const grantId = `grant_${Buffer.from(this.#clock.random(8)).toString("hex")}`;
    const owner = this.#settings.shareAcrossOwners ? undefined : request.session.owner;
    const tokenCap = this.#settings.maxExpandTokens;
    return createGrant(this.#store, request, { now: this.#clock.now(), grantId, tokenCap, owner });
  }

  async revokeGrants(which: { grantId?: string; issuerKey?: string; holderKey?: string }): Promise<number> {
    return this.#store.revokeGrants(which, this.#clock.now());
  }

  /** Gives up texts that are kept in memory between searches. */
  async dropTexts(): Promise<void> {
    await this.#scanner.drop();
  }

  async close(): Promise<void> {
    await this.#scanner.close();
  }

  /** Tokens a call may give back: what it asks for, what the settings allow, what its grant has left. */
  #cap(asked: number | undefined, { grant }: Reach): number {
    if (asked !== undefined && (!Number.isInteger(asked) || asked < 1)) {
      throw new EngineError("usage", `cannot give ${asked} tokens: tokenCap is a whole number from 1 on`);
    }
    if (grant === null) return asked ?? this.#settings.maxExpandTokens;
    const wanted = asked ?? Math.ceil(grant.tokenCap * GRANT_CALL_SHARE);
    const left = grant.tokenCap - grant.tokensUsed;
    if (left <= 0)
      throw new EngineError("denied", "cannot read more: the tokens of the grant are used up", {
        hint: "answer from what was read",
      });
    return Math.min(wanted, left);
  }

  async #charge({ grant }: Reach, tokens: number): Promise<void> {
    if (grant !== null) await this.#store.chargeGrant(grant.grantId, tokens, this.#clock.now());
  }

  #reach(request: ScopeRequest): Promise<Reach> {
    return resolveReach({ store: this.#store, settings: this.#settings, now: this.#clock.now() }, request);
  }
}

interface WriteOutcome {
  readonly written: Written | null;
  readonly failure: AskFailure | null;
}

function checkWritten(answer: string, readIds: readonly string[]): WriteOutcome {
  const { text, citedIds, unknown, uncited } = checkCitations(answer, readIds);
  if (text === "") return fail("DELEGATED_EXPANSION_REPLY_MISSING", "the model answered nothing");
  if (citedIds.length === 0 && unknown.length > 0) {
    return fail(
      "DELEGATED_EXPANSION_REPLY_INVALID",
      `the answer cites ids that were not read: ${unknown.slice(0, 5).join(", ")}`,
    );
  }
  return { written: { text, citedIds, uncited }, failure: null };
}

const fail = (errorCode: AskFailureCode, error: string): WriteOutcome => ({
  written: null,
  failure: { errorCode, error },
});

function failureCode(result: CompleteResult & { kind: "failure" }): AskFailureCode {
  if (result.failure === "timeout") return "DELEGATED_EXPANSION_TIMEOUT";
  if (result.failure === "invalid_response") return "DELEGATED_EXPANSION_REPLY_INVALID";
  return result.failure === "aborted"
    ? "DELEGATED_EXPANSION_WAIT_FAILED"
    : "DELEGATED_EXPANSION_SPAWN_FAILED";
}

/** Files have no index of words: a full-text pattern is looked for in their lines as it is written. */
const escapePattern = (text: string): string => text.trim().replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
