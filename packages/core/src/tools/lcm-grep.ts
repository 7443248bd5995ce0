/** `lcm_grep`: search, the first of the three steps taught to agents. */
import { TOOL_WORDS } from "./tool-words.ts";
import { wordNote } from "../model/next-step.ts";
import type { FoundConversation, GrepResult, GrepHit, GrepRequest } from "../recall/grep.ts";
import { callerOf, formatTime, ORIGIN_PROPERTIES, readParams, SCOPE_PROPERTIES } from "./tool.ts";
import type { ToolDefinition } from "./tool.ts";

type Params = Omit<GrepRequest, "session" | "owner" | "delegated" | "signal" | "timeoutMs">;

/** Longest text that a search returns to a model. */
const MAX_CHARS = 40_000;

export const grepTool: ToolDefinition = {
  name: "lcm_grep",
  description:
    'Search everything said in this session, also what was folded away. full_text takes questions, words, "phrases", identifiers. Hits carry ids; open them with lcm_describe.',
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string" },
      mode: {
        type: "string",
        enum: ["regex", "full_text"],
        description: "default regex; without a hit retried as full_text",
      },
      scope: { type: "string", enum: ["messages", "summaries", "both", "files"] },
      fileIds: { type: "array", items: { type: "string" } },
      ...SCOPE_PROPERTIES,
      ...ORIGIN_PROPERTIES,
      since: { type: "string", description: "ISO time" },
      before: { type: "string" },
      role: { type: "string", enum: ["user", "assistant", "tool", "system"] },
      limit: { type: "integer", minimum: 1, maximum: 200 },
      sort: { type: "string", enum: ["recency", "relevance", "hybrid"] },
      after: { type: "string", description: "next page" },
      includeRecall: { type: "boolean", description: "also calls and results of lcm tools" },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  async run(context, params) {
    const request = readParams<Params>(grepTool, params);
    const answer = await context.engine.grep({ ...request, ...callerOf(context), signal: context.signal });
    return { text: renderGrep(request.pattern, answer, context.timeZone), details: answer };
  },
};

function renderGrep(pattern: string, answer: GrepResult, timeZone?: string): string {
  const { hits, total, isTotalExact, mode, rule, searched, next, notes } = answer;
  const count = `${isTotalExact ? "" : "at least "}${total}`;
  const origins = new Map(answer.conversations.map((found) => [found.conversationId, nameOrigin(found)]));
  const shown = fitLines(hits.map((hit) => renderHit(hit, origins.get(hit.conversationId) ?? "", timeZone)));
  const left = hits.length - shown.length;
  return [
    `${count} found for ${JSON.stringify(clip(pattern))} (${mode}, ${rule}) in ${searched}, ${shown.length} shown.`,
    ...notes.map((note) => wordNote(note, TOOL_WORDS)),
    ...shown,
    ...(left === 0 ? [] : [`(${left} more on this page are left out; ask for fewer with limit)`]),
    ...(next === null ? [] : [`More: after="${next}".`]),
  ].join("\n");
}

function fitLines(lines: readonly string[]): readonly string[] {
  let size = 0;
  const end = lines.findIndex((line) => (size += line.length + 1) > MAX_CHARS);
  return end < 0 ? lines : lines.slice(0, end);
}

const clip = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

/** Agent and session, if there may be more than one agent. */
const nameOrigin = ({ agent, sessionId }: FoundConversation): string =>
  agent === null ? "" : ` ${agent} session=${sessionId}`;

function renderHit(hit: GrepHit, origin: string, timeZone?: string): string {
  const time = formatTime(hit.createdAt, timeZone);
  const name = `conv=${hit.conversationId}${origin} ${hit.id}`;
  if (hit.type === "message") return `[${name}] (${hit.role}, ${time}): ${hit.snippet}`;
  if (hit.type === "summary") {
    const span = `${formatTime(hit.earliestAt, timeZone)} to ${formatTime(hit.latestAt, timeZone)}`;
    return `[${name}] (${hit.kind}, depth ${hit.depth}, ${span}): ${hit.snippet}`;
  }
  return `[${name}] (${hit.fileName ?? "file"}, line ${hit.line}, byte ${hit.byteOffset}): ${hit.snippet}`;
}
