/** One-line descriptions of message parts: what a call does, what it returned, what a file is. Also runs in a browser. */
import type { ReadablePart } from "./parts.ts";

const LINE_CHARS = 110;
/** Diffs of at most this many lines are initially open. */
const DIFF_OPEN = 30;

export const isShortDiff = ({ call }: ReadablePart): boolean =>
  (call?.diff?.length ?? DIFF_OPEN + 1) <= DIFF_OPEN;

/** The title of a folded part. */
export function titleOf({ type, toolName, isError }: ReadablePart): string {
  if (type === "reasoning") return "Reasoning";
  if (type === "tool_call") return toolName ?? "A tool";
  if (type === "tool_result") return `${isError ? "Error of" : "Result of"} ${toolName ?? "a tool"}`;
  return toolName ?? "Other content";
}

/** The tool's own line; otherwise the first line of the text that does not repeat the tool's name. */
export function lineOf(part: ReadablePart): string {
  const [first = "", second = ""] = part.text.trimStart().split("\n", 2);
  const line = part.call?.line || (first === part.toolName ? second : first);
  return cut(line, LINE_CHARS);
}

const cut = (line: string, most: number): string =>
  line.length <= most
    ? line
    : `${line
        .slice(0, most - 1)
        .trimEnd()
        .toWellFormed()}…`;

/** The outcome of a call: of an edit its size, because its result only says that it was done. Empty if nothing is known. */
export function describeOutcome({ call }: ReadablePart, result: ReadablePart | null): string {
  const diff = call?.diff ?? [];
  const count = (kind: "new" | "gone"): number => diff.filter((line) => line.kind === kind).length;
  if (diff.length > 0 && result?.isError !== true) return `+${count("new")} −${count("gone")}`;
  return result === null ? "" : describeResult(result);
}

/** What came back, in a few words. */
export function describeResult({ text, chars, isError }: ReadablePart): string {
  const shown = text.trim();
  if (isError) return `error: ${cut(shown.split("\n", 1)[0] ?? "", 80)}`;
  if (shown === "") return "no output";
  if (chars > text.length) return `${chars.toLocaleString("en")} characters`;
  const lines = shown.split("\n").length;
  return lines === 1 ? cut(shown, 60) : `${lines.toLocaleString("en")} lines`;
}

export function describeFile(part: ReadablePart, formatBytes: (bytes: number) => string): string {
  const { type, fileName, mimeType, payloadBytes, text } = part;
  const size = payloadBytes === null ? null : formatBytes(payloadBytes);
  const words = [type === "image" ? "Image" : "File", fileName, mimeType, size].filter(
    (word) => word !== null,
  );
  return fileName === null && text !== "" ? `${words.join(", ")}\n${text}` : words.join(", ");
}
