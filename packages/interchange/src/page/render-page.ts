/**
 * The HTML of an exported page, piece by piece. One self-contained file: its policy lets it load nothing, run only the script with the given
 * hash and use only its own style. Pictures are embedded. Stored text is inserted only through `reading/markup.ts` and `escapeHtml`.
 */
import { hash } from "node:crypto";
import { countOf, formatBytes, formatSeconds, formatSpan, formatTime } from "@lossless/core/doors";
import type { ListedConversation } from "@lossless/core/ports";
import { describeFile, describeOutcome, isShortDiff, lineOf, titleOf } from "../reading/cards.ts";
import { markUpCode, markUpDiff } from "../reading/code.ts";
import { markUpText } from "../reading/markdown.ts";
import { escapeHtml, quoteText, renderHtml } from "../reading/markup.ts";
import type { ReadablePart } from "../reading/parts.ts";
import { PAGE_SCRIPT } from "./page-script.ts";
import { PAGE_STYLE } from "./page-style.ts";
import type { PageMessage, PagePart, PageTurn } from "./turns.ts";

/** With its title in lists and its start time. */
export type HeadedExport = ListedConversation & { readonly heading: string; readonly firstAt: number | null };

const SPEAKERS = { user: "User", assistant: "Assistant", system: "System", tool: "Tool", other: "Other" };
/** Longer texts are folded to their beginning. */
const FOLD_CHARS = 6_000;
const BEGIN_CHARS = 400;

const allow = (text: string): string => `'sha256-${hash("sha256", text, "base64")}'`;
const POLICY = [
  "default-src 'none'",
  `script-src ${allow(PAGE_SCRIPT)}`,
  `style-src ${allow(PAGE_STYLE)}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const quote = (text: string): string => renderHtml(quoteText(text));

export class PageWriter {
  readonly #timezone: string;
  /** A single conversation is the page; several are its chapters. */
  readonly #isAlone: boolean;
  #hasTimes = false;

  constructor(timezone: string, conversations: number) {
    this.#timezone = timezone;
    this.#isAlone = conversations === 1;
  }

  begin(conversations: readonly HeadedExport[], hasHousekeeping: boolean): string {
    const [first] = conversations;
    const title =
      this.#isAlone && first !== undefined ? first.heading : countOf(conversations.length, "conversation");
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<header class="top">
<h1>${quote(title)}</h1>
${this.#isAlone && first !== undefined ? this.#describe(first) : listChapters(conversations)}
</header>
${renderBar(hasHousekeeping)}
<main>
`;
  }

  conversation(conversation: HeadedExport): string {
    this.#hasTimes = conversation.firstAt !== null;
    const { conversationId, heading } = conversation;
    const head = `<h2>${quote(heading)}</h2>\n${this.#describe(conversation)}\n`;
    return `<section id="conversation_${conversationId}" aria-label="Messages">\n${this.#isAlone ? "" : head}`;
  }

  turn(turn: PageTurn): string {
    const { messages, said, tokens, startAt, tookMs } = turn;
    const head = [
      ...(startAt === null ? [] : [formatTime(startAt, this.#timezone)]),
      countOf(said, "message"),
      countOf(tokens, "token"),
      ...(tookMs >= 1000 ? [formatSeconds(tookMs)] : []),
    ];
    const kind = said === 0 ? "turn housekeeping" : "turn";
    return `<section class="${kind}">
<p class="turn-head">${head.join(" · ")}</p>
${messages.map((message, index) => this.#message(message, goesOn(messages[index - 1], message))).join("\n")}
</section>
`;
  }

  endConversation(): string {
    return "</section>\n";
  }

  end(redacted: number): string {
    const note =
      redacted === 0 ? "" : ` ${countOf(redacted, "value")} replaced by <code>[redacted:…]</code>.`;
    return `</main>
<footer>Exported by lossless-claw.${note} Times are in ${escapeHtml(this.#timezone)}.</footer>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`;
  }

  /** Project, agent, branch, model, time; no ids and no paths of the machine. */
  #describe({ project, agent, branch, model, firstAt, lastAt }: HeadedExport): string {
    const words = [
      ...(project === null ? [] : [nameProject(project)]),
      ...[agent, branch, model].filter((word) => word !== null),
      ...(firstAt === null ? [] : [formatSpan(firstAt, lastAt, this.#timezone)]),
    ];
    return `<p class="of">${quote(words.join(" · "))}</p>`;
  }

  /** The speaker is named only when it changes. */
  #message(message: PageMessage, isGoingOn: boolean): string {
    const { messageId, role, model, at, isDated, isHousekeeping, parts } = message;
    const name = `msg_${messageId}`;
    // A line without a time gets that of the next line that has one, if any.
    const time =
      isDated || this.#hasTimes
        ? `<time datetime="${new Date(at).toISOString()}">${formatTime(at, this.#timezone)}</time>`
        : "";
    const kinds = [
      `role-${role}`,
      ...(isHousekeeping ? ["housekeeping"] : []),
      ...(isGoingOn ? ["going-on"] : []),
    ];
    const speaker = `<b>${SPEAKERS[role]}</b>${model === null ? "" : `<span>${quote(model)}</span>`}`;
    return `<article class="${kinds.join(" ")}" id="${name}" aria-label="${SPEAKERS[role]}, ${name}">
<header>${isGoingOn ? "" : speaker}${time}<a href="#${name}">${name}</a></header>
<div class="parts">${parts.map(renderPart).join("\n")}</div>
</article>`;
  }
}

const goesOn = (before: PageMessage | undefined, { role, model, isHousekeeping }: PageMessage): boolean =>
  before?.role === role && before.model === model && before.isHousekeeping === isHousekeeping;

/** The last folder of a path. */
const nameProject = (path: string): string => path.split(/[\\/]/u).findLast((name) => name !== "") ?? path;

const listChapters = (conversations: readonly HeadedExport[]): string =>
  `<nav aria-label="Conversations"><ol>${conversations
    .map(
      ({ conversationId, heading }) =>
        `<li><a href="#conversation_${conversationId}">${quote(heading)}</a></li>`,
    )
    .join("")}</ol></nav>`;

const renderBar = (hasHousekeeping: boolean): string => `<div class="bar" role="search" hidden>
<form>
<input type="search" id="find" placeholder="Find in this page (/)" aria-label="Find in this page">
<button type="button" id="previous" aria-label="Previous message found">↑</button>
<button type="button" id="next" aria-label="Next message found">↓</button>
<output id="count" for="find"></output>
<button type="button" id="open">Open all</button>
<button type="button" id="close">Fold all</button>
${hasHousekeeping ? `<label><input type="checkbox" id="housekeeping"> housekeeping</label>` : ""}
<select id="colours" aria-label="Colours"><option value="">Auto</option><option value="light">Light</option><option value="dark">Dark</option></select>
</form>
</div>`;

function renderPart(part: PagePart): string {
  switch (part.type) {
    case "text":
      return renderText(part);
    case "image":
      return renderImage(part);
    case "file":
      return `<p class="notice">${quote(describeFile(part, formatBytes))}</p>`;
    case "reasoning":
    case "tool_call":
    case "tool_result":
    case "other":
      return renderCard(part);
  }
}

function renderText(part: PagePart): string {
  const body = renderHtml(markUpText(part.text)) + renderCut(part);
  if (part.text.length <= FOLD_CHARS) return body;
  const size = `${part.chars.toLocaleString("en")} characters`;
  return `<details class="long"><summary><span class="prose">${quote(part.text.slice(0, BEGIN_CHARS).toWellFormed())}</span> … ${size}</summary>${body}</details>`;
}

function renderImage(part: PagePart): string {
  const name = describeFile(part, formatBytes);
  if (part.picture === null) return `<p class="notice">${quote(name)}</p>`;
  return `<figure><img src="${part.picture}" alt="${escapeHtml(name)}"><figcaption>${quote(name)}</figcaption></figure>`;
}

/** A call with its result, reasoning, or a result alone: one line until the reader opens it, unless it changes only a few lines of a file. */
function renderCard(part: PagePart): string {
  const { result } = part;
  const kinds = { reasoning: "reasoning", tool_call: "call", tool_result: "result" } as const;
  const kind = part.type in kinds ? kinds[part.type as keyof typeof kinds] : "other";
  const failed = part.isError || result?.isError === true ? " failed" : "";
  const words = part.type === "tool_call" ? describeOutcome(part, result) : "";
  const outcome = words === "" ? "" : `<span class="outcome">${quote(words)}</span>`;
  return `<details class="${kind}${failed}"${isShortDiff(part) ? " open" : ""}>
<summary><b>${quote(titleOf(part))}</b> <span class="preview">${quote(lineOf(part))}</span>${outcome}</summary>
${renderBody(part)}${result === null ? "" : renderBody(result)}
</details>`;
}

function renderBody(part: ReadablePart): string {
  if (part.type === "reasoning") return renderHtml(markUpText(part.text)) + renderCut(part);
  if (part.call?.diff)
    return renderHtml([markUpDiff(part.call.diff, `what ${part.toolName ?? "the tool"} changes`)]);
  return renderHtml([markUpCode(part.text, "")]) + renderCut(part);
}

const renderCut = ({ text, chars }: ReadablePart): string =>
  chars > text.length
    ? `<p class="notice">… ${(chars - text.length).toLocaleString("en")} more characters are in the archive.</p>`
    : "";
