/**
 * Stores turns that the host delivers, and rows that only the transcript has. Reads the transcript where possible, so that every row is
 * identified by its entry id.
 *
 * Invariants: a turn is reported as committed only after its rows and its advancement key are stored in one transaction, or its record is safely
 * in the spool; turns of a session are stored in their order of arrival.
 */

import { POSITION_STEP } from "@lossless/core";
import type { Arrival, Engine, SessionRef } from "@lossless/core";
import { catchUp, type CatchUpResult } from "./catch-up.ts";
import { importOlder, readOlder } from "./first-contact.ts";
import type {
  AgentMessage,
  CommitTurnParams,
  IngestBatchParams,
  PluginLogger,
  SessionParams,
} from "../host/host.ts";
import {
  nameTurnRows,
  parseReaderState,
  readMarks,
  writeReaderState,
  type UnnamedTurn,
} from "./reader-state.ts";
import type { MediaSource } from "./media.ts";
import type { ProcessMemory } from "../host/process-memory.ts";
import { readSituation } from "../assemble/token-room.ts";
import { readAddress, type SessionAddress } from "../host/session.ts";
import { isDatabaseFailure, isThreadFailure, type EngineLease } from "../host/shared-engine.ts";
import type { Spool, SpooledTurn } from "./spool.ts";
import { AGENT } from "./store-rows.ts";
import type { CatchUpTurn, TurnSituation } from "./store-rows.ts";
import type { TranscriptReader } from "./transcript.ts";
import { describeError, type Outages } from "../host/outages.ts";

export interface CaptureParts {
  readonly lease: Pick<EngineLease, "open" | "inOrder" | "discard" | "memory">;
  readonly reader: TranscriptReader;
  readonly media?: MediaSource | undefined;
  readonly spool: Spool;
  readonly outages: Outages;
  readonly logger: PluginLogger;
  /** Sends the users of a chat a notice, through their agent. */
  readonly tell: (session: SessionRef, text: string) => void;
}

export type Committed = "committed" | "duplicate";

/** Beyond this a long history is read in the background; the turn continues with the host's own messages. */
const READ_LIMIT_MS = 4_000;

/** For `status`: no turn waits, only ids are missing. */
const UNREADABLE = "The chat goes on and is stored. Update this plugin if the host was updated.";

export class Capture {
  #parts: CaptureParts;

  constructor(parts: CaptureParts) {
    this.#parts = parts;
  }

  /** Reads new rows of a session's transcript, for as long as a turn may wait. */
  async read(params: SessionParams): Promise<CatchUpResult | { kind: "later" }> {
    const { lease, reader, media, outages } = this.#parts;
    const { session, target } = readAddress(params);
    const reading = lease.inOrder(session.id, async (): Promise<CatchUpResult> => {
      const engine = await lease.open();
      await this.#drainSpool(engine, session.id);
      return await catchUp({ engine, reader, media, target, session, moveCursor: true });
    });
    const limit = Promise.withResolvers<{ kind: "later" }>();
    const timer = setTimeout(() => limit.resolve({ kind: "later" }), READ_LIMIT_MS);
    const first = await Promise.race([reading, limit.promise]).finally(() => clearTimeout(timer));
    if (first.kind === "later") {
      outages.begin("import", new Error(`the history of ${session.key} is being read in the background`));
      reading.then(
        () => outages.end("import"),
        (error: unknown) => outages.begin("archive", error),
      );
    } else if (first.kind === "caught-up") await this.#readOlder(params);
    return first;
  }

  /** Continues, in the background, to read a long history of which only the end is stored. One reader per session is enough. */
  async #readOlder(params: SessionParams): Promise<void> {
    const { lease, reader, media, logger } = this.#parts;
    const { session, target } = readAddress(params);
    const { memory } = lease;
    if (memory.importing.has(session.id)) return;
    const engine = await lease.open();
    if ((await readOlder(engine, session)) === null) return;
    memory.importing.add(session.id);
    const inOrder = <T>(task: () => Promise<T>): Promise<T> => lease.inOrder(session.id, task);
    const onProgress = (done: number, rows: number): void => noteImport(memory, session.key, done, rows);
    importOlder({ engine, reader, media, target, session, inOrder, onProgress })
      .then(
        (stored) => logger.info(`${stored} older messages of ${session.key} are stored`),
        (error: unknown) =>
          logger.warn(
            `the older history of ${session.key} is read at its next turn: ${describeError(error)}`,
          ),
      )
      .finally(() => {
        memory.importing.delete(session.id);
        memory.recover("import");
      });
  }

  /** Reads the transcript for messages that came outside a durable turn; stores the messages themselves only if there is no transcript. */
  async readFor(params: IngestBatchParams): Promise<number> {
    const { lease, reader, media, logger } = this.#parts;
    const { session, target } = readAddress(params);
    return await lease.inOrder(session.id, async () => {
      const engine = await lease.open();
      const read = await catchUp({ engine, reader, media, target, session, moveCursor: false });
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

  /** Stores a turn after the waiting turns of its session. A turn that the database cannot store goes to the spool. */
  async commit(params: CommitTurnParams): Promise<Committed> {
    const { lease, outages, tell } = this.#parts;
    const address = readAddress(params);
    const { session } = address;
    return await lease.inOrder(session.id, async () => {
      try {
        const engine = await lease.open();
        await this.#drainSpool(engine, session.id);
        const situation = readSituation(params, lease.memory.session(session.id));
        const status = await this.#store(engine, address, params, situation);
        outages.end("archive");
        return status;
      } catch (error) {
        if (isThreadFailure(error)) lease.discard();
        outages.begin("archive", error);
        const status = await this.#spool(params, error);
        if (lease.memory.tellOnce(`spool ${session.key}`)) tell(session, describeTrouble(error));
        return status;
      }
    });
  }

  async #drainSpool(engine: Engine, sessionId: string): Promise<void> {
    const { spool, outages, logger } = this.#parts;
    const drained = await spool.drain(sessionId, async (turn) => {
      try {
        await this.#store(engine, readAddress(turn), turn);
      } catch (error) {
        if (isDatabaseFailure(error)) throw error;
        outages.begin("a turn in the spool", error);
        await spool.setAside(turn);
      }
    });
    if (drained > 0) logger.info(`${drained} turns that had waited in the spool are stored`);
    if ((await spool.size()) === 0) outages.end("spool");
  }

  async #store(
    engine: Engine,
    { session, target }: SessionAddress,
    params: SpooledTurn,
    situation?: TurnSituation,
  ): Promise<Committed> {
    const { reader, media, outages } = this.#parts;
    const part = `transcript of ${session.key}`;
    const turn = readTurn(params);
    const asked = { engine, reader, media, target, session, moveCursor: true, turn };
    const read = await catchUp({ ...asked, situation });
    if (read.kind === "caught-up" && (read.turn === "committed" || read.turn === "duplicate")) {
      outages.end(part);
      return read.turn;
    }
    const reason = read.kind === "unavailable" ? read.reason : "it does not show the turn";
    const how = "its messages are stored as handed over, and named when it can be read again";
    outages.begin(part, new Error(`could not be used for a turn (${reason}); ${how}`), UNREADABLE);
    return await storeUnnamedTurn(engine, session, params.messages, turn);
  }

  /** Keeps a turn that the database cannot store. Throws when the spool cannot either: then the host keeps it. */
  async #spool(params: CommitTurnParams, cause: unknown): Promise<Committed> {
    const { spool, outages } = this.#parts;
    const { advancementKey, admission, terminal, messages, sessionKey, sessionTarget, isHeartbeat } = params;
    const isNew = await spool.add({
      advancementKey,
      admission,
      terminal,
      messages,
      sessionId: readAddress(params).session.id,
      sessionKey,
      sessionTarget: sessionTarget === undefined ? undefined : pickTarget(sessionTarget),
      isHeartbeat,
    });
    outages.begin("spool", new Error(`turns wait in lcm-spool because ${describeError(cause)}`));
    return isNew ? "committed" : "duplicate";
  }
}

export function noteImport(memory: ProcessMemory, sessionKey: string, done: number, rows: number): void {
  const count = (value: number): string => value.toLocaleString("en");
  memory.fail(
    "import",
    new Error(`the history of ${sessionKey} is being read, ${count(done)} of ${count(rows)} rows`),
  );
}

function describeTrouble(cause: unknown): string {
  return `Lossless Claw cannot write its archive right now (${describeError(cause)}). Nothing is lost: turns wait in a folder on this machine and are stored when it works again. Please tell the user once; /lcm status says more.`;
}

function pickTarget({
  agentId,
  sessionId,
  sessionKey,
  storePath,
}: NonNullable<SessionParams["sessionTarget"]>) {
  return {
    agentId,
    sessionId,
    sessionKey,
    storePath,
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

/** What the host drops beside the word at most; a longer answer is a report. */
const HEARTBEAT_REST_CHARS = 300;
const HEARTBEAT_WORD = /^[\s*_`>"']*HEARTBEAT_OK\b|\bHEARTBEAT_OK[\s*_`."'!]*$/;

/** A heartbeat with nothing to report begins or ends its answer with this word; any other heartbeat is a normal turn. */
function saysNothing(answer: AgentMessage | undefined): boolean {
  const text = readText(answer?.content).trim();
  return HEARTBEAT_WORD.test(text) && text.length <= "HEARTBEAT_OK".length + HEARTBEAT_REST_CHARS;
}

/** The text that users would see: no reasoning, no tool calls. */
function readText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const parts = content as readonly { readonly type?: unknown; readonly text?: unknown }[];
  return parts
    .map((part) => (part?.type === "text" && typeof part.text === "string" ? part.text : ""))
    .join("\n");
}

/** Stores a turn as it was delivered. The reader's state records it, so that the next read gives its rows their ids. */
async function storeUnnamedTurn(
  engine: Engine,
  session: SessionRef,
  messages: readonly AgentMessage[],
  turn: CatchUpTurn,
): Promise<Committed> {
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
    origin: { agent: AGENT },
  });
  return statusOf(result);
}

function statusOf(result: { duplicateTurn: boolean }): Committed {
  return result.duplicateTurn ? "duplicate" : "committed";
}

/** Only the numbers of the ends are known; the rows between follow the first and stay before the last. */
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

/** A message without a transcript is identified by the keys that the host or the provider gave it. */
function nameByMarks(message: AgentMessage): Arrival {
  const mark = readMarks(message)[0];
  return mark === undefined ? { message } : { message, eventId: `${message.role}:${mark}` };
}
