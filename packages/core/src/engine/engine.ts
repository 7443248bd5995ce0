/**
 * The engine, declared once: every verb with the thread that serves it, whether it needs a flushed index, whether it can be cancelled, and its
 * function. The type `Engine`, the engine in this thread (`local-engine.ts`) and the threaded one (`threaded-engine.ts`) come from this table.
 *
 * @example
 * const engine = await openEngine({ database: "lcm.db" });
 * const session = { key: "agent:main:demo", id: "s1", owner: "main" };
 * await engine.ingest({ session, messages: [{ eventId: "e1", message: { role: "user", content: "hello" } }] });
 * const report = await engine.verify();
 * await engine.close();
 */
import type { ConversationTies } from "../store/repair.ts";
import type { Guard, SpendRecord } from "../store/folding.ts";
import type { OutlineRequest } from "../store/store.ts";
import * as archive from "./archive.ts";
import { ask } from "./ask.ts";
import { assemble } from "./assemble.ts";
import * as browse from "./browse.ts";
import type { Scope } from "./conversations.ts";
import * as folding from "./folding.ts";
import * as forgetting from "./forget.ts";
import * as grants from "./grants.ts";
import { ingest } from "./ingest.ts";
import { postBatch } from "./post-arrivals.ts";
import * as recall from "./recall.ts";
import { prepareRestart } from "./restart.ts";
import * as rewriting from "./rewrite.ts";
import * as sessions from "./sessions.ts";
import type { GrantCharge } from "./state.ts";
import { stats } from "./stats.ts";
import * as totals from "./status.ts";
import * as vault from "./vault.ts";
import * as vectors from "./vectors.ts";
import { dropTexts, every, reader, writer } from "./verb.ts";
import type { Methods } from "./verb.ts";

interface DropSummariesRequest {
  readonly conversationId: number;
  readonly summaryIds?: readonly string[];
}

export const VERBS = {
  // Storing

  /** Stores events, all or none. Known events add nothing; changed ones add a revision. */
  ingest: writer(ingest, { post: postBatch }),
  /** How far a session was read, and where it is stored. */
  readSession: writer(sessions.readSession),
  /** Those of the given event ids that are stored. */
  knownEvents: writer(sessions.knownEvents),
  /**
   * Begins a session that a host made as a copy of another one. Events in both are stored only once; what the fork shows of its parent is
   * chosen now, for `bootstrapMaxTokens`. `unrelated`: the archive does not have the first of the events under the parent.
   */
  fork: writer(sessions.fork),
  /** Gives events stored under provisional ids the host's own ids. */
  relabel: writer(sessions.relabel),
  /** The sessions of an owner in which this event is stored. */
  findSessions: writer(sessions.findSessions),
  /** Makes a stand-in's events known to the session it turned out to be; false if that session is already stored. */
  relabelSession: writer(sessions.relabelSession),
  /** Marks which events are off the active branch; all others of the session are shown. */
  setBranch: writer(sessions.setBranch),
  /** Shows the events of a session that were stored as `pending`: their history is now complete. */
  showPending: writer(sessions.showPending),
  /** Records where a host began a new context: earlier messages are no longer shown. */
  recordBoundary: writer(sessions.recordBoundary),
  /** Names, tags, pins or unlists a conversation. Null if the caller cannot see a conversation with this number. */
  labelConversation: writer(browse.labelConversation),

  // Reading

  /** Lists conversations, the most recent first. */
  listConversations: reader(browse.listConversations),
  /** Null: the conversation does not exist, or the caller may not see it. */
  readConversation: writer(browse.readConversation),
  /** Lists the messages of a conversation without their bodies. */
  listMessages: reader(browse.listMessages),
  /** All messages of a conversation in columns: position, size and role. */
  readOutline: reader(
    ({ store }, request: Scope & Pick<OutlineRequest, "conversationId" | "after" | "limit">) =>
      store.readOutline(request),
  ),
  /** Ids of messages by their numbers in the conversation, from 0. */
  listMessageIds: reader(browse.listMessageIds),
  /** The number of a message in its conversation; null when there is none. */
  locateMessage: reader(browse.locateMessage),
  /** A message with its original bytes. */
  readMessage: reader(browse.readMessage),
  /** The revisions of a message, the oldest first. */
  readRevisions: writer(browse.readRevisions),
  /** Counts what conversations contain, and what the context leaves out and why. */
  countMessages: reader(browse.countMessages),
  /** The agents' own figures from their transcripts: tokens, cache hits, tools, errors and hours. */
  stats: reader(stats, { cancellable: true }),
  /** A summary with its text and its sources. */
  readSummary: reader(browse.readSummary),
  /** Lists the summaries of a conversation. */
  listSummaries: reader(browse.listSummaries),
  /** Lists published summaries with the reasons to doubt them. */
  listPublished: reader(({ store }, request: browse.ListPublishedRequest) => store.listPublished(request)),
  /** All summaries of a conversation without their texts, and what each was made from. */
  readGraph: reader(({ store }, request: Scope & { readonly conversationId: number }) =>
    store.readGraph(request),
  ),
  /** A large file with its content; the content is null when it cannot be read. */
  readFile: reader(browse.readFile),
  /** The large files of a conversation, newest first, without their contents. */
  listFiles: reader(browse.listFiles),
  /** Where the contents of all large files are stored. */
  listBlobs: reader(({ store }) => store.listBlobs()),
  /** Removes those of these large files that no message names; returns their paths. */
  removeUnnamedBlobs: writer(({ store }, { paths }: { readonly paths: readonly string[] }) =>
    store.removeUnnamed(paths),
  ),

  /** What a model needs to continue after its host's own compaction: how to find everything, and what was asked, decided and left open. */
  prepareRestart: reader(prepareRestart),

  // Recall

  /** Indexes recently stored messages; every search does this first. */
  flushIndex: writer(archive.flushIndex),
  /** Search over messages, with ranks and snippets. */
  search: reader(recall.search, { flushedIndex: true }),
  /** Search over messages, summaries and files, by words, questions or regular expressions. */
  grep: reader(recall.grep, { flushedIndex: true, cancellable: true }),
  /** Opens a summary, a large file, a message or a run of messages, verbatim, in pages. */
  describe: reader(recall.describe),
  /** From summaries down to the original words, within a token limit. */
  expand: reader(recall.expand, { flushedIndex: true }),
  /** Cited passages for a question and, if there is a model, an answer written from them. */
  ask: reader(ask, { flushedIndex: true, cancellable: true }),
  /** Lets a sub-agent's session read part of what the grant's issuer may read. */
  createGrant: writer(grants.createGrant),
  /** Ends grants; returns how many. */
  revokeGrants: writer(grants.revokeGrants),

  // Contexts and folding

  /** The context for a budget. Never writes, never waits for folding, never calls a model. Null: no such conversation. */
  assemble: writer(assemble),
  /** Folds now. */
  compact: writer(folding.compact, { cancellable: true, progress: true }),
  /** Pays the compaction debt that is due, prepares summaries ahead, makes stand-ins up to the root. For idle times. */
  maintain: writer(folding.maintain, { cancellable: true }),
  /** Pays the oldest compaction debt of the archive that is due and that nobody is working on. Null: there is none. For workers. */
  payNextDebt: writer(folding.payNextDebt, { cancellable: true, progress: true }),
  /** Folding that is due. */
  listDebts: reader(({ store }) => store.listDebts()),
  /** Drops the debt of a conversation; false when it had none. */
  closeDebt: writer(({ store }, { conversationId }: { readonly conversationId: number }) =>
    store.closeDebt(conversationId),
  ),
  /**
   * Removes summaries of a conversation with those above them (all if none are named) and shows what they represented; null when something
   * else uses one.
   */
  dropSummaries: writer(({ store }, request: DropSummariesRequest) =>
    store.dropSummaries(request.conversationId, request.summaryIds ?? null),
  ),
  /** Regenerates a published summary from its sources. */
  rewriteSummary: writer(rewriting.rewriteSummary, { cancellable: true }),
  /** Puts the sources of a summary back into the context. Null: the summary is not itself an item of the context. */
  dissolveSummary: writer(rewriting.dissolveSummary),

  // Search by meaning

  /** Lists the models, how many messages each has vectors of, and which one answers questions. */
  embedStatus: reader(vectors.embedStatus),
  /** Gives every message a vector of the configured model. Can be cancelled and resumed. */
  embedMessages: writer(vectors.embedMessages, { cancellable: true, progress: true }),
  /** The vector of a question, in the active space; or why there is none. */
  embedQuestion: writer(vectors.embedQuestion, { cancellable: true }),
  /** Removes all vectors; returns how many spaces there were. */
  dropVectors: writer(vectors.dropVectors),

  // The archive as a whole

  /** What the archive contains, whether its index is complete, which guards are open. */
  status: reader(totals.status, { flushedIndex: true }),
  /** What models have cost. */
  spend: reader(totals.spend),
  /** What the bytes of the archive are used for. Reads the whole file. */
  measureStorage: reader(({ store }) => store.measureStorage(), { flushedIndex: true }),
  /** Proves the archive: every message, chain, summary, file and the index. */
  verify: reader(archive.verify, { flushedIndex: true, progress: true }),
  /** Those of the given events whose bytes cannot be read back exactly from the archive. */
  findUnproven: reader(archive.findUnproven, { flushedIndex: true }),
  /** Rebuilds the full-text index online. */
  reindex: writer(archive.reindex, { cancellable: true, progress: true }),
  /** Writes a consistent copy of the database while others keep writing. See `repair/backup.ts` for whole backups. */
  backup: writer(archive.backup, { progress: true }),
  /** The schema version of this program, and of the file. */
  readVersions: reader(({ store }) => store.readVersions()),
  /** Copies a conversation with its summaries in front of another one. */
  transplant: writer(archive.transplant),

  // What imports stored

  /** Lists imports and what they stored, the newest first. */
  listImports: writer(({ store }) => store.listImports()),
  /** What belongs to these conversations, and what else depends on them. */
  readTies: writer(({ store }, { conversationIds }: { readonly conversationIds: readonly number[] }) =>
    store.readTies(conversationIds),
  ),
  /** Removes conversations with everything in them; null if they are not as expected. */
  removeConversations: writer(
    ({ store }, { expected }: { readonly expected: readonly ConversationTies[] }) =>
      store.removeConversations(expected),
    { erasesTexts: true },
  ),

  // Forgetting and redaction

  /** What forgetting these messages would affect. */
  planForget: reader(forgetting.planForget, { flushedIndex: true }),
  /** Erases messages and everything derived from them. Cannot be undone. */
  forget: writer(forgetting.forget, { erasesTexts: true }),
  /** Whether there are still pages to wipe after a forget. */
  isForgettingOpen: reader(({ store }) => store.isForgettingOpen()),
  /** Wipes the pages that a forget freed but could not wipe itself. */
  finishForgetting: writer(forgetting.finishForgetting),
  /** Opens the sealed values of one message. Each opening is recorded in the ledger. */
  unseal: writer(vault.unseal),
  /** Seals every value again with another key. Keyed commitments keep the key they were made with. */
  rotateVault: writer(vault.rotateVault),

  /** Ends background work at its next step and closes the archive. */
  close: every(archive.close),
};

/** Every verb as a method. */
export interface Engine extends Methods<typeof VERBS> {}

/** What the reading thread asks the writing one to do: see `WriterPort`. Not part of the engine. */
export const WRITER_PORT = {
  recordSpend: writer(({ store }, record: SpendRecord) => store.recordSpend(record)),
  saveGuard: writer(({ store }, guard: Guard) => store.saveGuard(guard)),
  chargeGrant: writer(async ({ store }, { grantId, tokens, at }: GrantCharge) => {
    await store.chargeGrant(grantId, tokens, at);
  }),
  embedQuestion: VERBS.embedQuestion,
};

/** What the reading thread must do after certain verbs of the writing one. Not part of the engine. */
export const READER_PORT = { dropTexts: reader(dropTexts) };
