/**
 * Filters and order of the conversation list: project, agent, model, tag, dates, order, and whether hidden ones are listed. Each choice is a
 * parameter of the address, so that every state of the list can be reopened.
 */
import { listChoices } from "./api.ts";
import type { ConversationChoices } from "./api.ts";
import { fill, h } from "./dom.ts";
import { nameProject } from "./format.ts";

type Kind = keyof ConversationChoices;

const KINDS: readonly (readonly [kind: Kind, label: string, any: string])[] = [
  ["project", "Project", "Any project"],
  ["agent", "Agent", "Any agent"],
  ["model", "Model", "Any model"],
  ["tag", "Tag", "Any tag"],
];

const ORDERS: readonly (readonly [order: string, says: string])[] = [
  ["newest", "Newest first"],
  ["oldest", "Oldest first"],
  ["project", "By project"],
  ["agent", "By agent"],
  ["model", "By model"],
];

export class ConversationFilter {
  readonly element: HTMLElement;
  readonly #choices: ReadonlyMap<Kind, HTMLSelectElement>;
  readonly #since = renderDate("since", "Last message from this day on");
  readonly #before = renderDate("before", "Last message before this day");
  readonly #sort = h(
    "select",
    { name: "sort", "aria-label": "Sort" },
    ...ORDERS.map(([value, says]) => h("option", { value }, says)),
  );
  readonly #hidden = h("input", { type: "checkbox", name: "hidden" });
  readonly #clear = h("button", { type: "button" }, "Clear");

  constructor(query: URLSearchParams, onChange: () => void) {
    this.#choices = new Map(
      KINDS.map(([kind, label]) => [kind, h("select", { name: kind, "aria-label": label })]),
    );
    this.#offer({ project: [], agent: [], model: [], tag: [] }, query);
    this.#since.value = query.get("since") ?? "";
    this.#before.value = query.get("before") ?? "";
    this.#sort.value = ORDERS.some(([order]) => order === query.get("sort"))
      ? (query.get("sort") ?? "")
      : "newest";
    this.#hidden.checked = query.get("hidden") === "true";
    const changed = (): void => {
      this.#clear.hidden = Object.keys(this.values()).length === 0;
      onChange();
    };
    this.#clear.hidden = Object.keys(this.values()).length === 0;
    this.#clear.addEventListener("click", () => {
      this.#empty();
      changed();
      this.#sort.focus();
    });
    this.element = h(
      "div",
      { class: "toolbar filter", role: "group", "aria-label": "Filter" },
      ...this.#choices.values(),
      h("label", { class: "check" }, "from ", this.#since),
      h("label", { class: "check" }, "before ", this.#before),
      this.#sort,
      h("label", { class: "check" }, this.#hidden, " include hidden"),
      this.#clear,
    );
    this.element.addEventListener("change", changed);
    // Without the values there is less to choose from; the list itself reports problems of the archive.
    listChoices().then(
      (choices) => this.#offer(choices, query),
      () => undefined,
    );
  }

  /** The chosen values, by their address parameters; defaults are omitted. */
  values(): Record<string, string> {
    const pairs: readonly (readonly [string, string])[] = [
      ...[...this.#choices].map(([kind, { value }]) => [kind, value] as const),
      ["since", this.#since.value],
      ["before", this.#before.value],
      ["sort", this.#sort.value === "newest" ? "" : this.#sort.value],
      ["hidden", this.#hidden.checked ? "true" : ""],
    ];
    return Object.fromEntries(pairs.filter(([, value]) => value !== ""));
  }

  #empty(): void {
    for (const select of this.#choices.values()) select.value = "";
    this.#since.value = "";
    this.#before.value = "";
    this.#sort.value = "newest";
    this.#hidden.checked = false;
  }

  /** Keeps the current choice, or the one in the address. */
  #offer(choices: ConversationChoices, query: URLSearchParams): void {
    for (const [kind, , any] of KINDS) {
      const select = this.#choices.get(kind);
      if (select === undefined) continue;
      const chosen = select.options.length === 0 ? (query.get(kind) ?? "") : select.value;
      const values = new Set([...choices[kind], ...(chosen === "" ? [] : [chosen])]);
      const nameOf = kind === "project" ? nameProject : (value: string): string => value;
      const options = [...values]
        .toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)))
        .map((value) => h("option", { value, title: value }, nameOf(value)));
      fill(select, h("option", { value: "" }, any), ...options);
      select.value = chosen;
      // A single value leaves nothing to choose; a single tag does.
      select.hidden = values.size < (kind === "tag" ? 1 : 2) && chosen === "";
    }
  }
}

const renderDate = (name: string, label: string): HTMLInputElement =>
  h("input", { type: "date", name, "aria-label": label });
