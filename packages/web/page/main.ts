/**
 * The page: opens the view that the address names, refreshes it while agents write, and forwards keys to it. Addresses: `#/<view>/<n>` for a
 * view of conversation n, `#msg_<n>` for a message, `#sum_…` for a summary.
 */
import {
  followNews,
  readConversation,
  readMessageAlone,
  readOverview,
  readSummary,
  writeAccess,
} from "./api.ts";
import type { HeadedConversation, News, Overview } from "./api.ts";
import { debounce, fill, h, throttle } from "./dom.ts";
import { countOf, setTimeZone } from "./format.ts";
import { describeOrigin, renderFailure, renderHead } from "./view.ts";
import type { View } from "./view.ts";
import { openContext } from "./views/context.ts";
import { openConversation } from "./views/conversation.ts";
import { openFigures } from "./views/figures.ts";
import { openGraph } from "./views/graph.ts";
import { openHealth } from "./views/health.ts";
import { openOverview } from "./views/overview.ts";
import { openSearch } from "./views/search.ts";
import { openTimeline } from "./views/timeline.ts";

const TABS: readonly (readonly [name: string, label: string, needsConversation: boolean])[] = [
  ["overview", "Overview", false],
  ["conversation", "Conversation", true],
  ["graph", "Graph", true],
  ["context", "Context", true],
  ["timeline", "Timeline", true],
  ["search", "Search", false],
  ["figures", "Figures", false],
  ["health", "Health", false],
];

const KEYS: readonly (readonly [key: string, says: string])[] = [
  ["1 – 8", "the views, in order"],
  ["/", "search"],
  ["t", "light or dark"],
  ["j k g G", "conversation: next, previous, first, last message"],
  ["f n N", "conversation: search here, next hit, previous hit"],
  ["arrows + - 0", "graph: walk, zoom, show all"],
  ["arrows", "context: from block to block"],
  ["?", "these keys"],
];

/** How long a view may take to reach its previous length: about five seconds. */
const GO_BACK_FRAMES = 300;
const REMEMBER_MS = 150;

class Page {
  readonly #root: HTMLElement;
  readonly #nav = h("nav", { "aria-label": "Views" });
  readonly #main = h("main", { id: "main", tabindex: 0 });
  readonly #live = h("span", { class: "live", role: "status" });
  readonly #mode = h("span", { class: "mode" });
  readonly #picker = h("select", { "aria-label": "Conversation" });
  readonly #help = renderHelp();
  #view: View | null = null;
  #conversationId: number | null = null;
  #tab = "overview";
  readonly #headings = new Map<number, string>();
  /** Whether the last action used the keyboard. */
  #isByKeyboard = false;
  /** Loaded when the page was opened; used for the first view only. */
  #known: Overview | null = null;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  async open(): Promise<void> {
    applyTheme();
    systemTheme.addEventListener("change", applyTheme);
    const theme = h(
      "button",
      { type: "button", title: "Light or dark (t)", "aria-label": "Light or dark", onclick: toggleTheme },
      "◐",
    );
    const help = h(
      "button",
      { type: "button", title: "Keys (?)", "aria-label": "Keys", onclick: () => this.#help.showModal() },
      "?",
    );
    fill(
      this.#root,
      h(
        "a",
        {
          class: "skip",
          href: "#main",
          onclick: (event) => {
            event.preventDefault();
            this.#main.focus();
          },
        },
        "To the content",
      ),
      h(
        "header",
        { class: "top" },
        h(
          "a",
          { class: "brand", href: "#/overview", "aria-label": "lossless-claw" },
          h("img", { src: "/icon.svg", alt: "", width: 22, height: 22 }),
          h("span", {}, "lossless-claw"),
        ),
        this.#nav,
        h("span", { class: "top-end" }, this.#picker, this.#live, this.#mode, theme, help),
      ),
      this.#main,
      this.#help,
    );
    try {
      this.#known = await readOverview();
      this.#renderPicker(this.#known);
    } catch (error) {
      return fill(this.#main, renderFailure(error));
    }
    this.#picker.addEventListener("change", () => this.#pick(Number(this.#picker.value)));
    window.addEventListener("hashchange", () => void this.#route());
    document.addEventListener("keydown", () => (this.#isByKeyboard = true), true);
    document.addEventListener("pointerdown", () => (this.#isByKeyboard = false), true);
    document.addEventListener("keydown", (event) => this.#press(event));
    const remember = debounce(
      () => history.replaceState({ ...history.state, top: this.#main.scrollTop }, ""),
      REMEMBER_MS,
    );
    this.#main.addEventListener("scroll", () => remember(), { passive: true });
    this.#follow();
    await this.#route();
  }

  #renderPicker({ conversations, timezone }: Overview): void {
    setTimeZone(timezone);
    const { items } = conversations;
    this.#conversationId ??= items[0]?.conversationId ?? null;
    fill(this.#picker, ...items.map((row) => this.#renderOption(row)));
    this.#picker.hidden = items.length < 2;
    const isWriting = writeAccess() !== null;
    this.#mode.textContent = isWriting ? "can write" : "read-only";
    this.#mode.classList.toggle("writing", isWriting);
    this.#choose(this.#conversationId);
  }

  #choose(id: number | null): void {
    this.#conversationId = id;
    if (id === null) return;
    // A conversation beyond the first page of the list is added to it.
    if (![...this.#picker.options].some((option) => Number(option.value) === id)) {
      const option = h("option", { value: id }, String(id));
      this.#picker.append(option);
      const name = ({ conversation }: { conversation: HeadedConversation }): void => {
        option.replaceWith(this.#renderOption(conversation));
        this.#choose(this.#conversationId);
        this.#nameTab();
      };
      // The view reports a conversation that does not exist.
      readConversation(id).then(name, () => undefined);
    }
    this.#picker.value = String(id);
  }

  #renderOption(row: HeadedConversation): HTMLElement {
    this.#headings.set(row.conversationId, row.heading);
    const where = describeOrigin(row).slice(0, 1);
    return h("option", { value: row.conversationId }, [row.heading, ...where].join(" · "));
  }

  /** The browser tab: the subject first. */
  #nameTab(): void {
    const [, label = "Overview", isOfConversation = false] = TABS.find(([name]) => name === this.#tab) ?? [];
    const heading = isOfConversation ? this.#headings.get(this.#conversationId ?? 0) : undefined;
    document.title = [heading, label, "lossless-claw"].filter((word) => word !== undefined).join(" · ");
  }

  #pick(id: number): void {
    const isOfConversation = TABS.find(([name]) => name === this.#tab)?.[2];
    location.hash = `#/${isOfConversation ? this.#tab : "conversation"}/${id}`;
  }

  async #route(): Promise<void> {
    const hash = decodeURIComponent(location.hash.slice(1));
    try {
      const message = /^msg_(\d+)(?:\?(.*))?$/s.exec(location.hash.slice(1));
      const summary = /^(sum_[0-9a-f]{16})$/.exec(hash);
      if (message) {
        const id = Number(message[1]);
        const { message: found } = await readMessageAlone(id);
        this.#choose(found.row?.conversationId ?? this.#conversationId);
        return this.#show(
          "conversation",
          openConversation(this.#conversationId ?? 0, id, new URLSearchParams(message[2])),
        );
      }
      if (summary) {
        const found = await readSummary(summary[1] ?? "");
        this.#choose(found.conversationId);
        return this.#show("graph", openGraph(found.conversationId, found.summaryId, null));
      }
      this.#openTab(location.hash.slice(1));
    } catch (error) {
      this.#show(this.#tab, {
        element: h(
          "section",
          { class: "view" },
          renderHead("Nothing to show", `at ${hash}`),
          renderFailure(error),
          h("p", {}, h("a", { href: "#/overview" }, "To the overview")),
        ),
      });
    }
  }

  #openTab(address: string): void {
    const [path = "", query = ""] = address.split("?", 2);
    const [, name = "overview", id] = /^\/([a-z]+)(?:\/(\d+))?$/.exec(path) ?? [];
    const parameters = new URLSearchParams(query);
    const chosen = id === undefined ? readId(parameters, "conversation") : Number(id);
    if (chosen !== null) this.#choose(chosen);
    const conversationId = this.#conversationId;
    const isOfConversation = TABS.find(([tab]) => tab === name)?.[2] ?? false;
    if (isOfConversation && conversationId === null) {
      return this.#show(name, {
        element: h(
          "section",
          { class: "view" },
          renderHead(TABS.find(([tab]) => tab === name)?.[1] ?? name),
          h("p", { class: "empty" }, "Nothing is stored yet. lcm import stores transcripts."),
        ),
      });
    }
    const known = this.#known;
    this.#known = null;
    const heading = this.#headings.get(conversationId ?? 0) ?? "";
    this.#show(name, makeView(name, conversationId ?? 0, parameters, known, heading));
  }

  #show(tab: string, view: View): void {
    this.#view?.close?.();
    this.#view = view;
    this.#tab = tab;
    fill(
      this.#nav,
      ...TABS.map(([name, label, isOfConversation]) =>
        h(
          "a",
          {
            href: `#/${name}${isOfConversation && this.#conversationId !== null ? `/${this.#conversationId}` : ""}`,
            "aria-current": name === tab ? "page" : undefined,
          },
          label,
        ),
      ),
    );
    fill(this.#main, view.element);
    // The focused element is gone with the previous view; Tab continues in this one, not at the top of the page.
    if (this.#isByKeyboard && document.activeElement === document.body)
      this.#main.focus({ preventScroll: true });
    void this.#goBack();
    // On a narrow screen the views are wider than it.
    this.#nav.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
    this.#nameTab();
  }

  /** Restores the scroll position of a view when the user returns: as soon as it is long enough. */
  async #goBack(): Promise<void> {
    const top: unknown = (history.state as { top?: unknown } | null)?.top;
    const view = this.#view;
    this.#main.scrollTop = 0;
    if (typeof top !== "number") return;
    for (let frame = 0; frame < GO_BACK_FRAMES && this.#view === view; frame++) {
      if (this.#main.scrollTop > 0) return;
      if (this.#main.scrollHeight >= top + this.#main.clientHeight) this.#main.scrollTop = top;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  }

  /** Notified by the server when something was stored or folded. */
  #follow(): void {
    let isFirst = true;
    const refresh = throttle(() => this.#view?.refresh?.());
    const tell = (news: News): void => {
      fill(
        this.#live,
        ...(news.problem === null
          ? ["live", h("span", { class: "live-count" }, ` · ${countOf(news.messages ?? 0, "message")}`)]
          : [news.problem]),
      );
      this.#live.classList.toggle("off", news.problem !== null);
      if (!isFirst) refresh(this.#view?.restMs ?? 0);
      isFirst = false;
    };
    const end = (): void => {
      this.#live.textContent = "lcm web has ended";
      this.#live.classList.add("off");
    };
    void followNews(tell, end);
  }

  #press(event: KeyboardEvent): void {
    const { key, target } = event;
    const isTyping = target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping) {
      if (key === "Escape") target.blur();
      return;
    }
    const tab = TABS[Number(key) - 1];
    if (key !== "0" && tab)
      location.hash = `#/${tab[0]}${tab[2] && this.#conversationId !== null ? `/${this.#conversationId}` : ""}`;
    else if (key === "/") location.hash = "#/search";
    else if (key === "?") this.#help.showModal();
    else if (key === "t") toggleTheme();
    else if (!this.#view?.press?.(key)) return;
    event.preventDefault();
  }
}

function makeView(
  name: string,
  conversationId: number,
  query: URLSearchParams,
  known: Overview | null,
  heading: string,
): View {
  switch (name) {
    case "conversation":
      return openConversation(conversationId, null, query);
    case "graph":
      return openGraph(conversationId, null, readId(query, "message"));
    case "context":
      return openContext(conversationId, query, heading);
    case "timeline":
      return openTimeline(conversationId);
    case "search":
      return openSearch(query, conversationId === 0 ? null : conversationId, heading);
    case "figures":
      return openFigures(query);
    case "health":
      return openHealth();
    default:
      return openOverview(query, known);
  }
}

function readId(query: URLSearchParams, name: string): number | null {
  const text = query.get(name) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function renderHelp(): HTMLDialogElement {
  const close = h("form", { method: "dialog" }, h("button", {}, "Close"));
  const rows = KEYS.map(([key, says]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, says)));
  return h(
    "dialog",
    { "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h("table", {}, h("tbody", {}, ...rows)),
    close,
  );
}

const systemTheme = window.matchMedia("(prefers-color-scheme: dark)");

/** The theme chosen here, otherwise that of the system. */
function applyTheme(): void {
  const theme = localStorage.getItem("theme") ?? (systemTheme.matches ? "dark" : "light");
  document.documentElement.dataset["theme"] = theme;
  // Canvases read their colours when they draw.
  for (const canvas of document.querySelectorAll("canvas")) canvas.dispatchEvent(new Event("themechange"));
}

function toggleTheme(): void {
  localStorage.setItem("theme", document.documentElement.dataset["theme"] === "dark" ? "light" : "dark");
  applyTheme();
}

const root = document.getElementById("app");
if (root) void new Page(root).open();
