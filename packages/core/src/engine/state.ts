/**
 * The engine's parts and what it keeps in memory between calls. Every verb is a plain function over this state. The archive is the only
 * source of truth, so losing the state with the process loses only work in progress.
 *
 * Invariant: a verb that only reads writes nothing through `store`. What it has to write (the cost of a model call, the use of a grant)
 * goes through `writer`, which in a read-only thread is the writing thread.
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
  /** Calls a model; without it the engine writes its summaries itself. */
  readonly complete?: Complete | null;
  /** The host's default model; null when the host chooses by itself, absent outside a host. */
  readonly hostModel?: ModelRef | null;
  /** How long a folding process counts as alive without renewing its lease. */
  readonly leaseMs?: number;
  /** Calls an embedding model; without it, search is by words. */
  readonly embed?: Embed | null;
  /** First wait after a failed embedding call, for tests. */
  readonly embedRetryMs?: number;
  /** Replaces the summariser, for benchmarks. */
  readonly summarize?: Summarize;
  /** Writes for a read-only thread; the store itself when absent. */
  readonly writer?: WriterPort;
}

/** What verbs that only read have to write, or have the writing thread do. */
export interface WriterPort {
  recordSpend(record: SpendRecord): Promise<void>;
  saveGuard(guard: Guard): Promise<void>;
  chargeGrant(charge: GrantCharge): Promise<void>;
  /** The vector of a question. It costs tokens, and after a failure no question from any caller waits for a while. */
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
  /** Aborted when the engine closes: background work stops at its next step. */
  readonly closing: AbortController;
}

interface IngestState {
  readonly isIgnored: (sessionKey: string) => boolean;
  readonly isStateless: (sessionKey: string) => boolean;
  /** The last batch of each sequence that is in progress or has failed. */
  readonly sequences: Map<string, Promise<unknown>>;
  /** The host has been notified that messages are stored but not indexed. */
  isIndexDegraded: boolean;
}

interface FoldingState {
  /** The name of this engine in leases. */
  readonly holder: string;
  readonly leaseMs: number;
  /** Work on a conversation is serialised, so that nothing is made, and paid for, twice. */
  readonly turns: Map<number, Promise<unknown>>;
  /** How many callers wait to fold a conversation now: upkeep yields to them after its next step. */
  readonly waiting: Map<number, number>;
  /**
   * The fold revision at which each conversation was last assembled here: a stand-in made later waits, so that the front does not change.
   */
  readonly seenRevisions: Map<number, number>;
  /** The model's factor. It stays the same with the front of the prompt: it changes only with an epoch. */
  readonly factors: Map<string, { foldRevision: number; factor: number }>;
  /** Background folding, by conversation. */
  readonly background: Map<number, Promise<void>>;
}

interface RecallState {
  readonly scanner: RegexScanner;
  /** Sessions with an answer in progress: at most one each. */
  readonly asking: Set<string>;
}

interface VectorState {
  /** First wait after a failure that may be temporary; each further wait is twice as long. */
  readonly retryMs: number;
  background: Promise<void> | null;
  isAskedAgain: boolean;
  /** After a failure, background work waits until then. */
  pausedUntil: number;
  questionsPausedUntil: number;
}

const SYSTEM_CLOCK: Clock = { now: () => Date.now(), random: drawRandom };
/** How long a folding process counts as alive without renewing its lease; it renews three times as often. */
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

/** The guards' records: read here, written where writing is allowed. */
function withWriter(store: Store, writer: WriterPort): GuardOptions["store"] {
  return {
    countSpendCalls: (since) => store.countSpendCalls(since),
    sumSpend: (request) => store.sumSpend(request),
    readGuards: () => store.readGuards(),
    saveGuard: (guard) => writer.saveGuard(guard),
  };
}
