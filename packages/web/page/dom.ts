/**
 * Building the page. Stored text reaches it only as text nodes: nothing here can turn text into markup. Characters that could reverse the
 * reading direction or hide are shown by their number.
 */
import { quoteText } from "@lossless/interchange/reading";
import type { Markup, MarkupElement } from "@lossless/interchange/reading";

export type Child = Node | string | number | null | undefined | false;
type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: Event) => void)>>;

/** An element; attributes that are functions are event listeners (`onclick`). */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  apply(element, attributes);
  element.append(...toNodes(children));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function s<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Name] {
  const element = document.createElementNS(SVG, name);
  apply(element, attributes);
  element.append(...toNodes(children));
  return element;
}

function apply(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
}

const toNodes = (children: readonly Child[]): (Node | string)[] =>
  children.flatMap((child) =>
    child === null || child === undefined || child === false
      ? []
      : typeof child === "number"
        ? String(child)
        : child,
  );

export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(...toNodes(children));
}

/** Stored text as nodes: hidden characters are named, search matches are marked. */
export const textNodes = (text: string, mark: RegExp | null = null): Node[] =>
  quoteText(text, mark).map(toNode);

export const toElement = ({ name, attributes, children }: MarkupElement): HTMLElement =>
  h(name, attributes, ...children.map(toNode));

const toNode = (markup: Markup): Node =>
  typeof markup === "string" ? document.createTextNode(markup) : toElement(markup);

const MAX_MARKED_WORDS = 20;
const MAX_MARKED_FORMS = 100;

/** Marks the words of a search as typed, and the forms of them that it matches, which are whole words. */
export function toMark(query: string, forms: Iterable<string> = []): RegExp | null {
  const words = query.split(/\s+/).filter((word) => word.length > 1 || /[^ -~]/.test(word));
  const escape = (word: string): string => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  // The longest first: one word may begin with another.
  const whole = [...forms].sort((a, b) => b.length - a.length).slice(0, MAX_MARKED_FORMS);
  const sources = [
    ...whole.map((form) => String.raw`(?<![\p{L}\p{N}])${escape(form)}(?![\p{L}\p{N}])`),
    ...words.slice(0, MAX_MARKED_WORDS).map(escape),
  ];
  return sources.length === 0 ? null : new RegExp(sources.join("|"), "giu");
}

/** Runs calls at once, but not more often than this; of the calls that come too early, the last runs later. */
export function throttle(work: () => void): (restMs: number) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let ranAt = Number.NEGATIVE_INFINITY;
  const run = (): void => {
    timer = undefined;
    ranAt = performance.now();
    work();
  };
  return (restMs) => {
    if (timer === undefined) timer = setTimeout(run, Math.max(0, ranAt + restMs - performance.now()));
  };
}

/** Runs only the last of several calls in quick succession. */
export function debounce<Arguments extends unknown[]>(
  work: (...values: Arguments) => void,
  delayMs: number,
): (...values: Arguments) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), delayMs);
  };
}
