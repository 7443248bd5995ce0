/** Renders one message: author, time, size, and its parts. Long or machine-generated parts are folded until the user opens them. */
import {
  describeFile,
  describeOutcome,
  isShortDiff,
  lineOf,
  markUpText,
  titleOf,
} from "@lossless/interchange/reading";
import { renderAction } from "./action-dialog.ts";
import { readMessage, readPicture } from "./api.ts";
import type { MessageDetail, MessageJson, PartJson } from "./api.ts";
import { renderCode, renderCopy, renderDiff } from "./code.ts";
import { h, textNodes, toElement } from "./dom.ts";
import { formatBytes, formatCount, formatTime } from "./format.ts";
import { toMarkdown } from "./message-markdown.ts";
import { whenRead } from "./view.ts";

/** Longer plain text is folded to its beginning. */
const FOLD_CHARS = 3_000;

export interface MessageOptions {
  /** Called after it was forgotten from here; without it, no action is offered. */
  readonly onChange?: (() => void) | null;
  /** The result of a call that is shown with it. */
  readonly resultOf?: (call: PartJson) => PartJson | undefined;
  /** Whether a result is shown with its call instead. */
  readonly isMoved?: (part: PartJson) => boolean;
  /** It goes on from the message above: only what differs is in its head, beside its cards. */
  readonly goesOn?: boolean;
  /** It was searched for: no part that contains the words stays folded. */
  readonly isTarget?: boolean;
}

export function renderMessage(
  message: MessageJson,
  mark: RegExp | null,
  { onChange = null, resultOf, isMoved = () => false, goesOn = false, isTarget = false }: MessageOptions = {},
): HTMLElement {
  const { row, problem } = message;
  const name = `msg_${message.id}`;
  if (row === null) {
    return h(
      "article",
      { class: "message broken" },
      h("header", {}, renderLink(name)),
      h("p", { class: "bad" }, problem ?? ""),
    );
  }
  const hasMark = mark !== null && message.parts.some(({ text }) => text.search(mark) >= 0);
  // Search also finds by meaning, and then there is nothing to mark: everything is opened.
  const opensAll = isTarget && !hasMark;
  const body = h(
    "div",
    { class: "parts" },
    ...message.parts
      .filter((part) => !isMoved(part))
      .map((part) => renderPart(message.id, part, { mark, resultOf, isWhole: isTarget, opensAll })),
  );
  const isCut = message.parts.some((part) => part.chars > part.text.length);
  return h(
    "article",
    {
      class: `message role-${roleClass(row.role)}${row.hidden.length > 0 ? " hidden-message" : ""}${goesOn ? " goes-on" : ""}`,
      "aria-label": `${row.role}, ${name}`,
    },
    h(
      "header",
      {},
      !goesOn && h("span", { class: "role" }, row.role || "line"),
      h("time", {}, formatTime(row.createdAt)),
      h("span", { class: "faint" }, `${formatCount(row.tokens)} tokens`),
      !goesOn && message.model !== null && h("span", { class: "faint" }, message.model),
      renderLink(name),
      ...row.hidden.map((reason) => h("span", { class: "tag" }, reason)),
      row.revises !== null &&
        h("a", { class: "tag", href: `#msg_${row.revises}` }, `revises msg_${row.revises}`),
      row.newest !== null &&
        row.newest !== row.messageId &&
        h("a", { class: "tag", href: `#msg_${row.newest}` }, "has a newer version"),
      ...message.fileIds.map((file) =>
        h("span", { class: "tag", title: "stored in a file of its own" }, file),
      ),
      renderCopy("Copy", () => toMarkdown([message])),
      onChange !== null &&
        row.forgottenAt === null &&
        renderAction(
          "Forget …",
          () => ({ action: "forget", messageIds: [message.id], reason: "" }),
          onChange,
        ),
    ),
    body,
    isCut && renderMore(message.id, body, mark),
  );
}

const ROLES = new Set(["user", "assistant", "system", "tool"]);
const roleClass = (role: string): string => (ROLES.has(role) ? role : "other");

const renderLink = (name: string): HTMLElement => h("a", { class: "id", href: `#${name}` }, name);

function renderMore(id: number, body: HTMLElement, mark: RegExp | null): HTMLElement {
  const button = h("button", { class: "more", type: "button" }, "Show all of it");
  button.addEventListener("click", () => {
    button.disabled = true;
    const show = ({ message }: MessageDetail): void => {
      body.replaceChildren(...message.parts.map((part) => renderPart(id, part, { mark, isWhole: true })));
      body.dispatchEvent(new Event("toggle", { bubbles: true }));
      button.remove();
    };
    void whenRead(readMessage(id), show, (failure) => button.replaceWith(failure));
  });
  return button;
}

interface PartOptions {
  readonly mark: RegExp | null;
  readonly resultOf?: MessageOptions["resultOf"];
  readonly isWhole?: boolean;
  readonly opensAll?: boolean;
}

function renderPart(id: number, part: PartJson, options: PartOptions): HTMLElement {
  const { mark, isWhole = false, opensAll = false } = options;
  switch (part.type) {
    case "text":
      return renderText(part.text, mark, isWhole);
    case "reasoning":
      return renderFolded("reasoning", [part], mark, opensAll);
    case "tool_call":
      return renderCall(part, options);
    case "tool_result":
      return renderFolded(part.isError ? "result failed" : "result", [part], mark, opensAll);
    case "image":
      return renderImage(id, part);
    case "file":
      return h("div", { class: "file" }, ...textNodes(describeFile(part, formatBytes)));
    case "other":
      return renderFolded("other", [part], mark, opensAll);
  }
}

/** A call with its result: one card, folded to a line, unless it changes only a few lines of a file. */
function renderCall(part: PartJson, { mark, resultOf, opensAll = false }: PartOptions): HTMLElement {
  const result = resultOf?.(part);
  const kind = result?.isError === true ? "call failed" : "call";
  const parts = result === undefined ? [part] : [part, result];
  return renderFolded(kind, parts, mark, opensAll);
}

function renderText(text: string, mark: RegExp | null, isWhole: boolean): HTMLElement {
  if (text.length > FOLD_CHARS && !isWhole) {
    return h(
      "details",
      { class: "part long" },
      h(
        "summary",
        {},
        h("span", { class: "prose" }, ...textNodes(text.slice(0, 600), mark)),
        ` … ${formatCount(text.length)} characters`,
      ),
      ...renderBlocks(text, mark),
    );
  }
  return h("div", { class: "part" }, ...renderBlocks(text, mark));
}

/** Markdown, or plain text and fenced code if it is too long for that. */
export const renderBlocks = (text: string, mark: RegExp | null): HTMLElement[] =>
  markUpText(text, mark).map(toElement);

function renderFolded(
  kind: string,
  parts: readonly PartJson[],
  mark: RegExp | null,
  opensAll: boolean,
): HTMLElement {
  const [part, result] = parts as readonly [PartJson, PartJson?];
  const isHit = mark !== null && parts.some(({ text }) => text.search(mark) >= 0);
  const isOpen = isShortDiff(part) || opensAll;
  const outcome = part.type === "tool_call" ? describeOutcome(part, result ?? null) : "";
  const details = h(
    "details",
    { class: `part ${kind}`, open: isHit || isOpen },
    h(
      "summary",
      {},
      h("b", {}, ...textNodes(titleOf(part))),
      " ",
      h("span", { class: "preview" }, ...textNodes(lineOf(part), mark)),
      outcome !== "" && h("span", { class: "outcome" }, ...textNodes(outcome, mark)),
    ),
  );
  // Built when it is opened: most never are.
  const fillIn = (): void => {
    if (details.childElementCount === 1)
      details.append(...parts.map((one) => renderBody(one, mark)), ...parts.flatMap(renderResultLink));
  };
  if (isHit || isOpen) fillIn();
  details.addEventListener("toggle", fillIn);
  details.querySelector("summary")?.addEventListener("click", fillIn);
  return details;
}

const renderBody = (part: PartJson, mark: RegExp | null): HTMLElement =>
  part.type === "reasoning"
    ? h("div", {}, ...renderBlocks(part.text, mark))
    : part.call?.diff
      ? renderDiff(part.call.diff, `what ${part.toolName ?? "the tool"} changes`, mark)
      : renderCode(part.text, "", mark);

/** The end of a long result is in its own message. */
const renderResultLink = (part: PartJson): HTMLElement[] =>
  part.ofMessage !== undefined && part.chars > part.text.length
    ? [h("a", { href: `#msg_${part.ofMessage}` }, `all ${formatCount(part.chars)} characters`)]
    : [];

function renderImage(id: number, part: PartJson): HTMLElement {
  const name = describeFile(part, formatBytes);
  if (!part.hasImage) return h("div", { class: "file" }, ...textNodes(name));
  const image = h("img", { alt: name });
  const show = (address: string): void => {
    image.addEventListener("load", () => URL.revokeObjectURL(address), { once: true });
    image.src = address;
  };
  void whenRead(readPicture(id, part.ordinal), show, (failure) => image.replaceWith(failure));
  return h("figure", {}, image, h("figcaption", { class: "faint" }, ...textNodes(name)));
}
