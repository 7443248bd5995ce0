/**
 * What surrounds the rows of a conversation from another archive: its sessions, its place here, its summaries and its cover. Existing rows
 * are left as they are. So are the properties of a conversation and its sessions, unless the local one follows the other archive
 * (`follows`): then they are updated to match.
 */
import { chainGenesis } from "../model/chain.ts";
import { EngineError, must } from "../model/errors.ts";
import type {
  MovedConversation,
  MovedSession,
  MovedSummary,
  MovedTurn,
  OpenMovedResult,
} from "../store/transfer.ts";
import { Changes } from "./changes.ts";
import { describeSummaryItem } from "./cover.ts";
import { pickOrigin } from "../model/origin.ts";
import { describeConversation, Head } from "./head.ts";
import { fromLabels } from "./labels.ts";
import { describeSession } from "./placement.ts";
import { flush, flushIfLong, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import { Pages } from "./pages.ts";
import type { HeadRow, RunRow, SummarySpan } from "./reads.ts";
import { addSummary, describeMoved, total } from "./summary.ts";
import type { Row } from "./tables.ts";

/** How many are asked for at once. */
const NAMES_AT_ONCE = 500;

function* inPieces<T>(all: readonly T[]): Generator<readonly T[], void> {
  for (let at = 0; at < all.length; at += NAMES_AT_ONCE) yield all.slice(at, at + NAMES_AT_ONCE);
}

export function* planMoveSessions(
  sessions: readonly MovedSession[],
  turns: readonly MovedTurn[],
  follows = false,
): Plan<null> {
  const changes = new Changes();
  for (const owner of new Set([...sessions, ...turns].map((row) => row.owner))) {
    const isHere = (row: { readonly owner: string }): boolean => row.owner === owner;
    const moved = { sessions: sessions.filter(isHere), turns: turns.filter(isHere), follows };
    const refs = yield* moveSessionsOf(changes, owner, moved);
    yield* moveTurns(changes, turns.filter(isHere), refs);
  }
  return changes.done(null);
}

function* moveSessionsOf(
  changes: Changes,
  owner: string,
  {
    sessions,
    turns,
    follows,
  }: { sessions: readonly MovedSession[]; turns: readonly MovedTurn[]; follows: boolean },
): Asking<Map<string, number>> {
  const told = new Map(sessions.map((session) => [session.sessionId, session]));
  const refs = new Map<string, number>();
  for (const names of inPieces([...new Set([...sessions, ...turns].map((row) => row.sessionId))])) {
    yield* flush(changes);
    const [known, ids] = yield* together(read.sessions(owner, names), read.ids("sessions", names.length));
    for (const row of known) {
      refs.set(row.session_id, row.session_ref);
      const now = follows ? told.get(row.session_id) : undefined;
      if (now) changes.update("sessions", { session_ref: row.session_ref }, describeReading(now));
    }
    for (const [i, name] of names.filter((sessionId) => !refs.has(sessionId)).entries()) {
      const ref = must(ids[i], "a number of sessions");
      changes.insert("sessions", {
        ...describeSession(ref, owner, name),
        ...describeReading(told.get(name)),
      });
      refs.set(name, ref);
    }
  }
  return refs;
}

/** How far a session has been read. */
const describeReading = ({
  cursor = null,
  lastEventId = null,
  baseTokens = null,
}: Partial<MovedSession> = {}) => ({
  cursor,
  last_event: lastEventId,
  base_tokens: baseTokens,
});

function* moveTurns(
  changes: Changes,
  turns: readonly MovedTurn[],
  refs: ReadonlyMap<string, number>,
): Asking<void> {
  for (const some of inPieces(turns)) {
    yield* flush(changes);
    const known = new Set(yield* read.turns(some.map(({ key }) => key)));
    for (const { key, sessionId, at } of some) {
      if (known.has(key)) continue;
      known.add(key);
      const session_ref = must(refs.get(sessionId), `the session ${sessionId}`);
      changes.insert("turns", { advancement_key: key, session_ref, committed_at: at });
    }
  }
}

/** Finds or creates the `nth` conversation of the same owner, key and age; with null it is always created. */
export function* planOpenMoved(
  moved: MovedConversation,
  nth: number | null,
  now: number,
  follows = false,
): Plan<OpenMovedResult> {
  const { owner, sessionKey, createdAt, placements } = moved;
  const names = placements.map(({ sessionId }) => sessionId);
  const [same, active, sessions, [conversationId = 0], sessionIds] = yield* together(
    read.conversationsBegun(owner, sessionKey, createdAt),
    read.active(owner, sessionKey),
    read.sessions(owner, names),
    read.ids("conversations", 1),
    read.ids("sessions", names.length),
  );
  const changes = new Changes();
  const opened = new OpenedSessions(changes, owner, sessions, sessionIds);
  const known = nth === null ? undefined : same[nth];
  if (known) {
    const { conversation_id: id, head_seq: rows } = known;
    const reason = follows ? yield* follow(changes, id, moved, { active, opened }) : null;
    if (reason !== null) return refuse(reason);
    return changes.done({ kind: "opened", conversationId: id, rows, archivedInstead: false });
  }
  const reason = yield* findConflict(moved, opened.refs);
  if (reason !== null) return refuse(reason);
  const archivedInstead = moved.archivedAt === null && active !== null;
  const archived = archivedInstead ? { archived_at: now, archive_cause: "import" } : describeArchived(moved);
  addConversation(changes, conversationId, { ...moved, archived }, opened);
  return changes.done({ kind: "opened", conversationId, rows: 0, archivedInstead });
}

const refuse = (reason: string) => new Changes().done<OpenMovedResult>({ kind: "conflict", reason });

/** The sessions of a conversation; missing ones are created when first requested. */
class OpenedSessions {
  readonly refs: Map<string, number>;
  readonly #changes: Changes;
  readonly #owner: string;
  readonly #free: Iterator<number>;

  constructor(
    changes: Changes,
    owner: string,
    known: readonly Pick<Row<"sessions">, "session_id" | "session_ref">[],
    free: readonly number[],
  ) {
    this.#changes = changes;
    this.#owner = owner;
    this.refs = new Map(known.map((row) => [row.session_id, row.session_ref]));
    this.#free = free.values();
  }

  open(name: string): number {
    const found = this.refs.get(name);
    if (found !== undefined) return found;
    const ref = must(this.#free.next().value as number | undefined, "a number of sessions");
    this.refs.set(name, ref);
    this.#changes.insert("sessions", describeSession(ref, this.#owner, name));
    return ref;
  }
}

const describeArchived = ({
  archivedAt,
  archiveCause,
}: MovedConversation): Pick<Row<"conversations">, "archived_at" | "archive_cause"> => ({
  archived_at: archivedAt,
  archive_cause: archiveCause,
});

function addConversation(
  changes: Changes,
  conversationId: number,
  moved: MovedConversation & { readonly archived: ReturnType<typeof describeArchived> },
  sessions: OpenedSessions,
): void {
  const { owner, sessionKey, sessionId, createdAt, placements, archived } = moved;
  const session = { owner, key: sessionKey, id: sessionId };
  changes.insert("conversations", {
    ...describeConversation(conversationId, session, createdAt, null),
    ...archived,
    ...pickOrigin(moved),
    ...fromLabels(moved),
    head_chain: chainGenesis({ conversationId, owner, sessionKey, createdAt }),
  });
  for (const { sessionId: name, start, base } of placements)
    changes.insert("placements", {
      session_ref: sessions.open(name),
      start_position: start,
      conversation_id: conversationId,
      base_position: base,
    });
}

/** Updates the properties of a conversation to those in the other archive. Returns a reason why it cannot, or null. */
function* follow(
  changes: Changes,
  conversationId: number,
  moved: MovedConversation,
  { active, opened }: { readonly active: HeadRow | null; readonly opened: OpenedSessions },
): Asking<string | null> {
  const { owner, sessionKey: key, sessionId: session_id, archivedAt, placements } = moved;
  if (active !== null && active.conversation_id !== conversationId && archivedAt === null)
    return "another conversation of its family is active";
  const places = yield* together(
    ...placements.map(({ sessionId: id }) => read.placements({ owner, key, id })),
  );
  for (const [i, { sessionId, start, base }] of placements.entries()) {
    const session_ref = opened.open(sessionId);
    const there = places[i]?.placements.find((row) => row.start_position === start);
    if (there && there.conversation_id !== conversationId)
      return `session ${sessionId} is already stored, in conversation ${there.conversation_id}`;
    const place = { conversation_id: conversationId, base_position: base };
    if (there) changes.update("placements", { session_ref, start_position: start }, place);
    else changes.insert("placements", { session_ref, start_position: start, ...place });
  }
  const facts = { session_id, ...describeArchived(moved), ...pickOrigin(moved), ...fromLabels(moved) };
  changes.update("conversations", { conversation_id: conversationId }, facts);
  return null;
}

/** Events are identified within their session; a session that is placed elsewhere would be stored twice. */
function* findConflict(
  { owner, sessionKey, placements }: MovedConversation,
  refs: ReadonlyMap<string, number>,
): Asking<string | null> {
  const here = placements.filter(({ sessionId }) => refs.has(sessionId));
  const [withEvents, ...places] = yield* together(
    read.sessionsWithEvents([...refs.values()]),
    ...here.map(({ sessionId: id }) => read.placements({ owner, key: sessionKey, id })),
  );
  for (const [i, { sessionId, start }] of here.entries()) {
    const taken = places[i]?.placements.find((row) => row.start_position === start);
    if (taken) return `session ${sessionId} is already stored, in conversation ${taken.conversation_id}`;
    if (start === 0 && withEvents.includes(refs.get(sessionId) ?? 0))
      return `session ${sessionId} is already stored`;
  }
  return null;
}

export function* planMoveSummaries(
  conversationId: number,
  summaries: readonly MovedSummary[],
): Plan<{ readonly stored: number; readonly known: number }> {
  const changes = new Changes();
  const seqs = new Set(
    summaries.flatMap(({ sources }) => sources.filter((source) => typeof source === "number")),
  );
  const [[headRow], present, messages] = yield* together(
    read.lockHeads([conversationId]),
    read.contents(summaries.map(({ summaryId }) => summaryId)),
    read.messagesAt(conversationId, [...seqs]),
  );
  const head = new Head(must(headRow, `conversation ${conversationId}`));
  const byId = new Map(present.map((row) => [row.summary_id, row]));
  const ids = new Map(messages.map((row) => [row.seq, row.message_id]));
  let stored = 0;
  for (const summary of summaries) {
    const known = byId.get(summary.summaryId);
    if (known && (known.conversation_id !== conversationId || known.content !== summary.content))
      throw new EngineError(
        "invalid_input",
        `cannot store ${summary.summaryId}: this archive has another summary of that id`,
      );
    if (known) continue;
    const row = describeMoved({ ...summary, conversationId });
    byId.set(row.summary_id, row);
    const sources = summary.sources.map((source) =>
      typeof source === "string" ? source : must(ids.get(source), `the message at seq ${source}`),
    );
    addSummary(changes, row, sources);
    stored += 1;
  }
  head.noteSummary(false, stored);
  head.save(changes, 0);
  return changes.done({ stored, known: summaries.length - stored });
}

/** Puts exactly these summaries into the cover, replacing what is under them. */
export function* planMoveCover(
  conversationId: number,
  cover: readonly string[],
  folds: { readonly foldRevision: number; readonly epochSeq: number },
): Plan<null> {
  const changes = new Changes();
  const [headRow] = yield* read.lockHeads([conversationId]);
  const head = new Head(must(headRow, `conversation ${conversationId}`));
  yield* checkPrevious(conversationId);
  const inForce = yield* listInForce(cover);
  yield* takeOthersApart(changes, head, inForce);
  for (const some of inPieces(cover)) {
    const spans = new Map((yield* read.summaries(some)).map((span) => [span.summary_id, span]));
    const chosen = some.map((id) => must(spans.get(id), id));
    for (const span of chosen) {
      if (span.conversation_id !== conversationId) must(null, span.summary_id);
      const items = yield* read.run(conversationId, startOf(span), endOf(span));
      if (!items.some((item) => item.summary_id === span.summary_id)) putInCover(changes, head, span, items);
      yield* flushIfLong(changes);
    }
  }
  yield* retireOthers(changes, conversationId, inForce);
  head.save(changes, 0);
  const { foldRevision: fold_revision, epochSeq: epoch_seq } = folds;
  changes.update("conversations", { conversation_id: conversationId }, { fold_revision, epoch_seq });
  return changes.done(null);
}

/** Moved summaries that are not part of the cover are not in force: their counts are not maintained. */
export function* planRetireBeside(conversationId: number): Plan<null> {
  const changes = new Changes();
  yield* read.lockHeads([conversationId]);
  const shown = yield* listShown(conversationId);
  const inForce = yield* listInForce(shown.map((item) => item.summary_id));
  yield* retireOthers(changes, conversationId, inForce);
  return changes.done(null);
}

/** Summaries with all that is below them. */
function* listInForce(summaryIds: readonly string[]): Asking<ReadonlySet<string>> {
  const found = new Set(summaryIds);
  for (let level = [...found]; level.length > 0;) {
    const below: string[] = [];
    for (const some of inPieces(level))
      for (const { source_id } of yield* read.sources(some))
        if (source_id !== null && !found.has(source_id)) {
          found.add(source_id);
          below.push(source_id);
        }
    level = below;
  }
  return found;
}

const SHOWN_COLUMNS = ["start_pos", "seq", "summary_id", "tokens", "hidden"] as const;

type ShownItem = Pick<Row<"context_items">, (typeof SHOWN_COLUMNS)[number]> & { readonly summary_id: string };

/** The summaries of a cover. */
function* listShown(conversationId: number): Asking<ShownItem[]> {
  const where = { conversation_id: conversationId };
  const pages = new Pages("context_items", { columns: SHOWN_COLUMNS, order: ["start_pos", "seq"], where });
  const shown: ShownItem[] = [];
  for (let page; (page = yield* pages.next()).length > 0;)
    for (const item of page) {
      const { summary_id } = item;
      if (summary_id !== null) shown.push({ ...item, summary_id });
    }
  return shown;
}

/** Summaries that were dissolved or replaced in the other archive are replaced by their sources here, too. */
function* takeOthersApart(changes: Changes, head: Head, inForce: ReadonlySet<string>): Asking<void> {
  const { conversationId: conversation_id } = head;
  for (const item of yield* listShown(conversation_id)) {
    if (inForce.has(item.summary_id)) continue;
    const sources = yield* listSources(item.summary_id, inForce);
    changes.delete("context_items", { conversation_id, start_pos: item.start_pos, seq: item.seq });
    for (const source of sources) changes.insert("context_items", { conversation_id, ...pickItem(source) });
    head.noteShown(0, countShown(sources) - countShown([item]));
    yield* flushIfLong(changes);
  }
  yield* flush(changes);
}

/** The nearest sources that may be in the cover. */
function* listSources(summaryId: string, inForce: ReadonlySet<string>): Asking<RunRow[]> {
  const found: RunRow[] = [];
  for (const row of yield* read.currentSources(summaryId))
    if (row.summary_id === null || inForce.has(row.summary_id)) found.push(row);
    else found.push(...(yield* listSources(row.summary_id, inForce)));
  return found;
}

const countShown = (rows: readonly Pick<RunRow, "hidden" | "tokens">[]): number =>
  total(rows, ({ hidden, tokens }) => (hidden === 0 ? tokens : 0));

const pickItem = (row: RunRow): Omit<Row<"context_items">, "conversation_id"> => ({
  start_pos: row.start_pos,
  seq: row.seq,
  end_pos: row.end_pos,
  message_id: row.message_id,
  summary_id: row.summary_id,
  tokens: row.tokens,
  messages: row.messages,
  depth: row.depth,
  hidden: row.hidden,
});

function* retireOthers(
  changes: Changes,
  conversation_id: number,
  inForce: ReadonlySet<string>,
): Asking<void> {
  const order = ["summary_id"] as const;
  const pages = new Pages("summaries", { columns: order, order, where: { conversation_id, state: "cover" } });
  for (let page; (page = yield* pages.next()).length > 0;) {
    for (const { summary_id } of page)
      if (!inForce.has(summary_id)) changes.update("summaries", { summary_id }, { state: "retired" });
    yield* flushIfLong(changes);
  }
}

const startOf = ({ start_pos: startPosition, start_seq: seq }: SummarySpan) => ({ startPosition, seq });
const endOf = ({ end_pos: startPosition, end_seq: seq }: SummarySpan) => ({ startPosition, seq });

function putInCover(changes: Changes, head: Head, span: SummarySpan, items: readonly RunRow[]): void {
  const { conversationId: conversation_id } = head;
  for (const { start_pos, seq } of items)
    changes.delete("context_items", { conversation_id, start_pos, seq });
  const item = describeSummaryItem(span);
  changes.insert("context_items", item);
  head.noteShown(0, countShown([item]) - countShown(items));
}

/** A summary must come after its previous context. */
function* checkPrevious(conversationId: number): Asking<void> {
  const later = yield* read.withPrevious(conversationId);
  for (const some of inPieces(later)) {
    const spans = new Map(
      (yield* read.summaries(some.map((row) => row.previous_id))).map((span) => [span.summary_id, span]),
    );
    for (const { summary_id, previous_id, start_pos, start_seq } of some) {
      const previous = spans.get(previous_id);
      const isBefore =
        previous?.conversation_id === conversationId &&
        (previous.end_pos < start_pos || (previous.end_pos === start_pos && previous.end_seq < start_seq));
      if (isBefore) continue;
      throw new EngineError(
        "invalid_input",
        `cannot store ${summary_id}: its previous context, ${previous_id}, does not come before it`,
      );
    }
  }
}
