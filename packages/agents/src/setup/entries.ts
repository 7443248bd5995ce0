/**
 * One entry of ours in a file of an agent: how it is inserted, recognised and removed. Pure: text in, text out.
 *
 * Invariants: inserting is idempotent. Only our entries are replaced or removed; a list or an object that was created for one is removed with it
 * when nothing else is in it.
 */
import { isDeepStrictEqual } from "node:util";
import { EngineError } from "@lossless/core";
import {
  findMember,
  findNode,
  insertChild,
  parseJsonc,
  removeChild,
  replaceChild,
  toValue,
  type JsonChild,
  type JsonNode,
} from "./json-edit.ts";
import { taken } from "./taken.ts";
import { addBlock, removeBlock, type BlockEntry } from "./toml-block.ts";

/** A member of an object in a JSON file, or an item of a list if the key is null. */
export interface JsonEntry {
  readonly kind: "json";
  readonly path: readonly string[];
  readonly key: string | null;
  readonly value: unknown;
  isOurs(value: unknown): boolean;
  /** For an item with a list that the user may extend: the list, and which values of it are ours. */
  readonly list?: { readonly key: string; readonly ours: unknown; isOurs(value: unknown): boolean };
  /** What to do if another entry has the same key. */
  readonly whenTaken: "refuse" | "leave";
}

/** A file that is entirely ours. */
export interface FileEntry {
  readonly kind: "file";
  readonly text: string;
}

export type Entry = JsonEntry | BlockEntry | FileEntry;

export function addEntry(text: string | null, entry: Entry, path: string): string {
  if (entry.kind === "file") return entry.text;
  if (entry.kind === "block") return addBlock(text, entry, path);
  return addJson(text === null || isBlankFile(text) ? "{}\n" : text, entry, path);
}

/** An empty file is equivalent to none. */
const isBlankFile = (text: string): boolean => text.trim() === "";

/** `original` is the file before our first write, if known. Null when nothing of the file is left. */
export function removeEntry(
  text: string,
  entry: Entry,
  original: string | null,
  path: string,
): string | null {
  if (entry.kind === "file") return text === entry.text ? null : text;
  if (entry.kind === "block") return removeBlock(text);
  return isBlankFile(text) ? text : removeJson(text, entry, original, path);
}

function addJson(text: string, entry: JsonEntry, path: string): string {
  const { key, value } = entry;
  let node = parseRoot(text, path);
  for (const [index, name] of entry.path.entries()) {
    const child = findMember(node, name);
    if (child === undefined) return insertChild(text, node, name, nest(entry, index + 1));
    node = child.value;
    checkKind(node, entry, index, path);
  }
  if (key === null) return addItem(text, node, entry);
  const member = findMember(node, key);
  if (member === undefined) return insertChild(text, node, key, value);
  const present = toValue(text, member.value);
  if (entry.isOurs(present))
    return isDeepStrictEqual(present, value) ? text : replaceChild(text, member, value);
  if (entry.whenTaken === "leave") return text;
  throw taken(path, key);
}

/** The value to create where the path ends early. */
const nest = ({ path, key, value }: JsonEntry, from: number): unknown =>
  path
    .slice(from)
    .reduceRight<unknown>((inner, name) => ({ [name]: inner }), key === null ? [value] : { [key]: value });

function checkKind(node: JsonNode, entry: JsonEntry, index: number, path: string): void {
  const isLast = index === entry.path.length - 1;
  const kind = isLast && entry.key === null ? "array" : "object";
  if (node.kind === kind) return;
  const name = entry.path.slice(0, index + 1).join(".");
  throw new EngineError(
    "invalid_input",
    `cannot change ${path}: its ${name} is not an ${kind === "array" ? "array" : "object"}`,
  );
}

function addItem(text: string, node: JsonNode, entry: JsonEntry): string {
  const { value, isOurs } = entry;
  const whole = node.children.find((child) => isOurs(toValue(text, child.value)));
  const shared = findShared(text, node, entry);
  // If several entries are ours, someone copied one: the first is kept and updated.
  if (whole !== undefined) return updateChild(text, whole, value);
  return shared === null
    ? insertChild(text, node, null, value)
    : updateChild(text, shared.list.children[shared.index]!, entry.list?.ours);
}

const updateChild = (text: string, child: JsonChild, value: unknown): string =>
  isDeepStrictEqual(toValue(text, child.value), value) ? text : replaceChild(text, child, value);

/** Our value in a list shared with others. */
function findShared(
  text: string,
  node: JsonNode,
  { list: wanted }: JsonEntry,
): { readonly list: JsonNode; readonly index: number } | null {
  if (wanted === undefined) return null;
  for (const item of node.children) {
    const list = findMember(item.value, wanted.key)?.value;
    const index = list?.children.findIndex((child) => wanted.isOurs(toValue(text, child.value))) ?? -1;
    if (list !== undefined && index !== -1) return { list, index };
  }
  return null;
}

function removeJson(text: string, entry: JsonEntry, original: string | null, path: string): string | null {
  let result = text;
  for (;;) {
    const node = findNode(parseRoot(result, path), entry.path);
    if (node === null) break;
    const at = node.children.findIndex(
      (child) => child.key === entry.key && entry.isOurs(toValue(result, child.value)),
    );
    const found = at === -1 ? findShared(result, node, entry) : { list: node, index: at };
    if (found === null) break;
    result = removeChild(result, found.list, found.index);
  }
  return result === text ? text : removeEmpty(result, entry.path, original, path);
}

/** Removes empty lists and objects that were created for an entry, from the inside out. */
function removeEmpty(
  text: string,
  containers: readonly string[],
  original: string | null,
  path: string,
): string {
  const before = original === null ? null : parseJsonc(original);
  let result = text;
  for (let length = containers.length; length > 0; length -= 1) {
    const inner = containers.slice(0, length);
    if (before !== null && findNode(before, inner) !== null) break;
    const root = parseRoot(result, path);
    const node = findNode(root, inner);
    const holder = findNode(root, inner.slice(0, -1));
    if (node === null || holder === null || !isBlank(result, node)) break;
    result = removeChild(
      result,
      holder,
      holder.children.findIndex((child) => child.value === node),
    );
  }
  return result;
}

const isBlank = (text: string, node: JsonNode): boolean =>
  node.kind !== "scalar" && text.slice(node.start + 1, node.end - 1).trim() === "";

/** Whether a JSON file has no content. */
export function isEmptyJson(text: string): boolean {
  const node = parseJsonc(text);
  return node !== null && isBlank(text, node) && text.trim().length === node.end - node.start;
}

function parseRoot(text: string, path: string): JsonNode {
  const root = parseJsonc(text);
  if (root?.kind === "object") return root;
  throw new EngineError("invalid_input", `cannot change ${path}: it is not a JSON object`, {
    hint: "fix the file, or move it away, and run the command again",
  });
}
