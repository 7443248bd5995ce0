/**
 * Exports conversations as one page to read, send and print. Reads a turn at a time, so that its memory does not grow with the conversation. A
 * dry run writes nothing, and reports what would be redacted and where.
 */
import { EngineError } from "@lossless/core";
import { addHeadings } from "@lossless/core/formats";
import type { Snapshot, Store } from "@lossless/core/ports";
import { REDACTION_SETS } from "@lossless/core/settings";
import { chooseConversations } from "../archive/export-archive.ts";
import type { ExportOptions, ExportResult } from "../archive/export-archive.ts";
import { readMessages } from "../archive/conversation-reader.ts";
import { writeWholeFile } from "../formats/whole-file.ts";
import { Redactions } from "./redactions.ts";
import type { RedactionCount } from "./redactions.ts";
import { PageWriter } from "./render-page.ts";
import type { HeadedExport } from "./render-page.ts";
import { isHousekeeping } from "../reading/pairs.ts";
import { beginsTurn, isBlank, makeTurn, readPageMessage } from "./turns.ts";
import type { PageMessage, PageTurn } from "./turns.ts";

export interface PageOptions {
  /** Added to the built-in sets; null keeps everything, secrets included. */
  readonly redactPatterns?: readonly string[] | null | undefined;
  /** Whether the page includes lines of the host, hidden until its reader shows them. */
  readonly keepHousekeeping?: boolean | undefined;
  readonly timezone?: string | undefined;
}

export interface PageResult extends ExportResult {
  /** Messages of the host that are hidden in the page; not among `messages`. */
  readonly housekeeping: number;
  readonly redacted: readonly RedactionCount[];
}

export async function exportPage(
  store: Store,
  options: ExportOptions & PageOptions & { readonly dryRun?: boolean | undefined },
): Promise<PageResult> {
  return store.withSnapshot(async (snapshot) => {
    const source = new PageSource(snapshot, options);
    const chunks = source.render();
    const { bytes } = await (options.dryRun === true
      ? measure(chunks)
      : writeWholeFile(options.out, chunks, { signal: options.signal }));
    return { path: options.out, ...source.counts, bytes, redacted: source.redacted };
  });
}

async function measure(chunks: AsyncIterable<string>): Promise<{ bytes: number }> {
  let bytes = 0;
  for await (const chunk of chunks) bytes += Buffer.byteLength(chunk);
  return { bytes };
}

const LOOKED_AT = 50;

class PageSource {
  readonly counts = { conversations: 0, messages: 0, housekeeping: 0, summaries: 0, files: 0 };
  readonly #store: Snapshot;
  readonly #options: ExportOptions & PageOptions;
  readonly #redactions: Redactions;

  constructor(store: Snapshot, options: ExportOptions & PageOptions) {
    this.#store = store;
    this.#options = options;
    const { redactPatterns = [] } = options;
    // The user's patterns come first: they are identified by number.
    this.#redactions = new Redactions(redactPatterns === null ? [] : [...redactPatterns, ...REDACTION_SETS]);
  }

  get redacted(): readonly RedactionCount[] {
    return this.#redactions.places;
  }

  async *render(): AsyncGenerator<string> {
    const { timezone = "UTC", onProgress, keepHousekeeping = true } = this.#options;
    const conversations = await this.#addHeadings();
    const writer = new PageWriter(timezone, conversations.length);
    const total = conversations.reduce((sum, { rows }) => sum + rows, 0);
    let done = 0;
    yield writer.begin(conversations, keepHousekeeping);
    for (const conversation of conversations) {
      this.counts.conversations += 1;
      yield writer.conversation(conversation);
      for await (const turn of this.#readTurns(conversation.conversationId)) {
        yield writer.turn(turn);
        const { messages, housekeeping } = this.counts;
        onProgress?.({ done: Math.min(total, messages + housekeeping), total });
      }
      done += conversation.rows;
      onProgress?.({ done, total });
      yield writer.endConversation();
    }
    yield writer.end(this.redacted.reduce((sum, { count }) => sum + count, 0));
  }

  /** Redacts names, and the messages that a heading may be made from, before it is cut. */
  async #addHeadings(): Promise<HeadedExport[]> {
    const chosen = await chooseConversations(this.#store, this.#options);
    const redacted = chosen.map((conversation) => {
      const hide = (text: string | null): string | null =>
        this.#redactions.text(conversation.conversationId, text);
      const { name, title, project, branch, agent, model } = conversation;
      return {
        ...conversation,
        name: hide(name),
        title: hide(title),
        project: hide(project),
        branch: hide(branch),
        agent: hide(agent),
        model: hide(model),
      };
    });
    const headed = await addHeadings(
      {
        listOpenings: (ids, limit) => this.#store.listOpenings(ids, limit),
        readShown: async (ids) => {
          const shown = await this.#store.readShown(ids);
          return shown.map((message) => ({ ...message, bytes: this.#redactions.bytes(message.bytes) }));
        },
      },
      redacted,
    );
    return Promise.all(
      headed.map(async (conversation) => ({
        ...conversation,
        firstAt: await this.#readFirstTime(conversation.conversationId),
      })),
    );
  }

  /** The time of the first line that has one; the lines before it are few. */
  async #readFirstTime(conversationId: number): Promise<number | null> {
    const { items } = await this.#store.listMessages({
      conversationId,
      after: null,
      limit: LOOKED_AT,
      order: "position",
      direction: "oldest",
    });
    return items.find(({ isDated }) => isDated)?.createdAt ?? null;
  }

  async *#readTurns(conversationId: number): AsyncGenerator<PageTurn> {
    let turn: PageMessage[] = [];
    for await (const message of this.#readMessages(conversationId)) {
      if (beginsTurn(message) && turn.length > 0) {
        yield makeTurn(turn);
        turn = [];
      }
      turn.push(message);
    }
    if (turn.length > 0) yield makeTurn(turn);
  }

  async *#readMessages(conversationId: number): AsyncGenerator<PageMessage> {
    const { keepHousekeeping = true, signal, out } = this.#options;
    for await (const { row, bytes } of readMessages(this.#store, conversationId)) {
      // A turn can be as long as the conversation: cancelling must not wait for its end.
      if (signal?.aborted) throw new EngineError("aborted", `cannot finish ${out}: cancelled`);
      // Rows hidden for other reasons are not part of this conversation as it went.
      if (row.hidden.length > 0 && !(keepHousekeeping && isHousekeeping(row))) continue;
      const message = readPageMessage(row, this.#redactions.message(row, bytes));
      if (message.parts.every(isBlank)) continue;
      this.counts[message.isHousekeeping ? "housekeeping" : "messages"] += 1;
      yield message;
    }
  }
}
