/**
 * The engine's access to a model: the host's own `llm.complete`. While the host lends a session's capability (in `compact` and `maintain`), that
 * one is used, because it is bound to the session's agent; otherwise the plugin's own. Never throws: the host's errors become the engine's kinds
 * of failure, because each kind is handled differently.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { nameModel, parseModelRef } from "@lossless/core";
import type { Complete, CompleteRequest, CompleteResult, ModelRef } from "@lossless/core";
import { given } from "@lossless/core/doors";
import type { CompleteFailureKind } from "@lossless/core/ports";
import type { HostModels } from "../doctor-contract.ts";
import type { HostLlm, HostSubagents, LlmAnswer, LlmParams, SessionParams } from "./host.ts";

/** A capability and its scope in the host: outside the scope, or after its end, the host refuses the call. */
interface Access {
  readonly llm: HostLlm;
  readonly run: InScope;
  /** The model of the session, if the host named it. */
  readonly hint?: ModelRef | undefined;
}

/** What a call of the host says about its session's model. */
export type SessionSituation = Pick<SessionParams, "runtimeContext" | "runtimeSettings">;

/** The host's sub-agents and the scope to call them in. */
export interface Delegate {
  readonly subagents: HostSubagents;
  readonly run: InScope;
  readonly timeoutMs: number;
}

const DEFAULT_AGENT = "main";

export type InScope = <T>(task: () => T) => T;

export class ModelAccess {
  /** Called when a call fails, with the host's error message. */
  onFailure: (message: string) => void = () => undefined;
  onSuccess: () => void = () => undefined;
  /** The models that the host would use for summaries, and those that it lets this plugin name. */
  hostModels: HostModels = { compaction: undefined, isAllowed: () => false };
  #own: (Access & { readonly isLasting: boolean }) | undefined;
  #lent: Access[] = [];
  #delegates: Delegate[] = [];

  /** The plugin's own capability. The gateway's is valid as long as the process; that of an agent run is not. */
  useOwn(llm: HostLlm | undefined, run: InScope = (task) => task(), isLasting = true): void {
    if (llm !== undefined && (isLasting || this.#own?.isLasting !== true))
      this.#own = { llm, run, isLasting };
  }

  /** Uses the host's sub-agents while a question about the folded history is answered: they belong to the tool call that asks it. */
  async lendDelegate<T>(delegate: Delegate | undefined, task: () => Promise<T>): Promise<T> {
    if (delegate === undefined) return await task();
    this.#delegates.push(delegate);
    try {
      return await task();
    } finally {
      this.#delegates.splice(this.#delegates.indexOf(delegate), 1);
    }
  }

  /** Uses a lent capability while a task runs. */
  async lend<T>(situation: SessionSituation, task: () => Promise<T>): Promise<T> {
    const llm = situation.runtimeContext?.llm;
    if (llm === undefined) return await task();
    const access = { llm, run: AsyncLocalStorage.snapshot() as InScope, hint: readHint(situation) };
    this.#lent.push(access);
    try {
      return await task();
    } finally {
      this.#lent.splice(this.#lent.indexOf(access), 1);
    }
  }

  readonly complete: Complete = async (request, signal) => {
    const delegated = await this.#askDelegate(request, signal);
    if (delegated?.kind === "text" || signal.aborted) return this.#report(delegated ?? ABORTED);
    const answer = await this.#askInOrder(request, signal);
    return this.#report(answer.kind === "text" || delegated === null ? answer : addReason(answer, delegated));
  };

  /**
   * The host chooses the model of a request without one: its compaction model, the session's model, or another. A question whose model the host
   * refuses is repeated without naming one.
   */
  async #askInOrder(request: CompleteRequest, signal: AbortSignal): Promise<CompleteResult> {
    for (const model of this.#listModels(request)) {
      const answer = await this.#askPlainly({ ...request, model }, signal);
      if (answer.kind === "text" || signal.aborted || answer.failure === "overflow") return answer;
    }
    const answer = await this.#askPlainly(request, signal);
    const isRefused = answer.kind === "failure" && answer.failure === "denied";
    return isRefused && request.purpose === "ask" && request.model !== null
      ? await this.#askPlainly({ ...request, model: null }, signal)
      : answer;
  }

  /** Models to try before the host chooses. Models that it does not let this plugin name are left to its choice. */
  #listModels({ model, purpose }: CompleteRequest): ModelRef[] {
    if (model !== null || purpose === "ask") return [];
    const { compaction, isAllowed } = this.hostModels;
    const named = [compaction, this.#findLent()?.hint].filter((one) => one !== undefined);
    const byName = new Map(named.map((one) => [nameModel(one), one]));
    return [...byName].filter(([name]) => isAllowed(name)).map(([, one]) => one);
  }

  /** With several active sessions, the capability of a call cannot be determined. */
  #findLent(): Access | undefined {
    return this.#lent.length === 1 ? this.#lent[0] : undefined;
  }

  async #askPlainly(request: CompleteRequest, signal: AbortSignal): Promise<CompleteResult> {
    const lent = this.#findLent();
    const answer = lent === undefined ? null : await ask(lent, request, signal);
    // The host revokes what it lent when a turn begins; the work itself continues.
    if (answer !== null && answer !== TAKEN_BACK) return answer;
    if (this.#own === undefined) return fail("unavailable", "the host offers no model here");
    const own = await ask(this.#own, request, signal);
    return own === TAKEN_BACK ? fail("unavailable", "the host ended the call") : own;
  }

  /** Null when the call is not for a sub-agent. If a sub-agent cannot answer, the model is called directly. */
  async #askDelegate(request: CompleteRequest, signal: AbortSignal): Promise<CompleteResult | null> {
    // With several questions at once, the sub-agents of this one cannot be determined.
    const delegate = this.#delegates.length === 1 ? this.#delegates[0] : undefined;
    if (delegate === undefined || request.purpose !== "ask" || request.model === null) return null;
    const { model } = request;
    try {
      const { text } = await delegate.run(() =>
        delegate.subagents.complete({
          agentId: request.owner ?? DEFAULT_AGENT,
          message: request.user,
          extraSystemPrompt: request.system,
          model: nameModel(model),
          timeoutMs: delegate.timeoutMs,
          signal,
        }),
      );
      if (typeof text !== "string" || text.trim() === "")
        return fail("invalid_response", "the sub-agent answered without text");
      return { kind: "text", text, model, inputTokens: null, outputTokens: null };
    } catch (error) {
      return readFailure(error, signal, model);
    }
  }

  #report(result: CompleteResult): CompleteResult {
    if (result.kind === "text") this.onSuccess();
    if (result.kind === "failure" && result.failure !== "aborted")
      this.onFailure(`${result.failure}: ${result.message}`);
    return result;
  }
}

function readHint({ runtimeContext, runtimeSettings }: SessionSituation): ModelRef | undefined {
  const { provider, modelId, model } = runtimeContext ?? {};
  const settled = runtimeSettings?.model;
  return parseModelRef(modelId ?? model ?? settled?.resolved ?? "", provider ?? settled?.provider ?? "");
}

/** Both ways failed: append the first reason to the second. */
function addReason(answer: CompleteResult, delegated: CompleteResult): CompleteResult {
  if (answer.kind !== "failure" || delegated.kind !== "failure") return answer;
  return { ...answer, message: `${answer.message} (through a sub-agent: ${delegated.message})` };
}

const ABORTED = fail("aborted", "the call was cancelled");
const TAKEN_BACK = Symbol("the host took its capability back");

async function ask(
  { llm, run }: Access,
  request: CompleteRequest,
  signal: AbortSignal,
): Promise<CompleteResult | typeof TAKEN_BACK> {
  try {
    const params: LlmParams = {
      systemPrompt: request.system,
      messages: [{ role: "user", content: request.user }],
      maxTokens: request.maxTokens,
      ...given({
        model: request.model === null ? undefined : nameModel(request.model),
        temperature: request.temperature,
        reasoning: request.allowReasoning === true ? undefined : "off",
      }),
      purpose: `lossless-claw ${request.purpose}`,
      signal,
    };
    return readAnswer(await run(() => llm.complete(params)));
  } catch (error) {
    const isAbort = (error as { name?: string }).name === "AbortError";
    return isAbort && !signal.aborted ? TAKEN_BACK : readFailure(error, signal, request.model);
  }
}

function readAnswer({ text, provider, model, stopReason, usage }: LlmAnswer): CompleteResult {
  if (typeof text !== "string" || text.trim() === "" || stopReason === "error")
    return fail("invalid_response", `the model answered without text (${stopReason ?? "no reason given"})`);
  const cached = (usage?.cacheReadTokens ?? 0) + (usage?.cacheWriteTokens ?? 0);
  return {
    kind: "text",
    text,
    model: { provider, model },
    inputTokens: usage?.inputTokens === undefined ? null : usage.inputTokens + cached,
    outputTokens: usage?.outputTokens ?? null,
  };
}

/** Maps error names of the host and the provider to our kinds; the first match decides. */
const KINDS: readonly (readonly [RegExp, CompleteFailureKind])[] = [
  [/NOT_AUTHORIZED|cannot override/i, "denied"],
  [/context.?length|context.?window|too many tokens|prompt is too long|overflow/i, "overflow"],
  [/rate.?limit|\b429\b|quota|overloaded/i, "rate_limited"],
  [/\b401\b|\b403\b|api key|unauthori[sz]ed|authentication|credential/i, "auth"],
  [/time.?d? ?out|ETIMEDOUT/i, "timeout"],
];

export function readFailure(error: unknown, signal: AbortSignal, model: ModelRef | null): CompleteResult {
  if (signal.aborted) return fail("aborted", "the call was cancelled");
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  const kind = KINDS.find(([pattern]) => pattern.test(`${code} ${message}`))?.[1] ?? "unavailable";
  if (kind !== "denied" || model === null) return fail(kind, message);
  return fail(kind, `${message} ${explainOverride(nameModel(model))}`);
}

/** The line of the host's configuration that lets the plugin use its own model. */
export function explainOverride(model: string): string {
  return `Allow it with plugins.entries.lossless-claw.llm = {"allowModelOverride": true, "allowedModels": ["${model}"]}.`;
}

function fail(failure: CompleteFailureKind, message: string): CompleteResult {
  return { kind: "failure", failure, message };
}
