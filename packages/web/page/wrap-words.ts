/** Wraps text to a width, with a given measuring function. Pure. */

export type Measure = (text: string) => number;

/** Text in lines of at most this width. What does not fit is omitted, and the last line ends with an ellipsis. */
export function wrap(text: string, width: number, maxLines: number, measure: Measure): string[] {
  if (text === "" || maxLines <= 0) return [];
  const space = measure(" ");
  const lines: string[] = [];
  let line = "";
  let used = 0;
  const close = (): boolean => {
    lines.push(line);
    line = "";
    used = 0;
    return lines.length >= maxLines;
  };
  for (const word of text.split(" ")) {
    const wide = measure(word);
    if (line !== "" && used + space + wide > width && close()) return endWithEllipsis(lines, width, measure);
    if (wide > width) {
      lines.push(cutWord(word, width, measure));
      // A cut word already ends with an ellipsis.
      if (lines.length >= maxLines) return lines;
      continue;
    }
    used += (line === "" ? 0 : space) + wide;
    line = line === "" ? word : `${line} ${word}`;
  }
  if (line !== "") close();
  return lines;
}

const ELLIPSIS = "…";

function endWithEllipsis(lines: readonly string[], width: number, measure: Measure): string[] {
  const words = (lines.at(-1) ?? "").split(" ");
  while (words.length > 1 && measure(`${words.join(" ")} ${ELLIPSIS}`) > width) words.pop();
  return [...lines.slice(0, -1), cutWord(`${words.join(" ")} ${ELLIPSIS}`, width, measure)];
}

/** As much of one line as has room. */
export function cutWord(word: string, width: number, measure: Measure): string {
  if (measure(word) <= width) return word;
  let length = Math.max(1, Math.floor((word.length * width) / measure(word)));
  while (length > 1 && measure(word.slice(0, length) + ELLIPSIS) > width) length -= 1;
  return word.slice(0, length).toWellFormed() + ELLIPSIS;
}
