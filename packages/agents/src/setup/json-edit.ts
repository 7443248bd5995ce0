/**
 * Edits JSON in place: members and items are inserted and removed as text, and everything else keeps its bytes, including numbers of any size,
 * comments and trailing commas. Hosts often accept more than JSON, so comments and trailing commas are always parsed.
 *
 * Invariant: removing what was just inserted restores the text, except for the space in a bracket that was empty before.
 */

export interface JsonNode {
  readonly kind: "object" | "array" | "scalar";
  readonly start: number;
  readonly end: number;
  /** Of objects and arrays, in order. */
  readonly children: readonly JsonChild[];
}

export interface JsonChild {
  /** Null for an item of an array. */
  readonly key: string | null;
  /** Where the key begins, or the value of an item. */
  readonly start: number;
  readonly value: JsonNode;
  /** The comma after it, if there is one. */
  readonly comma: number | null;
  /** Whether a line comment is the last thing before it. */
  readonly isAfterLineComment: boolean;
}

/** Null if the text is not JSON with comments and trailing commas. */
export function parseJsonc(text: string): JsonNode | null {
  try {
    return new Reader(text).readDocument();
  } catch (error) {
    if (error instanceof NotJson) return null;
    throw error;
  }
}

/** The parsed value. Large numbers lose digits: never write it back. */
export function toValue(text: string, node: JsonNode): unknown {
  if (node.kind === "scalar") return JSON.parse(text.slice(node.start, node.end));
  if (node.kind === "array") return node.children.map(({ value }) => toValue(text, value));
  return Object.fromEntries(node.children.map(({ key, value }) => [key ?? "", toValue(text, value)]));
}

/** The last one of a name counts, as in `JSON.parse`. */
export const findMember = (node: JsonNode, key: string): JsonChild | undefined =>
  node.kind === "object" ? node.children.findLast((child) => child.key === key) : undefined;

/** The node at the end of a path of keys; null when there is none. */
export function findNode(root: JsonNode, path: readonly string[]): JsonNode | null {
  let node: JsonNode | undefined = root;
  for (const key of path) {
    node = node === undefined ? undefined : findMember(node, key)?.value;
    if (node === undefined) return null;
  }
  return node ?? null;
}

/** Inserts a member at the end of an object, or an item at the end of an array when the key is null. */
export function insertChild(text: string, node: JsonNode, key: string | null, value: unknown): string {
  const style = readStyle(text);
  const inside = text.slice(node.start + 1, node.end - 1);
  const last = node.children.at(-1);
  const isOneLine = !inside.includes("\n") && (last !== undefined || style.indent === "");
  const outer = isOneLine ? "" : lineIndent(text, node.start);
  const inner = last === undefined || isOneLine ? outer + style.indent : lineIndent(text, last.start);
  const name = key === null ? "" : `${JSON.stringify(key)}:${style.indent === "" ? "" : " "}`;
  const child = name + render(value, isOneLine ? "" : style.indent, inner, style.lineEnd);
  const lead = isOneLine ? oneLineLead(text, node) : style.lineEnd + inner;
  if (last === undefined) {
    const tail = isOneLine || inside.includes("\n") ? "" : style.lineEnd + outer;
    return splice(text, [[node.start + 1, 0, lead + child + tail]]);
  }
  const at = endOfContent(text, node);
  // A trailing comma is the user's style: our child gets one too, and takes it along.
  return last.comma === null
    ? splice(text, [
        [last.value.end, 0, ","],
        [at, 0, lead + child],
      ])
    : splice(text, [[at, 0, `${lead + child},`]]);
}

/** Removes a child, with the space before it and the comma it needed. Comments stay. */
export function removeChild(text: string, node: JsonNode, index: number): string {
  const child = node.children[index]!;
  const before = node.children[index - 1];
  let start = child.start;
  while (start > node.start + 1 && /\s/u.test(text[start - 1]!)) start -= 1;
  const rest = text.slice((child.comma ?? child.value.end - 1) + 1);
  // The line comment would swallow what follows on the same line.
  if (child.isAfterLineComment && !/^[ \t]*\r?\n/u.test(rest)) start = text.indexOf("\n", start) + 1;
  const comma = child.comma ?? before?.comma ?? null;
  const parts: Edit[] = [[start, child.value.end - start, ""]];
  if (comma !== null) parts.push([comma, 1, ""]);
  return splice(text, parts);
}

/** Gives a child another value. */
export function replaceChild(text: string, child: JsonChild, value: unknown): string {
  const style = readStyle(text);
  const isOneLine = !text.slice(child.value.start, child.value.end).includes("\n");
  const rendered = render(value, isOneLine ? "" : style.indent, lineIndent(text, child.start), style.lineEnd);
  return splice(text, [[child.value.start, child.value.end - child.value.start, rendered]]);
}

type Edit = readonly [at: number, length: number, text: string];

function splice(text: string, edits: readonly Edit[]): string {
  let result = text;
  // From the end, so that offsets stay valid; of two at the same offset the second is inserted first.
  for (const [at, length, insert] of edits.toReversed().toSorted((a, b) => b[0] - a[0]))
    result = result.slice(0, at) + insert + result.slice(at + length);
  return result;
}

/** The style of the text: its first indentation and its line endings. */
function readStyle(text: string): { readonly indent: string; readonly lineEnd: string } {
  const lineEnd = text.includes("\r\n") ? "\r\n" : "\n";
  if (!text.trim().includes("\n")) return { indent: /^\s*\{\s*\}\s*$/u.test(text) ? "  " : "", lineEnd };
  return { indent: /\n([ \t]+)["}\]/]/u.exec(text)?.[1] ?? "  ", lineEnd };
}

/** The white space at the beginning of the line that contains an offset. */
function lineIndent(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
  return /^[ \t]*/u.exec(line)?.[0] ?? "";
}

/** The space between the children of a one-line list: the same as between existing ones. */
function oneLineLead(text: string, node: JsonNode): string {
  const [first, second] = node.children;
  if (first !== undefined && second !== undefined && first.comma !== null)
    return /^\s*$/u.test(text.slice(first.comma + 1, second.start))
      ? text.slice(first.comma + 1, second.start)
      : " ";
  return first !== undefined && /\s/u.test(text[node.start + 1] ?? "") ? " " : "";
}

/** The offset after the last token or comment inside the brackets. */
function endOfContent(text: string, node: JsonNode): number {
  let at = node.end - 1;
  while (/\s/u.test(text[at - 1]!)) at -= 1;
  return at;
}

function render(value: unknown, indent: string, outer: string, lineEnd: string): string {
  return JSON.stringify(value, null, indent).replaceAll("\n", lineEnd + outer);
}

class NotJson extends Error {}

class Reader {
  readonly #text: string;
  #at = 0;
  #isAfterLineComment = false;

  constructor(text: string) {
    this.#text = text;
  }

  readDocument(): JsonNode {
    if (this.#text.startsWith("\uFEFF")) this.#at = 1;
    this.#skip();
    const node = this.#readValue();
    this.#skip();
    if (this.#at < this.#text.length) throw new NotJson();
    return node;
  }

  #readValue(): JsonNode {
    const first = this.#text[this.#at];
    if (first === "{" || first === "[") return this.#readList(first === "{");
    const start = this.#at;
    if (first === '"') this.#readString();
    else {
      const match = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])/u.exec(
        this.#text.slice(start, start + MAX_SCALAR),
      );
      if (match === null) throw new NotJson();
      this.#at += match[0].length;
    }
    return { kind: "scalar", start, end: this.#at, children: [] };
  }

  #readList(isObject: boolean): JsonNode {
    const start = this.#at;
    const close = isObject ? "}" : "]";
    const children: JsonChild[] = [];
    this.#at += 1;
    this.#skip();
    let isOpen = true;
    while (this.#text[this.#at] !== close) {
      if (!isOpen) throw new NotJson();
      const child = this.#readChild(isObject);
      isOpen = child.comma !== null;
      children.push(child);
    }
    this.#at += 1;
    return { kind: isObject ? "object" : "array", start, end: this.#at, children };
  }

  #readChild(isMember: boolean): JsonChild {
    const start = this.#at;
    const isAfterLineComment = this.#isAfterLineComment;
    let key: string | null = null;
    if (isMember) {
      key = this.#readString();
      this.#skip();
      if (this.#text[this.#at] !== ":") throw new NotJson();
      this.#at += 1;
      this.#skip();
    }
    const value = this.#readValue();
    this.#skip();
    const comma = this.#text[this.#at] === "," ? this.#at : null;
    if (comma !== null) {
      this.#at += 1;
      this.#skip();
    }
    return { key, start, value, comma, isAfterLineComment };
  }

  #readString(): string {
    const start = this.#at;
    if (this.#text[start] !== '"') throw new NotJson();
    this.#at += 1;
    while (this.#text[this.#at] !== '"') {
      if (this.#at >= this.#text.length || this.#text[this.#at] === "\n") throw new NotJson();
      this.#at += this.#text[this.#at] === "\\" ? 2 : 1;
    }
    this.#at += 1;
    try {
      return JSON.parse(this.#text.slice(start, this.#at)) as string;
    } catch (error) {
      if (error instanceof SyntaxError) throw new NotJson();
      throw error;
    }
  }

  /** White space and comments. */
  #skip(): void {
    this.#isAfterLineComment = false;
    for (;;) {
      const isLine = this.#text.startsWith("//", this.#at);
      const isBlock = this.#text.startsWith("/*", this.#at);
      if (isLine) this.#skipTo("\n", 0);
      else if (isBlock) this.#skipTo("*/", 2);
      else if (/[ \t\r\n]/u.test(this.#text[this.#at] ?? "")) this.#at += 1;
      else return;
      if (isLine || isBlock) this.#isAfterLineComment = isLine;
    }
  }

  #skipTo(mark: string, length: number): void {
    const end = this.#text.indexOf(mark, this.#at + 2);
    if (end === -1 && length > 0) throw new NotJson();
    this.#at = end === -1 ? this.#text.length : end + length;
  }
}

/** Longer than any number that people write. */
const MAX_SCALAR = 1024;
