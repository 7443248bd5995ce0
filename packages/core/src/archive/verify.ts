/**
 * The proof, as a read-only plan. Rebuilds every message from what is stored, recomputes commitments, chain and every derived column,
 * replays the ledger, walks the cover against the messages, opens every large file, and compares seals. Page by page, so that memory stays
 * bounded; in one read transaction, so that concurrent writes are not mistaken for damage.
 *
 * The adapter checks what only it can see ({@link StorageProof}), when called: problems are in the order of the checks.
 */
import { hash } from "node:crypto";
import { chainGenesis } from "../model/chain.ts";
import type { ForkOrigin } from "../model/chain.ts";
import { deriveFileId, formatMessageId } from "../model/ids.ts";
import type { ProveArrival } from "../store/redaction.ts";
import type { Derive, Problem, VerifyResult } from "../store/rows.ts";
import { equalBytes } from "./equal-bytes.ts";
import { Pages, readRows } from "./pages.ts";
import { read, together } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { IndexProof, StorageProof } from "./storage-proof.ts";
import type { Row } from "./tables.ts";
import { checkCover } from "./verify-cover.ts";
import { checkGraph, checkSummaryCount } from "./verify-graph.ts";
import { LedgerReplay, readForgotten } from "./verify-ledger.ts";
import type { Recorded } from "./verify-ledger.ts";
import { checkForgotten, checkMessage, readWhole } from "./verify-messages.ts";
import type { MessageProof } from "./verify-messages.ts";
import { checkCounter, Problems } from "./verify-problems.ts";
import type { HiddenChanges } from "./verify-problems.ts";
import { checkSeals } from "./verify-seals.ts";

export interface ProofRequest {
  readonly derive: Derive;
  readonly proveArrival?: ProveArrival | undefined;
  readonly onProgress: (done: number, total: number) => void;
  readonly storage: StorageProof;
}

const CONVERSATION_COLUMNS = [
  "conversation_id",
  "owner",
  "session_key",
  "created_at",
  "head_seq",
  "head_chain",
  "message_count",
  "summary_count",
  "arrival_bytes",
  "last_position",
  "first_at",
  "last_at",
  "shown_messages",
  "shown_tokens",
  "parent_id",
  "fork_seq",
  "fork_pos",
] as const;

type Conversation = Pick<Row<"conversations">, (typeof CONVERSATION_COLUMNS)[number]>;

/** What the checks of conversations share, and their counts. */
interface Proof extends MessageProof {
  readonly recorded: Recorded;
  readonly onMessages: (count: number) => void;
}

function startProof(
  request: Pick<ProofRequest, "derive" | "proveArrival">,
  index: IndexProof | null,
  problems: Problems,
  onMessages: (count: number) => void = () => undefined,
): Proof {
  return {
    derive: request.derive,
    proveArrival: request.proveArrival ?? (() => undefined),
    index,
    problems,
    redacted: { messages: 0, proven: 0 },
    recorded: { aliases: 0, forkNames: 0, boundaries: 0, files: 0 },
    onMessages,
  };
}

export function* proveArchive(request: ProofRequest): Asking<VerifyResult> {
  const { storage } = request;
  const problems = new Problems();
  const attempt = new Attempt(storage, problems);
  yield* attempt.run("archive", undefined, () => done(storage.checkDatabase(problems)));
  const counts = yield* attempt.run("archive", NO_COUNTS, countAll);
  const index = yield* attempt.run("index", null, () => done(storage.openIndex(problems)));
  const total = counts?.messages ?? 0;
  let checked = 0;
  const proof = startProof(request, index, problems, (count) => {
    checked += count;
    request.onProgress(checked, total);
  });
  const conversations = yield* proveAll(proof, attempt);
  yield* attempt.run("summaries", undefined, () => checkGraph(problems));
  yield* attempt.run("large files", undefined, () => checkFiles(problems));
  yield* attempt.run("vectors", undefined, () => done(storage.checkVectors(problems)));
  yield* attempt.run("seals", undefined, () => checkSeals(problems));
  yield* attempt.run("vault", undefined, () => checkVault(problems));
  yield* attempt.run("index", undefined, () => done(index?.finish()));
  const { aliases, forkNames } = proof.recorded;
  checkCounts(counts, proof.recorded, aliases + forkNames, "archive", problems);
  request.onProgress(total, total);
  const found = problems.finish();
  return {
    ok: found.length === 0,
    conversations,
    messages: total,
    summaries: counts?.summaries ?? 0,
    files: counts?.files ?? 0,
    ...(proof.redacted.messages === 0 ? {} : { redacted: proof.redacted }),
    problems: found,
  };
}

/**
 * Proves some conversations by themselves, in the transaction that has written them: for imported ones, which must verify before they are
 * kept. Their terms are derived here when they are indexed, and need no proof.
 */
export function* proveConversations(
  conversationIds: readonly number[],
  request: Pick<ProofRequest, "derive" | "storage">,
): Asking<Problem[]> {
  const problems = new Problems();
  const index = request.storage.openIndex(new Problems());
  for (const id of conversationIds) {
    const by = { column: "conversation_id", keys: [id] } as const;
    const [conversation] = yield* readRows("conversations", CONVERSATION_COLUMNS, by);
    if (conversation === undefined) continue;
    const proof = startProof(request, index, problems);
    yield* checkConversation(conversation, proof);
    yield* checkGraph(problems, id);
    yield* checkFiles(problems, id);
    // Forks prove their own aliases of its messages.
    const { recorded } = proof;
    checkCounts(yield* countOne(id), recorded, recorded.aliases, `conversation ${id}`, problems);
  }
  return problems.finish();
}

/** Unreadable rows are a problem like any other, and later checks still run. */
class Attempt {
  readonly #storage: StorageProof;
  readonly #problems: Problems;

  constructor(storage: StorageProof, problems: Problems) {
    this.#storage = storage;
    this.#problems = problems;
  }

  *run<T>(what: string, whenDamaged: T, check: () => Asking<T>): Asking<T> {
    try {
      return yield* check();
    } catch (error) {
      if (this.#storage.isTransient(error)) throw error;
      this.#problems.add("unreadable", what, `${what} cannot be checked: ${(error as Error).message}`);
      return whenDamaged;
    }
  }
}

/** A check that asks nothing. */
// eslint-disable-next-line require-yield
function* done<T>(value: T): Asking<T> {
  return value;
}

/** Returns how many conversations there are. */
function* proveAll(proof: Proof, attempt: Attempt): Asking<number> {
  const pages = new Pages("conversations", { columns: CONVERSATION_COLUMNS, order: ["conversation_id"] });
  let count = 0;
  for (let page; (page = yield* attempt.run("archive", [], () => pages.next())).length > 0;)
    for (const conversation of page) {
      count += 1;
      const name = `conversation ${conversation.conversation_id}`;
      yield* attempt.run(name, undefined, () => checkConversation(conversation, proof));
    }
  return count;
}

function* checkConversation(conversation: Conversation, proof: Proof): Asking<void> {
  const changes = yield* checkChain(conversation, proof);
  yield* checkCover(conversation, changes, proof.problems);
  yield* checkSummaryCount(conversation, proof.problems);
}

/** Messages and ledger of a conversation, one chain. */
function* checkChain(conversation: Conversation, proof: Proof): Asking<HiddenChanges> {
  const { problems } = proof;
  const id = conversation.conversation_id;
  const name = `conversation ${id}`;
  const forgotten = yield* readForgotten(id);
  const ledger = new LedgerReplay(conversation, forgotten, proof.recorded, problems);
  const totals = new Totals();
  let previous: Uint8Array = chainGenesis({
    conversationId: id,
    owner: conversation.owner,
    sessionKey: conversation.session_key,
    createdAt: conversation.created_at,
    fork: yield* readOrigin(conversation),
  });
  let expected = 1;
  let record = yield* ledger.peek();

  function* takeRecords(before: number): Asking<void> {
    for (; record && record.seq < before; record = yield* ledger.peek()) {
      checkGap(expected, record.seq, name, problems);
      yield* ledger.take(previous);
      previous = record.chain;
      expected = record.seq + 1;
    }
  }

  for (let after = 0, page; (page = yield* read.arrivals(id, after)).length > 0;) {
    for (const whole of yield* readWhole(page)) {
      const { message } = whole;
      if (record && record.seq < message.seq) yield* takeRecords(message.seq);
      checkGap(expected, message.seq, name, problems);
      yield* checkMessage(whole, previous, proof);
      checkForgotten(whole, forgotten.messages.get(message.seq) ?? null, problems);
      totals.add(message);
      previous = message.chain;
      expected = message.seq + 1;
      after = message.seq;
    }
    proof.onMessages(page.length);
  }
  yield* takeRecords(Infinity);

  if (expected - 1 !== conversation.head_seq || !equalBytes(previous, conversation.head_chain)) {
    problems.add(
      "chain_head",
      name,
      `the chain ends at seq ${expected - 1}, the conversation says ${conversation.head_seq}`,
    );
  }
  totals.check(conversation, name, problems);
  return ledger.changes;
}

type Totalled = Pick<Row<"messages">, "arrival_bytes" | "position" | "created_at" | "dated">;

class Totals {
  #count = 0;
  #bytes = 0;
  #last = 0;
  #firstAt: number | null = null;
  #lastAt: number | null = null;

  add({ arrival_bytes: bytes, position, created_at: at, dated }: Totalled): void {
    this.#count += 1;
    this.#bytes += bytes;
    this.#last = Math.max(this.#last, position);
    if (dated === 0) return;
    this.#firstAt = Math.min(this.#firstAt ?? Infinity, at);
    this.#lastAt = Math.max(this.#lastAt ?? -Infinity, at);
  }

  check(conversation: Conversation, name: string, problems: Problems): void {
    checkCounter(conversation, "message_count", this.#count, name, problems);
    checkCounter(conversation, "arrival_bytes", this.#bytes, name, problems);
    checkCounter(conversation, "last_position", this.#last, name, problems);
    checkCounter(conversation, "first_at", this.#firstAt, name, problems);
    checkCounter(conversation, "last_at", this.#lastAt, name, problems);
  }
}

/** The origin of a fork; if the parent lost that place, the chain starts from nothing, which the check detects. */
function* readOrigin({ parent_id: parentId, fork_seq: seq }: Conversation): Asking<ForkOrigin | null> {
  if (parentId === null || seq === null) return null;
  const chain = (yield* read.chainAt(parentId, seq)) ?? new Uint8Array();
  return { conversationId: parentId, seq, chain };
}

function checkGap(expected: number, seq: number, name: string, problems: Problems): void {
  if (seq === expected) return;
  const missing = seq - expected === 1 ? `${expected}` : `${expected} to ${seq - 1}`;
  problems.add("missing", `${name} seq ${expected}`, `seq ${missing} of ${name} is gone`);
}

interface Counts {
  readonly messages: number;
  readonly firsts: number;
  readonly events: number;
  readonly summaries: number;
  readonly files: number;
  readonly boundaries: number;
}

/** For an archive in which they cannot be counted. */
const NO_COUNTS: Counts | null = null;

function* countAll(): Asking<Counts | null> {
  const [messages, firsts, events, summaries, files, boundaries] = yield* together(
    read.count("messages", {}),
    read.count("messages", { revises: null }),
    read.count("event_ids", {}),
    read.count("summaries", {}),
    read.count("large_files", {}),
    read.count("boundaries", {}),
  );
  return { messages, firsts, events, summaries, files, boundaries };
}

function* countOne(conversationId: number): Asking<Counts> {
  const where = { conversation_id: conversationId };
  const [firsts, events, files, boundaries] = yield* together(
    read.count("messages", { ...where, revises: null }),
    read.countOwnNames(conversationId),
    read.count("large_files", where),
    read.count("boundaries", where),
  );
  return { messages: 0, firsts, events, summaries: 0, files, boundaries };
}

/** There may be no row that neither a message nor the ledger accounts for. */
function checkCounts(
  counts: Counts | null,
  recorded: Recorded,
  names: number,
  subject: string,
  problems: Problems,
): void {
  const extra = (counts?.events ?? 0) - (counts?.firsts ?? 0) - names;
  if (extra !== 0) {
    const said = `event_ids has ${extra} rows more than messages and ledger account for`;
    problems.add("event_ids", subject, said);
  }
  if (counts?.boundaries !== recorded.boundaries) {
    const said = `boundaries has ${counts?.boundaries} rows, the ledger records ${recorded.boundaries}`;
    problems.add("boundary", subject, said);
  }
  if (counts?.files !== recorded.files) {
    const said = `large_files has ${counts?.files} rows, the ledger records ${recorded.files}`;
    problems.add("file", subject, said);
  }
}

const FILE_COLUMNS = ["file_id", "conversation_id", "byte_size", "sha256", "storage_path"] as const;

function* checkFiles(problems: Problems, conversationId?: number): Asking<void> {
  const where = conversationId === undefined ? {} : { conversation_id: conversationId };
  const pages = new Pages("large_files", { columns: FILE_COLUMNS, order: ["file_id"], where });
  for (let page; (page = yield* pages.next()).length > 0;)
    for (const file of page) yield* checkFile(file, problems);
}

function* checkFile(
  file: Pick<Row<"large_files">, (typeof FILE_COLUMNS)[number]>,
  problems: Problems,
): Asking<void> {
  const { file_id: id, storage_path: path } = file;
  if (deriveFileId(file.conversation_id, file.sha256) !== id)
    problems.add("file", id, `${id} is not the id of its conversation and content`);
  let content: Uint8Array | null;
  try {
    content = yield* read.content(path);
  } catch (error) {
    problems.add("file", id, (error as Error).message);
    return;
  }
  if (content === null) problems.add("file_missing", id, `the file of ${id} is gone (${path})`);
  else if (content.byteLength !== file.byte_size || hash("sha256", content) !== file.sha256)
    problems.add("file_altered", id, `the file of ${id} is not what was stored (${path})`);
}

/** Sealed values belong to a redacted message. */
function* checkVault(problems: Problems): Asking<void> {
  const columns = ["message_id", "ordinal"] as const;
  const pages = new Pages("sealed_values", { columns, order: columns });
  let last = 0;
  for (let page; (page = yield* pages.next()).length > 0;) {
    const keys = [...new Set(page.map((row) => row.message_id))];
    const rows = yield* readRows("redactions", ["message_id"], { column: "message_id", keys });
    const redacted = new Set(rows.map((row) => row.message_id));
    for (const id of keys.filter((key) => key !== last && !redacted.has(key))) {
      const name = formatMessageId(id);
      problems.add("sealed", name, `the vault has values of ${name}, which was not redacted`);
    }
    last = keys.at(-1) ?? last;
  }
}
