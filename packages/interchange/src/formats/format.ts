/**
 * The interface of a transcript format, and the reading that all line formats share. One object per format (`claude-code.ts`, `pi-session.ts`,
 * …) answers these questions about one line; `import.ts` does everything else.
 */

import type { HiddenReason } from "@lossless/core";
import { type JsonObject, isObject, isTime } from "@lossless/core/formats";
import type { FormatName } from "./names.ts";

/** `certain`: no other known format writes this. `likely`: fits, and counts unless an earlier line contradicts it. */
export type Recognition = "certain" | "likely" | "no";

/**
 * How the active branch follows from the tree of entries. `path`: the entries from the last one up to its root. `prompts`: everything but the
 * subtrees of replaced user prompts. `log`: one after the other, where the last one may be rewritten, and a line may retract others.
 */
export type BranchRule = "path" | "prompts" | "log";

/** The session of a transcript file, according to its lines. */
export interface TranscriptSession {
  readonly id: string;
  /** A sub-agent's own file: side work for its parent, but the main line of its own session. */
  readonly isSubAgent: boolean;
}

/** The identity, order and visibility of one readable line. */
export interface EntryFacts {
  readonly id?: string | undefined;
  /** `null`: the entry says that it has no parent. `undefined`: it does not say. */
  readonly parentId?: string | null | undefined;
  /** In a log: the entry that this line retracts, with all after it. */
  readonly takesBack?: string | undefined;
  readonly createdAt?: number | undefined;
  readonly hidden: readonly HiddenReason[];
  /** `entry`: is in the tree. `header`: may be named as a parent, never leaves the branch. `none`: outside the tree. */
  readonly treeRole: "entry" | "header" | "none";
  /** A user prompt: not a tool result, and not written by the host in the user's name. */
  readonly isPrompt: boolean;
}

/** What a line says about the origin of its session. */
export interface ToldOrigin {
  /** The folder the agent worked in, absolute. */
  readonly folder?: string | undefined;
  readonly branch?: string | undefined;
  readonly title?: string | undefined;
  /** For formats with titles of different rank: a title does not replace one of higher rank. */
  readonly titleRank?: number | undefined;
  readonly model?: string | undefined;
}

export interface TranscriptFormat {
  readonly name: FormatName;
  /** A display name. */
  readonly title: string;
  readonly branchRule: BranchRule;
  /** True if a file of this format names its session sooner or later. */
  readonly namesSession: boolean;
  recognise(entry: JsonObject): Recognition;
  readSession(entry: JsonObject): TranscriptSession | null;
  readFacts(entry: JsonObject, session: { readonly isSubAgent: boolean }): EntryFacts;
  /** Null for a line without an origin, which most lines are. */
  readonly readOrigin?: (entry: JsonObject) => ToldOrigin | null;
}

/** A text that is not blank. */
export const readText = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined;

export type ParsedLine =
  | { readonly kind: "entry"; readonly entry: JsonObject }
  | { readonly kind: "blank" }
  | { readonly kind: "unreadable"; readonly reason: string };

const BYTE_ORDER_MARK = "\uFEFF";
/** Longer than any id seen so far; a line with a longer one is identified by its bytes. */
const MAX_ID_LENGTH = 256;

export function parseLine(bytes: Uint8Array): ParsedLine {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const json = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  if (json.trim() === "") return { kind: "blank" };
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value)
      ? { kind: "entry", entry: value }
      : { kind: "unreadable", reason: "JSON, but not an object" };
  } catch (error) {
    return { kind: "unreadable", reason: describeParseError(error) };
  }
}

/** An id that a database returns unchanged; any other value counts as no id. */
export function readId(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "" || value.length > MAX_ID_LENGTH) return undefined;
  return value.isWellFormed() && !value.includes("\0") ? value : undefined;
}

/** `null` stays `null`, because it says that there is no parent; a value that is not an id counts as absent. */
export function readParentId(value: unknown): string | null | undefined {
  return value === null ? null : readId(value);
}

/** Milliseconds UTC from an ISO text or a number of milliseconds. */
export function readTime(value: unknown): number | undefined {
  const time = typeof value === "string" ? Date.parse(value) : value;
  return isTime(time) && time > 0 ? Math.trunc(time) : undefined;
}

function describeParseError(error: unknown): string {
  // The parser quotes the line; its first words are enough and keep the report to one line.
  const message = error instanceof Error ? error.message : String(error);
  return `not JSON (${message.split(/[,:"(\n]/u, 1)[0]?.trim() ?? "unreadable"})`;
}
