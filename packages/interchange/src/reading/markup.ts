/**
 * Markup as data: elements from a short list, and text. The inspector makes DOM elements of it, the page export HTML. Stored text enters it only
 * as text, so neither has anything to sanitise. Also runs in a browser.
 */
export type MarkupName =
  | "a"
  | "blockquote"
  | "br"
  | "code"
  | "del"
  | "div"
  | "em"
  | "hr"
  | "li"
  | "mark"
  | "ol"
  | "p"
  | "pre"
  | "span"
  | "strong"
  | "table"
  | "tbody"
  | "td"
  | "th"
  | "thead"
  | "tr"
  | "ul";

export interface MarkupElement {
  readonly name: MarkupName;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  readonly children: readonly Markup[];
}

export type Markup = string | MarkupElement;

export const el = (
  name: MarkupName,
  attributes: MarkupElement["attributes"] = {},
  ...children: readonly Markup[]
): MarkupElement => ({ name, attributes, children });

/** Characters that reverse the direction or are invisible; joiners are excluded because some languages and emoji need them. */
const SNEAKY = /(?![\t\n\r\u200c\u200d])[\p{Cf}\p{Cc}]/gu;

/** Stored text: characters that hide or reverse are named, search matches are marked. */
export function quoteText(text: string, mark: RegExp | null = null): Markup[] {
  return cut(text, SNEAKY).flatMap(({ text: piece, isHit }): Markup[] => {
    if (isHit)
      return [
        el("span", { class: "sneaky", title: "a character that cannot be seen" }, nameCharacter(piece)),
      ];
    if (mark === null) return [piece];
    return cut(piece, mark).map((part) => (part.isHit ? el("mark", {}, part.text) : part.text));
  });
}

const nameCharacter = (text: string): string =>
  `U+${(text.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

function cut(text: string, pattern: RegExp): { text: string; isHit: boolean }[] {
  const pieces: { text: string; isHit: boolean }[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match[0] === "") continue;
    if (match.index > end) pieces.push({ text: text.slice(end, match.index), isHit: false });
    pieces.push({ text: match[0], isHit: true });
    end = match.index + match[0].length;
  }
  if (end < text.length || pieces.length === 0) pieces.push({ text: text.slice(end), isHit: false });
  return pieces;
}

/** HTML, with every text and attribute escaped. */
export const renderHtml = (markup: readonly Markup[]): string =>
  markup.map((one) => (typeof one === "string" ? escapeHtml(one) : renderElement(one))).join("");

function renderElement({ name, attributes, children }: MarkupElement): string {
  const written = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : ` ${key}="${escapeHtml(String(value))}"`,
  );
  const open = `<${name}${written.join("")}>`;
  // The first line break inside `pre` is not part of its text.
  const begin = name === "pre" ? `${open}\n` : open;
  return name === "br" || name === "hr" ? open : `${begin}${renderHtml(children)}</${name}>`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/gu, (sign) => ESCAPES[sign] ?? sign);
