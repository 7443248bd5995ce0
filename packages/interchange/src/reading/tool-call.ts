/**
 * A tool call for people to read: one line that says what it does, and the lines it changes if it edits a file. Derived from the arguments as
 * the host stored them; anything unrecognised is shown as text.
 */
import { diffLines, isObject } from "@lossless/core/doors";
import type { DiffLine } from "@lossless/core/doors";

/** A tool call for people to read. */
export interface ReadableCall {
  /** What it acts on: a command, a path, a pattern. */
  readonly line: string;
  /** The lines it changes; null if it edits nothing. */
  readonly diff: readonly DiffLine[] | null;
}

/** Argument names for what a tool acts on, the most specific first. */
const TELLING = [
  "command",
  "cmd",
  "pattern",
  "file_path",
  "filePath",
  "absolute_path",
  "path",
  "query",
  "url",
  "description",
  "prompt",
];
const OLD = ["old_string", "old_str", "oldText", "oldString"];
const NEW = ["new_string", "new_str", "newText", "newString"];
const MAX_LINE = 200;
const MAX_DIFF_LINES = 400;
/** Longer texts are not compared. */
const MAX_DIFF_CHARS = 100_000;

type Arguments = Readonly<Record<string, unknown>>;

/** Null if the call has no readable arguments. */
export function readCall(block: unknown): ReadableCall | null {
  const found = findArguments(block);
  if (found === null) return null;
  return { line: readLine(found), diff: readDiff(found) };
}

/** Arguments are a few levels deep; a block with more levels is not a call. */
const MAX_LEVELS = 8;

function findArguments(block: unknown, levels = MAX_LEVELS): Arguments | null {
  const value = typeof block === "string" ? parse(block) : block;
  if (!isObject(value)) return null;
  if (levels === 0) return value;
  for (const name of ["input", "arguments", "args", "parameters", "function", "functionCall", "toolCall"]) {
    const inner = value[name];
    const found = isObject(inner) || typeof inner === "string" ? findArguments(inner, levels - 1) : null;
    if (found !== null) return found;
  }
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // A patch or a command is not JSON: show it as it is.
    return { command: text };
  }
}

function readLine(call: Arguments): string {
  for (const name of TELLING) {
    const value = call[name];
    const text = Array.isArray(value) ? value.filter((word) => typeof word === "string").join(" ") : value;
    if (typeof text !== "string" || text.trim() === "") continue;
    // A search says what it looks for, and where.
    const place = name === "pattern" ? pick(call, ["path", "file_path"]) : null;
    return cutLine(place === null || place === "" ? text : `${cutLine(text)} in ${place}`);
  }
  const first = Object.entries(call).find(
    ([name, value]) => typeof value === "string" && !/^(id|type|name|call_?id)$/i.test(name),
  );
  return first === undefined ? "" : cutLine(String(first[1]));
}

function cutLine(text: string): string {
  const [line = ""] = text.trimStart().split("\n", 1);
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE - 1).toWellFormed()}…` : line;
}

function readDiff(call: Arguments): readonly DiffLine[] | null {
  const edits = Array.isArray(call["edits"]) ? call["edits"].filter(isObject) : [call];
  const lines = edits.flatMap((edit) => compare(pick(edit, OLD), pick(edit, NEW)));
  if (lines.length > 0) return limit(lines);
  const content = call["content"] ?? call["file_text"];
  const isWritten = typeof content === "string" && pick(call, ["file_path", "filePath", "path"]) !== null;
  if (isWritten) return limit(toLines(content).map((text) => ({ kind: "new", text })));
  const patch = ["input", "patch", "command"].map((name) => call[name]).find(isPatch);
  return patch === undefined ? null : limit(toLines(patch).map(readPatchLine));
}

const isPatch = (value: unknown): value is string =>
  typeof value === "string" && value.includes("*** Begin Patch");

const readPatchLine = (line: string): DiffLine =>
  line.startsWith("+") && !line.startsWith("+++")
    ? { kind: "new", text: line.slice(1) }
    : line.startsWith("-") && !line.startsWith("---")
      ? { kind: "gone", text: line.slice(1) }
      : { kind: "same", text: line };

function pick(call: Arguments, names: readonly string[]): string | null {
  const found = names.map((name) => call[name]).find((value) => typeof value === "string");
  return found ?? null;
}

function compare(before: string | null, after: string | null): readonly DiffLine[] {
  if (before === null || after === null || before.length + after.length > MAX_DIFF_CHARS) return [];
  return diffLines(before, after);
}

const toLines = (text: string): string[] => text.slice(0, MAX_DIFF_CHARS).replace(/\n$/, "").split("\n");

function limit(lines: readonly DiffLine[]): readonly DiffLine[] {
  const more = lines.length - MAX_DIFF_LINES;
  if (more <= 0) return lines;
  return [...lines.slice(0, MAX_DIFF_LINES), { kind: "same", text: `… ${more} more lines` }];
}
