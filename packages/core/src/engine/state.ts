/**
 * What an engine is made of and what it holds in memory between calls. Every verb is a plain function over this state; the archive is the only
 * truth, so losing the state with the process loses nothing but work under way.
 *
 * Invariant: a verb that only reads writes nothing through `store`. What it has to write (what a model call cost, what a grant has used) goes
 * through `writer`, which in a thread that only reads is the thread that writes.
 */
import type { Complete, ModelRef } from "../model/complete.ts";
import type { Embed } from "../model/embed.ts";
import type { Clock, EventSink } from "../model/events.ts";
import { drawRandom } from "../ingest/random.ts";
import { compileSessionPatterns } from "../settings/session-patterns.ts";
import type { Settings } from "../settings/settings.ts";
import type { QuestionVector } from "../recall/vector-search.ts";
import { RegexScanner } from "../recall/regex-scanner.ts";
import type { Guard, SpendRecord } from "../store/folding.ts";
import type { Store } from "../store/store.ts";
import { GuardBook } from "../summarize/guards.ts";
import type { GuardOptions } from "../summarize/guards.ts";
import type { Summarize } from "../summarize/summarize.ts";
import { createSummarizer } from "../summarize/summarizer.ts";
import { Redaction } from "./redaction.ts";

export interface LocalEngineOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly onEvent?: EventSink;
  readonly clock?: Clock;
  /** The way to a model; without one the engine writes its summaries itself. */
  readonly complete?: Complete | null;
  /** The model the host would use; null when the host chooses by itself, absent outside a host. */
  readonly hostModel?: ModelRef | null;
  /** How long a process that folds is believed to be alive without a sign. */
  readonly leaseMs?: number;
  /** The way to a model that makes vectors; without one, search is by words. */
  readonly embed?: Embed | null;
  /** First wait after an embedding call that failed, for tests. */
  readonly embedRetryMs?: number;
  /** Replaces the summariser, for benchmarks. */
  readonly summarize?: Summarize;
  /** Where a thread that only reads has things written; the store itself when absent. */
  readonly writer?: WriterPort;
}

/** What verbs that only read have to write, or to have done by the thread that writes. */
export interface WriterPort {
  recordSpend(record: SpendRecord): Promise<void>;
  saveGuard(guard: Guard): Promise<void>;
  chargeGrant(charge: GrantCharge): Promise<void>;
  /** The vector of a question: it costs tokens, and after a failure no question waits for a while, whoever asks. */
  embedQuestion(request: EmbedQuestionRequest): Promise<QuestionVector>;
}

export interface GrantCharge {
  readonly grantId: string;
  readonly tokens: number;
  readonly at: number;
}

export interface EmbedQuestionRequest {
  readonly text: string;
  readonly signal?: AbortSignal;
}

export interface EngineState {
  readonly store: Store;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly emit: EventSink;
  readonly complete: Complete | null;
  readonly embed: Embed | null;
  readonly writer: WriterPort;
  readonly guards: GuardBook;
  readonly redaction: Redaction;
  readonly summarize: Summarize;
  /** The same without a model. */
  readonly extract: Summarize;
  readonly ingest: IngestState;
  readonly folding: FoldingState;
  readonly recall: RecallState;
  readonly vectors: VectorState;
  /** Aborted when the engine closes: work in the background stops at its next step. */
  readonly closing: AbortController;
}

interface IngestState {
  readonly isIgnored: (sessionKey: string) => boolean;
  readonly isStateless: (sessionKey: string) => boolean;
  /** The last batch of each sequence that is under way or has failed. */
  readonly sequences: Map<string, Promise<unknown>>;
  /** The host was told that messages are stored but not indexed. */
  isIndexDegraded: boolean;
}

interface FoldingState {
  /** The name of this engine on leases. */
  readonly holder: string;
  readonly leaseMs: number;
  /** Work on a conversation happens one after the other, so that nothing is made, and paid for, twice. */
  readonly turns: Map<number, Promise<unknown>>;
  /** How many wait to fold a conversation now: upkeep gives way to them after its next step. */
  readonly waiting: Map<number, number>;
  /** The fold revision each conversation was last assembled at here: a stand-in made later waits, so that the front does not change. */
  readonly seenRevisions: Map<number, number>;
  /** The model's factor, fixed while the front of the prompt is: it changes only with an epoch. */
  readonly factors: Map<string, { foldRevision: number; factor: number }>;
  /** Folding in the background, by conversation. */
  readonly background: Map<number, Promise<void>>;
}

interface RecallState {
  readonly scanner: RegexScanner;
  /** Sessions with an answer under way: one at a time each. */
  readonly asking: Set<string>;
}

interface VectorState {
  /** First wait after a failure that may pass; the next are twice as long each. */
  readonly retryMs: number;
  background: Promise<void> | null;
  isAskedAgain: boolean;
  /** After a failure the background waits until then. */
  pausedUntil: number;
  questionsPausedUntil: number;
}

const SYSTEM_CLOCK: Clock = { now: () => Date.now(), random: drawRandom };
/** How long a process that folds is believed to be alive without a sign; it gives one three times as often. */
const LEASE_MS = 120_000;
const EMBED_RETRY_MS = 1_000;

export function createEngineState(options: LocalEngineOptions, writer: WriterPort): EngineState {
  const { store, settings, clock = SYSTEM_CLOCK, onEvent: emit = () => undefined } = options;
  const complete = options.complete ?? null;
  const parts = { store, settings, clock, emit };
  return {
    ...parts,
    complete,
    embed: options.embed ?? null,
    writer,
    guards: new GuardBook({ ...parts, store: withWriter(store, writer) }),
    redaction: new Redaction(parts),
    summarize: options.summarize ?? createSummarizer({ ...parts, complete, hostModel: options.hostModel }),
    extract: createSummarizer({ ...parts, complete: null }),
    ingest: {
      isIgnored: compileSessionPatterns(settings.ignoreSessionPatterns).matches,
      isStateless: compileSessionPatterns(settings.statelessSessionPatterns).matches,
      sequences: new Map(),
      isIndexDegraded: false,
    },
    folding: {
      holder: `${process.pid}-${Buffer.from(clock.random(6)).toString("hex")}`,
      leaseMs: options.leaseMs ?? LEASE_MS,
      turns: new Map(),
      waiting: new Map(),
      seenRevisions: new Map(),
      factors: new Map(),
      background: new Map(),
    },
    recall: { scanner: new RegexScanner(), asking: new Set() },
    vectors: {
      retryMs: options.embedRetryMs ?? EMBED_RETRY_MS,
      background: null,
      isAskedAgain: false,
      pausedUntil: 0,
      questionsPausedUntil: 0,
    },
    closing: new AbortController(),
  };
}

/** The books that guards keep: read here, written where writing is allowed. */
function withWriter(store: Store, writer: WriterPort): GuardOptions["store"] {
  return {
    countSpendCalls: (since) => store.countSpendCalls(since),
    sumSpend: (request) => store.sumSpend(request),
    readGuards: () => store.readGuards(),
    saveGuard: (guard) => writer.saveGuard(guard),
  };
}
