/**
 * Checks the cover of one conversation: its items, in order, represent every first message exactly once, directly or through the one
 * summary above it, and the counters match. Both sides are walked in step, page by page.
 */
import { formatMessageId } from "../model/ids.ts";
import { groupBy, PAGE_ROWS, Pages } from "./pages.ts";
import { read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { FirstVersion, SummarySpan } from "./reads.ts";
import type { Row } from "./tables.ts";
import { checkCounter } from "./verify-problems.ts";
import type { HiddenChanges, Problems } from "./verify-problems.ts";

const ITEM_COLUMNS = [
  "start_pos",
  "seq",
  "end_pos",
  "message_id",
  "summary_id",
  "tokens",
  "messages",
  "depth",
  "hidden",
] as const;

type Item = Pick<Row<"context_items">, (typeof ITEM_COLUMNS)[number]>;
type Counted = Pick<Row<"conversations">, "conversation_id" | "shown_messages" | "shown_tokens">;

export function* checkCover(conversation: Counted, changes: HiddenChanges, problems: Problems): Asking<void> {
  const id = conversation.conversation_id;
  const name = `conversation ${id}`;
  const items = new Pages("context_items", {
    columns: ITEM_COLUMNS,
    order: ["start_pos", "seq"],
    where: { conversation_id: id },
  });
  const check = new CoverCheck(id, changes, problems);
  for (let page; (page = yield* items.next()).length > 0;) {
    const spans = yield* read.summaries(page.flatMap((item) => item.summary_id ?? []));
    const summaries = new Map(spans.map((span) => [span.summary_id, span]));
    for (const item of page) yield* check.take(item, summaries);
  }
  yield* check.finish();
  checkCounter(conversation, "shown_messages", check.shownMessages, name, problems);
  checkCounter(conversation, "shown_tokens", check.shownTokens, name, problems);
}

class CoverCheck {
  readonly #name: string;
  readonly #messages: FirstVersions;
  readonly #changes: HiddenChanges;
  readonly #problems: Problems;
  shownMessages = 0;
  shownTokens = 0;

  constructor(conversationId: number, changes: HiddenChanges, problems: Problems) {
    this.#name = `conversation ${conversationId}`;
    this.#messages = new FirstVersions(conversationId);
    this.#changes = changes;
    this.#problems = problems;
  }

  *take(item: Item, summaries: ReadonlyMap<string, SummarySpan>): Asking<void> {
    if (item.hidden === 0) {
      this.shownMessages += item.messages;
      this.shownTokens += item.tokens;
    }
    if (item.message_id !== null) yield* this.#takeMessage(item.message_id, item);
    else
      for (const messageId of yield* this.#listUnder(item, summaries))
        yield* this.#takeMessage(messageId, null);
  }

  *#takeMessage(messageId: number, item: Item | null): Asking<void> {
    const named = formatMessageId(messageId);
    if (this.#messages.needsPage) yield* this.#messages.readPage();
    const expected = this.#messages.next();
    if (expected === undefined) {
      this.#add(named, `the cover of ${this.#name} names ${named} where no message is left`);
      return;
    }
    if (expected.message_id !== messageId) {
      const wanted = formatMessageId(expected.message_id);
      this.#add(wanted, `the cover of ${this.#name} has ${named} instead of ${wanted}`);
    }
    checkHidden(expected, this.#changes, this.#problems);
    if (item !== null) checkItem(item, expected, this.#problems);
  }

  *finish(): Asking<void> {
    for (;;) {
      if (this.#messages.needsPage) yield* this.#messages.readPage();
      const missing = this.#messages.next();
      if (missing === undefined) return;
      const wanted = formatMessageId(missing.message_id);
      this.#add(wanted, `${wanted} is not covered by the context of ${this.#name}`);
    }
  }

  *#listUnder(item: Item, summaries: ReadonlyMap<string, SummarySpan>): Asking<readonly number[]> {
    const id = String(item.summary_id);
    const summary = summaries.get(id);
    if (!summary) {
      this.#problems.add("dangling_link", id, `the context names ${id}, which does not exist`);
      return [];
    }
    checkSummaryItem(item, summary, this.#problems);
    return yield* listLeaves(id);
  }

  #add(id: string, message: string): void {
    this.#problems.add("cover", id, message);
  }
}

/** The first versions of a conversation in order, one page in memory. */
class FirstVersions {
  readonly #conversationId: number;
  #page: readonly FirstVersion[] = [];
  #at = 0;
  #isLast = false;

  constructor(conversationId: number) {
    this.#conversationId = conversationId;
  }

  /** Whether the next one must be read first. */
  get needsPage(): boolean {
    return this.#at === this.#page.length && !this.#isLast;
  }

  *readPage(): Asking<void> {
    const after = this.#page.at(-1) ?? { position: -1, seq: -1 };
    this.#page = yield* read.firstVersions(this.#conversationId, after, PAGE_ROWS);
    this.#at = 0;
    this.#isLast = this.#page.length < PAGE_ROWS;
  }

  next(): FirstVersion | undefined {
    return this.#page[this.#at++];
  }
}

/** A message's current state must be what hid it on arrival, plus the later changes in the ledger. */
function checkHidden(message: FirstVersion, changes: HiddenChanges, problems: Problems): void {
  let hidden = message.hidden;
  for (const change of changes.get(message.seq) ?? [])
    hidden = change.hide ? hidden | change.mask : hidden & ~change.mask;
  if (hidden === message.hidden_now) return;
  const name = formatMessageId(message.message_id);
  problems.add("derived", name, `hidden_now of ${name} is ${message.hidden_now}, the ledger says ${hidden}`);
}

function checkItem(item: Item, message: FirstVersion, problems: Problems): void {
  const { position, seq, tokens, hidden_now: hidden } = message;
  const isSame =
    item.start_pos === position &&
    item.end_pos === position &&
    item.seq === seq &&
    item.tokens === tokens &&
    item.messages === 1 &&
    item.depth === -1 &&
    item.hidden === hidden;
  if (isSame) return;
  const wanted = [
    ["start_pos", position],
    ["end_pos", position],
    ["seq", seq],
    ["tokens", tokens],
    ["messages", 1],
    ["depth", -1],
    ["hidden", hidden],
  ] as const;
  checkColumns(item, wanted, formatMessageId(message.message_id), problems);
}

function checkSummaryItem(item: Item, summary: SummarySpan, problems: Problems): void {
  const id = summary.summary_id;
  const wanted = [
    ["tokens", summary.tokens],
    ["messages", summary.messages],
    ["depth", summary.depth],
    ["start_pos", summary.start_pos],
    ["seq", summary.start_seq],
    ["end_pos", summary.end_pos],
  ] as const;
  checkColumns(item, wanted, id, problems);
  if ((item.hidden === 0) !== summary.messages > 0) {
    problems.add(
      "cover",
      id,
      `the item of ${id} has hidden ${item.hidden}, and ${summary.messages} messages under it are shown`,
    );
  }
  if (summary.state !== "cover")
    problems.add("cover", id, `the context shows ${id}, which is ${summary.state}`);
}

function checkColumns(
  item: Item,
  wanted: readonly (readonly [keyof Item, number])[],
  name: string,
  problems: Problems,
): void {
  for (const [column, value] of wanted)
    if (item[column] !== value)
      problems.add("cover", name, `the item of ${name} has ${column} ${item[column]}, expected ${value}`);
}

/** Messages below a summary, oldest first, at any depth: level by level, each with one question. */
function* listLeaves(summaryId: string): Asking<number[]> {
  const seen = new Set<string>();
  let line: (number | string)[] = [summaryId];
  for (;;) {
    const level = new Set(line.filter((source) => typeof source === "string"));
    if (level.size === 0) return line.filter((source) => typeof source === "number");
    for (const id of level) {
      if (seen.has(id)) throw new Error(`${id} is below ${summaryId} more than once`);
      seen.add(id);
    }
    const below = groupBy(yield* read.sources([...level]), "summary_id");
    line = line.flatMap((source) =>
      typeof source === "number"
        ? [source]
        : (below.get(source) ?? []).flatMap((link) => link.message_id ?? link.source_id ?? []),
    );
  }
}
