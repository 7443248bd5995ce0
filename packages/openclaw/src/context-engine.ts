/**
 * The context engine that OpenClaw calls, as a translation into calls of our engine. It decides nothing: what is stored, how rows are
 * known and where they belong is settled by the transcript and the archive. The host makes a new instance for every turn; all state is
 * in the archive.
 *
 * Kept here: a turn is reported as committed only after its rows and its advancement key are stored in one transaction.
 */

import { POSITION_STEP, type Arrival, type Engine, type SessionRef, type Settings } from "@lossless/core";
import { estimateTextTokens, IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS } from "@lossless/core/model/tokens.ts";
import { catchUp, type CatchUpTurn } from "./catch-up.ts";
import type {
  AgentMessage,
  BootstrapResult,
  CommitTurnParams,
  CompactParams,
  CompactResult,
  ContextEngine,
  ContextEngineInfo,
  IngestBatchParams,
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
import type { EngineLease } from "./shared-engine.ts";
import type { TranscriptReader } from "./transcript.ts";

export const ENGINE_ID = "lossless-claw";

export interface ContextEngineParts {
  readonly settings: Settings;
  readonly lease: Pick<EngineLease, "open" | "inOrder">;
  readonly reader: TranscriptReader;
  readonly delegateCompaction: (params: CompactParams) => Promise<CompactResult>;
  readonly logger: PluginLogger;
  readonly version: string;
}

export function createContextEngine(parts: ContextEngineParts): ContextEngine {
  const { lease, reader, logger } = parts;
  const isCaptured = compileCapturePolicy(parts.settings);

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

  /** Reads the transcript for messages that came outside a durable turn; stores the messages themselves only where there is none. */
  async function requestRead(params: IngestBatchParams): Promise<number> {
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

  return {
    info: describeEngine(parts.version),

    async bootstrap(params) {
      const skipped: BootstrapResult = { bootstrapped: false, reason: "this session is not kept" };
      return await withSession(params, skipped, async (engine, { session, target }) => {
        const read = await catchUp({ engine, reader, target, session, moveCursor: true });
        if (read.kind === "caught-up") return { bootstrapped: true, importedMessages: read.stored };
        return {
          bootstrapped: false,
          reason: read.kind === "missing" ? "the session has no transcript yet" : read.reason,
        };
      });
    },

    async commitTurn(params) {
      return await withSession(
        params,
        { status: "committed" as const },
        async (engine, { session, target }) => {
          const turn = readTurn(params);
          const read = await catchUp({ engine, reader, target, session, moveCursor: true, turn });
          if (read.kind === "caught-up" && (read.turn === "committed" || read.turn === "duplicate"))
            return { status: read.turn };
          const reason = read.kind === "unavailable" ? read.reason : "it does not show the turn";
          logger.warn(
            `the transcript of ${session.key} could not be used for a turn (${reason}); stored as handed over, to be named later`,
          );
          return { status: await storeUnnamedTurn(engine, session, params.messages, turn) };
        },
      );
    },

    async assemble({ messages }) {
      return {
        messages: [...messages],
        estimatedTokens: messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0),
      };
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
      return await parts.delegateCompaction(params);
    },

    async maintain() {
      return { changed: false, bytesFreed: 0, rewrittenEntries: 0, reason: "nothing to maintain" };
    },

    async dispose() {
      // The shared engine outlives this instance; the plugin's service closes it.
    },
  };
}

function describeEngine(version: string): ContextEngineInfo {
  return {
    id: ENGINE_ID,
    name: "Lossless Claw",
    version,
    ownsCompaction: false,
    turnMaintenanceMode: "foreground",
    transcriptSemantics: {
      currentTurnFence: "before-current-turn-entry-v1",
      turnAdvancementIdempotency: "atomic-idempotent-v1",
    },
  };
}

function readTurn({ advancementKey, admission, terminal }: CommitTurnParams): CatchUpTurn {
  return {
    advancementKey,
    first: { entryId: admission.entryId, seq: admission.activeMessagePosition + 1 },
    last: { entryId: terminal.entryId, seq: terminal.activeMessagePosition + 1 },
  };
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

function estimateMessageTokens(message: AgentMessage): number {
  const blocks = Array.isArray(message.content)
    ? (message.content as { type?: string; text?: string }[])
    : [{ text: message.content as string }];
  return blocks.reduce((sum, block) => sum + estimateBlockTokens(block), MESSAGE_OVERHEAD_TOKENS);
}

function estimateBlockTokens(block: { type?: string; text?: unknown }): number {
  if (block.type === "image") return IMAGE_TOKENS;
  return estimateTextTokens(typeof block.text === "string" ? block.text : JSON.stringify(block));
}
