/**
 * Replays the ledger of one conversation: each record continues the chain, and its rows exist. Records are read page by page, each page
 * with what its records are compared with.
 */
import { chainRecord } from "../model/chain.ts";
import { HIDDEN } from "../model/message.ts";
import type { HiddenReason } from "../model/message.ts";
import { equalBytes } from "./equal-bytes.ts";
import { hashForkItems, hashForkNames } from "./fork.ts";
import { nameEvent } from "./identity.ts";
import { recordFile } from "./message-rows.ts";
import { Pages, readRows } from "./pages.ts";
import { read, together } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { EventName } from "./reads.ts";
import type { Row } from "./tables.ts";
import { noteHidden } from "./verify-problems.ts";
import type { HiddenChanges, Problems } from "./verify-problems.ts";

const COLUMNS = ["seq", "kind", "body", "at", "chain"] as const;

type LedgerRow = Pick<Row<"ledger">, (typeof COLUMNS)[number]>;

/** The fields of a record, of any kind. */
interface RecordBody {
  readonly seqs: readonly number[];
  readonly files: readonly string[];
  readonly reason: string;
  readonly fileId: string;
  readonly facts: string;
  readonly sessionId: string;
  readonly eventId: string;
  readonly to: string;
  readonly seq: number;
  readonly position: number;
  readonly retainDepth: number;
  readonly shownBefore: number;
  readonly parentId: number;
  readonly names: number;
  readonly namesHash: string;
  readonly itemsHash: string;
}

/** What was forgotten according to the ledger: messages with the time, and files with the seq of the last record that names them. */
export interface Forgotten {
  readonly messages: ReadonlyMap<number, number>;
  readonly files: ReadonlyMap<string, number>;
}

export type Identified = Pick<
  Row<"conversations">,
  "conversation_id" | "owner" | "parent_id" | "fork_seq" | "fork_pos"
>;

/** Rows that the ledger accounts for. */
export interface Recorded {
  aliases: number;
  /** Aliases that forks give to messages of their parents. */
  forkNames: number;
  boundaries: number;
  files: number;
}

/** Read before the messages: a message is compared with later records. */
export function* readForgotten(conversationId: number): Asking<Forgotten> {
  const messages = new Map<number, number>();
  const files = new Map<string, number>();
  const pages = new Pages("ledger", {
    columns: COLUMNS,
    order: ["seq"],
    where: { conversation_id: conversationId, kind: "forget" },
  });
  for (let page; (page = yield* pages.next()).length > 0;)
    for (const record of page) {
      const body = parseBody(record.body);
      if (body === null) continue;
      for (const seq of listOf(body.seqs)) messages.set(seq, record.at);
      for (const fileId of listOf(body.files)) files.set(fileId, record.seq);
    }
  return { messages, files };
}

interface KnownRow {
  readonly record: LedgerRow;
  readonly body: RecordBody | null;
}

/** What the records of a page are compared with. */
interface Compared {
  readonly files: ReadonlyMap<string, Row<"large_files">>;
  readonly seqs: ReadonlyMap<string, number | null>;
  readonly boundaries: ReadonlyMap<string, Row<"boundaries">>;
}

/** Names as a database stores them; a record has them as they were given. A damaged one may have none. */
const nameBoth = ({ sessionId, eventId }: EventName): string =>
  JSON.stringify([nameEvent(String(sessionId)), nameEvent(String(eventId))]);

export class LedgerReplay {
  readonly #conversation: Identified;
  readonly #forgotten: Forgotten;
  readonly #recorded: Recorded;
  readonly #problems: Problems;
  readonly #pages: Pages<"ledger", keyof LedgerRow>;
  #page: readonly KnownRow[] = [];
  #at = 0;
  #compared: Compared = { files: new Map(), seqs: new Map(), boundaries: new Map() };
  readonly changes: HiddenChanges = new Map();

  constructor(conversation: Identified, forgotten: Forgotten, recorded: Recorded, problems: Problems) {
    this.#conversation = conversation;
    this.#forgotten = forgotten;
    this.#recorded = recorded;
    this.#problems = problems;
    const where = { conversation_id: conversation.conversation_id };
    this.#pages = new Pages("ledger", { columns: COLUMNS, order: ["seq"], where });
  }

  /** The record to be taken next. */
  *peek(): Asking<LedgerRow | undefined> {
    if (this.#at === this.#page.length) yield* this.#readPage();
    return this.#page[this.#at]?.record;
  }

  *#readPage(): Asking<void> {
    const rows = yield* this.#pages.next();
    this.#page = rows.map((record) => ({ record, body: parseBody(record.body) }));
    this.#at = 0;
    this.#compared = yield* this.#readCompared();
  }

  *#readCompared(): Asking<Compared> {
    const id = this.#conversation.conversation_id;
    const bodies = (kind: string): RecordBody[] =>
      this.#page.flatMap(({ record, body }) => (record.kind === kind && body !== null ? [body] : []));
    // A damaged record may lack its lookup key; it is then compared with nothing.
    const fileIds = bodies("file").flatMap(({ fileId }) => (typeof fileId === "string" ? [fileId] : []));
    const names = bodies("relabel").flatMap(({ sessionId, to: eventId }) =>
      typeof sessionId === "string" && typeof eventId === "string" ? [{ sessionId, eventId }] : [],
    );
    const [files, seqs] =
      fileIds.length + names.length === 0
        ? [[], []]
        : yield* together(read.files(fileIds), read.namedSeqs(id, names));
    const boundaries = bodies("boundary").length === 0 ? [] : yield* listBoundaries(id);
    return {
      files: new Map(files.map((file) => [file.file_id, file])),
      seqs: new Map(names.map((name, index) => [nameBoth(name), seqs[index] ?? null])),
      boundaries: new Map(boundaries),
    };
  }

  /** Checks the next record and advances. */
  *take(previous: Uint8Array): Asking<void> {
    const next = this.#page[this.#at++];
    if (next === undefined) return;
    const { record, body } = next;
    const { seq, kind } = record;
    const conversation = `conversation ${this.#conversation.conversation_id}`;
    if (!equalBytes(chainRecord(previous, record), record.chain)) {
      this.#problems.add(
        "chain",
        `${conversation} seq ${seq}`,
        `the ledger record at seq ${seq} does not continue the chain`,
      );
    }
    if (kind === "fork")
      this.#recorded.forkNames += yield* checkFork(this.#conversation, body ?? {}, this.#problems);
    else this.#replay(record, body);
  }

  #replay({ seq, kind }: LedgerRow, body: RecordBody | null): void {
    const name = `conversation ${this.#conversation.conversation_id} seq ${seq}`;
    if (body === null) this.#problems.add("ledger", name, "the ledger record is not JSON");
    else if (kind === "hide" || kind === "show") {
      const mask = HIDDEN[body.reason as HiddenReason] ?? 0;
      this.#noteHidden(body, { hide: kind === "hide", mask }, name);
    } else if (kind === "forget") {
      this.#noteHidden(body, { hide: true, mask: HIDDEN.forgotten }, name);
    } else if (kind === "file") this.#checkFile(seq, body, name);
    else if (kind === "relabel") this.#checkAlias(body, name);
    else if (kind === "boundary") this.#checkBoundary(body, name);
  }

  #noteHidden({ seqs }: RecordBody, change: { hide: boolean; mask: number }, name: string): void {
    if (!Array.isArray(seqs)) this.#problems.add("ledger", name, "the ledger record names no messages");
    noteHidden(this.changes, listOf(seqs), change);
  }

  #checkFile(seq: number, { fileId, facts }: Partial<RecordBody>, name: string): void {
    if (typeof fileId !== "string") {
      this.#problems.add("ledger", name, "the record of a large file names no file");
      return;
    }
    if ((this.#forgotten.files.get(fileId) ?? 0) > seq) return;
    this.#recorded.files += 1;
    const file = this.#compared.files.get(fileId);
    if (!file || recordFile(file).facts !== facts)
      this.#problems.add("file", fileId, `the row of ${fileId} is not what the ledger recorded`);
  }

  #checkAlias({ sessionId, to, seq }: RecordBody, name: string): void {
    this.#recorded.aliases += 1;
    if ((this.#compared.seqs.get(nameBoth({ sessionId, eventId: to })) ?? undefined) !== seq)
      this.#problems.add("event_ids", name, `the event id ${to} no longer names seq ${seq}`);
  }

  #checkBoundary(body: RecordBody, name: string): void {
    this.#recorded.boundaries += 1;
    const row = this.#compared.boundaries.get(nameBoth(body));
    const isSame =
      row?.position === body.position &&
      row?.reason === body.reason &&
      row?.retain_depth === body.retainDepth &&
      row?.shown_before === body.shownBefore;
    if (!isSame)
      this.#problems.add("boundary", name, `the boundary ${body.eventId} is not what the ledger recorded`);
  }
}

const BOUNDARY_COLUMNS = [
  "conversation_id",
  "session_ref",
  "event_id",
  "position",
  "reason",
  "retain_depth",
  "shown_before",
  "at",
  "undone_at",
] as const;

/** The boundaries of a conversation by session and event. */
function* listBoundaries(conversationId: number): Asking<[string, Row<"boundaries">][]> {
  const found: [string, Row<"boundaries">][] = [];
  const pages = new Pages("boundaries", {
    columns: BOUNDARY_COLUMNS,
    order: ["session_ref", "event_id"],
    where: { conversation_id: conversationId },
  });
  for (let page; (page = yield* pages.next()).length > 0;) {
    const keys = [...new Set(page.map((row) => row.session_ref))];
    const sessions = yield* readRows("sessions", ["session_ref", "session_id"], {
      column: "session_ref",
      keys,
    });
    const names = new Map(sessions.map((row) => [row.session_ref, row.session_id]));
    for (const row of page) {
      const sessionId = names.get(row.session_ref);
      if (sessionId !== undefined) found.push([nameBoth({ sessionId, eventId: row.event_id }), row]);
    }
  }
  return found;
}

/** Compares a fork with the record that made it. Returns how many aliases it gave, so that they can be counted against the table. */
function* checkFork(conversation: Identified, body: Partial<RecordBody>, problems: Problems): Asking<number> {
  const { conversation_id: id, owner } = conversation;
  const name = `conversation ${id}`;
  // A fork that was imported from another archive keeps its record and has no parent here.
  if (conversation.parent_id === null) return 0;
  if (
    conversation.parent_id !== body.parentId ||
    conversation.fork_seq !== body.seq ||
    conversation.fork_pos !== body.position
  )
    problems.add("fork", name, `${name} did not leave its parent where the ledger says`);
  if (typeof body.sessionId !== "string") {
    problems.add("ledger", name, `the record of the fork ${name} cannot be read`);
    return 0;
  }
  const names = yield* read.borrowedNames(owner, body.sessionId);
  if (names.length !== body.names || hashForkNames(names) !== body.namesHash)
    problems.add("fork", name, `the events that ${name} shares with its parent are not those of the ledger`);
  if (hashForkItems(yield* listForkItems(id)) !== body.itemsHash)
    problems.add("fork", name, `what ${name} shows of its parent is not what was chosen`);
  return names.length;
}

const ITEM_COLUMNS = [
  "conversation_id",
  "ordinal",
  "kind",
  "message_id",
  "summary_id",
  "first_id",
  "last_id",
  "start_pos",
  "end_pos",
  "tokens",
  "messages",
  "depth",
  "earliest_at",
  "latest_at",
] as const;

function* listForkItems(conversationId: number): Asking<Row<"fork_items">[]> {
  const where = { conversation_id: conversationId };
  const pages = new Pages("fork_items", { columns: ITEM_COLUMNS, order: ["ordinal"], where });
  const found: Row<"fork_items">[] = [];
  for (let page; (page = yield* pages.next()).length > 0;) found.push(...page);
  return found;
}

/** A damaged record may contain anything. */
const listOf = <T>(value: readonly T[] | undefined): readonly T[] => (Array.isArray(value) ? value : []);

function parseBody(text: string): RecordBody | null {
  try {
    return JSON.parse(text) as RecordBody | null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
