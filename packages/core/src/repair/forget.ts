/**
 * `lcm forget`: selects what to forget, reports what that affects, and removes it. The engine does the removal itself; this file has the
 * ways to select, the turns waiting in the spool, the backups that still contain the text, and the receipt.
 *
 * Invariant: the receipt and everything else written here contain ids and counts, never a word of what was forgotten.
 */
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Engine } from "../engine/engine.ts";
import { searchText, viewMessage } from "../message/normalize.ts";
import { hidePassword, isServerAddress } from "../model/address.ts";
import { EngineError } from "../model/errors.ts";
import { formatMessageId } from "../model/ids.ts";
import { nameLocally } from "../settings/local-name.ts";
import type { ForgetPlan } from "../store/repair.ts";
import type { ConversationRow, MessageRow } from "../store/store.ts";
import type { ArchiveAccess } from "./archive-access.ts";
import { listArchiveCopies } from "./backup.ts";
import type { ArchiveCopy } from "./backup.ts";
import { listCaptureFiles, listSessionIds, listTranscripts } from "./capture-traces.ts";
import { formatStamp } from "./copy-names.ts";
import { writeNewFile } from "./new-file.ts";

/** What to forget. Several conditions narrow: a conversation and a pattern mean that pattern in that conversation. */
export interface ForgetSelection {
  readonly owner?: string;
  readonly conversationIds?: readonly number[];
  readonly messageIds?: readonly number[];
  /** ms UTC: written at or after, and before. */
  readonly since?: number;
  readonly before?: number;
  /** A text in the message, ignoring case; or a regular expression. */
  readonly pattern?: string | RegExp;
}

export interface ForgetOptions {
  readonly engine: Engine;
  readonly databasePath: string;
  readonly selection: ForgetSelection;
  readonly onProgress?: (done: number, total: number) => void;
}

export interface ForgetPreview extends ForgetPlan {
  /** Matching turns in the spool, which were never stored. */
  readonly spoolFiles: readonly string[];
  /** Notes of hooks and prepared bundles of the affected sessions. */
  readonly captureFiles: readonly string[];
  /** The agents' own transcripts of them. They are not changed. */
  readonly transcripts: readonly string[];
}

/** Finds the selected messages and what forgetting them affects. Changes nothing. */
export async function previewForget(options: ForgetOptions): Promise<ForgetPreview> {
  const messageIds = await findMessages(options);
  const plan = await options.engine.planForget({ messageIds });
  return { ...plan, spoolFiles: await findSpooled(options), ...(await findTraces(options, plan)) };
}

async function findTraces(
  { engine, databasePath }: ForgetOptions,
  { conversationIds }: Pick<ForgetPlan, "conversationIds">,
): Promise<Pick<ForgetPreview, "captureFiles" | "transcripts">> {
  const sessionIds = await listSessionIds(engine, conversationIds);
  return {
    captureFiles: listCaptureFiles(databasePath, sessionIds),
    transcripts: await listTranscripts(engine, conversationIds),
  };
}

const PAGE = 1_000;

async function findMessages(options: ForgetOptions): Promise<number[]> {
  const { engine, selection } = options;
  checkSelection(selection);
  if (selection.messageIds !== undefined) return findNamed(engine, selection, selection.messageIds);
  const found: number[] = [];
  let done = 0;
  const conversations = await listConversations(engine, selection);
  const total = conversations.reduce((sum, conversation) => sum + conversation.messages, 0);
  for (const { conversationId } of conversations) {
    for await (const row of walkMessages(engine, conversationId)) {
      options.onProgress?.(++done, total);
      if (await isWanted(engine, row, selection)) found.push(row.messageId);
    }
  }
  return found;
}

/** An empty selection must never mean everything. */
function checkSelection({ conversationIds, messageIds, since, before, pattern }: ForgetSelection): void {
  const isEmptyPattern = typeof pattern === "string" && pattern.trim() === "";
  if (pattern instanceof RegExp && matchesAnything(pattern)) {
    throw new EngineError("usage", "cannot forget: the expression matches every message", {
      hint: "an empty expression, an empty alternative (a|) or x* does; to forget a whole conversation, name it",
    });
  }
  const chosen = [conversationIds, messageIds, since, before, pattern].some((value) => value !== undefined);
  if (chosen && !isEmptyPattern) return;
  throw new EngineError("usage", "cannot forget: nothing was chosen", {
    hint: "name a conversation, messages, a time, an age or a pattern",
  });
}

/** Matches the empty text: such an expression was not intended. */
function matchesAnything({ source, flags }: RegExp): boolean {
  const expression = new RegExp(source, flags.replace(/[gy]/g, ""));
  return ["", "\u{f0000}", "a", "1\n"].every((text) => expression.test(text));
}

async function findNamed(
  engine: Engine,
  selection: ForgetSelection,
  messageIds: readonly number[],
): Promise<number[]> {
  const owner = selection.owner === undefined ? {} : { owner: selection.owner };
  for (const messageId of messageIds) {
    const message = await engine.readMessage({ ...owner, messageId });
    if (message) continue;
    throw new EngineError(
      "not_found",
      `cannot forget ${formatMessageId(messageId)}: there is no such message`,
      {
        step: { kind: "list", what: "messages" },
      },
    );
  }
  return [...messageIds];
}

async function listConversations(engine: Engine, selection: ForgetSelection): Promise<ConversationRow[]> {
  const owner = selection.owner === undefined ? {} : { owner: selection.owner };
  const rows: ConversationRow[] = [];
  if (selection.conversationIds !== undefined) {
    for (const conversationId of selection.conversationIds) {
      const conversation = await engine.readConversation({ ...owner, conversationId });
      if (conversation) rows.push(conversation);
      else {
        throw new EngineError(
          "not_found",
          `cannot forget conversation ${conversationId}: there is no such conversation`,
          {
            step: { kind: "list", what: "conversations" },
          },
        );
      }
    }
    return rows;
  }
  for (let after: string | null = null; ;) {
    const page = await engine.listConversations({ ...owner, after, limit: PAGE });
    rows.push(...page.items);
    if (page.next === null) return rows;
    after = page.next;
  }
}

async function* walkMessages(engine: Engine, conversationId: number): AsyncGenerator<MessageRow> {
  for (let after: string | null = null; ;) {
    const page = await engine.listMessages({ conversationId, after, limit: PAGE, order: "arrival" });
    yield* page.items;
    if (page.next === null) return;
    after = page.next;
  }
}

async function isWanted(
  engine: Engine,
  row: MessageRow,
  { since, before, pattern }: ForgetSelection,
): Promise<boolean> {
  if (row.forgottenAt !== null) return false;
  if (since !== undefined && row.createdAt < since) return false;
  if (before !== undefined && row.createdAt >= before) return false;
  if (pattern === undefined) return true;
  const message = await engine.readMessage({ messageId: row.messageId });
  return message !== null && holdsPattern(message.bytes, pattern);
}

/** Searches the readable text and the arrival bytes, so that no escape and no block type hides anything. */
function holdsPattern(bytes: Uint8Array, pattern: string | RegExp): boolean {
  const texts = [Buffer.from(bytes).toString("utf8"), searchText(viewMessage(bytes))];
  if (typeof pattern !== "string") return texts.some((text) => text.search(pattern) >= 0);
  const wanted = pattern.toLowerCase();
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

// ---- the spool

/** Matching turns that wait beside the database: by session when a whole conversation is forgotten, else by text or time. */
async function findSpooled({ engine, databasePath, selection }: ForgetOptions): Promise<string[]> {
  if (selection.messageIds !== undefined) return [];
  const folder = join(dirname(nameLocally(databasePath)), "lcm-spool");
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  const sessions =
    selection.conversationIds === undefined
      ? null
      : new Set((await listConversations(engine, selection)).map((conversation) => conversation.sessionId));
  return readdirSync(folder)
    .filter((name) => /\.json(?:\.damaged|\.refused)?$/.test(name))
    .map((name) => join(folder, name))
    .filter((path) => {
      const bytes = readWaiting(path);
      if (bytes === null) return false;
      const record = parseSpooled(bytes);
      if (sessions !== null && !isOfSession(bytes, record, sessions)) return false;
      // The time of a damaged record is unknown; it is included.
      if (record !== null && selection.since !== undefined && record.spooledAt < selection.since)
        return false;
      if (record !== null && selection.before !== undefined && record.spooledAt >= selection.before)
        return false;
      return selection.pattern === undefined || holdsPattern(bytes, selection.pattern);
    });
}

/** Null when it is gone: a plugin may be storing waiting turns now. */
function readWaiting(path: string): Uint8Array | null {
  try {
    return statSync(path).isFile() ? readFileSync(path) : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function isOfSession(
  bytes: Uint8Array,
  record: { turn: { sessionId: string } } | null,
  sessions: ReadonlySet<string>,
): boolean {
  if (record !== null) return sessions.has(record.turn.sessionId);
  const text = Buffer.from(bytes).toString("utf8");
  return [...sessions].some((sessionId) => text.includes(sessionId));
}

/** Null for a truncated or damaged file. */
function parseSpooled(bytes: Uint8Array): { spooledAt: number; turn: { sessionId: string } } | null {
  try {
    const record = JSON.parse(Buffer.from(bytes).toString("utf8")) as {
      spooledAt: number;
      turn?: { sessionId: string };
    } | null;
    return record?.turn === undefined ? null : { spooledAt: record.spooledAt, turn: record.turn };
  } catch {
    return null;
  }
}

// ---- doing it

export interface Receipt {
  readonly kind: "lcm-forget-receipt";
  readonly version: 1;
  readonly at: string;
  readonly database: string;
  readonly reason: string;
  readonly messages: readonly string[];
  readonly conversations: readonly number[];
  readonly bytes: number;
  /** Published summaries that were regenerated without the messages, under new ids. */
  readonly summariesRemade: readonly { readonly oldId: string; readonly newId: string }[];
  /** Summaries made ahead or no longer used, erased completely. */
  readonly summariesErased: readonly string[];
  readonly files: readonly string[];
  readonly spoolFiles: readonly string[];
  /** Files that killed imports had left beside the database, removed now. They were never part of the archive. */
  readonly intakeFiles: readonly string[];
  /** Notes of hooks and prepared bundles that were removed. The watcher's log and state contain no text of messages. */
  readonly captureFiles: readonly string[];
  /** The agents' own transcripts that were imported here. They contain what was forgotten, and were not changed. */
  readonly transcripts: readonly string[];
  /**
   * Whether the freed pages were cleared: those of a file are overwritten, those of a server's tables are free to be overwritten (VACUUM).
   * False: another process kept old pages of the file in use, or this role may not clear the tables; `lcm doctor --fix` does it later.
   */
  readonly isWiped: boolean;
  /** What a server keeps outside this program's control that may contain the text; absent for an archive in a file. */
  readonly serverKeeps?: readonly string[];
  /**
   * Earlier copies: those beside the database, and those this program recorded elsewhere, exports included. `holds`: whether it contains a
   * forgotten message; unknown if it is not one of our archives, cannot be found or read, or was never finished and may contain more than
   * can be read.
   */
  readonly olderCopies: readonly { readonly path: string; readonly holds: "yes" | "no" | "unknown" }[];
}

/** `docs/postgres.md` says for how long, and what its operator can do. */
const SERVER_KEEPS: readonly string[] = [
  "free space in the files of the tables, until the server overwrites it",
  "the write-ahead log, and its archive",
  "replicas, until they have replayed the removal and cleared their own pages",
  "backups and snapshots of the server",
];

export interface ForgetResult {
  readonly receipt: Receipt;
  readonly receiptPath: string;
}

/** Removes the selected messages. Cannot be undone. */
export async function applyForget(
  options: ForgetOptions & { readonly reason: string; readonly now?: number },
  access: ArchiveAccess,
): Promise<ForgetResult> {
  const { engine, databasePath, reason } = options;
  const now = options.now ?? Date.now();
  const messageIds = await findMessages(options);
  const spoolFiles = await findSpooled(options);
  const answer = await engine.forget({ messageIds, reason });
  const { plan, remade, isWiped, intakeFiles } = answer;
  // The bundle is prepared again from the remaining messages when the session continues.
  const { captureFiles, transcripts } = await findTraces(options, plan);
  for (const path of [...spoolFiles, ...captureFiles]) rmSync(path, { force: true });
  const receipt: Receipt = {
    kind: "lcm-forget-receipt",
    version: 1,
    at: new Date(now).toISOString(),
    database: hidePassword(databasePath),
    reason,
    messages: plan.messageIds.map(formatMessageId),
    conversations: plan.conversationIds,
    bytes: plan.arrivalBytes,
    summariesRemade: remade,
    summariesErased: plan.summaries
      .filter((summary) => !summary.isPublished)
      .map((summary) => summary.summaryId),
    files: plan.files.map((file) => file.fileId),
    spoolFiles,
    intakeFiles,
    captureFiles,
    transcripts,
    isWiped,
    ...(isServerAddress(databasePath) ? { serverKeeps: SERVER_KEEPS } : {}),
    olderCopies: await checkCopies(access, nameLocally(databasePath), plan.messageIds),
  };
  return { receipt, receiptPath: writeReceipt(nameLocally(databasePath), receipt, now) };
}

async function checkCopies(
  access: ArchiveAccess,
  databasePath: string,
  messageIds: readonly number[],
): Promise<Receipt["olderCopies"]> {
  const copies: { path: string; holds: "yes" | "no" | "unknown" }[] = [];
  for (const copy of listArchiveCopies(databasePath)) {
    copies.push({ path: copy.path, holds: await holdsAny(access, copy, messageIds) });
  }
  return copies;
}

async function holdsAny(
  { openEngine }: ArchiveAccess,
  { archive, isWhole }: ArchiveCopy,
  messageIds: readonly number[],
): Promise<"yes" | "no" | "unknown"> {
  if (archive === null) return "unknown";
  let copy: Engine | null = null;
  try {
    copy = await openEngine({ ...archive, readOnly: true, thread: false });
    for (const messageId of messageIds) {
      const [row] = await copy.readRevisions({ messageId });
      if (row !== undefined && row.forgottenAt === null) return "yes";
    }
    return isWhole ? "no" : "unknown";
  } catch (error) {
    if (error instanceof EngineError) return "unknown";
    throw error;
  } finally {
    await copy?.close();
  }
}

/** The messages are gone by now; who is told that the receipt is missing must not think that nothing happened. */
function writeReceipt(databasePath: string, receipt: Receipt, now: number): string {
  const base = `${databasePath}.forget-${formatStamp(now)}`;
  try {
    for (let number = 1; ; number++) {
      const path = `${base}${number === 1 ? "" : `-${number}`}.json`;
      if (writeNewFile(path, `${JSON.stringify(receipt, null, 2)}\n`)) return path;
    }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const count = receipt.messages.length;
    throw new EngineError(error.code, `${error.message}, so there is no receipt`, {
      hint: `the forgetting itself is done: ${count} ${count === 1 ? "message is" : "messages are"} erased`,
      cause: error,
    });
  }
}
