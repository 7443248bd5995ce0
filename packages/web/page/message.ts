/** One message as it is shown: who, when, how large, and its parts. What is long or machine-made is folded until somebody opens it. */
import { renderAction } from "./action-dialog.ts";
import { readMessage, readPicture } from "./api.ts";
import type { MessageDetail, MessageJson, PartJson } from "./api.ts";
import { h, textNodes } from "./dom.ts";
import type { Child } from "./dom.ts";
import { formatBytes, formatCount, formatTime } from "./format.ts";
import { colourCode, splitFences } from "./highlight.ts";
import { whenRead } from "./view.ts";

const PREVIEW_CHARS = 110;
/** Plain text longer than this is folded to its begin. */
const FOLD_CHARS = 3_000;

/** `onChange` is told after it was forgotten from here; without it, nothing can be done to it. */
export function renderMessage(
  message: MessageJson,
  mark: RegExp | null,
  onChange: (() => void) | null = null,
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
  const body = h(
    "div",
    { class: "parts" },
    ...message.parts.map((part) => renderPart(message.id, part, mark)),
  );
  const isCut = message.parts.some((part) => part.chars > part.text.length);
  return h(
    "article",
    {
      class: `message role-${roleClass(row.role)}${row.hidden.length > 0 ? " hidden-message" : ""}`,
      "aria-label": `${row.role}, ${name}`,
    },
    h(
      "header",
      {},
      h("span", { class: "role" }, row.role || "line"),
      renderLink(name),
      h("time", {}, formatTime(row.createdAt)),
      h("span", { class: "faint" }, `${formatCount(row.tokens)} tokens`),
      message.model !== null && h("span", { class: "faint" }, message.model),
      ...row.hidden.map((reason) => h("span", { class: "tag" }, reason)),
      row.revises !== null &&
        h("a", { class: "tag", href: `#msg_${row.revises}` }, `revises msg_${row.revises}`),
      row.newest !== null &&
        row.newest !== row.messageId &&
        h("a", { class: "tag", href: `#msg_${row.newest}` }, "has a newer version"),
      ...message.fileIds.map((file) =>
        h("span", { class: "tag", title: "lives in a file of its own" }, file),
      ),
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
      body.replaceChildren(...message.parts.map((part) => renderPart(id, part, mark, true)));
      body.dispatchEvent(new Event("toggle", { bubbles: true }));
      button.remove();
    };
    void whenRead(readMessage(id), show, (failure) => button.replaceWith(failure));
  });
  return button;
}

function renderPart(id: number, part: PartJson, mark: RegExp | null, isWhole = false): HTMLElement {
  switch (part.type) {
    case "text":
      return renderText(part.text, mark, isWhole);
    case "reasoning":
      return renderFolded("reasoning", "Reasoning", part, mark);
    case "tool_call":
      return renderFolded("call", `Calls ${part.toolName ?? "a tool"}`, part, mark);
    case "tool_result":
      return renderFolded(
        part.isError ? "result failed" : "result",
        `${part.isError ? "Error of" : "Result of"} ${part.toolName ?? "a tool"}`,
        part,
        mark,
      );
    case "image":
      return renderImage(id, part);
    case "file":
      return h("div", { class: "file" }, ...textNodes(describeFile(part)));
    case "other":
      return renderFolded("other", "Something else", part, mark);
  }
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

export function renderBlocks(text: string, mark: RegExp | null): HTMLElement[] {
  return splitFences(text).map((block) =>
    block.kind === "text"
      ? h("div", { class: "prose" }, ...textNodes(block.text, mark))
      : renderCode(block.text, block.language, mark),
  );
}

function renderCode(code: string, language: string, mark: RegExp | null): HTMLElement {
  const pieces: Child[] = colourCode(code).flatMap(({ kind, text }) =>
    kind === "plain"
      ? textNodes(text, mark)
      : [h("span", { class: `code-${kind}` }, ...textNodes(text, mark))],
  );
  return h(
    "pre",
    { class: "code", tabindex: 0, "aria-label": language === "" ? "code" : `code, ${language}` },
    h("code", {}, ...pieces),
  );
}

function renderFolded(kind: string, title: string, part: PartJson, mark: RegExp | null): HTMLElement {
  const [first = "", second] = part.text.trimStart().split("\n", 2);
  // The title says the name of the tool already.
  const line = first === part.toolName ? (second ?? "") : first;
  const isHit = mark !== null && part.text.search(mark) >= 0;
  const details = h(
    "details",
    { class: `part ${kind}`, open: isHit },
    h(
      "summary",
      {},
      h("b", {}, ...textNodes(title)),
      " ",
      h("span", { class: "preview" }, ...textNodes(line.slice(0, PREVIEW_CHARS), mark)),
    ),
  );
  // Made when it is opened: most never are.
  const fillIn = (): void => {
    if (details.childElementCount === 1) details.append(renderCode(part.text, "", mark));
  };
  if (isHit) fillIn();
  details.addEventListener("toggle", fillIn);
  details.querySelector("summary")?.addEventListener("click", fillIn);
  return details;
}

function renderImage(id: number, part: PartJson): HTMLElement {
  const name = describeFile(part);
  if (!part.hasImage) return h("div", { class: "file" }, ...textNodes(name));
  const image = h("img", { alt: name });
  const show = (address: string): void => {
    image.addEventListener("load", () => URL.revokeObjectURL(address), { once: true });
    image.src = address;
  };
  void whenRead(readPicture(id, part.ordinal), show, (failure) => image.replaceWith(failure));
  return h("figure", {}, image, h("figcaption", { class: "faint" }, ...textNodes(name)));
}

function describeFile({ type, fileName, mimeType, payloadBytes, text }: PartJson): string {
  const size = payloadBytes === null ? null : formatBytes(payloadBytes);
  const words = [type === "image" ? "Image" : "File", fileName, mimeType, size].filter(
    (word) => word !== null,
  );
  return fileName === null && text !== "" ? `${words.join(", ")}\n${text}` : words.join(", ");
}
