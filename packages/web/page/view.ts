/** The interface of a view, and elements that several views show. */
import { h, textNodes } from "./dom.ts";
import type { Child } from "./dom.ts";
import { nameProject } from "./format.ts";

export interface View {
  readonly element: HTMLElement;
  /** The archive has changed. */
  refresh?(): void;
  /** How long a view that is expensive to build is not refreshed while an agent writes; absent: refreshed at once. */
  readonly restMs?: number;
  /** True when it handled the key. */
  press?(key: string): boolean;
  close?(): void;
}

/**
 * The address follows a choice after this time. A browser takes longer to change it than to show a summary, and ignores changes after two
 * hundred in half a minute, which an arrow key that is held down reaches.
 */
export const ADDRESS_REST_MS = 200;

export const renderFailure = (error: unknown): HTMLElement =>
  h(
    "p",
    { class: "bad", role: "alert" },
    ...textNodes(error instanceof Error ? error.message : String(error)),
  );

export const renderLoading = (what: string): HTMLElement =>
  h("p", { class: "faint", "aria-busy": true }, `Reading ${what} …`);

/** Handles a response, or shows why it failed. */
export async function whenRead<T>(
  answer: Promise<T>,
  use: (value: T) => void,
  refuse: (failure: HTMLElement) => void,
): Promise<void> {
  try {
    use(await answer);
  } catch (error) {
    refuse(renderFailure(error));
  }
}

/** The name of a view, and its subject. */
export const renderHead = (name: string, ...of: readonly Child[]): HTMLElement =>
  h("div", { class: "head" }, h("h1", {}, name), h("span", { class: "of" }, ...of));

/** A number with its name. */
export const renderCard = (name: string, value: Child, more: Child = null): HTMLElement =>
  h("div", { class: "card" }, h("dt", {}, name), h("dd", {}, value, more !== null && h("small", {}, more)));

/** Project, agent and branch of a conversation, if known. */
export const describeOrigin = ({ project, agent, branch = null }: ConversationOrigin): string[] =>
  [project === null ? null : nameProject(project), agent, branch].filter((word) => word !== null);

interface ConversationOrigin {
  readonly project: string | null;
  readonly agent: string | null;
  readonly branch?: string | null;
}

export const linkMessage = (id: number): HTMLElement =>
  h("a", { class: "id", href: `#msg_${id}` }, `msg_${id}`);
export const linkSummary = (id: string): HTMLElement => h("a", { class: "id", href: `#${id}` }, id);

/** Depth as a class: colours are in the style sheet. */
export const depthClass = (depth: number): string =>
  depth < 0 ? "depth-message" : `depth-${Math.min(depth, 5)}`;
