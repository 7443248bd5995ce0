/**
 * The port to a model for programs that run outside a host: plain HTTP to Anthropic, OpenAI, or any compatible server. The settings must name a
 * model; a key in the environment alone never sends a conversation anywhere.
 */
import { listCandidates, parseModelRef } from "@lossless/core";
import type { Complete, CompleteRequest, CompleteResult, ModelRef, Settings } from "@lossless/core";
import type { Environment } from "@lossless/core/settings";
import { anthropic } from "./anthropic.ts";
import type { Dialect, Endpoint } from "./dialect.ts";
import { findEndpoint } from "./endpoints.ts";
import { openai } from "./openai.ts";
import { learnQuirk, type Quirk } from "./quirks.ts";
import { explainOutcome, send, type SendResult } from "./send.ts";

export interface OpenCompleteOptions {
  readonly settings: Pick<
    Settings,
    | "summaryModel"
    | "summaryProvider"
    | "fallbackProviders"
    | "expansionModel"
    | "expansionProvider"
    | "largeFileSummaryModel"
    | "largeFileSummaryProvider"
  >;
  readonly env: Environment;
  readonly stateDir: string;
  /** The longest pause within a stream. */
  readonly stallMs?: number;
}

/** Thinking models pause for long between two events; a broken connection never resumes. */
const DEFAULT_STALL_MS = 45_000;
/** A model that rejects more parameters than this is not going to answer. */
const MAX_CORRECTIONS = 4;

const DIALECTS: Readonly<Record<Endpoint["api"], Dialect>> = { anthropic, openai };

/** Null when the settings name no model. */
export function openComplete(options: OpenCompleteOptions): Complete | null {
  const byDefault = findDefaultModel(options.settings);
  if (byDefault === null) return null;
  const lessons = new Map<string, Quirk[]>();
  return async (request, signal) => {
    const ref = request.model ?? byDefault;
    const endpoint = await findEndpoint(ref, options);
    if ("kind" in endpoint) return endpoint;
    const key = `${endpoint.provider}/${ref.model}`;
    const quirks = lessons.get(key) ?? [];
    lessons.set(key, quirks);
    const attempt = {
      endpoint,
      model: ref.model,
      request,
      quirks,
      stallMs: options.stallMs ?? DEFAULT_STALL_MS,
    };
    return complete(attempt, signal);
  };
}

/** The model of a request that names none: the first one configured for any purpose. */
function findDefaultModel(settings: OpenCompleteOptions["settings"]): ModelRef | null {
  return (
    listCandidates(settings)[0] ??
    parseModelRef(settings.expansionModel, settings.expansionProvider) ??
    parseModelRef(settings.largeFileSummaryModel, settings.largeFileSummaryProvider) ??
    null
  );
}

interface CallPlan {
  readonly endpoint: Endpoint;
  readonly model: string;
  readonly request: CompleteRequest;
  /** Grows with every rejection that named a parameter. */
  readonly quirks: Quirk[];
  readonly stallMs: number;
}

async function complete(plan: CallPlan, signal: AbortSignal): Promise<CompleteResult> {
  const { endpoint, model, quirks, stallMs } = plan;
  const dialect = DIALECTS[endpoint.api];
  const call = {
    dialect,
    url: dialect.locate(endpoint),
    headers: { ...dialect.authorize(endpoint), ...endpoint.headers },
    stallMs,
  };
  for (let correction = 0; ; correction++) {
    const asked = dialect.buildBody(endpoint, model, plan.request);
    const body = quirks.reduce((changed, quirk) => quirk(changed), asked);
    const outcome = await send({ ...call, body }, signal);
    const quirk = isCorrectable(outcome) ? learnQuirk(body, outcome.error.message) : null;
    if (quirk === null || correction >= MAX_CORRECTIONS) return toResult(outcome, plan);
    quirks.push(quirk);
  }
}

function isCorrectable(outcome: SendResult): outcome is Extract<SendResult, { kind: "refused" }> {
  return outcome.kind === "refused" && (outcome.status === 400 || outcome.status === 422);
}

function toResult(outcome: SendResult, { endpoint, model }: CallPlan): CompleteResult {
  if (outcome.kind !== "answer") return explainOutcome(outcome, endpoint);
  const { text, inputTokens, outputTokens } = outcome.answer;
  const answered = { provider: endpoint.provider, model: outcome.answer.model ?? model };
  return { kind: "text", text, model: answered, inputTokens, outputTokens };
}
