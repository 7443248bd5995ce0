/**
 * The proof. Rebuilds every message from what is stored, recomputes commitments, chain and every derived column, replays the ledger,
 * walks the cover against the messages, opens every large file, and compares the index with the texts. Runs in one read transaction, so
 * that writers at work are not mistaken for damage, and page by page, so that memory stays bounded.
 */
import { hash } from "node:crypto";
import {
  chainGenesis,
  chainMessage,
  chainRecord,
  deriveFileId,
  formatMessageId,
  hashFacts,
  HIDDEN,
} from "@lossless/core/adapter";
import type { ForkOrigin, HiddenReason } from "@lossless/core/adapter";
import type {
  Derive,
  PreparedPart,
  PreparedRedaction,
  Problem,
  ProveArrival,
  VerifyReport,
} from "@lossless/core/ports";
import { isBusy } from "./connection.ts";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { checkFork } from "./fork.ts";
import { PlanReads } from "./plan-reads.ts";
import { equalBytes } from "./verify-bytes.ts";
import { checkCover } from "./verify-cover.ts";
import { checkGraph, checkSummaryCount } from "./verify-graph.ts";
import { IndexCheck } from "./verify-index.ts";
import { checkCounter, Problems } from "./verify-problems.ts";
import { checkVectors } from "./verify-vectors.ts";
import type { HiddenChanges } from "./verify-problems.ts";
import { restoreBytes, SELECT_PARTS, toCuts } from "./read.ts";
import { compareSchema } from "./migrate.ts";
import { checkSeals } from "./seals.ts";
import { checkValues, commitStored, listLost, readRedaction } from "./redactions.ts";

const PAGE = 256;

const CONVERSATIONS = `
  SELECT conversation_id, owner, session_key, created_at, head_seq, head_chain, message_count, summary_count, arrival_bytes,
         last_position, first_at, last_at, shown_messages, shown_tokens, parent_id, fork_seq, fork_pos
  FROM conversations ORDER BY conversation_id`;
const MESSAGES_PAGE = `
  SELECT m.*, s.session_id, (SELECT r.seq FROM messages r WHERE r.message_id = m.revises) AS revises_seq,
         e.message_id AS event_message, (SELECT max(r.message_id) FROM messages r WHERE r.revises = m.message_id) AS last_revision
  FROM messages m JOIN sessions s USING (session_ref)
  LEFT JOIN event_ids e ON e.session_ref = m.session_ref AND e.event_id = m.event_id
  WHERE m.conversation_id = ? AND m.seq > ? ORDER BY m.seq LIMIT ${PAGE}`;
const LEDGER = "SELECT seq, kind, body, at, chain FROM ledger WHERE conversation_id = ? ORDER BY seq";
const FILE_COLUMNS = `file_id, conversation_id, file_name, mime_type, byte_size, line_count, sha256, storage_path,
  exploration_summary, created_at`;
const FILES = `SELECT ${FILE_COLUMNS} FROM large_files WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY file_id`;
const FILE = `SELECT ${FILE_COLUMNS} FROM large_files WHERE file_id = ?`;
const BOUNDARY = `
  SELECT position, reason, retain_depth, shown_before, conversation_id FROM boundaries b JOIN sessions s USING (session_ref)
  WHERE s.session_id = ? AND b.event_id = ? AND b.conversation_id = ?`;
const ALIAS = `
  SELECT e.message_id, m.seq FROM event_ids e JOIN sessions s USING (session_ref) JOIN messages m USING (message_id)
  WHERE s.session_id = ? AND e.event_id = ? AND m.conversation_id = ?`;
const COUNTS = `
  SELECT (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM messages WHERE revises IS NULL) AS firsts,
         (SELECT count(*) FROM event_ids) AS events, (SELECT count(*) FROM summaries) AS summaries,
         (SELECT count(*) FROM large_files) AS files, (SELECT count(*) FROM boundaries) AS boundaries`;

/** Without the names that forks give to messages of their parent: the record that proves those is in the fork. */
const COUNTS_OF = `
  SELECT (SELECT count(*) FROM messages WHERE conversation_id = ?1 AND revises IS NULL) AS firsts,
         (SELECT count(*) FROM event_ids e JOIN messages m USING (message_id)
          WHERE m.conversation_id = ?1 AND (e.session_ref = m.session_ref OR EXISTS (
            SELECT 1 FROM placements p WHERE p.session_ref = e.session_ref AND p.conversation_id = ?1))) AS events,
         (SELECT count(*) FROM large_files WHERE conversation_id = ?1) AS files,
         (SELECT count(*) FROM boundaries WHERE conversation_id = ?1) AS boundaries`;

export function verify(
  context: StoreContext,
  derive: Derive,
  onProgress: (done: number, total: number) => void,
  proveArrival: ProveArrival = () => undefined,
): VerifyReport {
  const { connection } = context;
  const problems = new Problems();
  return connection.read(() => {
    connection.checkSchemaVersion();
    /** What cannot even be read is a problem like any other, and the checks that follow still run. */
    const attempt = <T>(what: string, whenDamaged: T, check: () => T): T => {
      try {
        return check();
      } catch (error) {
        if (isBusy(error)) throw error;
        problems.add("unreadable", what, `${what} cannot be checked: ${(error as Error).message}`);
        return whenDamaged;
      }
    };
    attempt("archive", undefined, () => checkDatabase(connection, problems));
    const counts = attempt<Record<string, number>>("archive", {}, () => connection.get(COUNTS) ?? {});
    const index = attempt("index", null, () => new IndexCheck(context, problems));
    const conversations = attempt<Row[]>("archive", [], () => connection.all(CONVERSATIONS));
    const total = counts.messages ?? 0;
    const state = startState(proveArrival, (done) => onProgress(done, total));
    for (const conversation of conversations) {
      attempt(`conversation ${conversation.conversation_id}`, undefined, () => {
        checkConversation(context, conversation, derive, index, problems, state);
      });
    }
    attempt("summaries", undefined, () => checkGraph(connection, problems));
    attempt("large files", undefined, () => checkFiles(context, problems));
    attempt("vectors", undefined, () => checkVectors(connection, problems));
    attempt("seals", undefined, () => checkSeals(connection, problems));
    attempt("vault", undefined, () => {
      for (const id of listLost(connection))
        problems.add(
          "sealed",
          formatMessageId(id),
          `the vault has values of ${formatMessageId(id)}, which was not redacted`,
        );
    });
    attempt("index", undefined, () => index?.finish());
    checkCounts(counts, { ...state, names: state.aliases + state.forkNames }, "archive", problems);
    onProgress(total, total);
    const found = problems.finish();
    return {
      ok: found.length === 0,
      conversations: conversations.length,
      messages: total,
      summaries: counts.summaries ?? 0,
      files: counts.files ?? 0,
      ...(state.redacted.messages === 0 ? {} : { redacted: state.redacted }),
      problems: found,
    };
  });
}

function checkConversation(
  context: StoreContext,
  conversation: Row,
  derive: Derive,
  index: IndexCheck | null,
  problems: Problems,
  state: VerifyState,
): void {
  const changes = checkChain(context, conversation, derive, index, problems, state);
  checkCover(context.connection, conversation, changes, problems);
  checkSummaryCount(context.connection, conversation, problems);
}

/**
 * Proves some conversations by themselves, in the transaction that has written them: for what comes from outside and must prove before it is
 * kept. Their terms are derived here when they are indexed, and need no proof.
 */
export function verifyConversations(
  context: StoreContext,
  conversationIds: readonly number[],
  derive: Derive,
): Problem[] {
  const { connection } = context;
  const problems = new Problems();
  const index = new IndexCheck(context, new Problems());
  for (const id of conversationIds) {
    const [conversation] = connection.all(`SELECT * FROM (${CONVERSATIONS}) WHERE conversation_id = ?`, id);
    if (conversation === undefined) continue;
    const state = startState();
    checkConversation(context, conversation, derive, index, problems, state);
    checkGraph(connection, problems, id);
    checkFiles(context, problems, id);
    const counts = connection.get<Record<string, number>>(COUNTS_OF, id) ?? {};
    // Its forks prove the names they give to its messages.
    checkCounts(counts, { ...state, names: state.aliases }, `conversation ${id}`, problems);
  }
  return problems.finish();
}

interface VerifyState {
  done: number;
  aliases: number;
  /** Names that forks give to messages of their parents. */
  forkNames: number;
  boundaries: number;
  files: number;
  readonly redacted: { messages: number; proven: number };
  readonly proveArrival: ProveArrival;
  readonly report: (done: number) => void;
}

function startState(
  proveArrival: ProveArrival = () => undefined,
  report: (done: number) => void = () => undefined,
): VerifyState {
  const redacted = { messages: 0, proven: 0 };
  return { done: 0, aliases: 0, forkNames: 0, boundaries: 0, files: 0, redacted, proveArrival, report };
}

/** No row may be there that neither a message nor the ledger accounts for. */
function checkCounts(
  counts: Readonly<Record<string, number>>,
  proven: Pick<VerifyState, "boundaries" | "files"> & { readonly names: number },
  subject: string,
  problems: Problems,
): void {
  const extra = (counts.events ?? 0) - (counts.firsts ?? 0) - proven.names;
  if (extra !== 0)
    problems.add(
      "event_ids",
      subject,
      `event_ids has ${extra} rows more than messages and ledger account for`,
    );
  if (counts.boundaries !== proven.boundaries) {
    const said = `boundaries has ${counts.boundaries} rows, the ledger records ${proven.boundaries}`;
    problems.add("boundary", subject, said);
  }
  if (counts.files !== proven.files)
    problems.add("file", subject, `large_files has ${counts.files} rows, the ledger records ${proven.files}`);
}

function checkDatabase(connection: Connection, problems: Problems): void {
  for (const difference of compareSchema(connection)) problems.add("schema", "archive", difference);
  for (const row of connection.all<{ integrity_check: string }>("PRAGMA integrity_check(20)")) {
    if (row.integrity_check === "ok") continue;
    // The index reports its own damage, with the command that mends it.
    if (/(?:messages|summaries)_fts_/.test(row.integrity_check)) continue;
    problems.add("database", "archive", `SQLite finds: ${row.integrity_check}`);
  }
  for (const row of connection.all("PRAGMA foreign_key_check").slice(0, 20)) {
    problems.add(
      "dangling_link",
      `${row.table}:${row.rowid ?? ""}`,
      `a row of ${row.table} refers to a missing row of ${row.parent}`,
    );
  }
}

function checkChain(
  context: StoreContext,
  conversation: Row,
  derive: Derive,
  index: IndexCheck | null,
  problems: Problems,
  state: VerifyState,
): HiddenChanges {
  const { connection } = context;
  const id = conversation.conversation_id as number;
  const name = `conversation ${id}`;
  const ledger = connection.all(LEDGER, id);
  const changes: HiddenChanges = new Map();
  const tombs = readTombs(ledger);
  const totals = {
    count: 0,
    bytes: 0,
    last: 0,
    firstAt: null as number | null,
    lastAt: null as number | null,
  };
  let previous: Uint8Array = chainGenesis({
    conversationId: id,
    owner: conversation.owner as string,
    sessionKey: conversation.session_key as string,
    createdAt: conversation.created_at as number,
    fork: readOrigin(connection, conversation),
  });
  let expected = 1;
  let nextRecord = 0;

  const takeRecords = (before: number): void => {
    for (
      let record = ledger[nextRecord];
      record && (record.seq as number) < before;
      record = ledger[++nextRecord]
    ) {
      const seq = record.seq as number;
      checkGap(expected, seq, name, problems);
      const facts = {
        seq,
        kind: record.kind as string,
        body: record.body as string,
        at: record.at as number,
      };
      if (!equalBytes(chainRecord(previous, facts), record.chain)) {
        problems.add(
          "chain",
          `${name} seq ${seq}`,
          `the ledger record at seq ${seq} does not continue the chain`,
        );
      }
      if (facts.kind === "fork")
        state.forkNames += checkFork(connection, conversation, parseBody(facts.body) ?? {}, problems);
      else replayRecord(connection, id, facts, { changes, tombs, problems, state });
      previous = record.chain as Uint8Array;
      expected = seq + 1;
    }
  };

  for (let after = 0; ;) {
    const page = connection.all(MESSAGES_PAGE, id, after);
    for (const message of page) {
      const seq = message.seq as number;
      takeRecords(seq);
      checkGap(expected, seq, name, problems);
      checkMessage(context, message, previous, derive, index, problems, state);
      checkTomb(connection, message, tombs, problems);
      totals.count += 1;
      totals.bytes += message.arrival_bytes as number;
      totals.last = Math.max(totals.last, message.position as number);
      totals.firstAt = Math.min(totals.firstAt ?? Infinity, message.created_at as number);
      totals.lastAt = Math.max(totals.lastAt ?? -Infinity, message.created_at as number);
      previous = message.chain as Uint8Array;
      expected = seq + 1;
      after = seq;
      state.done += 1;
    }
    state.report(state.done);
    if (page.length < PAGE) break;
  }
  takeRecords(Infinity);

  if (expected - 1 !== conversation.head_seq || !equalBytes(previous, conversation.head_chain)) {
    problems.add(
      "chain_head",
      name,
      `the chain ends at seq ${expected - 1}, the conversation says ${conversation.head_seq}`,
    );
  }
  checkCounter(conversation, "message_count", totals.count, name, problems);
  checkCounter(conversation, "arrival_bytes", totals.bytes, name, problems);
  checkCounter(conversation, "last_position", totals.last, name, problems);
  checkCounter(conversation, "first_at", totals.firstAt, name, problems);
  checkCounter(conversation, "last_at", totals.lastAt, name, problems);
  return changes;
}

/** Where a fork starts; a parent that lost that place leaves a chain that starts from nothing, which shows. */
function readOrigin(connection: Connection, { parent_id: parentId, fork_seq: seq }: Row): ForkOrigin | null {
  if (typeof parentId !== "number" || typeof seq !== "number") return null;
  const chain = new PlanReads(connection).chainAt(parentId, seq) ?? new Uint8Array();
  return { conversationId: parentId, seq, chain };
}

/** An event id names one message, the first of its event. */
function checkEvent(message: Row, name: string, problems: Problems): void {
  const first = (message.revises ?? message.message_id) as number;
  if (message.event_message === first) return;
  problems.add("event_ids", name, `the event id of ${name} is not recorded, or names another message`);
}

function checkGap(expected: number, seq: number, name: string, problems: Problems): void {
  if (seq === expected) return;
  const missing = seq - expected === 1 ? `${expected}` : `${expected} to ${seq - 1}`;
  problems.add("missing", `${name} seq ${expected}`, `seq ${missing} of ${name} is gone`);
}

function checkMessage(
  context: StoreContext,
  message: Row,
  previous: Uint8Array,
  derive: Derive,
  index: IndexCheck | null,
  problems: Problems,
  state: VerifyState,
): void {
  const id = message.message_id as number;
  const name = formatMessageId(id);
  const facts = {
    seq: message.seq as number,
    sessionId: message.session_id as string,
    eventId: message.event_id as string,
    position: message.position as number,
    createdAt: message.created_at as number,
    hidden: message.hidden as number,
    revisesSeq: (message.revises_seq as number | null) ?? 0,
  };
  if (!equalBytes(chainMessage(previous, facts, message.commitment as Uint8Array), message.chain)) {
    problems.add(
      "chain",
      name,
      `${name} does not continue the chain: its place, id, time or commitment was changed`,
    );
  }
  checkEvent(message, name, problems);
  if (message.newest !== message.last_revision) {
    problems.add(
      "derived",
      name,
      `newest of ${name} is ${message.newest}, its last revision is ${message.last_revision}`,
    );
  }
  if (message.revises !== null && message.hidden_now !== message.hidden) {
    problems.add(
      "derived",
      name,
      `hidden_now of the revision ${name} is ${message.hidden_now}, it arrived with ${message.hidden}`,
    );
  }
  if (message.forgotten_at !== null) return;
  const parts = context.connection.all(SELECT_PARTS, id);
  const bytes = rebuild(context, message, parts, problems);
  if (bytes === null) return;
  const redaction = readRedaction(context.connection, id);
  const wanted = commitStored(message.salt as Uint8Array, bytes, redaction);
  if (!wanted.equals(message.commitment as Uint8Array)) {
    problems.add("altered", name, `${name} is not what was stored: its bytes do not match their commitment`);
    return;
  }
  if (redaction !== null) checkRedaction(message, bytes, redaction, problems, state);
  if (message.arrival_bytes !== bytes.byteLength) {
    problems.add(
      "derived",
      name,
      `arrival_bytes of ${name} is ${message.arrival_bytes}, counted ${bytes.byteLength}`,
    );
  }
  const derived = derive(bytes, toCuts(parts));
  for (const [column, value] of [
    ["role", derived.role],
    ["tokens", derived.tokens],
  ] as const) {
    if (message[column] !== value) {
      problems.add("derived", name, `${column} of ${name} is ${message[column]}, its bytes say ${value}`);
    }
  }
  checkParts(parts, derived.parts, name, problems);
  index?.expect(id, message.conversation_id as number, derived.readTerms);
}

/** Without the key: every placeholder has its entry. With it: the message, its values put back, is what arrived. */
function checkRedaction(
  message: Row,
  bytes: Uint8Array,
  redaction: PreparedRedaction,
  problems: Problems,
  { redacted, proveArrival }: VerifyState,
): void {
  const messageId = message.message_id as number;
  const name = formatMessageId(messageId);
  const salt = message.salt as Uint8Array;
  const commitment = message.commitment as Uint8Array;
  const isProven = proveArrival({ ...redaction, messageId, bytes, salt, commitment });
  const problem = checkValues(bytes, redaction) ?? isProven;
  redacted.messages += 1;
  if (isProven === null) redacted.proven += 1;
  if (typeof problem === "string") problems.add("sealed", name, `${name} was redacted: ${problem}`);
}

/** What the ledger says was forgotten: messages with the time, and files with the seqs of the records that name them. */
interface Tombs {
  readonly messages: ReadonlyMap<number, number>;
  readonly files: ReadonlyMap<string, number>;
}

function readTombs(ledger: readonly Row[]): Tombs {
  const messages = new Map<number, number>();
  const files = new Map<string, number>();
  for (const record of ledger) {
    const body = record.kind === "forget" ? parseBody(record.body as string) : null;
    if (body === null) continue;
    for (const seq of body.seqs as number[]) messages.set(seq, record.at as number);
    for (const fileId of body.files as string[]) files.set(fileId, record.seq as number);
  }
  return { messages, files };
}

/** A message is erased exactly when a record says so, and then nothing of it is left. */
function checkTomb(connection: Connection, message: Row, tombs: Tombs, problems: Problems): void {
  const name = formatMessageId(message.message_id as number);
  const recordedAt = tombs.messages.get(message.seq as number) ?? null;
  if (message.forgotten_at !== recordedAt) {
    const text =
      recordedAt === null
        ? `${name} is marked as forgotten, but no record says so`
        : `the ledger says that ${name} was forgotten, the message does not`;
    problems.add("forgotten", name, text);
    return;
  }
  if (recordedAt === null) return;
  const isEmpty =
    equalBytes(NOTHING, message.body) && equalBytes(NOTHING, message.salt) && message.encoding === 0;
  const id = message.message_id as number;
  if (!isEmpty || connection.all(SELECT_PARTS, id).length > 0 || readRedaction(connection, id) !== null) {
    problems.add("forgotten", name, `${name} was forgotten, but something of it is left`);
  }
}

const NOTHING = new Uint8Array();

function rebuild(
  context: StoreContext,
  message: Row,
  parts: readonly Row[],
  problems: Problems,
): Uint8Array | null {
  const name = formatMessageId(message.message_id as number);
  try {
    return restoreBytes(message, parts, (path) => context.files.read(path));
  } catch (error) {
    problems.add("unreadable", name, `${name} cannot be rebuilt: ${(error as Error).message}`);
    return null;
  }
}

function checkParts(
  stored: readonly Row[],
  derived: readonly PreparedPart[],
  name: string,
  problems: Problems,
): void {
  const same =
    stored.length >= derived.length &&
    stored.every((part, ordinal) => {
      if (part.ordinal !== ordinal) return false;
      const wanted = derived[ordinal];
      // Behind the blocks stand the payloads; that they are right shows when the bytes are put together.
      if (!wanted) return part.type === "payload" && part.tool_call_id === null && part.tool_name === null;
      return (
        part.type === wanted.type &&
        part.file_id === null &&
        part.encoding === null &&
        part.at === wanted.at &&
        part.length === wanted.length &&
        part.tool_call_id === (wanted.toolCallId ?? null) &&
        part.tool_name === (wanted.toolName ?? null)
      );
    });
  if (!same) problems.add("parts", name, `the parts recorded for ${name} are not those of its bytes`);
}

function replayRecord(
  connection: Connection,
  conversationId: number,
  record: { seq: number; kind: string; body: string },
  replay: { changes: HiddenChanges; tombs: Tombs; problems: Problems; state: VerifyState },
): void {
  const { changes, tombs, problems, state } = replay;
  const name = `conversation ${conversationId} seq ${record.seq}`;
  const body = parseBody(record.body);
  if (body === null) {
    problems.add("ledger", name, "the ledger record is not JSON");
  } else if (record.kind === "hide" || record.kind === "show") {
    const mask = HIDDEN[body.reason as HiddenReason] ?? 0;
    noteHidden(changes, body.seqs as number[], { hide: record.kind === "hide", mask });
  } else if (record.kind === "forget") {
    noteHidden(changes, body.seqs as number[], { hide: true, mask: HIDDEN.forgotten });
  } else if (record.kind === "file") {
    if ((tombs.files.get(body.fileId as string) ?? 0) > record.seq) return;
    state.files += 1;
    const file = connection.get(FILE, body.fileId as string);
    if (!file || hashFacts(Object.values(file) as (string | number | null)[]) !== body.facts) {
      problems.add(
        "file",
        body.fileId as string,
        `the row of ${body.fileId} is not what the ledger recorded`,
      );
    }
  } else if (record.kind === "relabel") {
    state.aliases += 1;
    const row = connection.get<{ seq: number }>(
      ALIAS,
      body.sessionId as string,
      body.to as string,
      conversationId,
    );
    if (row?.seq !== body.seq)
      problems.add("event_ids", name, `the event id ${body.to} no longer names seq ${body.seq}`);
  } else if (record.kind === "boundary") {
    state.boundaries += 1;
    const row = connection.get(BOUNDARY, body.sessionId as string, body.eventId as string, conversationId);
    const same =
      row?.position === body.position &&
      row?.reason === body.reason &&
      row?.retain_depth === body.retainDepth &&
      row?.shown_before === body.shownBefore;
    if (!same) problems.add("boundary", name, `the boundary ${body.eventId} is not what the ledger recorded`);
  }
}

function noteHidden(
  changes: HiddenChanges,
  seqs: readonly number[],
  change: { hide: boolean; mask: number },
): void {
  for (const seq of seqs) {
    const list = changes.get(seq) ?? [];
    list.push(change);
    changes.set(seq, list);
  }
}

function parseBody(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function checkFiles(
  { connection, files }: StoreContext,
  problems: Problems,
  conversationId: number | null = null,
): void {
  for (const file of connection.all(FILES, conversationId)) {
    const id = file.file_id as string;
    if (deriveFileId(file.conversation_id as number, file.sha256 as string) !== id) {
      problems.add("file", id, `${id} is not the id of its conversation and content`);
    }
    let content: Buffer | null;
    try {
      content = files.read(file.storage_path as string);
    } catch (error) {
      problems.add("file", id, (error as Error).message);
      continue;
    }
    if (content === null)
      problems.add("file_missing", id, `the file of ${id} is gone (${file.storage_path})`);
    else if (content.byteLength !== file.byte_size || hash("sha256", content) !== file.sha256) {
      problems.add("file_altered", id, `the file of ${id} is not what was stored (${file.storage_path})`);
    }
  }
}
