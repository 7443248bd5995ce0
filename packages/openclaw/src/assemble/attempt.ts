/**
 * One attempt of a turn: the context is chosen once, at its first call, and every later call of the attempt gets the same messages,
 * whatever was folded meanwhile, because the host appends the open turn itself. Only when what was sent no longer fits is it chosen again.
 *
 * The first call's budget leaves out the system prompt and the answer; the later ones do not. The difference between the second and the
 * first is that overhead, and it is taken off every later budget.
 */

import type { Engine, ModelIdentity, SessionRef } from "@lossless/core";
import { readAttachedTo } from "../capture/media.ts";
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
  /** Why these are the host's own messages and not the archive's; null when they are the archive's. */
  readonly fallback: string | null;
}

/** Where an attempt reads from. */
export interface AttemptSource {
  readonly open: () => Promise<Engine>;
  readonly reader: TranscriptReader;
  readonly target: TranscriptTarget;
  readonly session: SessionRef;
  /** The model's window, as far as it is known. */
  readonly contextWindow?: number | undefined;
}

const DEFAULT_BUDGET_TOKENS = 100_000;
/** Rows beyond the archive that a turn is willing to show from the transcript itself. */
const MAX_UNSTORED_ROWS = 2_000;

/** A room that shrinks is chosen a little smaller than it is, so that the next prompts need no other. */
const SHRUNK_SHARE = 0.97;
/** A room is held as long as it leaves no more than the rest of this unused. */
const HELD_SHARE = 0.9;

/**
 * The room to choose a context for. The host's budget leaves out the prompt, so it changes a little at every turn, and the front of the
 * context would change with it. The room of the turn before is held while it still fits and wastes little.
 */
export function holdRoom(held: number | undefined, room: number): number {
  if (held === undefined || held < HELD_SHARE * room) return room;
  return held <= room ? held : Math.max(1, Math.floor(SHRUNK_SHARE * room));
}

export class Attempt {
  /** The archive holds all of the transcript that this turn may see. */
  caughtUp = false;
  /** Outside a durable turn the host hands the open turn over with the history. */
  isStandalone = false;
  /** The room that the context was chosen for; undefined before the first call. */
  chosenFor: number | undefined;
  #calls = 0;
  #firstBudget: number | null = null;
  #overhead = 0;
  #snapshot: Snapshot | null = null;
  #prompt: string | undefined;

  /** Room of the first call; null before it. */
  get baseTokens(): number | null {
    return this.#firstBudget;
  }

  /** `held` is the room that the turn before was chosen for. */
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
    // What the host hands over later is our own answer; only the first call has its view of the history.
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
    const unstored = this.caughtUp ? NOTHING : await readUnstored(source, known?.cursor ?? null);
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
            // The strictest grammar whose messages stay apart; the host joins them for the providers that want it.
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

/** One line for a history that is still being read; the same bytes until it is there. */
function describeOlder(cursor: string | null): AgentMessage[] {
  const { older = null } = parseReaderState(cursor);
  if (older === null || older.messages === 0) return [];
  const day = (at: number | null): string => (at === null ? "" : new Date(at).toISOString().slice(0, 10));
  const span = older.firstAt === null ? "" : ` from ${day(older.firstAt)} to ${day(older.lastAt)}`;
  const content = `[${older.messages} earlier messages${span} are not shown here yet: they are being read into the archive. Nothing is lost; search with lcm_grep in a while.]`;
  return [{ role: "user", content }];
}

/** Pictures are looked for among this many of the newest rows: the fresh tail and what surrounds it. */
const PICTURE_ROWS = 160;

/** What the archive holds of pictures that shown messages of a user name, as messages of the same times. */
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
  // Newest first as they came; several of one message belong in their own order.
  return mergeByTime(pictures.flat().toReversed());
}

function mergeByTime(messages: readonly AgentMessage[]): AgentMessage[] {
  return [...Map.groupBy(messages, (message) => message.timestamp)].map(([timestamp, group]) => ({
    role: "user",
    timestamp,
    content: group.flatMap(({ content }) => content as unknown[]),
  }));
}

/** Rows of the transcript that are not in the archive yet are few; when they alone are too much, the newest of them count. */
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
  /** A reset lies among the rows: what is stored comes before it and is not shown. */
  readonly isCut: boolean;
}

const NOTHING: Unstored = { messages: [], isCut: false };

async function readUnstored({ reader, target }: AttemptSource, cursor: string | null): Promise<Unstored> {
  const rows: TranscriptRow[] = [];
  for await (const read of readNewRows(reader, target, parseReaderState(cursor))) {
    if (read.kind === "missing" || read.kind === "fenced") break;
    if (read.kind !== "rows")
      throw new Error(`the archive is behind and the transcript cannot be read (${read.reason})`);
    rows.push(...read.rows);
    if (rows.length > MAX_UNSTORED_ROWS) throw new Error("the archive is far behind the transcript");
  }
  const reset = rows.findLastIndex((row) => row.kind === "reset");
  const messages = rows
    .slice(reset + 1)
    .flatMap((row) => (row.kind === "message" && row.hidden.length === 0 ? [row.message] : []));
  return { messages, isCut: reset >= 0 };
}
