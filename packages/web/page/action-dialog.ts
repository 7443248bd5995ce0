/**
 * Dialogs for changes: first a preview, then, after a click on the button that names it, the result. A change that cannot be undone requires
 * typing a word first. Before the button is pressed, only the preview is requested.
 */
import { applyAction, previewAction, writeAccess } from "./api.ts";
import type { ActionPreview, ActionResult, ActionRequest, Fact } from "./api.ts";
import { renderCommand, renderDiff } from "./code.ts";
import { fill, h, textNodes } from "./dom.ts";
import type { Child } from "./dom.ts";
import { renderFailure, renderLoading } from "./view.ts";

/** A button for an action; nothing if the inspector is read-only. */
export function renderAction(
  label: string,
  request: () => ActionRequest | null,
  onDone: () => void,
): HTMLElement | null {
  if (writeAccess() === null) return null;
  const open = (): void => {
    const chosen = request();
    if (chosen !== null) void new ActionDialog(chosen, onDone).open();
  };
  return h("button", { type: "button", class: "action", onclick: open }, label);
}

class ActionDialog {
  readonly #request: ActionRequest;
  readonly #onDone: () => void;
  readonly #body = h("div", { class: "dialog-body", "aria-live": "polite" });
  readonly #foot = h("div", { class: "dialog-foot" });
  readonly #dialog = h("dialog", { class: "action-dialog", "aria-label": "Change" }, this.#body, this.#foot);
  #hasChanged = false;

  constructor(request: ActionRequest, onDone: () => void) {
    this.#request = request;
    this.#onDone = onDone;
    this.#dialog.addEventListener("close", () => {
      this.#dialog.remove();
      if (this.#hasChanged) this.#onDone();
    });
  }

  async open(): Promise<void> {
    document.body.append(this.#dialog);
    fill(this.#body, renderLoading("what this would change"));
    fill(this.#foot, this.#renderClose("Cancel"));
    this.#dialog.showModal();
    try {
      this.#showPreview(await previewAction(this.#request));
    } catch (error) {
      fill(this.#body, renderFailure(error));
    }
  }

  #showPreview(preview: ActionPreview): void {
    const { title, facts, lines, warning, command, verb, confirmation, mustType } = preview;
    const typed = h("input", {
      type: "text",
      autocomplete: "off",
      "aria-label": `Type ${mustType} to continue`,
    });
    const button = h("button", { type: "button", class: mustType === null ? "primary" : "danger" }, verb);
    button.disabled = confirmation === null || mustType !== null;
    typed.addEventListener("input", () => {
      button.disabled = confirmation === null || typed.value.trim() !== mustType;
    });
    button.addEventListener("click", () => void this.#apply(confirmation ?? "", verb));
    this.#dialog.setAttribute("aria-label", title);
    fill(
      this.#body,
      h("h2", {}, ...textNodes(title)),
      confirmation === null && h("p", { class: "good" }, "Nothing to do."),
      ...renderAccount(facts, lines),
      warning !== null && confirmation !== null && h("p", { class: "notice warn" }, ...textNodes(warning)),
      mustType !== null &&
        confirmation !== null &&
        h("label", { class: "type-word" }, "Type ", h("b", {}, mustType), " to continue ", typed),
      h("p", { class: "faint same" }, "The same on the command line:"),
      renderCommand(command),
    );
    fill(this.#foot, this.#renderClose("Cancel"), confirmation !== null && button);
    (mustType === null ? button : typed).focus();
  }

  async #apply(confirmation: string, verb: string): Promise<void> {
    fill(this.#foot, h("span", { class: "busy", role: "status" }, `${verb} …`));
    // While it runs, Escape must not hide its result.
    const stay = (event: Event): void => event.preventDefault();
    this.#dialog.addEventListener("cancel", stay);
    try {
      const result = await applyAction(confirmation);
      this.#hasChanged = true;
      this.#showResult(result);
    } catch (error) {
      fill(this.#body, renderFailure(error));
    } finally {
      this.#dialog.removeEventListener("cancel", stay);
      fill(this.#foot, this.#renderClose("Close"));
      this.#foot.querySelector("button")?.focus();
    }
  }

  #showResult({ title, facts, lines, warning, changes }: ActionResult): void {
    fill(
      this.#body,
      h("h2", { class: "good" }, ...textNodes(title)),
      ...renderAccount(facts, lines),
      warning !== null && h("p", { class: "notice warn" }, ...textNodes(warning)),
      ...changes.flatMap(({ name, lines: changed }) => [
        h("h3", { class: "id" }, ...textNodes(name)),
        renderDiff(changed, `what changed in ${name}`),
      ]),
    );
  }

  #renderClose(label: string): HTMLElement {
    return h("button", { type: "button", onclick: () => this.#dialog.close() }, label);
  }
}

function renderAccount(facts: readonly Fact[], lines: readonly string[]): Child[] {
  return [
    h(
      "dl",
      { class: "facts" },
      ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, ...textNodes(value))]),
    ),
    lines.length > 0 &&
      h(
        "ul",
        { class: "touched", tabindex: 0, "aria-label": "What it touches" },
        ...lines.map((line) => h("li", {}, ...textNodes(line))),
      ),
  ];
}
