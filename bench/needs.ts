/**
 * What an agent needs after a compaction, from real Claude Code sessions: identifiers (paths, code names, hashes) that occur before the cut and
 * that the agent itself writes after it, without the user typing them first. Cases are the real compactions, compared with the host's own
 * summary, and random cut points of the sessions used for tuning. The split is by session, never by cut point: the two held-out sessions are
 * only measured.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { findSharedData, listTranscripts } from "@lossless/testkit/shared-data.ts";

/** The held-out sessions. */
const UNTOUCHED = /^(?:25|5c)-/;
/** The newest part of a history that a host keeps word for word beside its summary. */
export const TAIL_CHARS = 32_000;

export interface NeedCase {
  readonly name: string;
  readonly kind: "compaction" | "cut";
  readonly isUntouched: boolean;
  /** Lines of the transcript before the cut, without those the host hides from its model. */
  readonly lines: readonly string[];
  /** Texts of the messages before the cut: the source of the last turns. */
  readonly texts: readonly string[];
  readonly need: ReadonlySet<string>;
  /** The host's summary; null at one of our cut points. */
  readonly host: string | null;
  /** Characters of the host's summary. */
  readonly chars: number;
}

/** Sizes at our cut points: about what hosts write. */
const CUT_CHARS = 12_000;
const CUT_SHARES = [0.35, 0.6, 0.85];
const CUT_AFTER = 250;
const MIN_BEFORE_CHARS = 150_000;

export function readNeedCases(select: { readonly untouched: boolean }): NeedCase[] {
  const data = findSharedData();
  if (data === null) return [];
  return ["claude-code", "claude-code-more"]
    .flatMap((kind) => listTranscripts(data, kind))
    .filter((file) => UNTOUCHED.test(path.basename(file)) === select.untouched)
    .flatMap((file) => readCases(file));
}

interface Row {
  readonly line: string;
  readonly type: string;
  readonly isMeta: boolean;
  readonly message: Message;
}

function readCases(file: string): NeedCase[] {
  const name = path.basename(file, ".jsonl");
  const { rows, marks } = readRows(file);
  const compactions = marks.map(({ at, summary }, nth) =>
    makeCase(`${name}-${nth}`, rows, { at, end: marks[nth + 1]?.at ?? rows.length, host: summary }),
  );
  const cuts = UNTOUCHED.test(name)
    ? []
    : CUT_SHARES.map((share) => Math.floor(rows.length * share)).map((at) =>
        makeCase(`${name}@${at}`, rows, { at, end: at + CUT_AFTER, host: null }),
      );
  return [...compactions, ...cuts].filter((found) => found !== null);
}

function readRows(file: string): { rows: Row[]; marks: { at: number; summary: string }[] } {
  const rows: Row[] = [];
  const marks: { at: number; summary: string }[] = [];
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const row = parseRow(line);
    if (row === null) continue;
    if (row.isSummary) marks.push({ at: rows.length, summary: textOf(row.message, false) });
    else rows.push(row);
  }
  return { rows, marks };
}

function parseRow(line: string): (Row & { isSummary: boolean }) | null {
  const value = parseJson(line);
  const message = asObject(value?.message);
  if (value === null || message === null) return null;
  const { type } = value;
  if ((type !== "user" && type !== "assistant") || value.isSidechain === true) return null;
  return {
    line,
    type,
    isMeta: value.isMeta === true,
    isSummary: value.isCompactSummary === true,
    message,
  };
}

function makeCase(
  name: string,
  rows: readonly Row[],
  { at, end, host }: { at: number; end: number; host: string | null },
): NeedCase | null {
  const before = rows.slice(0, at);
  const after = rows.slice(at, end);
  const texts = before.map(({ message }) => textOf(message, false));
  if (before.length < 20 || after.length < 10) return null;
  if (host === null && texts.join("\n").length < MIN_BEFORE_CHARS) return null;
  const need = findNeeded(texts, after);
  if (need.size < 5) return null;
  return {
    name,
    kind: host === null ? "cut" : "compaction",
    isUntouched: UNTOUCHED.test(name),
    lines: before.filter(({ isMeta }) => !isMeta).map(({ line }) => line),
    texts,
    need,
    host,
    chars: host === null ? CUT_CHARS : host.length,
  };
}

function findNeeded(texts: readonly string[], after: readonly Row[]): Set<string> {
  const known = new Set(texts.flatMap((text) => [...identifiersOf(text)]));
  const typed = new Set<string>();
  const need = new Set<string>();
  for (const { type, message } of after) {
    if (type === "assistant") {
      for (const name of identifiersOf(textOf(message, true)))
        if (known.has(name) && !typed.has(name)) need.add(name);
    } else if (!isToolResult(message)) {
      for (const name of identifiersOf(textOf(message, false))) if (!need.has(name)) typed.add(name);
    }
  }
  return need;
}

/** Share of the needed identifiers in a context. */
export function keptShare(need: ReadonlySet<string>, context: string): number {
  const held = identifiersOf(context);
  return [...need].filter((name) => held.has(name)).length / need.size;
}

/** The newest `chars` characters of the messages. */
export function lastChars(texts: readonly string[], chars: number): string {
  let kept = "";
  for (const text of texts.toReversed()) {
    if (kept.length >= chars) break;
    kept = `${text.slice(-(chars - kept.length))}\n${kept}`;
  }
  return kept.slice(-chars);
}

// ---- identifiers

const W = "[\\p{L}\\p{N}_]";
const B = `(?:(?<=${W})(?!${W})|(?<!${W})(?=${W}))`;
const FILE_TYPES = "go|ts|tsx|js|py|md|json|yaml|yml|sh|toml|rs|java";
const IDENTIFIER = new RegExp(
  [
    `[\\p{L}\\p{N}_.\\-/]*/[\\p{L}\\p{N}_\\-]+\\.[A-Za-z]{1,5}${B}`,
    `${B}[\\p{L}\\p{N}_\\-]+\\.(?:${FILE_TYPES})${B}`,
    `${B}[0-9a-f]{7,40}${B}`,
    `${B}[A-Za-z]+(?:_[A-Za-z0-9]+)+${B}`,
    `${B}[a-z]+(?:[A-Z][a-z0-9]+)+${B}`,
    `${B}(?:[A-Z][a-z0-9]+){2,}${B}`,
  ].join("|"),
  "gu",
);
const MIN_IDENTIFIER = 6;

export function identifiersOf(text: string): Set<string> {
  const found = new Set<string>();
  for (const [name] of text.matchAll(IDENTIFIER)) {
    const isHex = /^[0-9a-f]+$/.test(name);
    if (isHex && !(/\d/.test(name) && /[a-f]/.test(name))) continue;
    if (name.length >= MIN_IDENTIFIER) found.add(name);
  }
  return found;
}

// ---- messages

type Message = Record<string, unknown>;

/** `ownWords`: only the text of the message's author, tool calls included. */
function textOf(message: Message, ownWords: boolean): string {
  const { content } = message;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((block) => blockText(block, ownWords)).join("\n") : "";
}

function blockText(value: unknown, ownWords: boolean): string {
  if (typeof value === "string") return value;
  const block = asObject(value);
  if (block === null) return "";
  if (block.type === "text") return asText(block.text);
  if (block.type === "tool_use") return `${asText(block.name)} ${JSON.stringify(block.input ?? {})}`;
  if (ownWords) return "";
  if (block.type === "thinking") return asText(block.thinking);
  return block.type === "tool_result" ? textOf(block, false) : "";
}

const isToolResult = ({ content }: Message): boolean =>
  Array.isArray(content) && content.some((block) => asObject(block)?.type === "tool_result");

const asText = (value: unknown): string => (typeof value === "string" ? value : "");

const asObject = (value: unknown): Message | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Message) : null;

function parseJson(line: string): Message | null {
  try {
    return asObject(JSON.parse(line));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
