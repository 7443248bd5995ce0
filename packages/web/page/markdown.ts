/**
 * Markdown as elements of the page. `marked` only takes the text apart; every element is made here, from a short list, and whatever was stored goes
 * into text nodes. There is therefore nothing to sanitise: HTML in a message is shown as the text it is, pictures are named and never loaded, and
 * links lead to http, https and mailto alone.
 */
import { lexer } from "marked";
import type { Token, Tokens } from "marked";
import { renderCode } from "./code.ts";
import { h, textNodes } from "./dom.ts";

/** Longer texts are shown as they are: taking Markdown apart is not linear for every text. */
export const MAX_MARKDOWN = 20_000;

export function renderMarkdown(text: string, mark: RegExp | null): HTMLElement {
  return h("div", { class: "markdown" }, ...renderTokens(lexer(text, { gfm: true, breaks: true }), mark));
}

const renderTokens = (tokens: readonly Token[] | undefined, mark: RegExp | null): Node[] =>
  (tokens ?? []).flatMap((token) => renderToken(token as Tokens.Generic, mark));

function renderToken(token: Tokens.Generic, mark: RegExp | null): Node[] {
  const inside = (): Node[] =>
    token.tokens === undefined
      ? textNodes(String(token["text"] ?? token.raw), mark)
      : renderTokens(token.tokens, mark);
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading":
      return [renderHeading(Number(token["depth"]), inside())];
    case "paragraph":
      return [h("p", {}, ...inside())];
    case "blockquote":
      return [h("blockquote", {}, ...inside())];
    case "code":
      return [renderCode(String(token["text"]), String(token["lang"] ?? ""), mark)];
    case "list":
      return [renderList(token as Tokens.List, mark)];
    case "table":
      return [renderTable(token as Tokens.Table, mark)];
    case "hr":
      return [h("hr")];
    case "br":
      return [h("br")];
    case "strong":
      return [h("strong", {}, ...inside())];
    case "em":
      return [h("em", {}, ...inside())];
    case "del":
      return [h("del", {}, ...inside())];
    case "codespan":
      return [h("code", {}, ...textNodes(String(token["text"]), mark))];
    case "link":
      return renderLink(String(token["href"]), inside());
    case "image":
      return textNodes(`[image: ${String(token["text"] || token["href"])}]`, mark);
    case "text":
    case "escape":
      return inside();
    case "html":
      return [h("span", { class: "prose" }, ...textNodes(token.raw, mark))];
    default:
      return textNodes(token.raw, mark);
  }
}

/** No heading of the page: those who jump from heading to heading look for parts of the page, not of a message. */
const renderHeading = (depth: number, inside: readonly Node[]): HTMLElement =>
  h("p", { class: depth <= 2 ? "md-heading large" : "md-heading" }, ...inside);

function renderList({ ordered, start, items }: Tokens.List, mark: RegExp | null): HTMLElement {
  const rows = items.map((item) =>
    h(
      "li",
      {},
      item.task && (item.checked ? "☑ " : "☐ "),
      ...renderTokens(
        item.tokens.filter((token) => token.type !== "checkbox"),
        mark,
      ),
    ),
  );
  return ordered ? h("ol", { start: start === "" ? undefined : start }, ...rows) : h("ul", {}, ...rows);
}

function renderTable({ header, rows }: Tokens.Table, mark: RegExp | null): HTMLElement {
  return h(
    "div",
    { class: "scroll-x", tabindex: 0, role: "group", "aria-label": "Table" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...header.map((cell) => h("th", {}, ...renderTokens(cell.tokens, mark))))),
      h(
        "tbody",
        {},
        ...rows.map((row) =>
          h("tr", {}, ...row.map((cell) => h("td", {}, ...renderTokens(cell.tokens, mark)))),
        ),
      ),
    ),
  );
}

function renderLink(href: string, inside: readonly Node[]): Node[] {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return [...inside];
  return [h("a", { href, rel: "noreferrer noopener", target: "_blank", title: href }, ...inside)];
}
