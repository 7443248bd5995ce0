/** Search: words, a question or a regular expression, over messages and summaries, with the rule that found them; or cited passages. */
import { askArchive, search } from "../api.ts";
import type { AskResult, SearchReply } from "../api.ts";
import { fill, h, textNodes } from "../dom.ts";
import type { Child } from "../dom.ts";
import { countOf, formatCount, formatTime } from "../format.ts";
import { describeOrigin, renderFailure, renderHead, renderLoading, whenRead } from "../view.ts";
import type { View } from "../view.ts";

type Hit = SearchReply["hits"][number];

/** Per page: what fits on a screen. */
const HITS = 10;

const RULES: Readonly<Record<string, string>> = {
  strict: "all terms",
  relaxed: "any term, best first",
  fused: "words and meaning",
  regex: "regular expression",
  empty: "no terms",
};

/** Why a hit was found, in a word. */
const FINDERS: Readonly<Record<string, string>> = {
  strict: "all words",
  relaxed: "some words",
  words: "words",
  vector: "meaning",
  regex: "regex",
};

/** `conversationId` and `heading`: the chosen conversation, to which the search can be limited. */
export function openSearch(query: URLSearchParams, conversationId: number | null, heading: string): View {
  const input = h("input", {
    type: "search",
    name: "q",
    placeholder: "Words, a question, or a regular expression",
    "aria-label": "Search",
    value: query.get("q") ?? "",
  });
  const mode = choose(
    "mode",
    "How",
    [
      ["full_text", "words"],
      ["regex", "regular expression"],
      ["ask", "passages for a question"],
    ],
    query.get("mode"),
  );
  const scope = choose(
    "scope",
    "Where",
    [
      ["both", "messages and summaries"],
      ["messages", "messages"],
      ["summaries", "summaries"],
    ],
    query.get("scope"),
  );
  const isHere = h("input", { type: "checkbox", name: "here", checked: query.has("conversation") });
  const results = h("div", { role: "region", "aria-live": "polite", "aria-label": "Results" });
  const form = h(
    "form",
    { class: "toolbar", role: "search" },
    input,
    mode,
    scope,
    conversationId !== null &&
      h(
        "label",
        { class: "check" },
        isHere,
        " only in ",
        h(
          "span",
          { class: "clipped", title: heading },
          ...textNodes(heading || `conversation ${conversationId}`),
        ),
      ),
    h("button", { type: "submit", class: "primary" }, "Search"),
  );
  const run = async (): Promise<void> => {
    const q = input.value.trim();
    if (q === "")
      return fill(
        results,
        h(
          "p",
          { class: "faint" },
          "A question as you would ask it works, and so do names from code and languages without spaces.",
        ),
      );
    const where: Readonly<Record<string, string>> =
      isHere.checked && conversationId !== null ? { conversation: String(conversationId) } : {};
    history.replaceState(
      null,
      "",
      `#/search?${new URLSearchParams({ q, mode: mode.value, scope: scope.value, ...where })}`,
    );
    fill(results, renderLoading("the archive"));
    try {
      if (mode.value === "ask") fill(results, ...renderPassages(await askArchive({ q, ...where })));
      else {
        const ask = (after?: string): Promise<SearchReply> =>
          search({ q, mode: mode.value, scope: scope.value, limit: HITS, after, ...where });
        fill(results, ...renderAnswer(await ask(), ask, mode.value === "regex" ? "" : q));
      }
    } catch (error) {
      fill(results, renderFailure(error));
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void run();
  });
  void run();
  queueMicrotask(() => input.focus());
  return {
    element: h(
      "section",
      { class: "view", "aria-label": "Search" },
      renderHead("Search", "words, questions, code, any language; no model is used"),
      form,
      results,
    ),
  };
}

function choose(
  name: string,
  label: string,
  options: readonly (readonly [value: string, says: string])[],
  chosen: string | null,
): HTMLSelectElement {
  return h(
    "select",
    { name, "aria-label": label },
    ...options.map(([value, says]) => h("option", { value, selected: value === chosen }, says)),
  );
}

/** `words` are marked when a hit is opened. */
function renderAnswer(
  answer: SearchReply,
  ask: (after?: string) => Promise<SearchReply>,
  words: string,
): Child[] {
  const list = h("ol", { class: "hits" }, ...renderHits(answer, words));
  const total = `${answer.isTotalExact ? "" : "At least "}${countOf(answer.total, "hit")}`;
  const took = `${answer.tookMs.toFixed(0)} ms`;
  return [
    h(
      "p",
      { class: "faint" },
      answer.total === 0
        ? `No hits in ${nameSearched(answer)}; ${took}. Try fewer or other words.`
        : `${total} in ${nameSearched(answer)}; matched: ${RULES[answer.rule]}; ${took}.`,
    ),
    ...answer.notes.map((note) => h("p", { class: "note" }, ...textNodes(note))),
    list,
    renderMore(answer.next, list, ask, words),
  ];
}

function renderMore(
  next: string | null,
  list: HTMLElement,
  ask: (after?: string) => Promise<SearchReply>,
  words: string,
): HTMLElement | null {
  if (next === null) return null;
  const button = h("button", { type: "button", class: "more" }, "More");
  button.addEventListener("click", () => {
    button.disabled = true;
    const add = (answer: SearchReply): void => {
      list.append(...renderHits(answer, words));
      const more = renderMore(answer.next, list, ask, words);
      if (more) button.replaceWith(more);
      else button.remove();
    };
    void whenRead(ask(next), add, (failure) => button.replaceWith(failure));
  });
  return button;
}

function renderHits({ hits, conversations, rule }: SearchReply, words: string): HTMLElement[] {
  const known = new Map(conversations?.map((row) => [row.conversationId, row]));
  return hits.map((hit) => renderHit(hit, known.get(hit.conversationId), rule, words));
}

type Found = NonNullable<SearchReply["conversations"]>[number];

/** Where it was found comes first, as a link that opens it at the hit. */
function renderHit(
  hit: Hit,
  found: Found | undefined,
  rule: SearchReply["rule"],
  words: string,
): HTMLElement {
  const address = `#${hit.id}${hit.type === "message" && words !== "" ? `?${new URLSearchParams({ q: words })}` : ""}`;
  const title = found?.heading ?? found?.title ?? `conversation ${formatCount(hit.conversationId)}`;
  const what =
    hit.type === "message"
      ? hit.role
      : hit.type === "summary"
        ? `summary, depth ${hit.depth}`
        : (hit.fileName ?? "file");
  return h(
    "li",
    { class: "hit" },
    h(
      "header",
      {},
      hit.type === "file"
        ? h("b", { class: "title" }, ...textNodes(title))
        : h("a", { class: "title", href: address }, ...textNodes(title)),
    ),
    h(
      "header",
      { class: "faint" },
      found !== undefined && h("span", {}, ...textNodes(describeOrigin(found).join(" · "))),
      h("span", { class: "role" }, ...textNodes(what)),
      h("time", {}, formatTime(hit.type === "summary" ? hit.latestAt : hit.createdAt)),
      ...listFinders(hit, rule).map((finder) => h("span", { class: "tag", title: "how it matched" }, finder)),
      hit.type === "file"
        ? h("span", { class: "id" }, hit.id)
        : h("a", { class: "id", href: address }, hit.id),
    ),
    h("p", { class: "prose" }, ...markRanges(hit.snippet, hit.ranges)),
  );
}

/** The form above names the conversation. */
const nameSearched = ({ searched }: SearchReply): string =>
  searched.replace(/^conversation \d+$/, "this conversation");

/** If only words were searched, the rule says how many of them. */
function listFinders(hit: Hit, rule: SearchReply["rule"]): string[] {
  const names = rule === "fused" ? hit.foundBy : [rule];
  return names.map((name) => FINDERS[name] ?? name);
}

function markRanges(text: string, ranges: Hit["ranges"]): Node[] {
  const nodes: Node[] = [];
  let end = 0;
  for (const range of ranges) {
    nodes.push(
      ...textNodes(text.slice(end, range.start)),
      h("mark", {}, ...textNodes(text.slice(range.start, range.end))),
    );
    end = range.end;
  }
  return [...nodes, ...textNodes(text.slice(end))];
}

function renderPassages({ passages, totalSourceTokens }: AskResult): Child[] {
  if (passages.length === 0) return [h("p", { class: "faint" }, "No passage in the archive is about this.")];
  return [
    h(
      "p",
      { class: "faint" },
      `${countOf(passages.length, "passage")}, ${formatCount(totalSourceTokens)} tokens, word for word; no model was used.`,
    ),
    h(
      "ol",
      { class: "hits" },
      ...passages.map(({ id, role, createdAt, text }) =>
        h(
          "li",
          { class: "hit" },
          h(
            "header",
            {},
            h("span", { class: "role" }, ...textNodes(role)),
            h("a", { class: "id", href: `#${id}` }, id),
            h("time", {}, formatTime(createdAt)),
          ),
          h("p", { class: "prose" }, ...textNodes(text)),
        ),
      ),
    ),
  ];
}
