/**
 * Turns a run into a summary. Candidates are tried in order, each with the normal prompt and, if its answer does not pass the gate, with
 * the aggressive one; if no model writes an acceptable text, the extractive summariser does. Guards decide whether a model is called at
 * all, and every call is in the ledger.
 *
 * Invariants: a summary always comes back, unless the caller cancelled; nothing a model wrote is returned without passing the gate; an answer that
 * passed it is stored with its cost before anything else happens, and is not thrown away if the caller cancelled meanwhile.
 */
import type {
  Complete,
  CompleteFailureKind,
  CompleteRequest,
  CompleteResult,
  ModelRef,
} from "../model/complete.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import type { Settings } from "../settings/settings.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import type { SpendRecord } from "../store/folding.ts";
import type { Store } from "../store/store.ts";
import { type Candidate, listCandidates, nameCandidate } from "./candidates.ts";
import { summarizeExtractively } from "./extractive.ts";
import { acceptSummary, type RejectReason } from "./gate.ts";
import { GuardBook } from "./guards.ts";
import { callModel } from "./model-call.ts";
import { openRun } from "./open-run.ts";
import { buildSummaryPrompt, type SummaryMode } from "./prompts.ts";
import { cleanSources, renderSources } from "./render-sources.ts";
import { readSources, type RunSource, showRanges } from "./run-sources.ts";
import type { SourceLine } from "./source.ts";
import { describeSpend, emitSpend, recordSpend } from "./spend.ts";
import type { Summarize, SummarizeRequest, SummarizeResult } from "./summarize.ts";

export interface SummarizerOptions {
  readonly store: Pick<Store, "recordSpend" | "countSpendCalls" | "sumSpend" | "readGuards" | "saveGuard">;
  readonly settings: Settings;
  /** Null: there is no model, and the extractive summariser is the normal way. */
  readonly complete: Complete | null;
  /** The host's compaction or runtime model; null lets the host choose; absent without a host. */
  readonly hostModel?: ModelRef | null;
  readonly clock: Pick<Clock, "now">;
  readonly emit: EventSink;
}

export function createSummarizer(options: SummarizerOptions): Summarize {
  const { complete, settings } = options;
  const desk: Desk = { ...options, guards: new GuardBook(options) };
  const candidates = listCandidates(settings, options.hostModel);
  return async (request) => {
    checkAborted(request.signal);
    const sources = readSources(request.run);
    const job = { request, settings, sources: cleanSources(sources, settings.stripInjectedContextTags) };
    const sourcesText = complete === null ? "" : renderForModel(sources, settings);
    if (complete === null || sourcesText === "")
      return extract(await openSources(job), request.targetTokens, false);
    const modelJob = { ...job, sourcesText, targets: planTargets(request) };
    const written = await writeWithModel({ ...desk, complete }, modelJob, candidates);
    if (written !== null) return written;
    checkAborted(request.signal);
    const targetTokens = Math.min(request.targetTokens, settings.fallbackMaxTokens);
    return extract(await openSources(job), targetTokens, true);
  };
}

function checkAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new EngineError("aborted", "cannot summarise a run: the caller cancelled");
}

// ---- the job

interface Job {
  readonly request: SummarizeRequest;
  readonly settings: Settings;
  /** Without injected context, reasoning and encoded payloads. */
  readonly sources: readonly SourceLine[];
}

interface ModelJob extends Job {
  readonly sourcesText: string;
  readonly targets: Readonly<Record<SummaryMode, number>>;
}

function renderForModel(sources: readonly RunSource[], settings: Settings): string {
  const { timezone: timeZone, stripInjectedContextTags: stripTags } = settings;
  return renderSources(showRanges(sources, timeZone), { timeZone, stripTags });
}

/** A small run gets a small target, so that folding it saves something. */
const MAX_SHARE = { leaf: 0.35, condensed: 0.6 };
const MIN_TARGET_TOKENS = 192;
const AGGRESSIVE_SHARE_OF_TARGET = 0.55;
const AGGRESSIVE_SHARE_OF_LEAF = 0.2;
const MIN_AGGRESSIVE_TOKENS = 96;

function planTargets({ depth, sourceTokens, targetTokens }: SummarizeRequest): ModelJob["targets"] {
  const share = depth === 0 ? MAX_SHARE.leaf : MAX_SHARE.condensed;
  const normal = Math.min(targetTokens, Math.max(MIN_TARGET_TOKENS, Math.floor(share * sourceTokens)));
  const lower = Math.floor(
    depth === 0
      ? Math.min(AGGRESSIVE_SHARE_OF_TARGET * normal, AGGRESSIVE_SHARE_OF_LEAF * sourceTokens)
      : AGGRESSIVE_SHARE_OF_TARGET * normal,
  );
  return { normal, aggressive: Math.min(normal, Math.max(MIN_AGGRESSIVE_TOKENS, lower)) };
}

/** The job with messages replacing summaries that were written without a model, if the caller allows reading them. */
async function openSources(job: Job): Promise<Job> {
  const { request, settings } = job;
  if (request.readSources === undefined) return job;
  const run = await openRun(request.run, request.readSources);
  return { ...job, sources: cleanSources(readSources(run), settings.stripInjectedContextTags) };
}

/** `isStandIn` marks a text made because no model's summary was available; doctor finds and remakes it. */
function extract(job: Job, targetTokens: number, isStandIn: boolean): SummarizeResult {
  const { text, tokens } = summarizeExtractively({
    sources: job.sources,
    depth: job.request.depth,
    targetTokens,
    replacedTokens: job.request.depth === 0 ? undefined : job.request.sourceTokens,
    estimate: estimateTextTokens,
    timeZone: job.settings.timezone,
    previous: job.request.previous ?? undefined,
    isStart: job.request.isStart,
    marker: isStandIn,
  });
  return { content: text, tokens, model: "extractive", level: "extractive" };
}

// ---- asking models

interface Desk extends Omit<SummarizerOptions, "complete"> {
  readonly guards: GuardBook;
}

interface ModelDesk extends Desk {
  readonly complete: Complete;
}

type Attempt =
  | { readonly kind: "accepted"; readonly result: SummarizeResult }
  | { readonly kind: "rejected"; readonly reason: Rejection }
  | { readonly kind: "failed"; readonly failure: CompleteFailureKind; readonly retryAfterMs: number }
  /** The spending rules do not allow the call. */
  | { readonly kind: "blocked" };

/** The gate sees only a text; that it is truncated is visible only from its cost. */
type Rejection = RejectReason | "cut_off";

async function writeWithModel(
  desk: ModelDesk,
  job: ModelJob,
  candidates: readonly Candidate[],
): Promise<SummarizeResult | null> {
  for (const candidate of candidates) {
    if (!(await desk.guards.allowsCandidate(candidate))) continue;
    const attempt = await askCandidate(desk, job, candidate);
    await noteOutcome(desk.guards, candidate, attempt);
    if (attempt.kind === "accepted") return attempt.result;
    if (attempt.kind === "blocked" || job.request.signal.aborted) return null;
  }
  return null;
}

async function askCandidate(desk: ModelDesk, job: ModelJob, candidate: Candidate): Promise<Attempt> {
  const first = await ask(desk, job, candidate, {
    mode: "normal",
    sourcesText: job.sourcesText,
    moreRoom: false,
  });
  if (first.kind === "rejected") {
    const moreRoom = NEEDS_ROOM.has(first.reason);
    return ask(desk, job, candidate, { mode: "aggressive", sourcesText: job.sourcesText, moreRoom });
  }
  if (first.kind === "failed" && first.failure === "overflow") {
    return ask(desk, job, candidate, {
      mode: "aggressive",
      sourcesText: shortenSources(job),
      moreRoom: false,
    });
  }
  return first;
}

/** Outcomes when reasoning used up the room for the answer. */
const NEEDS_ROOM: ReadonlySet<Rejection> = new Set(["empty", "reasoning_only", "cut_off"]);

/** The share of the sources that is kept when they are too large for a model: their best lines, not their first. */
const SHORTENED_SHARE = 0.4;

function shortenSources(job: ModelJob): string {
  const targetTokens = Math.max(
    2 * job.targets.normal,
    Math.floor(estimateTextTokens(job.sourcesText) * SHORTENED_SHARE),
  );
  return extract(job, targetTokens, false).content;
}

async function noteOutcome(guards: GuardBook, candidate: Candidate, attempt: Attempt): Promise<void> {
  switch (attempt.kind) {
    case "blocked":
      return;
    case "accepted":
      return guards.noteAccepted(candidate);
    case "rejected":
      return guards.noteTrouble(candidate, `its summaries were not accepted (${attempt.reason})`);
    case "failed":
      if (attempt.failure === "aborted") return;
      if (attempt.failure === "auth" || attempt.failure === "denied")
        return guards.noteRefused(candidate, attempt.failure);
      return guards.noteTrouble(candidate, attempt.failure, attempt.retryAfterMs);
  }
}

// ---- one call

interface Plan {
  readonly mode: SummaryMode;
  readonly sourcesText: string;
  readonly moreRoom: boolean;
}

const TEMPERATURES: Readonly<Record<SummaryMode, number>> = { normal: 0.2, aggressive: 0.1 };

async function ask(desk: ModelDesk, job: ModelJob, candidate: Candidate, plan: Plan): Promise<Attempt> {
  if (!(await desk.guards.allowsCall())) return { kind: "blocked" };
  if (job.request.signal.aborted) return { kind: "failed", failure: "aborted", retryAfterMs: 0 };
  const request = buildRequest(job, candidate, plan);
  const startedAt = desk.clock.now();
  const answer = await callModel(desk.complete, request, {
    signal: job.request.signal,
    timeoutMs: job.settings.summaryTimeoutMs,
  });
  const attempt = judge(job, plan, request, answer);
  const { conversationId } = job.request;
  const now = desk.clock.now();
  const spent = {
    ...describeSpend(request, answer, { conversationId, at: startedAt, now }),
    outcome: describeOutcome(attempt),
  };
  await keepOrRecord(desk, job.request, attempt, spent);
  if (answer.kind === "text") await desk.guards.noteAnswer(candidate);
  return attempt;
}

async function keepOrRecord(
  { store, emit }: ModelDesk,
  { keep }: SummarizeRequest,
  attempt: Attempt,
  spent: SpendRecord,
): Promise<void> {
  if (attempt.kind === "accepted" && keep !== undefined) {
    await keep(attempt.result, spent);
    emitSpend(emit, spent);
  } else {
    await recordSpend(
      { recordSpend: (record) => store.recordSpend(record), emit, part: "summariser" },
      spent,
    );
  }
}

function buildRequest(job: ModelJob, candidate: Candidate, plan: Plan): CompleteRequest {
  const { request, settings } = job;
  const targetTokens = job.targets[plan.mode];
  const prompt = buildSummaryPrompt({
    depth: request.depth,
    mode: plan.mode,
    sourcesText: plan.sourcesText,
    targetTokens,
    customInstructions: request.customInstructions ?? settings.customInstructions,
    timeZone: settings.timezone,
    previous: request.previous ?? undefined,
    briefs: request.briefs,
  });
  return {
    model: candidate,
    ...prompt,
    maxTokens: planRoom(targetTokens, settings.enableSummaryThinking) * (plan.moreRoom ? 2 : 1),
    temperature: TEMPERATURES[plan.mode],
    purpose: request.purpose,
    allowReasoning: settings.enableSummaryThinking,
  };
}

/** Tokenizers differ, and reasoning counts toward the same limit. */
function planRoom(targetTokens: number, mayThink: boolean): number {
  return Math.ceil(targetTokens * 1.5) + 256 + (mayThink ? 2048 : 0);
}

function judge(job: ModelJob, plan: Plan, request: CompleteRequest, answer: CompleteResult): Attempt {
  if (answer.kind === "failure")
    return { kind: "failed", failure: answer.failure, retryAfterMs: answer.retryAfterMs ?? 0 };
  const verdict = acceptSummary({
    text: answer.text,
    sourcesText: job.sourcesText,
    sourceTokens: job.request.sourceTokens,
    targetTokens: job.targets.normal,
    estimate: estimateTextTokens,
    maxOverageFactor: job.settings.summaryMaxOverageFactor,
  });
  if (verdict.kind === "rejected") return verdict;
  if ((answer.outputTokens ?? 0) >= request.maxTokens) return { kind: "rejected", reason: "cut_off" };
  const { text: content, tokens } = verdict;
  return {
    kind: "accepted",
    result: { content, tokens, model: nameCandidate(answer.model), level: plan.mode },
  };
}

function describeOutcome(attempt: Attempt): string {
  if (attempt.kind === "rejected") return `rejected:${attempt.reason}`;
  return attempt.kind === "failed" ? `failed:${attempt.failure}` : attempt.kind;
}
