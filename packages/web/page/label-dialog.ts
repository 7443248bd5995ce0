/**
 * Naming, tagging, pinning and hiding a conversation. Only the changes made here are sent, so that a tag that somebody else added meanwhile
 * stays. If the inspector is read-only, it shows the commands instead.
 */
import { changeLabels, writeAccess } from "./api.ts";
import type { HeadedConversation, LabelUpdate } from "./api.ts";
import { renderCommand } from "./code.ts";
import { fill, h, textNodes } from "./dom.ts";
import type { Child } from "./dom.ts";
import { renderFailure } from "./view.ts";

export function renderLabelButton(
  row: HeadedConversation,
  onDone: (row: HeadedConversation) => void,
  says = "Name, tag, pin …",
): HTMLElement {
  return h(
    "button",
    {
      type: "button",
      class: "label-button",
      title: "Name, tag, pin or hide it",
      "aria-label": `Name, tag, pin or hide ${row.heading}`,
      onclick: () => openDialog(row, onDone),
    },
    says,
  );
}

function openDialog(row: HeadedConversation, onDone: (row: HeadedConversation) => void): void {
  const body = h("div", { class: "dialog-body" });
  const dialog = h("dialog", { class: "action-dialog", "aria-label": `Labels of ${row.heading}` }, body);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  const close = (): void => dialog.close();
  const title = h("h2", {}, ...textNodes(row.heading));
  if (writeAccess() === null) fill(body, title, ...renderCommands(row, close));
  else
    fill(
      body,
      title,
      renderForm(row, close, (changed) => {
        close();
        onDone(changed);
      }),
    );
  dialog.showModal();
}

const renderCommands = ({ conversationId: id }: HeadedConversation, close: () => void): Child[] => [
  h("p", {}, "This page is read-only. Start it with lcm web --write, or run:"),
  renderCommand(`lcm name ${id} "A name"`),
  renderCommand(`lcm tag ${id} release`),
  renderCommand(`lcm pin ${id}`),
  renderCommand(`lcm hide ${id}`),
  h("div", { class: "dialog-foot" }, h("button", { type: "button", onclick: close }, "Close")),
];

function renderForm(
  row: HeadedConversation,
  close: () => void,
  onDone: (row: HeadedConversation) => void,
): HTMLElement {
  const text = (value: string, placeholder: string): HTMLInputElement =>
    h("input", { type: "text", value, placeholder, autocomplete: "off" });
  const tick = (checked: boolean): HTMLInputElement => h("input", { type: "checkbox", checked });
  const name = text(row.name ?? "", row.title ?? row.heading);
  const tags = text(row.tags.join(", "), "such as release, review");
  const pinned = tick(row.pinnedAt !== null);
  const unlisted = tick(row.unlistedAt !== null);
  const problem = h("div", {});
  const save = h("button", { type: "submit", class: "primary" }, "Save");
  const form = h(
    "form",
    { class: "labels" },
    h("label", {}, "Name", name),
    h("label", {}, "Tags, separated by commas", tags),
    h("label", { class: "check" }, pinned, " pinned: first in lists"),
    h("label", { class: "check" }, unlisted, " hidden from lists: search still finds it"),
    problem,
    h("div", { class: "dialog-foot" }, h("button", { type: "button", onclick: close }, "Cancel"), save),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save.disabled = true;
    const update = findChanges(row, {
      name: name.value.trim(),
      // A tag may contain a comma: unchanged tags stay as they are.
      tags:
        tags.value === row.tags.join(", ")
          ? row.tags
          : tags.value.split(",").flatMap((tag) => tag.trim().toLowerCase() || []),
      pinned: pinned.checked,
      unlisted: unlisted.checked,
    });
    changeLabels(row.conversationId, update).then(onDone, (error: unknown) => {
      save.disabled = false;
      fill(problem, renderFailure(error));
    });
  });
  return form;
}

interface Wanted {
  readonly name: string;
  readonly tags: readonly string[];
  readonly pinned: boolean;
  readonly unlisted: boolean;
}

const findChanges = (row: HeadedConversation, wanted: Wanted): LabelUpdate => ({
  name: wanted.name === (row.name ?? "") ? undefined : wanted.name || null,
  addTags: wanted.tags.filter((tag) => !row.tags.includes(tag)),
  removeTags: row.tags.filter((tag) => !wanted.tags.includes(tag)),
  pinned: wanted.pinned === (row.pinnedAt !== null) ? undefined : wanted.pinned,
  unlisted: wanted.unlisted === (row.unlistedAt !== null) ? undefined : wanted.unlisted,
});
