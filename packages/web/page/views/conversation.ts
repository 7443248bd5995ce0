/** Conversation: every message, in order, for any number of them; only what is in view is loaded. Search marks and jumps. */
import { isBlank, isHousekeeping, pairCalls } from "@lossless/interchange/reading";
import type { Pairs } from "@lossless/interchange/reading";
import { listMessages, readConversation, readMessage, readTurnSums, search } from "../api.ts";
import type {
  ConversationDetail,
  HeadedConversation,
  MessageDetail,
  MessageJson,
  PartJson,
  TurnSum,
} from "../api.ts";
import { renderCommand, renderCopy } from "../code.ts";
import { debounce, fill, h, textNodes, toMark } from "../dom.ts";
import { countOf, formatCount, formatDuration, formatFactor, formatShort, formatTime } from "../format.ts";
import { renderLabelButton } from "../label-dialog.ts";
import { renderMessage } from "../message.ts";
import { toMarkdown } from "../message-markdown.ts";
import { describeOrigin, linkSummary, renderFailure, renderLoading, whenRead } from "../view.ts";
import type { View } from "../view.ts";
import { VirtualList } from "../virtual-list.ts";

const BLOCK = 50;
const ESTIMATE_PX = 110;
/** Blocks kept in memory. */
const KEPT_BLOCKS = 60;
const MAX_COPIED = 2_000;

/** `target`: the message to show, or null for the first. */
export function openConversation(
  conversationId: number,
  target: number | null,
  query: URLSearchParams,
): View {
  return new ConversationView(conversationId, target, query);
}

class ConversationView implements View {
  readonly element: HTMLElement;
  readonly #id: number;
  readonly #heading = h("h1", { class: "heading" }, "Conversation");
  readonly #about = h("div", { class: "of" });
  readonly #box = h("div", { class: "fill" });
  readonly #hits = h("span", { class: "faint", role: "status" });
  readonly #path = h("div", { class: "path" });
  readonly #input = h("input", {
    type: "search",
    placeholder: "Search here",
    "aria-label": "Search in this conversation",
  });
  readonly #housekeeping = h("input", { type: "checkbox", name: "housekeeping" });
  #pairs: Pairs<PartJson> = pairCalls([]);
  readonly #turns = new Map<number, TurnSum>();
  /** What rows were built from: only those that would differ are built again. */
  readonly #shapes = new WeakMap<Element, readonly unknown[]>();
  readonly #labels = h("span", {});
  readonly #resume = h("div", { hidden: true });
  readonly #resumeButton = h(
    "button",
    { type: "button", hidden: true, onclick: () => (this.#resume.hidden = !this.#resume.hidden) },
    "Resume this session",
  );
  readonly #blocks = new Map<number, readonly MessageJson[] | null>();
  #list: VirtualList | null = null;
  #title = "Conversation";
  #mark: RegExp | null = null;
  /** What the search matched in messages that were opened. */
  readonly #forms = new Set<string>();
  #found: readonly number[] = [];
  #at = -1;
  #marked: number | null = null;

  constructor(conversationId: number, target: number | null, query: URLSearchParams) {
    this.#id = conversationId;
    this.#input.value = query.get("q") ?? "";
    this.#mark = toMark(this.#input.value.trim());
    this.#housekeeping.checked = query.has("housekeeping");
    this.#housekeeping.addEventListener("change", () => this.#renew());
    const jump = debounce((text: string) => void this.#search(text), 250);
    this.#input.addEventListener("input", () => jump(this.#input.value));
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#step(event.shiftKey ? -1 : 1);
    });
    this.element = h(
      "section",
      { class: "view column", "aria-label": "Conversation" },
      this.#renderBar(),
      this.#resume,
      this.#path,
      this.#box,
    );
    fill(this.#box, renderLoading("messages"));
    void this.#open(target);
  }

  async #open(target: number | null): Promise<void> {
    try {
      if (target === null) {
        const page = await listMessages(this.#id, { from: "start", limit: BLOCK });
        this.#take(0, page.items);
        this.#makeList(page.total);
        if (!this.#goBack() && this.#mark !== null) await this.#search(this.#input.value);
      } else await this.#goTo(target);
    } catch (error) {
      // Whatever else would be read fails for the same reason.
      return fill(this.#box, renderFailure(error));
    }
    // After the messages, which matter most.
    void whenRead(
      readConversation(this.#id),
      (detail) => this.#describe(detail),
      (failure) => fill(this.#about, failure),
    );
  }

  /** Rebuilds everything in view and updates the address. */
  #renew(): void {
    if (this.#list) this.#list.invalidate(0, this.#list.count - 1);
    const query = new URLSearchParams({
      ...(this.#input.value.trim() === "" ? {} : { q: this.#input.value.trim() }),
      ...(this.#housekeeping.checked ? { housekeeping: "1" } : {}),
    }).toString();
    const [path = ""] = location.hash.split("?", 1);
    history.replaceState(history.state, "", query === "" ? path : `${path}?${query}`);
  }

  #describe({ conversation, rawTokens, resume }: ConversationDetail): void {
    if (conversation.shownMessages === 0 && !this.#housekeeping.checked) {
      // There is nothing else to show.
      this.#housekeeping.checked = true;
      this.#renew();
    }
    this.#resumeButton.hidden = resume === null;
    fill(this.#resume, resume !== null && renderCommand(resume));
    this.#showLabels(conversation);
    const origin = [
      ...describeOrigin(conversation),
      ...(conversation.model === null ? [] : [conversation.model]),
    ];
    fill(
      this.#about,
      h("span", {}, ...textNodes(origin.join(" · "))),
      origin.length > 0 && " · ",
      `${formatTime(conversation.firstAt)} to ${formatTime(conversation.lastAt)}; `,
      `${countOf(conversation.messages, "message")}, ${formatShort(rawTokens)} tokens said, ${formatShort(conversation.shownTokens)} in context (${formatFactor(rawTokens, conversation.shownTokens)})`,
    );
  }

  #showLabels(conversation: HeadedConversation): void {
    this.#title = conversation.heading;
    fill(
      this.#heading,
      ...textNodes(conversation.heading),
      ...conversation.tags.map((tag) => h("span", { class: "tag" }, ...textNodes(tag))),
      conversation.pinnedAt !== null && h("span", { class: "tag" }, "pinned"),
      conversation.unlistedAt !== null && h("span", { class: "tag" }, "hidden from lists"),
    );
    fill(
      this.#labels,
      renderLabelButton(conversation, (changed) => this.#showLabels(changed)),
    );
  }

  #renderBar(): HTMLElement {
    const button = (label: string, title: string, work: () => void): HTMLElement =>
      h("button", { type: "button", title, "aria-label": title, onclick: work }, label);
    return h(
      "div",
      { class: "toolbar" },
      h("div", { class: "rest" }, this.#heading, this.#about),
      h(
        "span",
        { class: "finder" },
        this.#hits,
        this.#input,
        button("↑", "Previous hit", () => this.#step(-1)),
        button("↓", "Next hit", () => this.#step(1)),
        button("⤒", "First message (g)", () => this.#list?.scrollTo(0)),
        button("⤓", "Last message (G)", () => this.#list?.scrollTo(this.#list.count - 1)),
      ),
      h(
        "span",
        { class: "tools" },
        h("label", { class: "check" }, this.#housekeeping, " housekeeping"),
        renderCopy("Copy as Markdown", () => this.#readAsMarkdown()),
        this.#resumeButton,
        this.#labels,
      ),
    );
  }

  /** The visible part of the conversation, from its start. */
  async #readAsMarkdown(): Promise<string> {
    const messages: MessageJson[] = [];
    let after: string | undefined;
    do {
      const query = after === undefined ? { from: "start" } : { after };
      const page = await listMessages(this.#id, { ...query, limit: 200 });
      messages.push(...page.items.filter(({ row }) => (row?.hidden.length ?? 0) === 0));
      after = page.next ?? undefined;
    } while (after !== undefined && messages.length < MAX_COPIED);
    const rest = after === undefined ? "" : `\n[the rest: lcm export --conversation ${this.#id}]\n`;
    return `# ${this.#title}\n\n${toMarkdown(messages)}${rest}`;
  }

  #makeList(count: number): void {
    if (count === 0) return fill(this.#box, h("p", { class: "faint" }, "Nothing is stored here yet."));
    this.#list = new VirtualList({
      label: "Messages",
      count,
      estimate: ESTIMATE_PX,
      render: (index) => this.#renderRow(index),
      onRange: (first, last) => this.#need(first, last),
    });
    const remember = debounce(() => {
      if (this.#list !== null && this.#list.element.isConnected)
        history.replaceState({ at: this.#list.first }, "");
    }, 150);
    this.#list.element.addEventListener("scroll", () => remember(), { passive: true });
    fill(this.#box, this.#list.element);
    this.#list.update();
  }

  #messageAt(index: number): MessageJson | undefined {
    return this.#blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK];
  }

  #renderRow(index: number): HTMLElement {
    const element = this.#buildRow(index);
    this.#shapes.set(element, this.#shapeOf(index));
    return element;
  }

  #buildRow(index: number): HTMLElement {
    const message = this.#messageAt(index);
    if (message === undefined)
      return h(
        "div",
        { class: "message waiting", "aria-busy": true },
        h("span", { class: "faint" }, `message ${formatCount(index + 1)} …`),
      );
    if (this.#isLeftOut(message)) return h("div", { class: "left-out" });
    const isTarget = message.id === this.#marked;
    const element = renderMessage(message, this.#mark, {
      onChange: () => this.#reload(Math.floor(index / BLOCK)),
      resultOf: (call) => this.#resultOf(call),
      isMoved: (part) => !isTarget && this.#pairs.moved.has(part),
      isTarget,
      goesOn: !isTarget && this.#goesOn(message, index),
    });
    if (isTarget) {
      element.classList.add("target");
      // Drawn again, a box inside it would be back at its top.
      if (this.#mark !== null) requestAnimationFrame(() => scrollInside(element));
    }
    const turn = this.#turns.get(message.id);
    return turn === undefined ? element : h("div", {}, renderTurn(turn, message), element);
  }

  /** Housekeeping, unless it is enabled; and results that are shown with their calls. The target is always shown. */
  #isLeftOut({ id, row, parts }: MessageJson): boolean {
    if (id === this.#marked || row === null) return false;
    if (isHousekeeping(row) || parts.every(isBlank)) return !this.#housekeeping.checked;
    return parts.every((part) => this.#pairs.moved.has(part));
  }

  /** Only cards of the author of the message shown above: its head would say the same again. */
  #goesOn({ id, row, parts, model }: MessageJson, index: number): boolean {
    if (parts.some(({ type }) => type === "text" || type === "image") || this.#turns.has(id)) return false;
    for (let at = index - 1; at >= Math.max(0, index - BLOCK); at--) {
      const above = this.#messageAt(at);
      if (above === undefined) return false;
      if (!this.#isLeftOut(above)) return above.row?.role === row?.role && above.model === model;
    }
    return false;
  }

  #resultOf(call: PartJson): PartJson | undefined {
    const result = this.#pairs.resultOf.get(call);
    if (result === undefined || result.messageId === this.#marked) return undefined;
    return { ...result.part, ofMessage: result.messageId };
  }

  /** Everything that a row shows and that may change while it is in view. */
  #shapeOf(index: number): readonly unknown[] {
    const message = this.#messageAt(index);
    if (message === undefined) return [];
    return [
      message,
      this.#turns.get(message.id),
      this.#isLeftOut(message),
      this.#goesOn(message, index),
      ...message.parts.map((part) => this.#pairs.moved.has(part) || this.#pairs.resultOf.get(part)?.part),
    ];
  }

  /** Rebuilds the rows of a block, and of those beside it (which may have the other halves of its calls), that would differ. */
  #reshape(block: number): void {
    for (let index = (block - 1) * BLOCK; index < (block + 2) * BLOCK; index++) {
      const built = this.#list?.rowOf(index)?.firstElementChild;
      if (!built) continue;
      const shape = this.#shapes.get(built) ?? [];
      if (this.#shapeOf(index).some((one, at) => one !== shape[at])) this.#list?.invalidate(index, index);
    }
  }

  /** Of the loaded messages, in their order, so that each pair becomes one card. */
  #pair(): void {
    const blocks = [...this.#blocks].sort(([a], [b]) => a - b);
    this.#pairs = pairCalls(blocks.flatMap(([, items]) => items ?? []));
  }

  #take(block: number, items: readonly MessageJson[]): void {
    this.#blocks.set(block, items);
    this.#pair();
    const show = ({ turns }: { turns: readonly TurnSum[] }): void => {
      for (const turn of turns) this.#turns.set(turn.messageId, turn);
      this.#reshape(block);
    };
    void whenRead(readTurnSums(this.#id, block * BLOCK, BLOCK), show, (failure) => fill(this.#path, failure));
  }

  #need(first: number, last: number): void {
    for (let block = Math.floor(first / BLOCK); block <= Math.floor(last / BLOCK); block++)
      void this.#load(block);
  }

  async #load(block: number): Promise<void> {
    if (this.#blocks.has(block)) return;
    this.#blocks.set(block, null);
    this.#forgetFar(block);
    try {
      const page = await listMessages(this.#id, { at: block * BLOCK, limit: BLOCK });
      this.#take(block, page.items);
      this.#reshape(block);
    } catch (error) {
      this.#blocks.delete(block);
      fill(this.#path, renderFailure(error));
    }
  }

  /** For a message that was changed from here. */
  #reload(block: number): void {
    this.#blocks.delete(block);
    void this.#load(block);
  }

  #forgetFar(near: number): void {
    if (this.#blocks.size <= KEPT_BLOCKS) return;
    const far = [...this.#blocks.keys()].sort((a, b) => Math.abs(b - near) - Math.abs(a - near));
    for (const block of far.slice(0, this.#blocks.size - KEPT_BLOCKS)) this.#blocks.delete(block);
  }

  async #goTo(messageId: number): Promise<void> {
    const { total, at, items } = await listMessages(this.#id, { around: messageId, limit: BLOCK });
    const first = at ?? 0;
    const index =
      first +
      Math.max(
        0,
        items.findIndex(({ id }) => id === messageId),
      );
    this.#marked = messageId;
    this.#take(first / BLOCK, items);
    if (this.#list === null) this.#makeList(total);
    this.#list?.invalidate(first, first + BLOCK - 1);
    this.#list?.scrollTo(index, "center");
    this.#showMark(index);
    const show = (read: MessageDetail): void => {
      this.#showPath(read);
      const hasForms = this.#markForms(read.matched);
      const shown = items[index - first];
      const isCut = shown !== undefined && isBehindTheCut(shown, read.message, this.#mark);
      if (isCut)
        this.#take(
          first / BLOCK,
          items.map((message) => (message.id === messageId ? read.message : message)),
        );
      if (!isCut && !hasForms) return;
      this.#list?.invalidate(0, this.#list.count - 1);
      this.#list?.scrollTo(index, "center");
      this.#showMark(index);
    };
    const query = this.#input.value.trim();
    void whenRead(readMessage(messageId, query || undefined), show, (failure) => fill(this.#path, failure));
  }

  /** True if something is marked now that was not. */
  #markForms(matched: readonly string[]): boolean {
    const fresh = matched.filter((word) => !this.#forms.has(word) && !isMarkedWhole(word, this.#mark));
    for (const word of fresh) this.#forms.add(word);
    if (fresh.length > 0) this.#mark = toMark(this.#input.value.trim(), this.#forms);
    return fresh.length > 0;
  }

  /** Scrolls to the searched words, even in a long message. */
  #showMark(index: number): void {
    if (this.#mark === null) return;
    requestAnimationFrame(() => {
      const row = this.#list?.rowOf(index);
      if (row) findBestMark(row)?.scrollIntoView({ block: "center" });
    });
  }

  /** To where it was left, when somebody comes back to it; false when nobody was here. */
  #goBack(): boolean {
    const at = (history.state as { at?: unknown } | null)?.at;
    if (typeof at !== "number" || at === 0) return false;
    this.#list?.scrollTo(at);
    return true;
  }

  /** The path from a message up to the summary that represents it in the context. */
  #showPath({ path, message }: MessageDetail): void {
    const steps = path.flatMap((summary) => [
      " → ",
      linkSummary(summary.summaryId),
      h("span", { class: "faint" }, ` depth ${summary.depth}`),
    ]);
    fill(
      this.#path,
      h("b", {}, `msg_${message.id}`),
      ...(path.length === 0 ? [h("span", { class: "faint" }, " is in the context in full")] : steps),
      path.length > 0 &&
        h(
          "a",
          {
            class: "button-link end",
            href: `#/graph/${message.row?.conversationId ?? this.#id}?message=${message.id}`,
          },
          "show in the graph",
        ),
    );
  }

  async #search(text: string): Promise<void> {
    const query = text.trim();
    this.#forms.clear();
    this.#mark = toMark(query);
    this.#found = [];
    this.#at = -1;
    if (query !== "") {
      try {
        const answer = await search({ q: query, conversation: this.#id, scope: "messages", limit: 200 });
        if (query !== this.#input.value.trim()) return;
        this.#found = answer.hits
          .flatMap((hit) => (hit.type === "message" ? hit.messageId : []))
          .sort((a, b) => a - b);
        this.#hits.textContent = `${answer.isTotalExact ? "" : "at least "}${formatCount(answer.total)} found${answer.rule === "relaxed" ? " with some of the words" : ""}`;
      } catch (error) {
        this.#hits.textContent = error instanceof Error ? error.message : String(error);
      }
    } else this.#hits.textContent = "";
    this.#renew();
    if (this.#found.length > 0) this.#step(1);
  }

  #step(by: number): void {
    if (this.#found.length === 0) return;
    this.#at = (this.#at + by + this.#found.length) % this.#found.length;
    void this.#goTo(this.#found[this.#at] ?? 0);
  }

  refresh(): void {
    const grow = ({ conversation: { messages } }: ConversationDetail): void => {
      if (messages === this.#list?.count) return;
      if (this.#list === null) return this.#makeList(messages);
      const lastBlock = Math.floor((this.#list.count - 1) / BLOCK);
      this.#blocks.delete(lastBlock);
      this.#list.setCount(messages);
      void this.#load(lastBlock);
    };
    void whenRead(readConversation(this.#id), grow, (failure) => fill(this.#path, failure));
  }

  press(key: string): boolean {
    const list = this.#list;
    if (list === null) return false;
    if (key === "f") this.#input.focus();
    else if (key === "g") list.scrollTo(0);
    else if (key === "G") list.scrollTo(list.count - 1);
    else if (key === "j") list.scrollTo(Math.min(list.count - 1, list.first + 1));
    else if (key === "k") list.scrollTo(Math.max(0, list.first - 1));
    else if (key === "n") this.#step(1);
    else if (key === "N") this.#step(-1);
    else return false;
    return true;
  }
}

/** A request, and its result. */
const renderTurn = ({ messages, tokens, tookMs }: TurnSum, { row }: MessageJson): HTMLElement =>
  h(
    "div",
    { class: "turn" },
    h("time", {}, formatTime(row?.createdAt ?? null)),
    ` · ${countOf(messages, "message")} · ${formatShort(tokens)} tokens`,
    tookMs > 0 && ` · ${formatDuration(tookMs)}`,
  );

/** Whether words that were looked for are only in what a page leaves out. */
const isBehindTheCut = (shown: MessageJson, whole: MessageJson, mark: RegExp | null): boolean =>
  mark !== null && countWords(shown, mark) < countWords(whole, mark);

const countWords = ({ parts }: MessageJson, mark: RegExp): number =>
  new Set(parts.flatMap(({ text }) => text.match(mark) ?? []).map((word) => word.toLowerCase())).size;

const isMarkedWhole = (word: string, mark: RegExp | null): boolean =>
  mark !== null && word.match(mark)?.[0] === word;

const NEAR_PX = 100;
const LOOKED_AT_MARKS = 5_000;

/** Where most of the words are close together: a single common word may be anywhere. */
function findBestMark(element: Element): Element | null {
  const marks = [...element.querySelectorAll(".parts mark")].slice(0, LOOKED_AT_MARKS).map((mark) => ({
    mark,
    top: mark.getBoundingClientRect().top,
    word: (mark.textContent ?? "").toLowerCase(),
  }));
  let best: Element | null = null;
  let most = 0;
  for (const [index, { mark, top }] of marks.entries()) {
    const near = new Set<string>();
    for (let at = index; at < marks.length && (marks[at]?.top ?? 0) - top <= NEAR_PX; at++)
      near.add(marks[at]?.word ?? "");
    if (near.size > most) [best, most] = [mark, near.size];
  }
  return best;
}

/** To the words in a box that scrolls by itself. */
function scrollInside(element: Element): void {
  const mark = findBestMark(element);
  const box = mark?.closest(".code");
  if (!mark || !box) return;
  const offset = mark.getBoundingClientRect().top - box.getBoundingClientRect().top;
  box.scrollTop += offset - box.clientHeight / 2;
}
