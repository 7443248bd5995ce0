/**
 * The tables of an archive as maps, on which plans run: rules are tested without a database, and must not be implemented here. Rows are frozen,
 * so that callers cannot change the archive.
 */
import type { SessionRef } from "@lossless/core";
import { hashSeal, SEAL_KINDS, SEALED } from "@lossless/core/adapter";
import type { Asking, Key, SealKind } from "@lossless/core/adapter";
import { answerAll, nameOf, TABLE_NAMES, tables } from "@lossless/core/ports";
import type {
  Arrival,
  Changes,
  ChangePart,
  Covering,
  EventName,
  FirstVersion,
  ForgettableVersion,
  HeadRow,
  HideableMessage,
  ItemPoint,
  KeysQuery,
  MessageAt,
  NamedMessage,
  NumberedTable,
  PageQuery,
  CoverPoint,
  PlacedLink,
  Plan,
  Reads,
  Row,
  RunRow,
  SessionPlacements,
  SourceLink,
  SourceSpan,
  SummarySpan,
  TableName,
  TouchedSummary,
  Value,
  Values,
  Version,
} from "@lossless/core/ports";
import { MemoryBlobs } from "./memory-blobs.ts";
import { MemoryTable } from "./memory-table.ts";

/** The kind of an event id that names a message of another session. */
const ALIAS = 2;
/** The flag of a summary of which no message is shown. */
const HIDDEN_SUMMARY = 4;

export class MemoryArchive implements Reads {
  readonly #tables: ReadonlyMap<TableName, MemoryTable>;
  readonly blobs: MemoryBlobs;
  /** How to undo each change, the newest last; empty outside of a write. */
  readonly #undo: (() => void)[] = [];
  /** The highest numbers of removed rows: none is reused. */
  readonly #lastIds = new Map<TableName, number>();
  #depth = 0;
  /** What a write has changed and must seal. */
  readonly #unsealed = new Map<SealKind, Set<Value>>(SEAL_KINDS.map((kind) => [kind, new Set()]));
  /** How many reads the last plan requested. */
  asks = 0;

  /** A copy of another archive, or an empty one. */
  constructor(of?: MemoryArchive) {
    this.#tables = new Map(TABLE_NAMES.map((name) => [name, new MemoryTable(of?.tableOf(name))]));
    this.blobs = new MemoryBlobs(of?.blobs);
  }

  /** Runs a plan; if it fails, nothing is changed. */
  write<T>(plan: () => Plan<T>): T {
    const before = this.#begin();
    try {
      const { value, asks } = answerAll(plan(), this, (changes) => this.#apply(changes));
      this.asks = asks;
      this.#apply(value.changes);
      this.#seal();
      return value.result;
    } catch (error) {
      this.#rollBack(before);
      throw error;
    } finally {
      this.#end();
    }
  }

  /** Several writes as one transaction. */
  async writeThroughout<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#begin();
    try {
      return await work();
    } catch (error) {
      this.#rollBack(before);
      throw error;
    } finally {
      this.#end();
    }
  }

  #begin(): number {
    this.#depth += 1;
    return this.#undo.length;
  }

  #rollBack(before: number): void {
    for (const undo of this.#undo.splice(before).toReversed()) undo();
    for (const ids of this.#unsealed.values()) ids.clear();
  }

  #end(): void {
    this.#depth -= 1;
    if (this.#depth === 0) this.#undo.length = 0;
  }

  /** Runs a plan that only reads. */
  read<T>(plan: () => Asking<T>): T {
    return answerAll(plan(), this, () => {
      throw new Error("a plan that only reads has changes");
    }).value;
  }

  load(table: TableName, rows: readonly Values[]): void {
    for (const row of rows) this.#insert(table, row);
  }

  list<T extends TableName>(table: T): Row<T>[] {
    return this.tableOf(table).list() as Row<T>[];
  }

  /** The row with a one-column key. */
  find<T extends TableName>(table: T, key: number | string | null): Row<T> | undefined {
    return this.tableOf(table).get(String(key)) as Row<T> | undefined;
  }

  /** The rows whose columns have these values. */
  filter<T extends TableName>(table: T, where: Partial<Row<T>>): Row<T>[] {
    return this.tableOf(table).select(where as Values) as Row<T>[];
  }

  /** Changes a row like an outside program, without sealing. */
  edit<T extends TableName>(table: T, key: Key<T>, set: Partial<Row<T>>): void {
    this.#update(table, key, set as Values);
    for (const ids of this.#unsealed.values()) ids.clear();
  }

  #apply({ parts, files, index }: Changes): void {
    for (const { blob, content } of files) {
      if (this.blobs.read(blob) === null) this.#undo.push(() => this.blobs.remove(blob));
      this.blobs.put(blob, content);
    }
    for (const part of parts) this.#applyPart(part);
    for (const work of index) if (work.kind === "add-summary") this.#numberSummary(work.summaryId);
  }

  /** Searches identify summaries by numbers. */
  #numberSummary(summary_id: string): void {
    const refs = this.list("summary_refs");
    if (refs.some((row) => row.summary_id === summary_id)) return;
    const last = refs.reduce((most, row) => Math.max(most, row.summary_ref), 0);
    this.#insert("summary_refs", { summary_ref: last + 1, summary_id });
  }

  #note(table: TableName, row: Values): void {
    for (const kind of SEAL_KINDS)
      for (const sealed of SEALED[kind])
        if (sealed.table === table) this.#unsealed.get(kind)?.add(row[sealed.id] ?? null);
  }

  #seal(): void {
    for (const [kind, ids] of this.#unsealed) {
      for (const id of ids) this.#sealOne(kind, id);
      ids.clear();
    }
  }

  #sealOne(kind: SealKind, id: Value): void {
    const facts = SEALED[kind].map(({ table, columns, order, id: column }) =>
      this.#select(table, { [column]: id }, order).map((row) => columns.map((name) => row[name] ?? null)),
    );
    const row = { kind, id: String(id), hash: hashSeal(kind, facts) };
    this.#put("seals", nameOf("seals", row), facts[0]?.length === 0 ? undefined : row);
  }

  #applyPart({ deletes, inserts, updates }: ChangePart): void {
    for (const [table, keys] of deletes) for (const key of keys) this.#delete(table, key);
    for (const [table, rows] of inserts) for (const row of rows) this.#insert(table, row);
    for (const [table, changed] of updates)
      for (const { key, set } of changed.values()) this.#update(table, key, set);
  }

  #insert(table: TableName, row: Values): void {
    const name = nameOf(table, row);
    if (this.tableOf(table).get(name)) throw new Error(`${table} has a row ${name} already`);
    this.#put(table, name, { ...row });
    this.#note(table, row);
    if (table === "messages" && row.forgotten_at === null) this.#awaitVectors(row);
  }

  /** New or newly shown messages have to be considered when a space is filled. */
  #awaitVectors({ newest = null, message_id = null }: Values): void {
    for (const { space_id } of this.list("vector_spaces")) {
      const row = { message_id: newest ?? message_id, space_id };
      this.#put("vectors_pending", nameOf("vectors_pending", row), row);
    }
  }

  #put(table: TableName, name: string, row: Values | undefined): void {
    const rows = this.tableOf(table);
    const before = rows.get(name);
    if (this.#depth > 0) this.#undo.push(() => rows.put(name, before));
    rows.put(name, row);
  }

  #update(table: TableName, key: Values, set: Values): void {
    const name = nameOf(table, key);
    const row = this.tableOf(table).get(name);
    if (row === undefined) throw new Error(`${table} has no row ${name}`);
    const changed = { ...row, ...set };
    this.#put(table, name, changed);
    this.#note(table, row);
    this.#note(table, changed);
    if (table === "messages" && row.hidden_now !== 0 && changed.hidden_now === 0) this.#awaitVectors(changed);
  }

  #delete(table: TableName, key: Values): void {
    const [only = ""] = tables[table].key;
    for (const row of this.tableOf(table).select(key)) {
      this.#put(table, nameOf(table, row), undefined);
      this.#note(table, row);
      this.#lastIds.set(table, Math.max(this.#lastIds.get(table) ?? 0, Number(row[only]) || 0));
    }
  }

  tableOf(table: TableName): MemoryTable {
    const rows = this.#tables.get(table);
    if (rows === undefined) throw new Error(`there is no table ${table}`);
    return rows;
  }

  placements({ owner, id, key }: SessionRef): SessionPlacements {
    const session = this.#findSession(owner, id);
    const placements = this.list("placements")
      .filter((row) => row.session_ref === session?.session_ref)
      .sort((a, b) => b.start_position - a.start_position);
    const [newest] = placements;
    const [head] = newest ? this.lockHeads([newest.conversation_id]) : [this.active(owner, key)];
    return { session, placements, head: head ?? null };
  }

  active(owner: string, key: string): HeadRow | null {
    return (
      this.list("conversations").find(
        (row) => row.owner === owner && row.session_key === key && row.archived_at === null,
      ) ?? null
    );
  }

  #findSession(owner: string, id: string): Row<"sessions"> | null {
    return this.list("sessions").find((row) => row.owner === owner && row.session_id === id) ?? null;
  }

  lockHeads(conversationIds: readonly number[]): HeadRow[] {
    return this.list("conversations").filter((row) => conversationIds.includes(row.conversation_id));
  }

  chainAt(conversationId: number, seq: number): Uint8Array | null {
    const rows = [...this.list("messages"), ...this.list("ledger")];
    return rows.find((row) => row.conversation_id === conversationId && row.seq === seq)?.chain ?? null;
  }

  ids(table: NumberedTable, count: number): number[] {
    const [key = ""] = tables[table].key;
    const used = this.tableOf(table)
      .list()
      .map((row) => Number(row[key]));
    const last = used.reduce((most, id) => Math.max(most, id), this.#lastIds.get(table) ?? 0);
    return Array.from({ length: count }, (_, i) => last + 1 + i);
  }

  turns(keys: readonly string[]): string[] {
    return keys.filter((key) => this.list("turns").some((row) => row.advancement_key === key));
  }

  versions({ owner, id }: SessionRef, eventIds: readonly string[]): Version[] {
    const session = this.#findSession(owner, id);
    const asked = new Set(eventIds);
    const named = this.filter("event_ids", { session_ref: session?.session_ref ?? 0 }).filter((row) =>
      asked.has(row.event_id),
    );
    return named.flatMap(({ event_id, message_id }) =>
      [...this.filter("messages", { message_id }), ...this.filter("messages", { revises: message_id })]
        .sort((a, b) => a.seq - b.seq)
        .map((row) => ({ ...row, ...this.#findRedaction(row.message_id), event_id })),
    );
  }

  #findRedaction(messageId: number): Pick<Version, "key_id" | "keyed" | "sealed"> {
    const row = this.find("redactions", messageId);
    return { key_id: row?.key_id ?? null, keyed: row?.keyed ?? null, sealed: row?.sealed ?? null };
  }

  sessions(owner: string, sessionIds: readonly string[]): Row<"sessions">[] {
    return this.list("sessions").filter((row) => row.owner === owner && sessionIds.includes(row.session_id));
  }

  events({ owner, id }: SessionRef, eventIds: readonly string[]): NamedMessage[] {
    const session = this.#findSession(owner, id);
    return this.allEvents(session?.session_ref ?? 0).filter((event) => eventIds.includes(event.event_id));
  }

  allEvents(sessionRef: number): NamedMessage[] {
    const messages = new Map(this.list("messages").map((row) => [row.message_id, row]));
    return this.list("event_ids")
      .flatMap((name) => {
        const message = messages.get(name.message_id);
        return name.session_ref === sessionRef && message ? [{ ...message, ...name }] : [];
      })
      .sort(
        (a, b) =>
          a.conversation_id - b.conversation_id || a.seq - b.seq || (a.event_id < b.event_id ? -1 : 1),
      );
  }

  messagesAt(conversationId: number, seqs: readonly number[]): MessageAt[] {
    return this.list("messages").filter(
      (row) => row.conversation_id === conversationId && seqs.includes(row.seq),
    );
  }

  sessionsWithEvents(sessionRefs: readonly number[]): number[] {
    return sessionRefs.filter((ref) => this.list("event_ids").some((row) => row.session_ref === ref));
  }

  conversationsBegun(owner: string, key: string, at: number): HeadRow[] {
    return this.list("conversations")
      .filter((row) => row.owner === owner && row.session_key === key && row.created_at === at)
      .sort((a, b) => a.conversation_id - b.conversation_id);
  }

  hiddenFor({ owner, id }: SessionRef, reasons: number): HideableMessage[] {
    const ref = this.#findSession(owner, id)?.session_ref;
    const points = this.list("placements").filter((row) => row.session_ref === ref);
    const names = this.list("event_ids").filter((row) => row.session_ref === ref);
    const isNamed = ({ message_id, event_id }: Row<"messages">): boolean =>
      names.some((row) => row.message_id === message_id && row.event_id === event_id);
    return this.list("messages").filter(
      (row) =>
        points.some((point) => point.conversation_id === row.conversation_id) &&
        (row.hidden_now & reasons) !== 0 &&
        row.revises === null &&
        (row.session_ref === ref || isNamed(row)),
    );
  }

  boundaries({ owner, id }: SessionRef, eventIds: readonly string[]): Row<"boundaries">[] {
    const ref = this.#findSession(owner, id)?.session_ref;
    return this.list("boundaries").filter(
      (row) => row.session_ref === ref && eventIds.includes(row.event_id),
    );
  }

  shownBefore(conversationId: number, position: number): number {
    return this.list("context_items")
      .filter((row) => row.conversation_id === conversationId && row.hidden === 0)
      .reduce((sum, row) => sum + (row.start_pos < position ? row.messages : 0), 0);
  }

  files(fileIds: readonly string[]): Row<"large_files">[] {
    return this.list("large_files").filter((row) => fileIds.includes(row.file_id));
  }

  calibrations(models: readonly string[]): Row<"token_calibration">[] {
    return this.list("token_calibration").filter((row) => models.includes(row.model));
  }

  cacheUsage(conversationIds: readonly number[]): Row<"cache_usage">[] {
    return this.list("cache_usage").filter((row) => conversationIds.includes(row.conversation_id));
  }

  covering(points: readonly CoverPoint[]): Covering[] {
    return points.map((point) => {
      const item =
        this.filter("context_items", { conversation_id: point.conversationId })
          .filter((row) => compare(row, { startPosition: point.position, seq: point.seq }) <= 0)
          .sort((a, b) => a.start_pos - b.start_pos || a.seq - b.seq)
          .at(-1) ?? null;
      const isAround = item?.summary_id != null && point.position <= item.end_pos;
      return { item, path: isAround ? this.#findPath(item.summary_id ?? "", point) : [] };
    });
  }

  #findPath(topId: string, point: CoverPoint): SummarySpan[] {
    const [top] = this.summaries([topId]);
    if (top === undefined) return [];
    const below = this.summaries(this.sources([topId]).flatMap(({ source_id }) => source_id ?? []));
    const next = below.find((span) => holds(span, point));
    return [top, ...(next ? this.#findPath(next.summary_id, point) : [])];
  }

  placedSources(summaryIds: readonly string[]): PlacedLink[] {
    return this.sources(summaryIds).map((link) => {
      const message = this.find("messages", link.message_id);
      const summary = this.find("summaries", link.source_id);
      const position = message?.position ?? summary?.start_pos ?? 0;
      return { ...link, position, seq: message?.seq ?? summary?.start_seq ?? 0 };
    });
  }

  run(conversationId: number, first: ItemPoint, last: ItemPoint): RunRow[] {
    return this.filter("context_items", { conversation_id: conversationId })
      .filter((item) => compare(item, first) >= 0 && compare(item, last) <= 0)
      .sort((a, b) => a.start_pos - b.start_pos || a.seq - b.seq)
      .map((item) => this.#toRunRow(item));
  }

  #toRunRow(item: Row<"context_items">): RunRow {
    const message = this.find("messages", item.message_id);
    const summary = this.find("summaries", item.summary_id);
    return {
      ...item,
      version_id: message?.newest ?? message?.message_id ?? null,
      earliest_at: message?.created_at ?? summary?.earliest_at ?? 0,
      latest_at: message?.created_at ?? summary?.latest_at ?? 0,
      dated: message?.dated ?? 1,
      descendant_count: summary?.descendant_count ?? null,
      end_seq: summary?.end_seq ?? null,
      stale: summary?.stale ?? null,
    };
  }

  itemsAround(conversationId: number, point: ItemPoint): { before: number; behind: number } {
    const items = this.filter("context_items", { conversation_id: conversationId });
    return {
      before: items.filter((item) => compare(item, point) < 0).length,
      behind: items.filter((item) => compare(item, point) > 0).length,
    };
  }

  summaries(summaryIds: readonly string[]): SummarySpan[] {
    return this.list("summaries").filter((row) => summaryIds.includes(row.summary_id));
  }

  contents(summaryIds: readonly string[]): Row<"summaries">[] {
    return this.list("summaries").filter((row) => summaryIds.includes(row.summary_id));
  }

  withPrevious(conversationId: number): ReturnType<Reads["withPrevious"]> {
    return this.list("summaries").flatMap(({ previous_id, ...row }) =>
      row.conversation_id === conversationId && previous_id !== null ? [{ ...row, previous_id }] : [],
    );
  }

  sources(summaryIds: readonly string[]): SourceLink[] {
    return [...new Set(summaryIds)]
      .flatMap((summary_id) => [
        ...this.filter("summary_messages", { summary_id }).map((link) => ({ ...link, source_id: null })),
        ...this.filter("summary_parents", { summary_id }).map((link) => ({
          ...link,
          message_id: null,
          source_id: link.parent_summary_id,
        })),
      ])
      .sort((a, b) => a.ordinal - b.ordinal);
  }

  currentSources(summaryId: string): RunRow[] {
    return this.sources([summaryId]).map((link) => {
      const message = this.find("messages", link.message_id);
      if (message) return this.#toMessageSource(message);
      const summary = this.find("summaries", link.source_id);
      if (summary === undefined) throw new Error(`there is no source ${link.source_id}`);
      const hidden = summary.messages === 0 ? HIDDEN_SUMMARY : 0;
      return { ...summary, seq: summary.start_seq, message_id: null, version_id: null, hidden, dated: 1 };
    });
  }

  #toMessageSource(message: Row<"messages">): RunRow {
    const newest = this.find("messages", message.newest);
    return {
      start_pos: message.position,
      seq: message.seq,
      end_pos: message.position,
      message_id: message.message_id,
      summary_id: null,
      tokens: newest?.tokens ?? message.tokens,
      messages: 1,
      depth: -1,
      hidden: message.hidden_now,
      version_id: message.newest ?? message.message_id,
      earliest_at: message.created_at,
      latest_at: message.created_at,
      dated: message.dated,
      descendant_count: null,
      end_seq: null,
      stale: 0,
    };
  }

  derivedFrom(summaryId: string): Row<"summary_parents">[] {
    return this.filter("summary_parents", { parent_summary_id: summaryId });
  }

  forgettable(messageIds: readonly number[]): ForgettableVersion[] {
    const messages = this.list("messages");
    const firsts = new Set(
      messages
        .filter((row) => messageIds.includes(row.message_id))
        .map((row) => row.revises ?? row.message_id),
    );
    const named = this.list("event_ids").filter((row) => firsts.has(row.message_id));
    for (const { event_id, session_ref, message_id } of this.list("event_ids")) {
      const owner = /^media:(.*):\d+$/s.exec(event_id)?.[1];
      if (named.some((row) => row.session_ref === session_ref && row.event_id === owner))
        firsts.add(message_id);
    }
    return messages
      .filter((row) => firsts.has(row.revises ?? row.message_id) && row.forgotten_at === null)
      .sort((a, b) => a.conversation_id - b.conversation_id || a.seq - b.seq);
  }

  filesOnlyOf(messageIds: readonly number[]): Row<"large_files">[] {
    const users = Map.groupBy(this.list("message_parts"), (part) => part.file_id);
    return this.list("large_files")
      .filter(({ file_id }) => users.get(file_id)?.every((part) => messageIds.includes(part.message_id)))
      .sort((a, b) => (a.file_id < b.file_id ? -1 : 1));
  }

  summariesAbove(messageIds: readonly number[], summaryIds: readonly string[]): TouchedSummary[] {
    const direct = this.list("summary_messages").filter((link) => messageIds.includes(link.message_id));
    const found = new Set([...summaryIds, ...direct.map((link) => link.summary_id)]);
    for (const id of found) for (const link of this.derivedFrom(id)) found.add(link.summary_id);
    return this.list("summaries")
      .filter((row) => found.has(row.summary_id))
      .sort(
        (a, b) =>
          a.depth - b.depth ||
          a.conversation_id - b.conversation_id ||
          a.start_pos - b.start_pos ||
          (a.summary_id < b.summary_id ? -1 : 1),
      );
  }

  madeAhead(conversationId: number): SummarySpan[] {
    return this.list("summaries").filter(
      (row) =>
        row.conversation_id === conversationId && (row.state === "prepared" || row.state === "reserve"),
    );
  }

  staleSummaries(conversationId: number): SummarySpan[] {
    return this.list("summaries").filter(
      (row) => row.conversation_id === conversationId && row.state === "cover" && row.stale === 1,
    );
  }

  page({ table, columns, where, order, after, limit }: PageQuery): Values[] {
    return this.#select(table, where, order)
      .filter((row) => after === null || compareRows(row, after, order) > 0)
      .slice(0, limit)
      .map((row) => pick(row, columns));
  }

  rows({ table, columns, where, order, column, keys }: KeysQuery): Values[] {
    const found = [...new Set(keys)].flatMap((key) =>
      this.tableOf(table).select({ [column]: key, ...where }),
    );
    const valuesOf = (row: Values): Value[] => order.map((name) => row[name] ?? null);
    return found.sort((a, b) => compareRows(a, valuesOf(b), order)).map((row) => pick(row, columns));
  }

  count(table: TableName, where: Values): number {
    return this.#select(table, where, []).length;
  }

  #select(table: TableName, where: Values, order: readonly string[]): Values[] {
    const rows = this.tableOf(table).select(where);
    const valuesOf = (row: Values): Value[] => order.map((column) => row[column] ?? null);
    return order.length === 0 ? rows : rows.sort((a, b) => compareRows(a, valuesOf(b), order));
  }

  content(blob: string): Uint8Array | null {
    return this.blobs.read(blob);
  }

  arrivals(conversationId: number, afterSeq: number): Arrival[] {
    const messages = this.list("messages");
    const sessions = new Map(this.list("sessions").map((row) => [row.session_ref, row.session_id]));
    const events = new Map(
      this.list("event_ids").map((row) => [nameOf("event_ids", row), row.message_id] as const),
    );
    const seqs = new Map(messages.map((row) => [row.message_id, row.seq]));
    return messages
      .filter((row) => row.conversation_id === conversationId && row.seq > afterSeq)
      .sort((a, b) => a.seq - b.seq)
      .flatMap((row) => {
        const session_id = sessions.get(row.session_ref);
        const revisions = this.filter("messages", { revises: row.message_id });
        const named = {
          revises_seq: row.revises === null ? null : (seqs.get(row.revises) ?? null),
          event_message: events.get(nameOf("event_ids", row)) ?? null,
          last_revision: revisions.reduce<number | null>(
            (last, { message_id: id }) => Math.max(last ?? 0, id),
            null,
          ),
        };
        return session_id === undefined ? [] : [{ ...row, session_id, ...named }];
      });
  }

  firstVersions(
    conversationId: number,
    after: { readonly position: number; readonly seq: number },
    limit: number,
  ): FirstVersion[] {
    const messages = new Map(this.list("messages").map((row) => [row.message_id, row]));
    return [...messages.values()]
      .filter((row) => row.conversation_id === conversationId && row.revises === null)
      .filter(
        (row) => row.position > after.position || (row.position === after.position && row.seq > after.seq),
      )
      .sort((a, b) => a.position - b.position || a.seq - b.seq)
      .slice(0, limit)
      .map((row) => ({ ...row, tokens: messages.get(row.newest ?? row.message_id)?.tokens ?? row.tokens }));
  }

  sourceSpans(summaryIds: readonly string[]): SourceSpan[] {
    const messages = new Map<number | null, Row<"messages">>();
    for (const row of this.list("messages")) messages.set(row.message_id, row);
    const summaries = new Map<string | null, Row<"summaries">>();
    for (const row of this.list("summaries")) summaries.set(row.summary_id, row);
    const none = { hidden_now: null, depth: null, messages: null, descendant_count: null, stale: null };
    return this.sources(summaryIds).flatMap(
      ({ summary_id, ordinal, message_id, source_id }): SourceSpan[] => {
        const message = this.find("messages", message_id);
        const summary = this.find("summaries", source_id);
        if (summary) return [{ ...summary, hidden_now: null, summary_id, ordinal }];
        if (!message) return [];
        const { position, seq, hidden_now } = message;
        const point = { start_pos: position, start_seq: seq, end_pos: position, end_seq: seq };
        return [{ ...none, ...point, summary_id, ordinal, hidden_now }];
      },
    );
  }

  namedSeqs(conversationId: number, names: readonly EventName[]): (number | null)[] {
    return names.map(({ sessionId, eventId }) => {
      const sessions = this.list("sessions").filter((row) => row.session_id === sessionId);
      const events = this.list("event_ids").filter(
        (row) =>
          row.event_id === eventId && sessions.some(({ session_ref }) => session_ref === row.session_ref),
      );
      const message = this.list("messages").find(
        (row) =>
          row.conversation_id === conversationId &&
          events.some(({ message_id }) => message_id === row.message_id),
      );
      return message?.seq ?? null;
    });
  }

  borrowedNames(owner: string, sessionId: string): Row<"event_ids">[] {
    const session = this.#findSession(owner, sessionId);
    const own = new Map(this.list("messages").map((row) => [row.message_id, row.session_ref]));
    return this.list("event_ids")
      .filter((row) => row.session_ref === session?.session_ref && row.kind === ALIAS)
      .filter((row) => own.get(row.message_id) !== row.session_ref)
      .sort((a, b) => (a.event_id < b.event_id ? -1 : 1));
  }

  countOwnNames(conversationId: number): number {
    const messages = new Map(this.list("messages").map((row) => [row.message_id, row]));
    const placements = this.filter("placements", { conversation_id: conversationId });
    return this.list("event_ids").filter((row) => {
      const message = messages.get(row.message_id);
      const isPlaced = placements.some(({ session_ref }) => session_ref === row.session_ref);
      return (
        message?.conversation_id === conversationId && (message.session_ref === row.session_ref || isPlaced)
      );
    }).length;
  }
}

const pick = (row: Values, columns: readonly string[]): Values =>
  structuredClone(Object.fromEntries(columns.map((column) => [column, row[column] ?? null])));

function compareRows(row: Values, to: readonly Value[], order: readonly string[]): number {
  for (const [at, column] of order.entries()) {
    const [a, b] = [row[column] ?? 0, to[at] ?? 0];
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

const holds = (span: SummarySpan, { position, seq }: CoverPoint): boolean =>
  (span.start_pos < position || (span.start_pos === position && span.start_seq <= seq)) &&
  (span.end_pos > position || (span.end_pos === position && span.end_seq >= seq));

const compare = (item: Row<"context_items">, point: ItemPoint): number =>
  item.start_pos - point.startPosition || item.seq - point.seq;
