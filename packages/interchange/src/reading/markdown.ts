/**
 * Markdown as markup. `marked` only parses the text; every element is made here, from a short list, and stored text is inserted as text. So
 * there is nothing to sanitise: HTML in a message is shown as text, pictures are named and never loaded, and links are only http, https and
 * mailto. Also runs in a browser.
 */
import { lexer } from "marked";
import type { Token, Tokens } from "marked";
import { markUpCode } from "./code.ts";
import { splitFences } from "./highlight.ts";
import { el, quoteText } from "./markup.ts";
import type { Markup, MarkupElement } from "./markup.ts";

/** Longer texts are shown unchanged: parsing Markdown is not linear for every text. */
const MAX_MARKDOWN = 20_000;
/**
 * The same applies to texts with more Markdown characters in one paragraph, a longer word, or more levels: those take seconds, or overflow the
 * stack.
 */
const MAX_SIGNS = 600;
const LONG_WORD = /\S{1500}/u;
const DEEP_LINE = /^[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))[ \t]*){50}/mu;

function isHeavy(text: string): boolean {
  if (text.length > MAX_MARKDOWN) return true;
  const running = splitFences(text).flatMap((block) => (block.kind === "text" ? [block.text] : []));
  if (running.some((block) => LONG_WORD.test(block) || DEEP_LINE.test(block))) return true;
  return running
    .flatMap((block) => block.split(/\n[ \t]*\n/u))
    .some((paragraph) => (paragraph.match(/[*_~[\]`<]/gu)?.length ?? 0) > MAX_SIGNS);
}

/** Markdown, or plain text and fenced code where parsing would take too long. */
export function markUpText(text: string, mark: RegExp | null = null): MarkupElement[] {
  if (!isHeavy(text))
    return [
      el("div", { class: "markdown" }, ...renderTokens(lexer(text, { gfm: true, breaks: true }), mark)),
    ];
  return splitFences(text).map((block) =>
    block.kind === "text"
      ? el("div", { class: "prose" }, ...quoteText(block.text, mark))
      : markUpCode(block.text, block.language, mark),
  );
}

const renderTokens = (tokens: readonly Token[] | undefined, mark: RegExp | null): Markup[] =>
  (tokens ?? []).flatMap((token) => renderToken(token as Tokens.Generic, mark));

function renderToken(token: Tokens.Generic, mark: RegExp | null): Markup[] {
  const inside = (): Markup[] =>
    token.tokens === undefined
      ? quoteText(String(token["text"] ?? token.raw), mark)
      : renderTokens(token.tokens, mark);
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading":
      return [renderHeading(Number(token["depth"]), inside())];
    case "paragraph":
      return [el("p", {}, ...inside())];
    case "blockquote":
      return [el("blockquote", {}, ...inside())];
    case "code":
      return [markUpCode(String(token["text"]), String(token["lang"] ?? ""), mark)];
    case "list":
      return [renderList(token as Tokens.List, mark)];
    case "table":
      return [renderTable(token as Tokens.Table, mark)];
    case "hr":
      return [el("hr")];
    case "br":
      return [el("br")];
    case "strong":
      return [el("strong", {}, ...inside())];
    case "em":
      return [el("em", {}, ...inside())];
    case "del":
      return [el("del", {}, ...inside())];
    case "codespan":
      return [el("code", {}, ...quoteText(String(token["text"]), mark))];
    case "link":
      return renderLink(String(token["href"]), inside());
    case "image":
      return quoteText(`[image: ${String(token["text"] || token["href"])}]`, mark);
    case "text":
    case "escape":
      return inside();
    case "html":
      return [el("span", { class: "prose" }, ...quoteText(token.raw, mark))];
    default:
      return quoteText(token.raw, mark);
  }
}

/** Not a heading: readers who jump from heading to heading look for parts of the page, not of a message. */
const renderHeading = (depth: number, inside: readonly Markup[]): MarkupElement =>
  el("p", { class: depth <= 2 ? "md-heading large" : "md-heading" }, ...inside);

function renderList({ ordered, start, items }: Tokens.List, mark: RegExp | null): MarkupElement {
  const rows = items.map((item) =>
    el(
      "li",
      {},
      item.task ? (item.checked ? "☑ " : "☐ ") : "",
      ...renderTokens(
        item.tokens.filter((token) => token.type !== "checkbox"),
        mark,
      ),
    ),
  );
  return ordered ? el("ol", { start: start === "" ? undefined : start }, ...rows) : el("ul", {}, ...rows);
}

function renderTable({ header, rows }: Tokens.Table, mark: RegExp | null): MarkupElement {
  return el(
    "div",
    { class: "scroll-x", tabindex: 0, role: "group", "aria-label": "Table" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el("tr", {}, ...header.map((cell) => el("th", {}, ...renderTokens(cell.tokens, mark)))),
      ),
      el(
        "tbody",
        {},
        ...rows.map((row) =>
          el("tr", {}, ...row.map((cell) => el("td", {}, ...renderTokens(cell.tokens, mark)))),
        ),
      ),
    ),
  );
}

function renderLink(href: string, inside: readonly Markup[]): Markup[] {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return [...inside];
  return [el("a", { href, rel: "noreferrer noopener", target: "_blank", title: href }, ...inside)];
}
