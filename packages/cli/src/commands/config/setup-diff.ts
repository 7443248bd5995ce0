/** The changes of setup to a file, for the user to review: only our own lines, nothing of others. */
import { hidePassword } from "@lossless/core";
import type { SetupEdit } from "@lossless/agents";
import { diffLines, renderDiff } from "@lossless/core/doors";
import { style } from "../../style.ts";

/** New files of ours with more lines than this are named, not printed. */
const SHOWN_LINES = 20;

export interface EditDisplay {
  readonly isApplied: boolean;
  /** Whole scripts and skills, not only their number of lines. */
  readonly isFull?: boolean | undefined;
}

export function renderEdit(edit: SetupEdit, { isApplied, isFull = false }: EditDisplay): string {
  const { path, before, after, steps, left } = edit;
  const notes = left.map((what) =>
    style.warning(`${what} in ${path} is yours, or was changed: left as it is.`),
  );
  if (before === after) return [`${style.name(path)} needs no change.`, ...notes].join("\n");
  const verb = before === null ? "create" : after === null ? "delete" : "change";
  const done = { create: "Created", delete: "Deleted", change: "Changed" }[verb];
  const diff = steps.map(([from, to]) => {
    const lines = diffLines(...cutSame(maskSecrets(from), maskSecrets(to)));
    return renderDiff(lines.filter(isTold), { gone: style.bad, new: style.good });
  });
  const head = `${isApplied ? done : `Would ${verb}`} ${style.name(path)}`;
  const lines = (before ?? after ?? "").trimEnd().split("\n").length;
  const isWhole = before === null || after === null;
  if (isWhole && !isFull && lines > SHOWN_LINES && steps.length === 1)
    return [`${head} (${lines} lines)`, ...notes].join("\n");
  return [head, ...diff, ...notes].join("\n");
}

/** An empty text has one empty line. */
const isTold = ({ kind, text }: { kind: string; text: string }): boolean => kind !== "same" && text !== "";

/** The file must contain the real address; the output need not. */
const maskSecrets = (text: string): string =>
  text
    .replaceAll(/postgres(?:ql)?:\/\/[^"'\s]*/giu, hidePassword)
    .replaceAll(/("[^"]*(?:key|token|secret|passw|auth)[^"]*"\s*:\s*)"(?:[^"\\]|\\.)*"/giu, '$1"***"');

/**
 * Without the common beginning and end: such files are long, and may contain passwords. Also within a single line, as programs write whole files
 * in one.
 */
function cutSame(before: string, after: string): [string, string] {
  const [a, b] = cutEnds(before.split("\n"), after.split("\n"), 0);
  if (a.length !== 1 || b.length !== 1) return [a.join("\n"), b.join("\n")];
  const [old, changed] = cutEnds([...(a[0] ?? "")], [...(b[0] ?? "")], CONTEXT);
  return [old.join(""), changed.join("")];
}

/** What is kept of a long line beside the change: enough for a bracket. */
const CONTEXT = 3;

/** Inserting after a line adds a comma to it, which is not worth showing. */
const isSame = (a = "", b = ""): boolean => a === b || `${a},` === b || a === `${b},`;

function cutEnds(a: string[], b: string[], kept: number): [string[], string[]] {
  let start = 0;
  while (start < Math.min(a.length, b.length) && isSame(a[start], b[start])) start += 1;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && isSame(a.at(-1 - end), b.at(-1 - end))) end += 1;
  const cut = (all: string[]): string[] =>
    all.slice(Math.max(0, start - kept), all.length - Math.max(0, end - kept));
  return [cut(a), cut(b)];
}
