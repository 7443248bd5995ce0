/** Search over messages, summaries and files: words, a question, or a regular expression. Enter opens a hit at its place. */
import { countOf, formatCount, formatTime, SHELL_WORDS, toOneLine } from "@lossless/core/doors";
import { wordNote } from "@lossless/core";
import type { HeadedConversation, GrepHit, GrepResult, GrepScope } from "@lossless/core";
import { ChosenText, type Choosable } from "../chosen-text.ts";
import { isOpen, readMove, type Key, type KeyHelp, type Move } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { renderRow, renderSpans, span, storedSpan, type Paint, type Span } from "../paint.ts";
import { joinPanes, splitPanes } from "../panes.ts";
import { renderRowColumns } from "../row-columns.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import { listMatches, type Sought } from "../sought.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter", does: "open" },
  { keys: "/", does: "other words" },
  { keys: "Tab", does: "messages, summaries, files" },
  { keys: "~", does: "regular expression" },
  { keys: "a", does: "here or everywhere" },
  { keys: "J K", does: "scroll the text" },
];
const SCOPES: readonly GrepScope[] = ["both", "messages", "summaries", "files"];
const PAGE = 50;
/** While everything up to the last hit is loaded: fewer searches. */
const LARGE_PAGE = 200;
/** The maximum number of hits; nobody scrolls further, and other words find better. */
const MAX_HITS = 2_000;
const HEAD_ROWS = 2;
const TO_END: Move = { kind: "last" };

export class SearchScreen implements Screen {
  readonly name = "search";
  readonly keys = KEYS;
  readonly conversation?: HeadedConversation;
  readonly #desk: Desk;
  readonly #text: ChosenText;
  #words = "";
  #isRegex = false;
  #isHere: boolean;
  #scope: GrepScope = "both";
  #answer: GrepResult | null = null;
  #hits: GrepHit[] = [];
  readonly #headings = new Map<number, string>();
  #cursor: ListCursor = LIST_START;
  #running: AbortController | null = null;
  #isOpened = false;
  /** `G` goes to the last hit, which may have to be loaded first. */
  #isGoingToEnd = false;

  constructor(desk: Desk, conversation: HeadedConversation | null) {
    this.#desk = desk;
    if (conversation !== null) this.conversation = conversation;
    this.#isHere = conversation !== null;
    this.#text = new ChosenText(desk);
  }

  get position(): string | null {
    const { total = 0, isTotalExact = true } = this.#answer ?? {};
    return this.#hits.length === 0 ? null : `${this.#cursor.selected + 1}/${total}${isTotalExact ? "" : "+"}`;
  }

  get area(): ListArea {
    return placeList(this.#cursor, this.#hits.length, splitPanes(this.#desk.size).list, HEAD_ROWS);
  }

  get #rows(): number {
    return Math.max(1, splitPanes(this.#desk.size).list.rows - HEAD_ROWS);
  }

  /** Asks for words at first. The hits stay as they are while agents write. */
  load(): Promise<void> {
    if (!this.#isOpened) this.#ask();
    this.#isOpened = true;
    return Promise.resolve();
  }

  close(): void {
    this.#running?.abort();
  }

  #ask(): void {
    this.#desk.ask({
      label: this.#isRegex ? "search (regular expression)" : "search",
      text: this.#words,
      onDone: async (text) => {
        if (text === null || text.trim() === "") {
          if (this.#words === "") await this.#desk.back();
          return;
        }
        this.#words = text.trim();
        this.#start();
      },
    });
  }

  /** A new search cancels the one before. */
  #start(): void {
    this.#running?.abort();
    this.#hits = [];
    this.#answer = null;
    this.#cursor = LIST_START;
    this.#isGoingToEnd = false;
    this.#readPage();
  }

  /** Whether hits are left that can be listed. */
  get #hasMore(): boolean {
    return this.#answer?.next !== null && this.#hits.length < MAX_HITS && this.#words !== "";
  }

  #readPage(): void {
    if (!this.#hasMore) return;
    const after = this.#answer?.next ?? undefined;
    const running = new AbortController();
    this.#running = running;
    const { engine, scope } = this.#desk.archive;
    const where =
      this.#isHere && this.conversation !== undefined
        ? { conversationId: this.conversation.conversationId }
        : { allConversations: true };
    const request = {
      ...scope,
      ...where,
      pattern: this.#words,
      mode: this.#isRegex ? ("regex" as const) : ("full_text" as const),
      scope: this.#scope,
      withHeadings: true,
      limit: this.#isGoingToEnd ? LARGE_PAGE : PAGE,
      after,
    };
    this.#desk.run(async () => {
      try {
        const answer = await engine.grep({ ...request, signal: running.signal });
        if (running.signal.aborted) return;
        this.#answer = answer;
        this.#hits.push(...answer.hits);
        for (const { conversationId, heading } of answer.conversations)
          this.#headings.set(conversationId, heading ?? "");
        if (this.#isGoingToEnd)
          this.#cursor = moveInList(this.#cursor, TO_END, this.#hits.length, this.#rows);
        this.#isGoingToEnd &&= this.#hasMore;
        if (!this.#isGoingToEnd) await this.#text.read(this.#choosable());
      } catch (error) {
        this.#isGoingToEnd = false;
        if (!running.signal.aborted) throw error;
      } finally {
        if (this.#running === running) this.#running = null;
      }
      if (this.#isGoingToEnd) this.#readPage();
    });
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows);
    if (this.#isGoingToEnd && key.name === "escape") return this.#stop();
    if (move !== null) {
      this.#isGoingToEnd = move.kind === "last" && this.#hasMore;
      this.#cursor = moveInList(this.#cursor, move, this.#hits.length, this.#rows);
      const isNearEnd = this.#cursor.selected >= this.#hits.length - this.#rows;
      if (isNearEnd && this.#running === null && this.#answer !== null) this.#readPage();
      return true;
    }
    if (this.#text.handle(key)) return true;
    if (key.name === "/") this.#ask();
    else if (key.name === "tab")
      this.#scope = SCOPES[(SCOPES.indexOf(this.#scope) + 1) % SCOPES.length] ?? "both";
    else if (key.name === "~") this.#isRegex = !this.#isRegex;
    else if (key.name === "a" && this.conversation !== undefined) this.#isHere = !this.#isHere;
    else return isOpen(key.name) && this.#open();
    if (key.name !== "/") this.#start();
    return true;
  }

  #stop(): true {
    this.#running?.abort();
    this.#running = null;
    this.#isGoingToEnd = false;
    return true;
  }

  #toSought({ snippet, ranges }: GrepHit): Sought {
    // Each hit of a regular expression may match something else.
    const words = this.#isRegex ? [] : this.#hits.slice(0, PAGE).flatMap(listMatches);
    return { snippet, ranges, words };
  }

  async #open(): Promise<boolean> {
    const hit = this.#hits[this.#cursor.selected];
    const { engine, scope } = this.#desk.archive;
    if (hit === undefined) return false;
    if (hit.type === "file") return this.#desk.go.file(hit.fileId);
    const { conversationId } = hit;
    const conversation = await engine.readConversation({ ...scope, conversationId });
    if (conversation === null) return true;
    return hit.type === "message"
      ? this.#desk.go.messages(conversation, hit.messageId, this.#toSought(hit))
      : this.#desk.go.graph(conversation, hit.summaryId, this.#toSought(hit));
  }

  async settle(): Promise<void> {
    await this.#text.read(this.#choosable());
  }

  #choosable(): Choosable | null {
    const hit = this.#hits[this.#cursor.selected];
    if (hit === undefined) return null;
    return {
      id: `${hit.id}:${hit.type === "file" ? hit.line : ""}`,
      messageId: hit.type === "message" ? hit.messageId : null,
      summaryId: hit.type === "summary" ? hit.summaryId : null,
      reason: hit.snippet,
    };
  }

  render(size: Size, paint: Paint): string[] {
    const panes = splitPanes(size);
    const { columns } = panes.list;
    const rows = Math.max(1, panes.list.rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, this.#hits.length, rows);
    const { top, selected } = this.#cursor;
    const lines = this.#hits.slice(top, top + rows).map((hit, at) =>
      renderRow(this.#renderHit(hit, top + at, columns, paint), {
        columns,
        isSelected: top + at === selected,
        paint,
      }),
    );
    const hit = this.#hits[selected];
    return joinPanes(
      panes,
      {
        list: [...this.#renderHead(columns, paint), ...lines],
        title: hit === undefined ? "" : this.#describeHit(hit),
        detail: this.#text.render(
          this.#choosable(),
          panes.detail,
          paint,
          hit === undefined ? null : this.#toSought(hit),
        ),
      },
      paint,
    );
  }

  #renderHit(hit: GrepHit, at: number, columns: number, paint: Paint): Span[] {
    const kind =
      hit.type === "message"
        ? hit.role
        : hit.type === "summary"
          ? `summary d${hit.depth}`
          : `line ${hit.line}`;
    const { top, selected } = this.#cursor;
    const above = at === top || at === selected ? undefined : this.#hits[at - 1];
    return [
      ...renderRowColumns(
        { at: timeOf(hit), above: above === undefined ? null : timeOf(above), who: kind },
        columns,
        this.#desk.timezone,
        paint,
      ),
      ...splitSnippet(hit).map(({ text, isMatch }) => storedSpan(text, isMatch ? paint.match : undefined)),
    ];
  }

  #renderHead(columns: number, paint: Paint): string[] {
    const where = this.#isHere ? `“${this.conversation?.heading ?? ""}”` : "all conversations";
    const what = this.#scope === "both" ? "messages and summaries" : this.#scope;
    const rule = this.#isRegex ? "regular expression" : "words";
    const first = `  “${toOneLine(this.#words)}”  ${rule} in ${what} of ${toOneLine(where)}`;
    return [
      renderSpans([span(first)], columns),
      renderSpans([span(`  ${this.#describeAnswer()}`, paint.faint)], columns),
    ];
  }

  #describeAnswer(): string {
    if (this.#answer === null) return this.#running === null ? "" : "searching …";
    const { total, isTotalExact, rule, notes } = this.#answer;
    const count = `${isTotalExact ? "" : "at least "}${countOf(total, "hit")}`;
    const loose = rule === "relaxed" && total > 0 ? ", not all of them hold every word" : "";
    const listed = this.#describeListed();
    const said = notes.length === 0 ? "" : `; ${notes.map((note) => wordNote(note, SHELL_WORDS)).join(" ")}`;
    return toOneLine(`${count}${listed}${loose}${said}`);
  }

  #describeHit(hit: GrepHit): string {
    const heading = this.#headings.get(hit.conversationId) || `conversation ${hit.conversationId}`;
    return [hit.id, formatTime(timeOf(hit), this.#desk.timezone), toOneLine(heading)].join(" · ");
  }

  #describeListed(): string {
    const listed = formatCount(this.#hits.length);
    if (this.#isGoingToEnd) return `, ${listed} loaded … Esc stops`;
    if (this.#answer?.next === null) return "";
    return this.#hasMore ? `, ${listed} loaded` : `, the first ${listed} are listed: search for more words`;
  }
}

const timeOf = (hit: GrepHit): number => (hit.type === "summary" ? hit.latestAt : hit.createdAt);

/** A snippet as spans, with the matches marked. */
export function splitSnippet({
  snippet,
  ranges,
}: Pick<GrepHit, "snippet" | "ranges">): { text: string; isMatch: boolean }[] {
  const pieces: { text: string; isMatch: boolean }[] = [];
  let at = 0;
  for (const { start, end } of ranges) {
    if (start > at) pieces.push({ text: snippet.slice(at, start), isMatch: false });
    pieces.push({ text: snippet.slice(Math.max(at, start), end), isMatch: true });
    at = end;
  }
  pieces.push({ text: snippet.slice(at), isMatch: false });
  return pieces.filter(({ text }) => text !== "");
}
