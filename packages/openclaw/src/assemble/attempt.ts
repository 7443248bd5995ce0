/**
 * One attempt of a turn: the context is chosen once, at its first call, and every later call of the attempt gets the same messages, even if
 * something was folded meanwhile, because the host appends the open turn itself. It is chosen again only when it no longer fits.
 *
 * The first call's budget leaves out the system prompt and the answer; the later ones do not. The difference between the second and the first is
 * that overhead, and it is taken off every later budget.
 */

import type { Engine, ModelIdentity, SessionRef } from "@lossless/core";
import { readAttachedTo } from "../capture/media.ts";
import { pairUnnamed } from "../capture/catch-up.ts";
import { parseReaderState } from "../capture/reader-state.ts";
import {
  cutToBudget,
  estimateTokens,
  isRuntimeCarrier,
  restoreImages,
  toHostMessages,
} from "./context-view.ts";
import type { AgentMessage, AssembleParams, AssembleResult } from "../host/host.ts";
import type { TranscriptReader, TranscriptTarget } from "../capture/transcript.ts";
import { readNewRows, type TranscriptRow } from "../capture/transcript-rows.ts";

export interface Snapshot {
  readonly messages: AgentMessage[];
  readonly estimatedTokens: number;
  readonly contextProjection: NonNullable<AssembleResult["contextProjection"]>;
  /** Something was left out for lack of room. */
  readonly isTight: boolean;
  /** Why these are the host's own messages; null when they are the archive's. */
  readonly fallback: string | null;
}

/** Where an attempt reads from. */
export interface AttemptSource {
  readonly open: () => Promise<Engine>;
  readonly reader: TranscriptReader;
  readonly target: TranscriptTarget;
  readonly session: SessionRef;
  /** The model's window, if known. */
  readonly contextWindow?: number | undefined;
}

const DEFAULT_BUDGET_TOKENS = 100_000;
/** The maximum number of rows not yet in the archive that a turn shows from the transcript. */
const MAX_UNSTORED_ROWS = 2_000;

/** When the room shrinks, a little less than it is used, so that the next prompts need no other. */
const SHRUNK_SHARE = 0.97;
/** The room is held as long as no more than the rest of this share is unused. */
const HELD_SHARE = 0.9;

/**
 * The room to choose a context for. The host's budget excludes the prompt, so it changes a little at every turn, and the front of the context
 * would change with it. The room of the previous turn is kept while it still fits and wastes little.
 */
export function holdRoom(held: number | undefined, room: number): number {
  if (held === undefined || held < HELD_SHARE * room) return room;
  return held <= room ? held : Math.max(1, Math.floor(SHRUNK_SHARE * room));
}

export class Attempt {
  /** The archive holds all of the transcript that this turn may see. */
  caughtUp = false;
  /** Outside a durable turn the host passes the open turn with the history. */
  isStandalone = false;
  /** The room that the context was chosen for; undefined before the first call. */
  chosenFor: number | undefined;
  #calls = 0;
  #firstBudget: number | null = null;
  #overhead = 0;
  #snapshot: Snapshot | null = null;
  #prompt: string | undefined;

  /** Room at the first call; null before it. */
  get baseTokens(): number | null {
    return this.#firstBudget;
  }

  /** `held` is the room that the previous turn was chosen for. */
  async assemble(
    source: AttemptSource,
    params: AssembleParams,
    capTokens = Infinity,
    held?: number,
  ): Promise<Snapshot> {
    const budget = params.tokenBudget ?? this.#firstBudget ?? DEFAULT_BUDGET_TOKENS;
    this.#calls += 1;
    this.#firstBudget ??= budget;
    this.#prompt ??= params.prompt;
    if (this.#calls === 2) this.#overhead = Math.max(0, budget - this.#firstBudget);
    const room = Math.max(1, Math.min(budget - this.#overhead, capTokens));
    const before = this.#snapshot;
    if (before === null || before.estimatedTokens > room)
      this.#snapshot = await this.#choose(source, params, (this.chosenFor = holdRoom(held, room)), before);
    const snapshot = this.#snapshot!;
    if (!this.isStandalone || before === null) return snapshot;
    const open = params.messages.slice(before.messages.length);
    return {
      ...snapshot,
      messages: [...snapshot.messages, ...open],
      estimatedTokens: snapshot.estimatedTokens + estimateTokens(open),
    };
  }

  async #choose(
    source: AttemptSource,
    params: AssembleParams,
    room: number,
    before: Snapshot | null,
  ): Promise<Snapshot> {
    // Later calls pass our own result back; only the first call has the host's view of the history.
    if (before !== null && before.fallback !== null) return fallBack(before.messages, room, before.fallback);
    try {
      return await this.#chooseFromArchive(source, params, room);
    } catch (error) {
      if (before !== null) return fallBack(before.messages, room, String(error));
      return fallBack(params.messages, room, error instanceof Error ? error.message : String(error));
    }
  }

  async #chooseFromArchive(source: AttemptSource, params: AssembleParams, room: number): Promise<Snapshot> {
    const { session } = source;
    const engine = await source.open();
    const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
    const unstored = this.caughtUp ? NOTHING : await readUnstored(source, engine, known?.cursor ?? null);
    const carriers = params.messages.filter(isRuntimeCarrier);
    const added = [...unstored.messages, ...carriers];
    const lead = unstored.isCut ? [] : describeOlder(known?.cursor ?? null);
    const addedTokens = estimateTokens([...lead, ...added]);
    const conversationId = unstored.isCut ? null : (known?.conversationId ?? null);
    const model = readModel(params);
    const context =
      conversationId === null
        ? null
        : await engine.assemble({
            conversationId,
            owner: session.owner,
            budgetTokens: Math.max(1, room - addedTokens),
            // The strictest grammar that keeps messages separate; the host joins them for providers that need it.
            provider: "anthropic",
            contextWindow: source.contextWindow,
            prompt: this.#prompt,
            model,
          });
    const chosenTokens = (context?.estimatedTokens ?? 0) + addedTokens;
    const texts = cutWhole(
      [...lead, ...toHostMessages(context?.messages ?? [], model), ...added],
      room,
      chosenTokens,
      addedTokens,
    );
    const pictures =
      conversationId === null ? [] : await readPictures(engine, conversationId, session.owner, texts);
    const { messages, tokens } = restoreImages(texts, [...params.messages, ...pictures], room - chosenTokens);
    return {
      messages,
      estimatedTokens: Math.min(room, chosenTokens + tokens),
      contextProjection:
        context === null
          ? { mode: "per_turn" }
          : { mode: "thread_bootstrap", epoch: context.epoch, fingerprint: context.fingerprint },
      isTight: context !== null && context.mode !== "whole",
      fallback: null,
    };
  }
}

/** One line for a history that is still being read; its bytes stay the same until it is complete. */
function describeOlder(cursor: string | null): AgentMessage[] {
  const { older = null } = parseReaderState(cursor);
  if (older === null || older.messages === 0) return [];
  const day = (at: number | null): string => (at === null ? "" : new Date(at).toISOString().slice(0, 10));
  const span = older.firstAt === null ? "" : ` from ${day(older.firstAt)} to ${day(older.lastAt)}`;
  const content = `[${older.messages} earlier messages${span} are not shown here yet: they are being read into the archive. Nothing is lost; search with lcm_grep in a while.]`;
  return [{ role: "user", content }];
}

/** Number of newest rows that are searched for pictures: the fresh tail and a margin around it. */
const PICTURE_ROWS = 160;

/** Stored pictures that shown user messages refer to, as messages with the same times. */
async function readPictures(
  engine: Engine,
  conversationId: number,
  owner: string,
  shown: readonly AgentMessage[],
): Promise<AgentMessage[]> {
  const newest = { order: "position", direction: "newest", limit: PICTURE_ROWS } as const;
  const { items } = await engine.listMessages({ conversationId, owner, ...newest });
  const times = new Set(shown.flatMap(({ role, timestamp }) => (role === "user" ? [timestamp] : [])));
  const timeOf = new Map(items.map((row) => [row.eventId, row.createdAt]));
  const attachments = items.flatMap(({ eventId, messageId, forgottenAt }) => {
    const attachedTo = readAttachedTo(eventId);
    const timestamp = attachedTo === null ? undefined : timeOf.get(attachedTo);
    return timestamp !== undefined && times.has(timestamp) && forgottenAt === null
      ? [{ messageId, timestamp }]
      : [];
  });
  const pictures = await Promise.all(
    attachments.map(async ({ messageId, timestamp }) => {
      const stored = await engine.readMessage({ messageId, owner });
      if (stored === null) return [];
      const { content } = JSON.parse(Buffer.from(stored.bytes).toString("utf8")) as AgentMessage;
      return [{ role: "user", timestamp, content }];
    }),
  );
  // They are newest first; several pictures of one message keep their own order.
  return mergeByTime(pictures.flat().toReversed());
}

function mergeByTime(messages: readonly AgentMessage[]): AgentMessage[] {
  return [...Map.groupBy(messages, (message) => message.timestamp)].map(([timestamp, group]) => ({
    role: "user",
    timestamp,
    content: group.flatMap(({ content }) => content as unknown[]),
  }));
}

/** Few rows of the transcript are not in the archive yet; if they alone are too large, the newest are used. */
function cutWhole(
  messages: AgentMessage[],
  room: number,
  chosenTokens: number,
  addedTokens: number,
): AgentMessage[] {
  return chosenTokens <= room || addedTokens === 0 ? messages : cutToBudget(messages, room);
}

function fallBack(messages: readonly AgentMessage[], room: number, reason: string): Snapshot {
  const cut = cutToBudget(messages, room);
  return {
    messages: cut,
    estimatedTokens: estimateTokens(cut),
    contextProjection: { mode: "per_turn" },
    isTight: cut.length < messages.length,
    fallback: reason,
  };
}

export function readModel(params: AssembleParams): ModelIdentity | undefined {
  const model = params.model ?? params.runtimeSettings?.model?.resolved ?? undefined;
  const provider = params.runtimeSettings?.model?.provider ?? undefined;
  return model === undefined ? undefined : { model, provider };
}

interface Unstored {
  readonly messages: AgentMessage[];
  /** There is a reset among the rows, and nothing after it is stored: stored messages are before it and not shown. */
  readonly isCut: boolean;
}

const NOTHING: Unstored = { messages: [], isCut: false };

/** The rows after the cursor, without those that are stored although the cursor has not passed them: they are in the archive's context. */
async function readUnstored(
  { reader, target, session }: AttemptSource,
  engine: Engine,
  cursor: string | null,
): Promise<Unstored> {
  const rows: TranscriptRow[] = [];
  const state = parseReaderState(cursor);
  for await (const read of readNewRows(reader, target, state)) {
    if (read.kind === "missing" || read.kind === "fenced") break;
    if (read.kind !== "rows")
      throw new Error(`the archive is behind and the transcript cannot be read (${read.reason})`);
    rows.push(...read.rows);
    if (rows.length > MAX_UNSTORED_ROWS) throw new Error("the archive is far behind the transcript");
  }
  const reset = rows.findLastIndex((row) => row.kind === "reset");
  const after = rows.slice(reset + 1);
  const stored = new Set([
    ...(await engine.knownEvents({
      sessionId: session.id,
      owner: session.owner,
      eventIds: after.map((row) => row.entryId),
    })),
    ...state.unnamed.flatMap((turn) => pairUnnamed(turn, after)?.labels.map(({ to }) => to) ?? []),
  ]);
  const messages = after.flatMap((row) =>
    row.kind === "message" && row.hidden.length === 0 && !stored.has(row.entryId) ? [row.message] : [],
  );
  return { messages, isCut: reset >= 0 && stored.size === 0 };
}
