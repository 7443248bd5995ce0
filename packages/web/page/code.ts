/** Code, coloured where a language is named; output of tools as it is; and changed lines. */
import type { DiffLine } from "./api.ts";
import { h, textNodes } from "./dom.ts";
import type { Child } from "./dom.ts";
import { colourCode } from "./highlight.ts";

/** Fences name these for text that is no code. */
const NO_CODE = /^(text|txt|plain|plaintext|output|log|console|)$/i;

export function renderCode(code: string, language: string, mark: RegExp | null): HTMLElement {
  const name = language.trim().split(/\s/)[0] ?? "";
  const pieces: Child[] = NO_CODE.test(name)
    ? textNodes(code, mark)
    : colourCode(code).flatMap(({ kind, text }) =>
        kind === "plain"
          ? textNodes(text, mark)
          : [h("span", { class: `code-${kind}` }, ...textNodes(text, mark))],
      );
  return h(
    "pre",
    { class: "code", tabindex: 0, "aria-label": name === "" ? "text" : `code, ${name}` },
    h("code", {}, ...pieces),
  );
}

const SIGNS = { same: " ", gone: "−", new: "+" } as const;

export function renderDiff(
  lines: readonly DiffLine[],
  label: string,
  mark: RegExp | null = null,
): HTMLElement {
  return h(
    "pre",
    { class: "code diff-text", tabindex: 0, "aria-label": label },
    ...lines.map(({ kind, text }) =>
      h("span", { class: `diff-${kind}` }, `${SIGNS[kind]} `, ...textNodes(text, mark), "\n"),
    ),
  );
}

/** A button that copies a text, and says whether that worked. */
export function renderCopy(label: string, read: () => string | Promise<string>): HTMLElement {
  const button = h("button", { type: "button", class: "copy" }, label);
  const say = (text: string): void => {
    button.textContent = text;
    setTimeout(() => (button.textContent = label), 2_000);
  };
  button.addEventListener("click", () => {
    Promise.resolve(read())
      .then((text) => navigator.clipboard.writeText(text))
      .then(
        () => say("Copied"),
        () => say("Not allowed"),
      );
  });
  return button;
}

/** A command with a button that copies it. */
export const renderCommand = (command: string): HTMLElement =>
  h(
    "div",
    { class: "command" },
    h("pre", { class: "code", tabindex: 0, "aria-label": "command" }, ...textNodes(command)),
    renderCopy("Copy", () => command),
  );
