/** Conversation: every message, in order, however many there are; only what is in view is read. Search marks and jumps. */
import { listMessages, readConversation, readMessage, search } from "../api.ts";
import type { ConversationDetail, MessageDetail, MessageJson } from "../api.ts";
import { debounce, fill, h, textNodes, toMark } from "../dom.ts";
import { countOf, formatCount, formatFactor, formatShort, formatTime } from "../format.ts";
import { renderMessage } from "../message.ts";
import { describeOrigin, linkSummary, renderFailure, renderLoading, whenRead } from "../view.ts";
import type { View } from "../view.ts";
import { VirtualList } from "../virtual-list.ts";

const BLOCK = 50;
const ESTIMATE_PX = 110;
/** Blocks that stay in memory. */
const KEPT_BLOCKS = 60;

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
  readonly #blocks = new Map<number, readonly MessageJson[] | null>();
  #list: VirtualList | null = null;
  #mark: RegExp | null = null;
  #found: readonly number[] = [];
  #at = -1;
  #marked: number | null = null;

  constructor(conversationId: number, target: number | null, query: URLSearchParams) {
    this.#id = conversationId;
    this.#input.value = query.get("q") ?? "";
    this.#mark = toMark(this.#input.value.trim());
    const jump = debounce((text: string) => void this.#search(text), 250);
    this.#input.addEventListener("input", () => jump(this.#input.value));
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#step(event.shiftKey ? -1 : 1);
    });
    this.element = h(
      "section",
      { class: "view column", "aria-label": "Conversation" },
      this.#renderBar(),
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
        this.#blocks.set(0, page.items);
        this.#makeList(page.total);
      } else await this.#goTo(target);
    } catch (error) {
      fill(this.#box, renderFailure(error));
    }
    // After the messages, which are what was asked for.
    void whenRead(
      readConversation(this.#id),
      (detail) => this.#describe(detail),
      (failure) => fill(this.#about, failure),
    );
  }

  #describe({ conversation, rawTokens }: ConversationDetail): void {
    fill(this.#heading, ...textNodes(conversation.heading));
    const origin = [
      ...describeOrigin(conversation),
      ...(conversation.model === null ? [] : [conversation.model]),
    ];
    fill(
      this.#about,
      h("span", {}, ...textNodes(origin.join(" · "))),
      h("br"),
      `${formatTime(conversation.firstAt)} to ${formatTime(conversation.lastAt)}; `,
      `${countOf(conversation.messages, "message")}, ${formatShort(rawTokens)} tokens said, ${formatShort(conversation.shownTokens)} in context (${formatFactor(rawTokens, conversation.shownTokens)})`,
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
    );
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
    fill(this.#box, this.#list.element);
    this.#list.update();
  }

  #renderRow(index: number): HTMLElement {
    const message = this.#blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK];
    if (message === undefined)
      return h(
        "div",
        { class: "message waiting", "aria-busy": true },
        h("span", { class: "faint" }, `message ${formatCount(index + 1)} …`),
      );
    const element = renderMessage(message, this.#mark, () => this.#reload(Math.floor(index / BLOCK)));
    if (message.id === this.#marked) element.classList.add("target");
    return element;
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
      this.#blocks.set(block, page.items);
      this.#list?.invalidate(block * BLOCK, block * BLOCK + BLOCK - 1);
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
    this.#blocks.set(first / BLOCK, items);
    if (this.#list === null) this.#makeList(total);
    this.#list?.invalidate(first, first + BLOCK - 1);
    this.#list?.scrollTo(index, "center");
    void whenRead(
      readMessage(messageId),
      (read) => this.#showPath(read),
      (failure) => fill(this.#path, failure),
    );
  }

  /** The way from a message up to the summary that stands for it in the context. */
  #showPath({ path, message }: MessageDetail): void {
    const steps = path.flatMap((summary) => [
      " → ",
      linkSummary(summary.summaryId),
      h("span", { class: "faint" }, ` depth ${summary.depth}`),
    ]);
    fill(
      this.#path,
      h("b", {}, `msg_${message.id}`),
      ...(path.length === 0 ? [h("span", { class: "faint" }, " is in the context as it is")] : steps),
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
        this.#hits.textContent = `${answer.isTotalExact ? "" : "at least "}${formatCount(answer.total)} found (${answer.rule})`;
      } catch (error) {
        this.#hits.textContent = error instanceof Error ? error.message : String(error);
      }
    } else this.#hits.textContent = "";
    if (this.#list) this.#list.invalidate(Math.max(0, this.#list.first - 100), this.#list.first + 100);
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
