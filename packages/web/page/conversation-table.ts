/**
 * The conversations of the archive by name: topic, folder, agent and time; the newest first. The filter narrows the list on the server, words
 * narrow the listed rows; Enter searches all messages for the words. Ids come last.
 */
import { listConversations, writeAccess } from "./api.ts";
import type { CountedConversation, Page } from "./api.ts";
import { ConversationFilter } from "./conversation-filter.ts";
import { debounce, fill, h, textNodes } from "./dom.ts";
import type { Child } from "./dom.ts";
import { countOf, formatCount, formatShort, formatTime } from "./format.ts";
import { renderLabelButton } from "./label-dialog.ts";
import { describeOrigin, renderFailure } from "./view.ts";

/** Rows that are drawn initially. */
const SHOWN_AT_FIRST = 25;
/** Words narrow at most this many; the search has no such limit. */
const MAX_NARROWED = 5_000;

const TITLES: readonly (readonly [title: string, className?: string])[] = [
  ["Conversation"],
  ["Last message"],
  ["Messages", "number minor"],
  ["Summaries", "number minor summaries"],
  ["In context", "number"],
  ["Id", "number minor"],
];

export class ConversationTable {
  readonly element: HTMLElement;
  readonly #words = h("input", {
    type: "search",
    name: "q",
    placeholder: "What was it about?",
    "aria-label": "Find a conversation",
  });
  readonly #filter: ConversationFilter;
  readonly #says = h("p", { class: "faint", role: "status" });
  readonly #body = h("tbody", {});
  readonly #table = h(
    "table",
    { class: "conversations" },
    h(
      "thead",
      {},
      h("tr", {}, ...TITLES.map(([title, className]) => h("th", { scope: "col", class: className }, title))),
    ),
    this.#body,
  );
  readonly #more = h("button", { type: "button", class: "more" }, "More conversations");
  #rows: readonly CountedConversation[] = [];
  #next: string | null = null;
  #shown = SHOWN_AT_FIRST;

  constructor(query: URLSearchParams) {
    this.#words.value = query.get("q") ?? "";
    this.#filter = new ConversationFilter(query, () => void this.#load());
    this.element = this.#render();
  }

  #render(): HTMLElement {
    const form = h(
      "form",
      { class: "toolbar find", role: "search" },
      this.#words,
      h("button", { type: "submit", class: "primary" }, "Search all messages"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const q = this.#words.value.trim();
      if (q !== "") location.hash = `#/search?${new URLSearchParams({ q })}`;
    });
    const narrow = debounce(() => void this.#narrow(), 120);
    this.#words.addEventListener("input", () => narrow());
    this.#more.addEventListener("click", () => void this.#showMore());
    return h(
      "section",
      { "aria-label": "Conversations" },
      h("h2", {}, "Conversations"),
      form,
      this.#filter.element,
      this.#says,
      h("div", { class: "scroll-x", tabindex: 0, role: "group", "aria-label": "Conversations" }, this.#table),
      this.#more,
    );
  }

  /** The first page, which the overview has loaded. */
  show(page: Page<CountedConversation>): void {
    if (this.#isNarrowed()) void this.#load();
    else this.#take(page);
  }

  #isNarrowed(): boolean {
    return Object.keys(this.#filter.values()).length > 0;
  }

  #take(page: Page<CountedConversation>): void {
    this.#rows = page.items;
    this.#next = page.next;
    void this.#narrow();
  }

  async #load(): Promise<void> {
    this.#shown = SHOWN_AT_FIRST;
    const chosen = JSON.stringify(this.#filter.values());
    try {
      const page = await listConversations(this.#filter.values());
      // The filter may have changed meanwhile.
      if (chosen === JSON.stringify(this.#filter.values())) this.#take(page);
    } catch (error) {
      fill(this.#says, renderFailure(error));
    }
  }

  async #readNext(): Promise<void> {
    if (this.#next === null) return;
    const page = await listConversations({ ...this.#filter.values(), after: this.#next });
    this.#next = page.next;
    this.#rows = [...this.#rows, ...page.items];
  }

  async #showMore(): Promise<void> {
    this.#more.disabled = true;
    this.#shown += 200;
    try {
      if (this.#shown > this.#rows.length) await this.#readNext();
    } catch (error) {
      fill(this.#says, renderFailure(error));
    }
    this.#more.disabled = false;
    await this.#narrow();
  }

  async #narrow(): Promise<void> {
    const words = this.#words.value.trim();
    this.#remember(words);
    try {
      while (words !== "" && this.#next !== null && this.#rows.length < MAX_NARROWED) await this.#readNext();
    } catch (error) {
      return fill(this.#says, renderFailure(error));
    }
    if (words !== this.#words.value.trim()) return;
    const found = this.#rows.filter((row) => holds(row, words));
    // A column that is the same everywhere says nothing.
    this.#table.classList.toggle(
      "unfolded",
      this.#rows.every(({ summaries }) => summaries === 0),
    );
    fill(this.#body, ...found.slice(0, this.#shown).map((row) => renderRow(row, () => void this.#load())));
    this.#more.hidden = found.length <= this.#shown && this.#next === null;
    fill(this.#says, ...this.#describe(words, found.length));
  }

  #describe(words: string, count: number): Child[] {
    const total = this.#next === null ? countOf(count, "conversation") : `${formatCount(count)} or more`;
    if (words === "") return this.#isNarrowed() ? [total] : [];
    return [
      `${count === 0 ? "No conversation has" : `${total} with`} “`,
      ...textNodes(words),
      "” in the title, project, branch or tags. ",
      h("a", { href: `#/search?${new URLSearchParams({ q: words })}` }, "Search all messages"),
    ];
  }

  /** Every choice has an address, without its own history entry. */
  #remember(q: string): void {
    if (!/^#\/overview|^$/.test(location.hash)) return;
    const query = new URLSearchParams({ ...(q === "" ? {} : { q }), ...this.#filter.values() }).toString();
    if (query !== "" || location.hash.includes("?"))
      history.replaceState(history.state, "", query === "" ? "#/overview" : `#/overview?${query}`);
  }
}

/** Every word, anywhere in the row. */
function holds(row: CountedConversation, words: string): boolean {
  const text = [row.heading, row.project, row.agent, row.branch, row.model, row.sessionKey, ...row.tags]
    .join(" ")
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** How many of its messages are not in the context, and why. */
function describeLeftOut({ counts }: CountedConversation): string | undefined {
  const reasons = [
    ...Object.entries(counts.hidden).filter(([, count]) => count > 0),
    ...(counts.beforeBoundary > 0 ? [["before a boundary", counts.beforeBoundary] as const] : []),
  ].map(([reason, count]) => `${formatCount(count)} ${reason}`);
  const leftOut = counts.hiddenMessages + counts.beforeBoundary;
  return leftOut === 0 ? undefined : `${formatCount(leftOut)} hidden: ${reasons.join(", ")}`;
}

function renderRow(row: CountedConversation, onLabel: () => void): HTMLElement {
  const id = row.conversationId;
  const leftOut = describeLeftOut(row);
  const state = [
    ...(row.archivedAt === null ? [] : [`archived${row.archiveCause ? ` (${row.archiveCause})` : ""}`]),
    ...(row.unlistedAt === null ? [] : ["hidden"]),
  ];
  const origin = [...describeOrigin(row), ...(row.model === null ? [] : [row.model])];
  return h(
    "tr",
    {},
    h(
      "td",
      { class: "wide" },
      h("a", { class: "title", href: `#/conversation/${id}` }, ...textNodes(row.heading)),
      writeAccess() !== null && renderLabelButton(row, onLabel, "✎"),
      h(
        "small",
        {},
        ...textNodes([...(row.pinnedAt === null ? [] : ["pinned"]), ...origin, ...state].join(" · ")),
        ...row.tags.map((tag) => h("span", { class: "tag" }, ...textNodes(tag))),
      ),
    ),
    h(
      "td",
      {},
      formatTime(row.lastAt),
      row.firstAt !== null && h("small", {}, `from ${formatTime(row.firstAt)}`),
    ),
    h("td", { class: "number minor", title: leftOut }, formatCount(row.counts.messages)),
    h("td", { class: "number minor summaries" }, formatCount(row.summaries)),
    h("td", { class: "number" }, formatShort(row.shownTokens)),
    h("td", { class: "number minor" }, id),
  );
}
