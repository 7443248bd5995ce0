/**
 * The context engine that OpenClaw calls, as a translation into calls of our engine. It decides little: what is stored, how rows are
 * known and where they belong is settled by the transcript and the archive; what is shown is chosen by the engine. The host makes a new
 * instance for every turn; an instance holds the attempts of its turn, everything else is in the archive or shared by the process.
 *
 * Kept here: a turn is reported as committed only after its rows and its advancement key are stored in one transaction, or its record is
 * safely in the spool; and whatever fails, the host's turn goes on.
 */

import { POSITION_STEP, type Arrival, type Engine, type SessionRef, type Settings } from "@lossless/core";
import type { ModelIdentity } from "@lossless/core/model/message.ts";
import { RECALL_GUIDANCE } from "@lossless/core/tools/index.ts";
import { Attempt, readModel, type Snapshot } from "./attempt.ts";
import { catchUp, type CatchUpResult, type CatchUpTurn, type TurnSituation } from "./catch-up.ts";
import { estimateTokens } from "./context-view.ts";
import type {
  AgentMessage,
  AssembleParams,
  AssembleResult,
  BootstrapResult,
  CommitTurnParams,
  CompactParams,
  CompactResult,
  ContextEngine,
  ContextEngineInfo,
  IngestBatchParams,
  MaintainParams,
  MaintainResult,
  PluginLogger,
  SessionParams,
} from "./host.ts";
import {
  nameTurnRows,
  parseReaderState,
  readMarks,
  writeReaderState,
  type UnnamedTurn,
} from "./reader-state.ts";
import { compileCapturePolicy, readAddress, type SessionAddress } from "./session.ts";
import { isDatabaseFailure, type EngineLease } from "./shared-engine.ts";
import type { SessionNote } from "./notes.ts";
import type { Spool, SpooledTurn } from "./spool.ts";
import type { SubagentGrants } from "./subagents.ts";
import type { TranscriptReader } from "./transcript.ts";

export const ENGINE_ID = "lossless-claw";

export interface ContextEngineParts {
  readonly settings: Settings;
  readonly lease: Pick<EngineLease, "open" | "inOrder" | "notes" | "models">;
  readonly reader: TranscriptReader;
  readonly spool: Spool;
  readonly grants: SubagentGrants;
  readonly delegateCompaction: (params: CompactParams) => Promise<CompactResult>;
  /** What the memory plugin wants to say in the system prompt. */
  readonly describeMemory: (params: {
    availableTools: Set<string>;
    citationsMode?: unknown;
    agentSessionKey?: string;
  }) => string | undefined;
  readonly logger: PluginLogger;
  readonly version: string;
}

/** A long history is read in the background beyond this; the turn goes on with the host's own messages. */
const BOOTSTRAP_LIMIT_MS = 4_000;
/** Without a first call to learn from: the share of a window that is left for messages. */
const SHARE_OF_WINDOW = 0.6;
/** After an overflow the next context is at most this share of the one that was too large. */
const OVERFLOW_SHARE = 0.7;
/** What the host keeps of a window for the answer. */
const HOST_RESERVE_TOKENS = 20_000;
const HOST_RESERVE_SHARE = 0.25;
/** The host asks for compaction when a prompt takes more than about three quarters of the window. */
const WINDOW_SHARE = 0.7;
/** The host's own part of a prompt never takes more than the rest of this from the messages. */
const MIN_SHARE = 0.3;
/** A context below this is not what made a prompt overflow. */
const MIN_CAP_TOKENS = 500;

export function createContextEngine(parts: ContextEngineParts): ContextEngine {
  const { lease, reader, logger, spool } = parts;
  const isCaptured = compileCapturePolicy(parts.settings);
  const attempts = new Map<string, Attempt>();

  /** Runs a task for a session whose messages are kept, after every earlier task of the session. */
  async function withSession<T>(
    params: SessionParams,
    otherwise: T,
    task: (engine: Engine, address: SessionAddress) => Promise<T>,
  ): Promise<T> {
    const address = readAddress(params);
    if (!isCaptured(address.session.key)) return otherwise;
    return await lease.inOrder(address.session.id, async () => await task(await lease.open(), address));
  }

  function startAttempt(sessionId: string): Attempt {
    const attempt = new Attempt();
    attempts.set(sessionId, attempt);
    return attempt;
  }

  function noteFailure(part: string, error: unknown): void {
    if (lease.notes.fail(part, error))
      logger.warn(`${part}: ${error instanceof Error ? error.message : String(error)}`);
  }

  function noteSuccess(part: string): void {
    if (lease.notes.recover(part)) logger.info(`${part}: works again`);
  }

  /** Reads the transcript for messages that came outside a durable turn; stores the messages themselves only where there is none. */
  async function requestRead(params: IngestBatchParams): Promise<number> {
    const attempt = attempts.get(readAddress(params).session.id);
    if (attempt) attempt.isStandalone = true;
    return await withSession(params, 0, async (engine, { session, target }) => {
      const read = await catchUp({ engine, reader, target, session, moveCursor: false });
      if (read.kind === "caught-up") return read.stored;
      if (read.kind === "unavailable") {
        logger.warn(
          `the transcript of ${session.key} could not be read now (${read.reason}); its rows are stored with the next turn`,
        );
        return 0;
      }
      const { results } = await engine.ingest({ session, messages: params.messages.map(nameByMarks) });
      return results.filter((result) => result.outcome === "stored").length;
    });
  }

  /** Stores a turn, and before it the turns of its session that wait in the spool. */
  async function storeTurn(
    params: CommitTurnParams,
    address: SessionAddress,
  ): Promise<"committed" | "duplicate"> {
    const engine = await lease.open();
    await drainSpool(engine, address.session.id);
    return await commit(
      engine,
      address,
      params,
      readSituation(params, lease.notes.session(address.session.id)),
    );
  }

  async function drainSpool(engine: Engine, sessionId: string): Promise<void> {
    const drained = await spool.drain(sessionId, async (turn) => {
      await commit(engine, readAddress(turn), turn);
    });
    if (drained > 0) logger.info(`${drained} turns that had waited in the spool are stored`);
    if ((await spool.size()) === 0) noteSuccess("spool");
  }

  async function commit(
    engine: Engine,
    { session, target }: SessionAddress,
    turnParams: SpooledTurn,
    situation?: TurnSituation,
  ): Promise<"committed" | "duplicate"> {
    const turn = readTurn(turnParams);
    const asked = { engine, reader, target, session, moveCursor: true, turn };
    const read = await catchUp({ ...asked, ...(situation === undefined ? {} : { situation }) });
    if (read.kind === "caught-up" && (read.turn === "committed" || read.turn === "duplicate"))
      return read.turn;
    const reason = read.kind === "unavailable" ? read.reason : "it does not show the turn";
    logger.warn(
      `the transcript of ${session.key} could not be used for a turn (${reason}); stored as handed over, to be named later`,
    );
    return await storeUnnamedTurn(engine, session, turnParams.messages, turn);
  }

  /** Keeps a turn that the database cannot take. Throws when the spool cannot either: then the host keeps it. */
  async function spoolTurn(params: CommitTurnParams, cause: unknown): Promise<"committed" | "duplicate"> {
    const { advancementKey, admission, terminal, messages, sessionKey, sessionTarget, isHeartbeat } = params;
    const isNew = await spool.add({
      advancementKey,
      admission,
      terminal,
      messages,
      sessionId: readAddress(params).session.id,
      ...(sessionKey === undefined ? {} : { sessionKey }),
      ...(sessionTarget === undefined ? {} : { sessionTarget: pickTarget(sessionTarget) }),
      ...(isHeartbeat === undefined ? {} : { isHeartbeat }),
    });
    noteFailure("spool", new Error(`turns wait in ${spool.folder} because ${describe(cause)}`));
    return isNew ? "committed" : "duplicate";
  }

  async function readInTime(params: SessionParams): Promise<CatchUpResult | { kind: "later" } | null> {
    const address = readAddress(params);
    const reading = withSession(params, null, async (engine, { session, target }): Promise<CatchUpResult> => {
      await drainSpool(engine, session.id);
      return await catchUp({ engine, reader, target, session, moveCursor: true });
    });
    const limit = Promise.withResolvers<{ kind: "later" }>();
    const timer = setTimeout(() => limit.resolve({ kind: "later" }), BOOTSTRAP_LIMIT_MS);
    const first = await Promise.race([reading, limit.promise]).finally(() => clearTimeout(timer));
    if (first?.kind === "later") {
      noteFailure(
        "import",
        new Error(`the history of ${address.session.key} is being read in the background`),
      );
      reading.then(
        () => noteSuccess("import"),
        (error: unknown) => noteFailure("archive", error),
      );
    }
    return first;
  }

  function passThrough({ messages }: AssembleParams): AssembleResult {
    return { messages: [...messages], estimatedTokens: estimateTokens(messages) };
  }

  return {
    info: describeEngine(parts.version, parts.settings.enabled),

    async bootstrap(params) {
      const attempt = startAttempt(readAddress(params).session.id);
      try {
        const read = await readInTime(params);
        if (read === null) return NOT_KEPT;
        attempt.caughtUp = read.kind === "caught-up";
        if (read.kind === "caught-up") {
          noteSuccess("archive");
          return { bootstrapped: true, importedMessages: read.stored };
        }
        return { bootstrapped: false, reason: describeRead(read) };
      } catch (error) {
        noteFailure("archive", error);
        return { bootstrapped: false, reason: describe(error) };
      }
    },

    async commitTurn(params) {
      const address = readAddress(params);
      if (!isCaptured(address.session.key)) return { status: "committed" };
      learnRoom(params, lease.notes.session(address.session.id));
      return await lease.inOrder(address.session.id, async () => {
        try {
          const status = await storeTurn(params, address);
          noteSuccess("archive");
          return { status };
        } catch (error) {
          if (!isDatabaseFailure(error)) throw error;
          noteFailure("archive", error);
          return { status: await spoolTurn(params, error) };
        }
      });
    },

    async assemble(params) {
      const address = readAddress(params);
      const { session, target } = address;
      if (!isCaptured(session.key)) return passThrough(params);
      const attempt = attempts.get(session.id) ?? startAttempt(session.id);
      const note = lease.notes.session(session.id);
      const source = { open: () => lease.open(), reader, session, target };
      const cap = Math.min(note.capTokens ?? Infinity, note.roomTokens ?? Infinity);
      const snapshot = await attempt.assemble(source, params, cap);
      if (snapshot.fallback === null) noteSuccess("context");
      else
        noteFailure("context", new Error(`the host's own messages were used because ${snapshot.fallback}`));
      note.baseTokens = Math.min(attempt.baseTokens ?? Infinity, cap);
      note.sentTokens = snapshot.estimatedTokens;
      rememberModel(note, readModel(params));
      return describeSnapshot(snapshot, params);
    },

    async ingest(params) {
      return { ingested: (await requestRead({ ...params, messages: [params.message] })) > 0 };
    },

    async ingestBatch(params) {
      return { ingestedCount: await requestRead(params) };
    },

    async afterTurn(params) {
      await requestRead({ ...params, messages: params.messages.slice(params.prePromptMessageCount) });
    },

    async compact(params) {
      const { session } = readAddress(params);
      if (!isCaptured(session.key)) return await parts.delegateCompaction(params);
      attempts.delete(session.id);
      return await lease.models.lend(params.runtimeContext?.llm, () => compactSession(params, session));
    },

    async maintain(params) {
      const { session } = readAddress(params);
      const isLent = params.runtimeContext?.allowDeferredCompactionExecution === true;
      if (!isCaptured(session.key) || !isLent) return describeMaintenance("nothing to maintain");
      return await lease.models.lend(params.runtimeContext?.llm, () => maintainSession(params, session));
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

  /** Short, and the same at every turn: it stands in the part of the prompt that providers cache. */
  function describePrompt({ availableTools, citationsMode, sessionKey }: AssembleParams): string {
    const tools = new Set(availableTools ?? []);
    const memory = parts.describeMemory({
      availableTools: tools,
      ...(citationsMode === undefined ? {} : { citationsMode }),
      ...(sessionKey === undefined ? {} : { agentSessionKey: sessionKey }),
    });
    const own = tools.has("lcm_grep") ? RECALL_GUIDANCE : FOLDING_GUIDE;
    return [own, memory ?? ""].filter((text) => text !== "").join("\n\n");
  }

  async function compactSession(params: CompactParams, session: SessionRef): Promise<CompactResult> {
    const note = lease.notes.session(session.id);
    const trigger = params.runtimeContext?.trigger ?? "manual";
    const shrunk = trigger === "manual" ? false : lowerCap(note, params, trigger);
    try {
      const answer = await foldSession(params, session, trigger);
      const compacted = answer.compacted || shrunk;
      const tokensBefore = params.currentTokenCount ?? note.sentTokens ?? answer.tokensBefore;
      const saved = Math.max(0, answer.tokensBefore - answer.tokensAfter);
      const tokensAfter = Math.max(0, Math.min(tokensBefore - saved, note.capTokens ?? Infinity));
      return { ok: true, compacted, reason: answer.reason, result: { tokensBefore, tokensAfter } };
    } catch (error) {
      if (params.abortSignal?.aborted === true) throw error;
      noteFailure("archive", error);
      // Without the archive the host's messages are sent, cut to what is left.
      const tokensBefore = params.currentTokenCount ?? note.sentTokens ?? 0;
      return { ok: shrunk, compacted: shrunk, reason: describe(error), result: { tokensBefore } };
    }
  }

  async function foldSession(
    params: CompactParams,
    session: SessionRef,
    trigger: string,
  ): Promise<{ compacted: boolean; reason: string; tokensBefore: number; tokensAfter: number }> {
    const engine = await lease.open();
    const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
    const conversationId = known?.conversationId ?? null;
    if (conversationId === null)
      return { compacted: false, reason: "nothing is stored yet", tokensBefore: 0, tokensAfter: 0 };
    const note = lease.notes.session(session.id);
    const base = note.baseTokens ?? Math.floor(SHARE_OF_WINDOW * (params.tokenBudget ?? 128_000));
    return await engine.compact({
      conversationId,
      owner: session.owner,
      ...readSituation(params, note),
      budgetTokens: base,
      ...(trigger === "manual"
        ? { force: true }
        : { targetTokens: note.capTokens ?? Math.floor(OVERFLOW_SHARE * base) }),
      ...(params.customInstructions ? { customInstructions: params.customInstructions } : {}),
      ...(params.abortSignal ? { signal: params.abortSignal } : {}),
    });
  }

  /**
   * The next context must be smaller than the one that was too large. After an overflow that is a share of it; where the host counted the
   * whole prompt, it is what its own part leaves of the window. False when there is nothing to take away.
   */
  function lowerCap(note: SessionNote, params: CompactParams, trigger: string): boolean {
    const sent = note.sentTokens ?? 0;
    const { currentTokenCount: whole, tokenBudget: window } = params;
    const cap =
      trigger === "budget" && whole !== undefined && window !== undefined
        ? Math.max(
            Math.floor(WINDOW_SHARE * window - (whole - sent)),
            Math.floor(MIN_SHARE * (note.baseTokens ?? sent)),
          )
        : Math.floor(OVERFLOW_SHARE * sent);
    if (cap < MIN_CAP_TOKENS || cap >= (note.capTokens ?? Infinity)) return false;
    note.capTokens = cap;
    return cap < sent;
  }

  async function maintainSession(params: MaintainParams, session: SessionRef): Promise<MaintainResult> {
    const note = lease.notes.session(session.id);
    if (note.baseTokens === undefined) return describeMaintenance("the room of the model is not known yet");
    try {
      const engine = await lease.open();
      const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
      if (known?.conversationId == null) return describeMaintenance("nothing is stored yet");
      const { changed } = await engine.maintain({
        conversationId: known.conversationId,
        owner: session.owner,
        budgetTokens: note.baseTokens,
        ...readSituation(params, note),
        ...(params.abortSignal ? { signal: params.abortSignal } : {}),
      });
      return describeMaintenance(
        changed ? "folded in the archive; the transcript is as it was" : "nothing to fold",
      );
    } catch (error) {
      if (params.abortSignal?.aborted === true) throw error;
      noteFailure("folding", error);
      return describeMaintenance(describe(error));
    }
  }
}

const FOLDING_GUIDE =
  "Older parts of this conversation may appear as <summary> blocks; the messages behind them are kept.";

const NOT_KEPT: BootstrapResult = { bootstrapped: false, reason: "this session is not kept" };

function describeRead(read: CatchUpResult | { kind: "later" }): string {
  if (read.kind === "missing") return "the session has no transcript yet";
  return read.kind === "unavailable" ? read.reason : "the history is being read in the background";
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function describeMaintenance(reason: string): MaintainResult {
  return { changed: false, bytesFreed: 0, rewrittenEntries: 0, reason };
}

function pickTarget({
  agentId,
  sessionId,
  sessionKey,
  storePath,
}: NonNullable<SessionParams["sessionTarget"]>) {
  return {
    ...(agentId === undefined ? {} : { agentId }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(sessionKey === undefined ? {} : { sessionKey }),
    ...(storePath === undefined ? {} : { storePath }),
  };
}

function rememberModel(note: { model?: ModelIdentity }, model: ModelIdentity | undefined): void {
  if (model !== undefined) note.model = model;
}

/**
 * The host's budget for messages leaves out its tools' schemas, which may be as large as the rest. What a provider counted for the last
 * prompt of a turn, less what we sent and the turn itself, is that part; what it leaves below the point where the host asks for compaction
 * is the room there really is.
 */
function learnRoom({ messages, runtimeContext }: CommitTurnParams, note: SessionNote): void {
  const window = runtimeContext?.modelContextWindow ?? runtimeContext?.tokenBudget;
  const usage = messages.at(-1)?.usage as
    | Partial<Record<"input" | "cacheRead" | "cacheWrite", number>>
    | undefined;
  const prompt = (usage?.input ?? 0) + (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0);
  if (window === undefined || note.sentTokens === undefined || prompt <= 0) return;
  const unseen = Math.max(0, prompt - note.sentTokens - estimateTokens(messages.slice(0, -1)));
  const limit = window - Math.min(HOST_RESERVE_TOKENS, window * HOST_RESERVE_SHARE);
  note.roomTokens = Math.max(Math.floor(limit - unseen), Math.floor(MIN_SHARE * limit));
}

/** What is known of the model a turn was for. Without a room there is no threshold to watch. */
function readSituation(
  { runtimeContext }: SessionParams,
  note: { baseTokens?: number; model?: ModelIdentity },
): TurnSituation {
  const model = runtimeContext?.modelId ?? runtimeContext?.model ?? note.model?.model;
  const provider = runtimeContext?.provider ?? note.model?.provider;
  const contextWindow = runtimeContext?.modelContextWindow ?? runtimeContext?.tokenBudget;
  return {
    ...(note.baseTokens === undefined ? {} : { budgetTokens: note.baseTokens }),
    ...(model === undefined ? {} : { model: { model, ...(provider === undefined ? {} : { provider }) } }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
  };
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

function readTurn({ advancementKey, admission, terminal, isHeartbeat, messages }: SpooledTurn): CatchUpTurn {
  return {
    advancementKey,
    isHeartbeat: isHeartbeat === true && saysNothing(messages.at(-1)),
    first: { entryId: admission.entryId, seq: admission.activeMessagePosition + 1 },
    last: { entryId: terminal.entryId, seq: terminal.activeMessagePosition + 1 },
  };
}

/** A heartbeat that found nothing to tell answers with this word; one that did tell something is a turn like any other. */
function saysNothing(answer: AgentMessage | undefined): boolean {
  return answer !== undefined && JSON.stringify(answer.content).includes("HEARTBEAT_OK");
}

/** Stores a turn as it was handed over. The reader's state remembers it, so that the next read gives its rows their ids. */
async function storeUnnamedTurn(
  engine: Engine,
  session: SessionRef,
  messages: readonly AgentMessage[],
  turn: CatchUpTurn,
): Promise<"committed" | "duplicate"> {
  const { advancementKey } = turn;
  const isStored =
    (await engine.knownEvents({ sessionId: session.id, owner: session.owner, eventIds: [turn.last.entryId] }))
      .length > 0;
  if (isStored) return statusOf(await engine.ingest({ session, turn: { advancementKey }, messages: [] }));

  const ends = { advancementKey, firstEntryId: turn.first.entryId, lastEntryId: turn.last.entryId };
  const eventIds = nameTurnRows(ends, messages.length);
  const rows = messages.map((message, index) => ({
    eventId: eventIds[index]!,
    role: message.role,
    marks: readMarks(message),
  }));
  const unnamed: UnnamedTurn = { ...ends, rows: rows.slice(1, -1) };
  const state = parseReaderState(
    (await engine.readSession({ sessionId: session.id, owner: session.owner }))?.cursor ?? null,
  );
  const result = await engine.ingest({
    session,
    turn: { advancementKey },
    messages: messages.map((message, index) => placeUnnamed(message, eventIds, index, turn)),
    cursor: { value: writeReaderState({ ...state, unnamed: [...state.unnamed, unnamed] }) },
  });
  return statusOf(result);
}

function statusOf(result: { duplicateTurn: boolean }): "committed" | "duplicate" {
  return result.duplicateTurn ? "duplicate" : "committed";
}

/** Only the ends' numbers are known; what lies between follows the first and stays before the last. */
function placeUnnamed(
  message: AgentMessage,
  eventIds: readonly string[],
  index: number,
  turn: CatchUpTurn,
): Arrival {
  const isFirst = index === 0;
  const isLast = !isFirst && index === eventIds.length - 1;
  const seq = isLast
    ? turn.last.seq
    : Math.min(turn.first.seq + index, Math.max(turn.first.seq, turn.last.seq - 1));
  return {
    eventId: eventIds[index]!,
    eventIdKind: isFirst || isLast ? "entry" : "provisional",
    message,
    position: seq * POSITION_STEP + (isFirst || isLast ? 0 : index),
  };
}

/** A message without a transcript is known by what the host or the provider called it. */
function nameByMarks(message: AgentMessage): Arrival {
  const mark = readMarks(message)[0];
  return mark === undefined ? { message } : { message, eventId: `${message.role}:${mark}` };
}
