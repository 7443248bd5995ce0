/** Code and changed lines as elements, and texts that can be copied. */
import { markUpCode, markUpDiff } from "@lossless/interchange/reading";
import { nameArchive } from "./api.ts";
import type { DiffLine } from "./api.ts";
import { h, textNodes, toElement } from "./dom.ts";

export const renderCode = (code: string, language: string, mark: RegExp | null): HTMLElement =>
  toElement(markUpCode(code, language, mark));

export const renderDiff = (
  lines: readonly DiffLine[],
  label: string,
  mark: RegExp | null = null,
): HTMLElement => toElement(markUpDiff(lines, label, mark));

/** A button that copies a text, and shows whether that worked. */
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

/** A command with a button that copies it. It breaks between words, never after the dashes of a flag. */
export function renderCommand(words: string): HTMLElement {
  const command = nameArchive(words);
  return h(
    "div",
    { class: "command" },
    h(
      "pre",
      { class: "code", tabindex: 0, "aria-label": "command" },
      ...command.split(" ").flatMap((word) => [h("span", { class: "word" }, ...textNodes(word)), " "]),
    ),
    renderCopy("Copy", () => command),
  );
}
