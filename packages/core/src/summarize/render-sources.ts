/**
 * Sources as text for a model to summarise: one block per item with its time in the configured zone and its speaker, tool calls and file
 * operations spelled out, bulk results shortened in the middle. Reasoning, injected context and encoded payloads are never included: nobody
 * said them. The text is data; the prompt around it says so.
 */
import { describeCall } from "./actions.ts";
import type { SourceLine, SourcePart } from "./source.ts";
import { partsOf, speakerOf } from "./source.ts";
import { formatMoment } from "./time.ts";

export interface RenderOptions {
  readonly timeZone: string;
  /** Names of tags whose content was injected by a plugin and is not part of the conversation. */
  readonly stripTags: readonly string[];
  /** Maximum characters of one tool result; the middle of a longer one is omitted. */
  readonly maxResultChars?: number;
}

const DEFAULT_RESULT_CHARS = 4_000;

export function renderSources(sources: readonly SourceLine[], options: RenderOptions): string {
  const blocks: string[] = [];
  for (const source of sources) {
    const block = source.kind === "summary" ? renderSummary(source, options) : renderMessage(source, options);
    if (block !== "") blocks.push(block);
  }
  return blocks.join("\n\n");
}

/** The same sources without injected context, reasoning and encoded payloads, for the summariser that needs no model. */
export function cleanSources(sources: readonly SourceLine[], stripTags: readonly string[]): SourceLine[] {
  return sources.map((source) => {
    const text = cleanText(source.text, stripTags);
    if (source.parts === undefined) return { ...source, text };
    const parts = source.parts
      .filter((part) => part.type !== "reasoning")
      .map((part) => ({
        ...part,
        text: part.type === "tool_call" ? part.text : cleanText(part.text, stripTags),
      }));
    return { ...source, text, parts };
  });
}

/** Every file operation of the run, in order, each once; empty when there was none. */
export function listFileOperations(sources: readonly SourceLine[]): string[] {
  const operations = new Set<string>();
  for (const source of sources) {
    for (const part of source.kind === "message" ? partsOf(source) : []) {
      if (part.type !== "tool_call") continue;
      const action = describeCall(part.toolName, part.text);
      if (action.targetKind === "file") operations.add(`${action.verb} ${action.target}`);
    }
  }
  return [...operations];
}

function renderSummary(source: SourceLine, options: RenderOptions): string {
  const text = cleanText(source.text, options.stripTags);
  return text === "" ? "" : `[${formatMoment(source.at, options.timeZone)}] summary ${source.id}:\n${text}`;
}

function renderMessage(source: SourceLine, options: RenderOptions): string {
  const pieces: string[] = [];
  for (const part of partsOf(source)) {
    const piece = renderPart(part, options);
    if (piece !== "") pieces.push(piece);
  }
  if (pieces.length === 0) return "";
  return `[${formatMoment(source.at, options.timeZone)}] ${speakerOf(source)}: ${pieces.join("\n")}`;
}

function renderPart(part: SourcePart, options: RenderOptions): string {
  switch (part.type) {
    case "reasoning":
      return "";
    case "text":
      return cleanText(part.text, options.stripTags);
    case "tool_call":
      return renderCall(part, options);
    case "tool_result":
      return renderResult(part, options);
    case "image":
    case "file":
      return `(${part.type}${part.text === "" ? "" : `: ${shorten(dropEncoded(part.text), 300)}`})`;
    case "other":
      return shorten(dropEncoded(part.text), 600);
  }
}

/** The action in words, then the arguments, so that a reader sees both. */
function renderCall(part: SourcePart, options: RenderOptions): string {
  const action = describeCall(part.toolName, part.text);
  const done = `${action.verb} ${action.target}`.trim();
  const args = shorten(dropEncoded(part.text), options.maxResultChars ?? DEFAULT_RESULT_CHARS);
  return `(tool call ${part.toolName ?? ""}: ${done})\n${args}`;
}

function renderResult(part: SourcePart, options: RenderOptions): string {
  const text = cleanText(part.text, options.stripTags);
  const label = part.isError === true ? "tool error" : "tool result";
  return `(${label}) ${shorten(text, options.maxResultChars ?? DEFAULT_RESULT_CHARS)}`;
}

function cleanText(text: string, stripTags: readonly string[]): string {
  return dropEncoded(stripInjectedContext(text, stripTags)).trim();
}

/** Removes `<tag …>…</tag>` for the given names; an unclosed tag loses only its opening mark. */
export function stripInjectedContext(text: string, tags: readonly string[]): string {
  let out = text;
  for (const tag of tags) {
    if (!out.includes(`<${tag}`)) continue;
    const name = tag.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    out = out.replace(new RegExp(`<${name}(?:\\s[^>]*)?>[\\s\\S]*?</${name}>`, "g"), "");
    out = out.replace(new RegExp(`</?${name}(?:\\s[^>]*)?>`, "g"), "");
  }
  return out;
}

const ENCODED_RUN = /(?:data:[\w.+-]+\/[\w.+-]+;base64,)?[A-Za-z0-9+/]{200,}={0,2}/g;

/** Base64 is useless to a reader. Long words of letters alone are kept: they may be text without spaces. */
function dropEncoded(text: string): string {
  if (text.length < 200) return text;
  return text.replace(ENCODED_RUN, (run) =>
    run.startsWith("data:") || (/\d/.test(run) && /[A-Z]/.test(run) && /[a-z]/.test(run))
      ? `(${run.length} encoded characters)`
      : run,
  );
}

/** Keeps both ends: logs say what ran at the top and how it ended at the bottom. */
function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const head = Math.floor(limit * 0.65);
  const left = text.length - limit;
  return `${sliceWhole(text, 0, head)}\n(… ${left} characters left out …)\n${sliceWhole(text, text.length - (limit - head), text.length)}`;
}

/** Never cuts a surrogate pair in two. */
function sliceWhole(text: string, start: number, end: number): string {
  const from = isLow(text.charCodeAt(start)) ? start + 1 : start;
  const to = isLow(text.charCodeAt(end)) ? end - 1 : end;
  return text.slice(from, to);
}

const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;
