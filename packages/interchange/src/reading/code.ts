/** Code, highlighted if its language is named; output of tools unchanged; and changed lines. Also runs in a browser. */
import { colourCode } from "./highlight.ts";
import { el, quoteText } from "./markup.ts";
import type { MarkupElement } from "./markup.ts";

/** Fence languages for text that is not code. */
const NO_CODE = /^(text|txt|plain|plaintext|output|log|console|)$/i;

export function markUpCode(code: string, language: string, mark: RegExp | null = null): MarkupElement {
  const name = language.trim().split(/\s/)[0] ?? "";
  const pieces = NO_CODE.test(name)
    ? quoteText(code, mark)
    : colourCode(code).flatMap(({ kind, text }) =>
        kind === "plain"
          ? quoteText(text, mark)
          : [el("span", { class: `code-${kind}` }, ...quoteText(text, mark))],
      );
  return el(
    "pre",
    { class: "code", tabindex: 0, "aria-label": name === "" ? "text" : `code, ${name}` },
    el("code", {}, ...pieces),
  );
}

/** A line of a changed text; core's own shape. */
interface ChangedLine {
  readonly kind: "same" | "gone" | "new";
  readonly text: string;
}

const SIGNS = { same: " ", gone: "−", new: "+" } as const;

export const markUpDiff = (
  lines: readonly ChangedLine[],
  label: string,
  mark: RegExp | null = null,
): MarkupElement =>
  el(
    "pre",
    { class: "code diff-text", tabindex: 0, "aria-label": label },
    ...lines.map(({ kind, text }) =>
      el("span", { class: `diff-${kind}` }, `${SIGNS[kind]} `, ...quoteText(text, mark), "\n"),
    ),
  );
