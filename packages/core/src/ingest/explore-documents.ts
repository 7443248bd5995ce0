/** Describes documents: Markdown, HTML, XML, YAML and plain text. */
import { STOP_WORDS_BY_LANGUAGE } from "../text/vocabulary.ts";
import { countOf, excerpt, listSome } from "./explore-text.ts";

const MAX_HEADINGS = 18;
const MAX_HEADING_CHARS = 200;
/** Markup is stripped from this much text to show how a page begins. */
const MARKUP_SAMPLE_CHARS = 20_000;

export function describeMarkdown(text: string, size: string, lineCount: number): string[] {
  const headings: string[] = [];
  let isCode = false;
  let opening: string | undefined;
  for (const line of text.split("\n")) {
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode;
    if (isCode) continue;
    const heading = /^(#{1,6})\s+(.+?)\s*#*\s*$/.exec(line.slice(0, MAX_HEADING_CHARS));
    if (heading) headings.push(`${heading[1]} ${excerpt(heading[2] as string, 60)}`);
    else if (opening === undefined && /^\s*\p{L}/u.test(line)) opening = line;
  }
  const lines = [`Markdown, ${size}, ${countOf(lineCount, "line")}, ${countOf(headings.length, "heading")}`];
  if (headings.length > 0) lines.push(listSome(headings, MAX_HEADINGS, " / "));
  if (opening !== undefined) lines.push(`Starts: ${excerpt(opening, 200)}`);
  return lines;
}

export function describeHtml(text: string, size: string): string[] {
  const title = /<title[^<>]*>([^<]*)/i.exec(text)?.[1];
  const headings = [...text.matchAll(/<h[1-3]\b[^<>]{0,300}>(.{0,300}?)<\/h[1-3]>/gis)].map((match) =>
    stripTags(match[1] as string),
  );
  const lines = [`HTML page, ${size}`];
  if (title !== undefined && title.trim() !== "") lines.push(`Title: ${excerpt(title, 120)}`);
  if (headings.length > 0)
    lines.push(
      `Headings: ${listSome(
        headings.map((one) => excerpt(one, 60)),
        MAX_HEADINGS,
      )}`,
    );
  lines.push(`Text: ${excerpt(stripTags(dropScripts(text).slice(0, MARKUP_SAMPLE_CHARS)), 240)}`);
  return lines;
}

/** A page without its scripts and styles. One pass: an element that never closes ends the page. */
function dropScripts(html: string): string {
  const lower = html.toLowerCase();
  const opening = /<(script|style|head)\b/g;
  let kept = "";
  let from = 0;
  for (let match = opening.exec(lower); match; match = opening.exec(lower)) {
    kept += html.slice(from, match.index);
    from = lower.indexOf(`</${match[1]}`, opening.lastIndex);
    if (from < 0) return kept;
    opening.lastIndex = from;
  }
  return kept + html.slice(from);
}

function stripTags(html: string): string {
  return html.replace(/<[^<>]*>/g, " ");
}

/** Root, and the elements directly below it with their counts. */
export function describeXml(text: string, size: string): string[] {
  const children = new Map<string, number>();
  let root: string | undefined;
  let depth = 0;
  for (const tag of iterateTags(text)) {
    if (tag.kind === "close") {
      depth--;
      continue;
    }
    if (depth === 0) root ??= tag.name;
    if (depth === 1) children.set(tag.name, (children.get(tag.name) ?? 0) + 1);
    if (tag.kind === "open") depth++;
  }
  const lines = [`XML, ${size}, root <${excerpt(root ?? "?", 60)}>`];
  const counts = [...children].map(([name, count]) => excerpt(name, 40) + (count > 1 ? ` × ${count}` : ""));
  if (counts.length > 0) lines.push(`Below it: ${listSome(counts, 20)}`);
  const words = excerpt(stripTags(text.slice(0, MARKUP_SAMPLE_CHARS)), 160);
  if (words !== "") lines.push(`Text: ${words}`);
  return lines;
}

interface Tag {
  readonly kind: "open" | "close" | "empty";
  readonly name: string;
}

/** Tags in order, without comments, CDATA, instructions and declarations. Ends at the first that is never closed. */
function* iterateTags(text: string): Generator<Tag> {
  const skipped: readonly (readonly [string, string])[] = [
    ["<!--", "-->"],
    ["<![CDATA[", "]]>"],
    ["<?", "?>"],
    ["<!", ">"],
  ];
  for (let at = text.indexOf("<"); at >= 0; at = text.indexOf("<", at)) {
    const other = skipped.find(([start]) => text.startsWith(start, at));
    const end = text.indexOf(other ? other[1] : ">", at);
    if (end < 0) return;
    const tag = other ? null : /^<(\/?)([\w:.-]+)/.exec(text.slice(at, Math.min(end, at + 200)));
    const name = tag?.[2];
    if (name !== undefined) {
      const kind = tag?.[1] === "/" ? "close" : text[end - 1] === "/" ? "empty" : "open";
      yield { kind, name };
    }
    at = end;
  }
}

export function describeYaml(text: string, size: string): string[] {
  const keys = new Set<string>();
  for (const match of text.matchAll(
    /^(?:"([^"\n]{1,80})"|'([^'\n]{1,80})'|([^\s#'"[\]{}&*!|>%@`:-][^:\n#]{0,80}?)) ?:(?:\s|$)/gm,
  )) {
    keys.add(excerpt(match[1] ?? match[2] ?? (match[3] as string), 40));
  }
  const documents = (text.match(/^---(?:\s|$)/gm) ?? []).length;
  const many = documents > 1 ? `, ${countOf(documents, "document")}` : "";
  const items = (text.match(/^- /gm) ?? []).length;
  const lines = [`YAML, ${size}${many}`];
  if (keys.size > 0) lines.push(`Top-level keys: ${listSome([...keys], 24)}`);
  if (keys.size === 0 && items > 0) lines.push(`A list of ${countOf(items, "item")}`);
  lines.push(`Starts: ${excerpt(text, 200)}`);
  return lines;
}

/** The beginning and end of plain text, and its most frequent words. */
export function describeText(text: string, size: string, lineCount: number, isWhole: boolean): string[] {
  const lines = [`Text, ${size}, ${countOf(lineCount, "line")}`];
  const keywords = findKeywords(text);
  if (keywords.length > 0) lines.push(`Keywords: ${keywords.join(", ")}`);
  lines.push(`Starts: ${excerpt(text, 360)}`);
  if (isWhole && text.length > 1000) lines.push(`Ends: …${excerpt(text.slice(-160), 160)}`);
  return lines;
}

const MAX_KEYWORDS = 12;
/** Words are counted in this much text; more would not change which come first. */
const KEYWORD_SAMPLE_CHARS = 500_000;

/** The most frequent content words, as first written; most frequent first, ties in alphabetical order. */
function findKeywords(text: string): string[] {
  const words = new Map<string, { readonly spelling: string; count: number }>();
  for (const [spelling] of text.slice(0, KEYWORD_SAMPLE_CHARS).matchAll(/\p{L}[\p{L}\p{N}_]{3,29}/gu)) {
    const key = spelling.toLowerCase();
    const word = words.get(key);
    if (word) word.count++;
    else if (!isStopWord(key)) words.set(key, { spelling, count: 1 });
  }
  return [...words]
    .filter(([, { count }]) => count > 1)
    .sort((a, b) => b[1].count - a[1].count || (a[0] < b[0] ? -1 : 1))
    .slice(0, MAX_KEYWORDS)
    .map(([, { spelling }]) => spelling);
}

function isStopWord(word: string): boolean {
  for (const words of STOP_WORDS_BY_LANGUAGE.values()) if (words.has(word)) return true;
  return false;
}
