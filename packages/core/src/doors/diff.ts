/** Differences between two texts, line by line, for people. Pure. */

export interface DiffLine {
  readonly kind: "same" | "gone" | "new";
  readonly text: string;
}

/** Maximum number of line pairs that are compared: beyond it the middle of a text counts as replaced. */
const MAX_PAIRS = 1_000_000;

/** The shortest edit from one text to the other, by the most common lines. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  const middle = diffMiddle(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
}

function diffMiddle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const common = a.length * b.length > MAX_PAIRS ? [] : countCommon(a, b);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]];
    if (left !== undefined && left === right) {
      lines.push({ kind: "same", text: left });
      i += 1;
      j += 1;
    } else if (left !== undefined && (right === undefined || at(common, i + 1, j) >= at(common, i, j + 1))) {
      lines.push({ kind: "gone", text: left });
      i += 1;
    } else {
      lines.push({ kind: "new", text: right ?? "" });
      j += 1;
    }
  }
  return lines;
}

const at = (common: readonly (readonly number[])[], i: number, j: number): number => common[i]?.[j] ?? 0;

/** How many lines the rests of both texts have in common, from each pair of places. */
function countCommon(a: readonly string[], b: readonly string[]): number[][] {
  const common = Array.from({ length: a.length + 1 }, () => Array.from({ length: b.length + 1 }, () => 0));
  for (let i = a.length - 1; i >= 0; i--) {
    const row = common[i] ?? [];
    for (let j = b.length - 1; j >= 0; j--) {
      row[j] =
        a[i] === b[j] ? at(common, i + 1, j + 1) + 1 : Math.max(at(common, i + 1, j), at(common, i, j + 1));
    }
  }
  return common;
}

/** Changed lines with one line of context; `…` replaces unchanged ones. */
export function renderDiff(
  lines: readonly DiffLine[],
  paint: { readonly gone: (text: string) => string; readonly new: (text: string) => string },
): string {
  const isNear = (index: number): boolean =>
    [index - 1, index, index + 1].some((place) => (lines[place]?.kind ?? "same") !== "same");
  const shown: string[] = [];
  for (const [index, line] of lines.entries()) {
    if (isNear(index)) shown.push(renderLine(line, paint));
    else if (shown.at(-1) !== "  …") shown.push("  …");
  }
  return shown.join("\n");
}

function renderLine(line: DiffLine, paint: Parameters<typeof renderDiff>[1]): string {
  if (line.kind === "gone") return paint.gone(`- ${line.text}`);
  return line.kind === "new" ? paint.new(`+ ${line.text}`) : `  ${line.text}`;
}
