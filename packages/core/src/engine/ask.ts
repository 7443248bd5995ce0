/**
 * Answers a question: gathers cited passages and, if there is a model, has it write an answer from them. The model may read on before it
 * answers. The passages are returned whatever the model does.
 *
 * Invariant: no call starts after the deadline, and each session has at most one answer in progress.
 */
import type { Complete, CompleteRequest, CompleteResult } from "../model/complete.ts";
import { EngineError } from "../model/errors.ts";
import { DEFAULT_ANSWER_TOKENS, finishAnswer, gatherPassages } from "../recall/ask.ts";
import type { AskFailure, AskFailureCode, AskRequest, AskResult, Gathered, Written } from "../recall/ask.ts";
import { checkCitations } from "../recall/citations.ts";
import { ASK_SYSTEM, MAX_ROUNDS, Reading, readReply } from "../recall/read-on.ts";
import { parseModelRef } from "../summarize/candidates.ts";
import { callMetered } from "./metered-call.ts";
import { capTokens, findReach } from "./reach.ts";
import type { EngineState } from "./state.ts";

const MAX_TIMEOUT_MS = 600_000;

export async function ask(engine: EngineState, request: AskRequest): Promise<AskResult> {
  if (request.delegated) {
    throw new EngineError("denied", "cannot ask: a sub-agent cannot start another one", {
      step: { kind: "expand_granted", ids: [] },
    });
  }
  const started = Date.now();
  const maxTokens = request.maxTokens ?? DEFAULT_ANSWER_TOKENS;
  const gathered = await gather(engine, request);
  const { complete } = engine;
  if (complete === null || request.withoutModel || gathered.passages.length === 0)
    return finishAnswer(gathered, null, null, maxTokens);
  const asked = await writeOnce(engine, complete, request, gathered, { maxTokens, started });
  return finishAnswer(asked.gathered, asked.written, asked.failure, maxTokens);
}

async function gather(engine: EngineState, request: AskRequest): Promise<Gathered> {
  const reach = await findReach(engine, request);
  return gatherPassages(engine.store, request, reach, {
    tokenCap: capTokens(engine, request.tokenCap, reach),
    embedQuestion: (text) => engine.writer.embedQuestion({ text, signal: request.signal }),
  });
}

/** An answer from the passages and what the model reads on, by the deadline; otherwise what was read until then. */
async function writeOnce(
  engine: EngineState,
  complete: Complete,
  request: AskRequest,
  gathered: Gathered,
  { maxTokens, started }: { readonly maxTokens: number; readonly started: number },
): Promise<WriteResult & { gathered: Gathered }> {
  const origin = request.session?.key ?? "";
  if (engine.recall.asking.has(origin)) {
    const busy = fail("DELEGATED_EXPANSION_IN_FLIGHT", "another question of this session is being answered");
    return { ...busy, gathered };
  }
  engine.recall.asking.add(origin);
  try {
    const reach = await findReach(engine, request);
    const { passages } = gathered;
    const tokenCap = capTokens(engine, request.tokenCap, reach);
    const reading = new Reading(engine.store, request, reach, { tokenCap, passages });
    const limitMs = Math.min(request.timeoutMs ?? engine.settings.delegationTimeoutMs, MAX_TIMEOUT_MS);
    const outcome = await readAndWrite(engine, complete, request, reading, {
      maxTokens,
      deadline: started + limitMs,
    });
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
    engine.recall.asking.delete(origin);
  }
}

async function readAndWrite(
  engine: EngineState,
  complete: Complete,
  request: AskRequest,
  reading: Reading,
  { maxTokens, deadline }: { readonly maxTokens: number; readonly deadline: number },
): Promise<WriteResult> {
  await reading.findLeads();
  for (let roundsLeft = MAX_ROUNDS - 1; ; roundsLeft--) {
    if (!(await engine.guards.allowsCall()))
      return fail("DELEGATED_EXPANSION_SPAWN_FAILED", "the spending rules allow no model call now");
    const timeoutMs = deadline - Date.now();
    if (timeoutMs <= 0) return fail("DELEGATED_EXPANSION_TIMEOUT", "no time was left to call the model");
    const result = await callMetered(engine, complete, {
      request: buildCall(engine, request, reading.render(roundsLeft), maxTokens),
      signal: request.signal ?? engine.closing.signal,
      timeoutMs,
      conversationId: reading.conversationId,
      part: "summariser",
    });
    if (result.kind === "failure") return fail(failureCode(result), result.message);
    const reply = readReply(result.text);
    if (reply.kind === "answer") return checkWritten(reply.text, reading.listIds());
    if (roundsLeft === 0 || !reading.canReadOn)
      return fail("DELEGATED_EXPANSION_REPLY_INVALID", "the model read on instead of answering");
    await reading.readOn(reply.commands);
  }
}

function buildCall(
  { settings }: EngineState,
  { session }: AskRequest,
  user: string,
  maxTokens: number,
): CompleteRequest {
  return {
    model: parseModelRef(settings.expansionModel, settings.expansionProvider) ?? null,
    system: ASK_SYSTEM,
    user,
    maxTokens,
    temperature: 0.1,
    purpose: "ask",
    owner: session?.owner,
  };
}

interface WriteResult {
  readonly written: Written | null;
  readonly failure: AskFailure | null;
}

function checkWritten(answer: string, readIds: readonly string[]): WriteResult {
  const { text, citedIds, unknown, uncited } = checkCitations(answer, readIds);
  if (text === "") return fail("DELEGATED_EXPANSION_REPLY_MISSING", "the model gave no answer");
  if (citedIds.length === 0 && unknown.length > 0) {
    return fail(
      "DELEGATED_EXPANSION_REPLY_INVALID",
      `the answer cites ids that were not read: ${unknown.slice(0, 5).join(", ")}`,
    );
  }
  return { written: { text, citedIds, uncited }, failure: null };
}

const fail = (errorCode: AskFailureCode, error: string): WriteResult => ({
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
