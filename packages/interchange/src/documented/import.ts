/**
 * Imports a database of the documented lossless-claw schema, generations 0.1 to 1.0. Each of its conversations becomes one of ours, in the same
 * family and order, archived ones included; messages are ingested like all others, so that a second import adds nothing and a changed row
 * becomes a revision; summaries keep their ids, texts and sources, and the context keeps its order as far as our cover can represent it. Rows of
 * the other tables are kept as hidden events; tables that are not read are reported.
 */

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { isUtf8 } from "node:buffer";
import { resolve } from "node:path";
import { setImmediate } from "node:timers/promises";

import { EngineError, POSITION_STEP, estimateTextTokens } from "@lossless/core";
import type { EngineEvent, SessionRef, Settings } from "@lossless/core";
import {
  Redaction,
  NO_LABELS,
  NO_ORIGIN,
  checkSession,
  deriveMessage,
  hiddenMask,
  prepareMessage,
} from "@lossless/core/formats";
import type { ImportMark } from "@lossless/core/formats";
import type { AppendEvent, Intake, PreparedMessage, Store } from "@lossless/core/ports";
import { describeFailure } from "../archive/archive-intake.ts";
import type { ImportProblem, ImportProgress } from "../transcript/import.ts";
import { createAbortError } from "../transcript/lines.ts";

import { planGraph, type GraphMessage, type GraphSummary } from "./graph.ts";
import { nameMessage, renderMessageEvent, renderRowEvent, renderRowsEvent } from "./message.ts";
import { DocumentedSource, numberOf, textOf, timeOf, type SourceRow } from "./source.ts";

const BATCH_EVENTS = 300;
const BATCH_BYTES = 2 * 1024 * 1024;
const BATCH_SUMMARIES = 200;
const PAGE = 1000;
const MAX_FILE_BYTES = 64 * 1024 * 1024;
const DEFAULT_OWNER = "main";

export interface DocumentedImportOptions {
  readonly path: string;
  /** The owner of the rows; by default the agent that a session key names. */
  readonly owner?: string | undefined;
  readonly sessionFilter?: readonly string[] | undefined;
  readonly since?: number | undefined;
  readonly largeFileThresholdTokens: number;
  /** Settings whose patterns are used for redaction on ingest; without them nothing is redacted. */
  readonly settings?: Settings | undefined;
  readonly now: number;
  /** When given, the archive records what this import stored. */
  readonly importId?: string | undefined;
  readonly random?: ((size: number) => Uint8Array) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
}

export interface DocumentedImportResult {
  readonly path: string;
  readonly imported: number;
  readonly skipped: number;
  readonly revisions: number;
  readonly summaries: number;
  readonly conversationIds: readonly number[];
  readonly problems: readonly ImportProblem[];
}

export async function importDocumented(
  store: Store,
  options: DocumentedImportOptions,
): Promise<DocumentedImportResult> {
  const source = new DocumentedSource(options.path);
  try {
    const run = new DocumentedImport(store, source, options);
    await run.importAll();
    return run.report();
  } finally {
    source.close();
  }
}

/** The session a documented conversation is stored under: its own number keeps segments of one host session apart. */
function nameSession(conversation: SourceRow): string {
  return `lossless-claw:${numberOf(conversation, "conversation_id") ?? 0}:${textOf(conversation, "session_id") ?? ""}`;
}

/** Shorter conversations are stored so quickly that waiting for one costs less than a file beside the database. */
const LONG_MESSAGES = 400;

/** The rows of a conversation can be read again from the first. */
const REPEATABLE = { isRepeatable: true } as const;

class DocumentedImport {
  readonly #store: Store;
  readonly #source: DocumentedSource;
  readonly #options: DocumentedImportOptions;
  readonly #problems: ImportProblem[] = [];
  readonly #conversationIds: number[] = [];
  readonly #counts = { imported: 0, skipped: 0, revisions: 0, summaries: 0 };
  readonly #total: number;
  readonly #redaction: Redaction | null;
  readonly #mark: ImportMark | undefined;
  #done = 0;

  constructor(store: Store, source: DocumentedSource, options: DocumentedImportOptions) {
    this.#store = store;
    this.#source = source;
    this.#options = options;
    this.#total = source.count("messages");
    const { importId, path, now } = options;
    this.#mark = importId === undefined ? undefined : { importId, source: resolve(path), at: now };
    this.#redaction = options.settings === undefined ? null : this.#createRedaction(options.settings);
    this.#redaction?.check();
  }

  #createRedaction(settings: Settings): Redaction {
    const { now, random = randomBytes } = this.#options;
    const emit = (event: EngineEvent): void => {
      if (event.kind === "degraded") this.#note("left_out", event.message);
    };
    return new Redaction({ store: this.#store, settings, clock: { now: () => now, random }, emit });
  }

  async importAll(): Promise<void> {
    for (const conversation of this.#source.rows("conversations", { order: ["conversation_id"] })) {
      const leftOut = this.#whyLeftOut(conversation);
      if (leftOut === null) await this.#importConversation(conversation);
      else this.#note("left_out", leftOut);
    }
    for (const { table, rows } of this.#source.listOtherTables()) {
      this.#note("left_out", `table ${table} (${rows} rows) holds no history and is not imported`);
    }
  }

  report(): DocumentedImportResult {
    return {
      path: this.#options.path,
      ...this.#counts,
      conversationIds: this.#conversationIds,
      problems: this.#problems,
    };
  }

  #note(code: ImportProblem["code"], message: string): void {
    this.#problems.push({ code, line: 0, message });
  }

  #whyLeftOut(conversation: SourceRow): string | null {
    const { sessionFilter, since } = this.#options;
    const id = numberOf(conversation, "conversation_id");
    const names = [
      textOf(conversation, "session_id"),
      textOf(conversation, "session_key"),
      nameSession(conversation),
    ];
    if (
      sessionFilter !== undefined &&
      sessionFilter.length > 0 &&
      !sessionFilter.some((wanted) => names.includes(wanted))
    ) {
      return `conversation ${id} (session ${names[0] ?? "unnamed"}) was not asked for`;
    }
    const changedAt = timeOf(conversation, "updated_at") ?? timeOf(conversation, "created_at");
    if (since !== undefined && changedAt !== null && changedAt < since)
      return `conversation ${id} was last changed before the given time`;
    return null;
  }

  /** Stores and proves all of a conversation, or nothing of it: rows that contradict each other leave no part of it. */
  async #importConversation(conversation: SourceRow): Promise<void> {
    const session = this.#describeSession(conversation);
    const takeBack = this.#remember();
    await this.#store.bringIn(
      async (into) => {
        takeBack();
        try {
          await this.#storeConversation(into, conversation, session);
        } catch (error) {
          throw describeFailure(error, this.#options.path);
        }
      },
      this.#isLong(conversation) ? REPEATABLE : {},
    );
  }

  async #storeConversation(into: Intake, conversation: SourceRow, session: SessionRef): Promise<void> {
    const id = numberOf(conversation, "conversation_id") ?? 0;
    const opened = await this.#open(into, conversation, session);
    if (opened === null) return;
    this.#conversationIds.push(opened);
    const before = this.#countStored();
    const names = new Map<number, string>();
    await this.#storeEvents(into, session, this.#readEvents(conversation, names));
    await this.#storeGraph(into, id, opened, names);
    if (this.#countStored() === before) return;
    const [problem] = await into.proveMoved([opened], deriveMessage);
    if (problem !== undefined)
      throw new EngineError(
        "invalid_input",
        `cannot import ${this.#options.path}: conversation ${id} does not verify: ${problem.message}`,
        { hint: "its rows contradict each other; nothing of this conversation was stored" },
      );
  }

  #isLong(conversation: SourceRow): boolean {
    const id = numberOf(conversation, "conversation_id") ?? 0;
    return this.#source.countMessages(id) >= LONG_MESSAGES;
  }

  /** Takes a snapshot of the report so far. The returned function restores it, because the work may start over. */
  #remember(): () => void {
    const [counts, done] = [{ ...this.#counts }, this.#done];
    const [problems, ids] = [this.#problems.length, this.#conversationIds.length];
    return () => {
      Object.assign(this.#counts, counts);
      this.#done = done;
      this.#problems.length = problems;
      this.#conversationIds.length = ids;
    };
  }

  #countStored(): number {
    const { imported, revisions, summaries } = this.#counts;
    return imported + revisions + summaries;
  }

  #describeSession(conversation: SourceRow): SessionRef {
    const sessionId = nameSession(conversation);
    const named = textOf(conversation, "session_key") ?? "";
    const key = named === "" ? sessionId : named;
    const owner = this.#options.owner ?? /^agent:([^:]+):/u.exec(key)?.[1] ?? DEFAULT_OWNER;
    const session = { key, id: sessionId, owner };
    checkSession(session);
    return session;
  }

  async #open(into: Intake, conversation: SourceRow, session: SessionRef): Promise<number | null> {
    const { now } = this.#options;
    const createdAt = timeOf(conversation, "created_at") ?? now;
    const isActive = conversation["active"] === undefined || numberOf(conversation, "active") !== 0;
    const archivedAt = isActive
      ? null
      : (timeOf(conversation, "archived_at") ?? timeOf(conversation, "updated_at") ?? createdAt);
    const known = await into.readSession(session.owner, session.id);
    if (known !== null && known.conversationId !== null) return known.conversationId;
    const outcome = await into.openMoved(
      {
        owner: session.owner,
        sessionKey: session.key,
        sessionId: session.id,
        createdAt,
        archivedAt,
        archiveCause: isActive ? null : (textOf(conversation, "archive_cause") ?? "archived"),
        ...NO_ORIGIN,
        ...NO_LABELS,
        title: textOf(conversation, "title") || null,
        rows: 0,
        foldRevision: 0,
        epochSeq: 0,
        placements: [{ sessionId: session.id, start: 0, base: 0 }],
      },
      null,
      now,
    );
    if (outcome.kind === "opened") {
      if (outcome.archivedInstead)
        this.#note(
          "conflict",
          `${session.key} has an active conversation; the imported one is stored as archived`,
        );
      return outcome.conversationId;
    }
    this.#note("conflict", `conversation of ${session.key}: ${outcome.reason}`);
    return null;
  }

  /** First the rows around the messages, positioned before the first message, then the messages. */
  *#readEvents(conversation: SourceRow, names: Map<number, string>): Generator<PendingEvent> {
    const id = numberOf(conversation, "conversation_id") ?? 0;
    let position = 0;
    const hide = (eventId: string, bytes: Buffer): PendingEvent => ({
      eventId,
      bytes,
      position: ++position,
      isHidden: true,
      createdAt: null,
    });
    yield hide("row:conversation", renderRowEvent("conversations", conversation));
    const where = "conversation_id = ?";
    for (const file of this.#source.rows("large_files", { where, order: ["file_id"] }, id)) {
      yield hide(
        `row:file:${textOf(file, "file_id") ?? ""}`,
        renderRowEvent("large_files", file, this.#readFile(file)),
      );
    }
    const rootless = this.#listRootless(id);
    for (const row of this.#source.rows("summaries", { where, order: ["summary_id"] }, id)) {
      const summaryId = textOf(row, "summary_id") ?? "";
      // The text of a summary is stored once, where forgetting finds it; only a row that cannot be a summary keeps its text here.
      const { content: _content, ...facts } = row;
      yield hide(
        `row:summary:${summaryId}`,
        renderRowEvent("summaries", rootless.has(summaryId) ? row : facts),
      );
    }
    for (const table of ["summary_messages", "summary_parents"] as const) {
      const ofConversation = "summary_id IN (SELECT summary_id FROM summaries WHERE conversation_id = ?)";
      const rows = [
        ...this.#source.rows(table, { where: ofConversation, order: ["summary_id", "ordinal"] }, id),
      ];
      if (rows.length > 0) yield hide(`rows:${table}`, renderRowsEvent(table, rows));
    }
    const items = [...this.#source.rows("context_items", { where, order: ["ordinal"] }, id)];
    if (items.length > 0) yield hide("rows:context_items", renderRowsEvent("context_items", items));
    yield* this.#readMessages(id, names);
  }

  /** Summaries that lead to no message of their conversation. */
  #listRootless(conversationId: number): ReadonlySet<string> {
    const indexes = new Map<number, number>();
    for (const message of this.#source.rows(
      "messages",
      { where: "conversation_id = ?", order: ["seq"] },
      conversationId,
    )) {
      indexes.set(numberOf(message, "message_id") ?? 0, indexes.size);
    }
    return new Set(planGraph([], this.#readSummaries(conversationId, indexes), []).rootless);
  }

  *#readMessages(conversationId: number, names: Map<number, string>): Generator<PendingEvent> {
    const taken = new Set<string>();
    let number = 0;
    for (const message of this.#source.rows(
      "messages",
      { where: "conversation_id = ?", order: ["seq", "message_id"] },
      conversationId,
    )) {
      const messageId = numberOf(message, "message_id") ?? 0;
      const parts = [
        ...this.#source.rows("message_parts", { where: "message_id = ?", order: ["ordinal"] }, messageId),
      ];
      const eventId = nameMessage(message, taken);
      number += 1;
      names.set(messageId, eventId);
      yield {
        eventId,
        bytes: renderMessageEvent({ message, parts }),
        position: Math.max(number, numberOf(message, "seq") ?? number) * POSITION_STEP,
        isHidden: false,
        createdAt: timeOf(message, "created_at"),
      };
    }
  }

  /** The content of a large file as a block that can be searched and opened; only the row when the file is gone. */
  #readFile(file: SourceRow): unknown {
    const path = (textOf(file, "storage_uri") ?? "").replace(/^file:\/\//u, "");
    const id = textOf(file, "file_id") ?? "";
    if (path === "" || !existsSync(path) || !statSync(path).isFile()) {
      this.#note("left_out", `the content of ${id} is gone (${path}); its description is kept`);
      return undefined;
    }
    if (statSync(path).size > MAX_FILE_BYTES) {
      this.#note(
        "left_out",
        `the content of ${id} has more than ${MAX_FILE_BYTES} bytes and stays where it is (${path})`,
      );
      return undefined;
    }
    const bytes = readFileSync(path);
    if (isUtf8(bytes)) return bytes.toString("utf8");
    const media = textOf(file, "mime_type") ?? "application/octet-stream";
    return [{ type: "file", source: { type: "base64", media_type: media, data: bytes.toString("base64") } }];
  }

  async #storeEvents(into: Intake, session: SessionRef, events: Iterable<PendingEvent>): Promise<void> {
    let batch: AppendEvent[] = [];
    let bytes = 0;
    const flush = async (): Promise<void> => {
      const { signal, now, path } = this.#options;
      if (signal?.aborted) throw createAbortError(path);
      const { results } = await into.append({ session, events: batch, now, import: this.#mark });
      // The store works in this thread: without a pause nobody could cancel.
      await setImmediate();
      for (const { outcome } of results) {
        if (outcome === "stored") this.#counts.imported += 1;
        else if (outcome === "revision") this.#counts.revisions += 1;
        else this.#counts.skipped += 1;
      }
      this.#done += batch.length;
      this.#options.onProgress?.({
        bytesDone: Math.min(this.#done, this.#total),
        bytesTotal: this.#total,
        lines: this.#done,
      });
      [batch, bytes] = [[], 0];
    };
    for (const event of events) {
      batch.push(this.#toAppend(event));
      bytes += event.bytes.byteLength;
      if (batch.length >= BATCH_EVENTS || bytes >= BATCH_BYTES) await flush();
    }
    if (batch.length > 0) await flush();
  }

  #toAppend({ eventId, bytes, position, isHidden, createdAt }: PendingEvent): AppendEvent {
    const { largeFileThresholdTokens, now, random = randomBytes } = this.#options;
    let prepared: PreparedMessage | null = null;
    const { redacted, ...event } = this.#redaction?.apply(bytes) ?? { arrival: bytes };
    const hidden = hiddenMask(isHidden ? ["meta"] : []);
    return {
      eventId,
      kind: "entry",
      ...event,
      position,
      prepare: () =>
        (prepared ??= prepareMessage(event.arrival, {
          hidden,
          createdAt: createdAt ?? now,
          isUndated: createdAt === null,
          largeFileThresholdTokens,
          random,
          redacted,
        })),
    };
  }

  async #storeGraph(
    into: Intake,
    sourceId: number,
    conversationId: number,
    names: ReadonlyMap<number, string>,
  ): Promise<void> {
    const { messages, indexes } = await this.#listMessages(into, conversationId, names);
    const summaries = this.#readSummaries(sourceId, indexes);
    if (summaries.length === 0) return;
    this.#noteLostLinks(sourceId, indexes);
    const context = [
      ...this.#source.rows("context_items", { where: "conversation_id = ?", order: ["ordinal"] }, sourceId),
    ];
    const order = context.map((item) => textOf(item, "summary_id")).filter((id) => id !== null);
    const graph = planGraph(messages, summaries, order);
    for (const id of graph.rootless)
      this.#note("left_out", `${id} leads to no message; its row is kept as a hidden event`);
    for (const id of graph.unplaced)
      this.#note("conflict", `${id} overlaps or has gaps; it is kept, and its messages are shown instead`);
    let stored = 0;
    for (let at = 0; at < graph.summaries.length; at += BATCH_SUMMARIES) {
      stored += (await into.moveSummaries(conversationId, graph.summaries.slice(at, at + BATCH_SUMMARIES)))
        .stored;
    }
    this.#counts.summaries += stored;
    const [listed] = await into.listMoved({ conversationIds: [conversationId] });
    // A conversation that was folded here meanwhile keeps its own cover.
    if (listed === undefined || stored === 0) return;
    if (listed.summaries > graph.summaries.length) return into.retireBeside(conversationId);
    await into.moveCover(conversationId, graph.cover, {
      foldRevision: listed.foldRevision + 1,
      epochSeq: listed.rows,
    });
  }

  #noteLostLinks(sourceId: number, indexes: ReadonlyMap<number, number>): void {
    const where = "summary_id IN (SELECT summary_id FROM summaries WHERE conversation_id = ?)";
    const lost = new Map<string, number>();
    for (const link of this.#source.rows("summary_messages", { where, order: ["summary_id"] }, sourceId)) {
      const id = textOf(link, "summary_id") ?? "";
      if (!indexes.has(numberOf(link, "message_id") ?? -1)) lost.set(id, (lost.get(id) ?? 0) + 1);
    }
    for (const [id, count] of lost)
      this.#note("left_out", `${count} messages that ${id} was made from are not in its conversation`);
  }

  /** The messages of the conversation in order, and the index of each source row among them. */
  async #listMessages(
    into: Intake,
    conversationId: number,
    names: ReadonlyMap<number, string>,
  ): Promise<{ messages: GraphMessage[]; indexes: Map<number, number> }> {
    const messages: GraphMessage[] = [];
    const byEvent = new Map<string, number>();
    let after: string | null = null;
    do {
      const page = await into.listMessages({
        conversationId,
        after,
        limit: PAGE,
        order: "position",
        direction: "oldest",
      });
      for (const row of page.items) {
        if (row.revises !== null) continue;
        byEvent.set(row.eventId, messages.length);
        const { seq, position, createdAt, tokens } = row;
        messages.push({ seq, position, createdAt, tokens, isShown: row.hidden.length === 0 });
      }
      after = page.next;
    } while (after !== null);
    const indexes = new Map<number, number>();
    for (const [messageId, eventId] of names) {
      const index = byEvent.get(eventId);
      if (index !== undefined) indexes.set(messageId, index);
    }
    return { messages, indexes };
  }

  #readSummaries(sourceId: number, indexes: ReadonlyMap<number, number>): GraphSummary[] {
    const rows = [
      ...this.#source.rows("summaries", { where: "conversation_id = ?", order: ["summary_id"] }, sourceId),
    ];
    return rows.map((row) => {
      const summaryId = textOf(row, "summary_id") ?? "";
      const linked = [
        ...this.#source.rows("summary_messages", { where: "summary_id = ?", order: ["ordinal"] }, summaryId),
      ];
      const found = linked
        .map((link) => indexes.get(numberOf(link, "message_id") ?? -1))
        .filter((index) => index !== undefined);
      const parents = [
        ...this.#source.rows("summary_parents", { where: "summary_id = ?", order: ["ordinal"] }, summaryId),
      ];
      const text = textOf(row, "content") ?? "";
      const content = this.#redaction?.applyToText(text) ?? text;
      return {
        summaryId,
        content,
        tokens: numberOf(row, "token_count") ?? estimateTextTokens(content),
        model: textOf(row, "model") ?? "unknown",
        createdAt: timeOf(row, "created_at") ?? this.#options.now,
        messages: [...new Set(found)],
        sources: [
          ...new Set(
            parents.map((parent) => textOf(parent, "parent_summary_id")).filter((id) => id !== null),
          ),
        ],
      };
    });
  }
}

interface PendingEvent {
  readonly eventId: string;
  readonly bytes: Buffer;
  readonly position: number;
  readonly isHidden: boolean;
  readonly createdAt: number | null;
}
