/**
 * The context engine that OpenClaw calls; it translates to calls of our engine. It decides little: the transcript and the archive determine what
 * is stored and how rows are identified and placed; the engine chooses what is shown. The host creates a new instance for every turn; an
 * instance holds the attempts of its turn, everything else is in the archive or shared by the process.
 *
 * Invariants: whatever fails, the host's turn continues, and `status` reports the failure; sessions that are not captured are left to the host.
 */

import { nameModel, RECALL_GUIDANCE } from "@lossless/core";
import type { SessionRef, Settings } from "@lossless/core";
import { given } from "@lossless/core/doors";
import { resolveThreshold } from "@lossless/core/settings";
import { Attempt, readModel, type Snapshot } from "./assemble/attempt.ts";
import type { CatchUpResult } from "./capture/catch-up.ts";
import { Capture } from "./capture/capture.ts";
import { estimateTokens } from "./assemble/context-view.ts";
import { compactSession, describeMaintenance, maintainSession, noteAnswered } from "./assemble/folding.ts";
import type {
  AssembleParams,
  AssembleResult,
  BootstrapResult,
  CompactParams,
  CompactResult,
  ContextEngine,
  ContextEngineInfo,
  IngestBatchParams,
  PluginLogger,
} from "./host/host.ts";
import type { MediaSource } from "./capture/media.ts";
import { findBase, findCap, learnFromTurn, readLearned, readSituation } from "./assemble/token-room.ts";
import { compileCapturePolicy, readAddress } from "./host/session.ts";
import type { EngineLease } from "./host/shared-engine.ts";
import type { Spool } from "./capture/spool.ts";
import type { SubagentGrants } from "./host/subagents.ts";
import type { TranscriptReader } from "./capture/transcript.ts";
import { describeError, Outages } from "./host/outages.ts";

export const ENGINE_ID = "lossless-claw";

export interface ContextEngineParts {
  readonly settings: Settings;
  readonly lease: Pick<EngineLease, "open" | "inOrder" | "discard" | "memory" | "models">;
  readonly reader: TranscriptReader;
  /** Where the host keeps files that messages name. */
  readonly media?: MediaSource | undefined;
  readonly spool: Spool;
  readonly grants: SubagentGrants;
  readonly delegateCompaction: (params: CompactParams) => Promise<CompactResult>;
  /** The memory plugin's text for the system prompt. */
  readonly describeMemory: (params: {
    availableTools: Set<string>;
    citationsMode?: unknown;
    agentSessionKey?: string;
  }) => string | undefined;
  /** Sends the users of a chat a notice, through their agent. */
  readonly tell: (session: SessionRef, text: string) => void;
  readonly logger: PluginLogger;
  readonly version: string;
}

export function createContextEngine(parts: ContextEngineParts): ContextEngine {
  const { lease, reader, logger } = parts;
  const isCaptured = compileCapturePolicy(parts.settings);
  const attempts = new Map<string, Attempt>();
  const outages = new Outages(lease.memory, logger);
  const capture = new Capture({ ...parts, outages });

  function startAttempt(sessionId: string): Attempt {
    const attempt = new Attempt();
    attempts.set(sessionId, attempt);
    return attempt;
  }

  async function readFor(params: IngestBatchParams): Promise<number> {
    const { session } = readAddress(params);
    const attempt = attempts.get(session.id);
    if (attempt) attempt.isStandalone = true;
    return isCaptured(session.key) ? await capture.readFor(params) : 0;
  }

  return {
    info: describeEngine(parts.version, parts.settings.enabled),

    async bootstrap(params) {
      const { session } = readAddress(params);
      const attempt = startAttempt(session.id);
      if (!isCaptured(session.key)) return { bootstrapped: false, reason: "this session is not kept" };
      try {
        const read = await capture.read(params);
        attempt.caughtUp = read.kind === "caught-up";
        if (attempt.caughtUp) outages.end("archive");
        return describeRead(read);
      } catch (error) {
        outages.begin("archive", error);
        return { bootstrapped: false, reason: describeError(error) };
      }
    },

    async commitTurn(params) {
      const { session } = readAddress(params);
      if (!isCaptured(session.key)) return { status: "committed" };
      learnFromTurn(lease.memory.session(session.id), params);
      noteAnswered(outages, session);
      return { status: await capture.commit(params) };
    },

    async assemble(params) {
      const { session, target } = readAddress(params);
      if (!isCaptured(session.key)) return passThrough(params);
      const attempt = attempts.get(session.id) ?? startAttempt(session.id);
      const sessionMemory = lease.memory.session(session.id);
      sessionMemory.model = readModel(params) ?? sessionMemory.model;
      const learned = readLearned(sessionMemory);
      const { model, contextWindow } = readSituation(params, sessionMemory);
      const snapshot = await attempt.assemble(
        { open: () => lease.open(), reader, session, target, contextWindow },
        params,
        findCap(learned),
        sessionMemory.heldTokens,
      );
      if (attempt.chosenFor !== undefined) sessionMemory.heldTokens = attempt.chosenFor;
      if (snapshot.fallback === null) outages.end("context");
      else
        outages.begin("context", new Error(`the host's own messages were used because ${snapshot.fallback}`));
      const situation = { model: nameModel(model), sessionKey: session.key, contextWindow };
      const { contextThreshold } = resolveThreshold(parts.settings, situation);
      sessionMemory.baseTokens = findBase(learned, attempt.baseTokens ?? Infinity, contextThreshold);
      sessionMemory.sentTokens = snapshot.estimatedTokens;
      sessionMemory.wasTight = snapshot.isTight;
      return describeSnapshot(snapshot, params);
    },

    async ingest(params) {
      return { ingested: (await readFor({ ...params, messages: [params.message] })) > 0 };
    },

    async ingestBatch(params) {
      return { ingestedCount: await readFor(params) };
    },

    async afterTurn(params) {
      await readFor({ ...params, messages: params.messages.slice(params.prePromptMessageCount) });
    },

    async compact(params) {
      const { session } = readAddress(params);
      if (!isCaptured(session.key)) return await parts.delegateCompaction(params);
      attempts.delete(session.id);
      return await compactSession({ lease, outages }, params, session);
    },

    async maintain(params) {
      const { session } = readAddress(params);
      const isLent = params.runtimeContext?.allowDeferredCompactionExecution === true;
      if (!isCaptured(session.key) || !isLent) return describeMaintenance("nothing to maintain");
      if (parts.settings.proactiveThresholdCompactionMode === "workers")
        return describeMaintenance("workers maintain this archive");
      return await maintainSession({ lease, outages }, params, session);
    },

    async prepareSubagentSpawn(params) {
      if (!isCaptured(params.parentSessionKey)) return undefined;
      return await parts.grants.prepare(params);
    },

    async onSubagentEnded({ childSessionKey }) {
      await parts.grants.end(childSessionKey);
    },

    async dispose() {
      // The shared engine outlives this instance; the plugin's service closes it.
      attempts.clear();
    },
  };

  function describeSnapshot(snapshot: Snapshot, params: AssembleParams): AssembleResult {
    const { messages, estimatedTokens, contextProjection } = snapshot;
    const addition = describePrompt(params);
    return {
      messages: [...messages],
      estimatedTokens,
      contextProjection,
      ...(addition === "" ? {} : { systemPromptAddition: addition }),
    };
  }

  /** Short, and the same at every turn: it is in the part of the prompt that providers cache. */
  function describePrompt({ availableTools, citationsMode, sessionKey }: AssembleParams): string {
    const tools = new Set(availableTools ?? []);
    const memory = parts.describeMemory({
      availableTools: tools,
      ...given({ citationsMode, agentSessionKey: sessionKey }),
    });
    const own = tools.has("lcm_grep") ? RECALL_GUIDANCE : FOLDING_GUIDE;
    return [own, memory ?? ""].filter((text) => text !== "").join("\n\n");
  }
}

const FOLDING_GUIDE =
  "Older parts of this conversation may appear as <summary> blocks; the messages behind them are kept.";

function passThrough({ messages }: AssembleParams): AssembleResult {
  return { messages: [...messages], estimatedTokens: estimateTokens(messages) };
}

function describeRead(read: CatchUpResult | { kind: "later" }): BootstrapResult {
  switch (read.kind) {
    case "caught-up":
      return { bootstrapped: true, importedMessages: read.stored };
    case "missing":
      return { bootstrapped: false, reason: "the session has no transcript yet" };
    case "later":
      return { bootstrapped: false, reason: "the history is being read in the background" };
    case "unavailable":
      return { bootstrapped: false, reason: read.reason };
  }
}

function describeEngine(version: string, enabled: boolean): ContextEngineInfo {
  return {
    id: ENGINE_ID,
    name: "Lossless Claw",
    version,
    ownsCompaction: enabled,
    turnMaintenanceMode: "background",
    transcriptSemantics: {
      currentTurnFence: "before-current-turn-entry-v1",
      turnAdvancementIdempotency: "atomic-idempotent-v1",
    },
  };
}
