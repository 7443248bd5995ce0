/** `lcm_recent`: recent conversations, so that an agent can continue where the last session ended without knowing what to search for. */
import { EngineError, formatTime, ORIGIN_PROPERTIES, readParams } from "@lossless/core";
import type { ConversationRow, OriginFilter, ToolResult } from "@lossless/core";
import { latestOf, listByLatest, outlineConversation } from "./conversation-text.ts";
import type { RecentConversation } from "./conversation-text.ts";
import type { CallContext, McpTool } from "./tools.ts";

const DEFAULT_LIMIT = 5;

interface Params extends OriginFilter {
  readonly allProjects?: boolean;
  readonly limit?: number;
  readonly since?: string;
  readonly after?: string;
}

export const recentTool: McpTool = {
  name: "lcm_recent",
  title: "What happened lately",
  description:
    "The latest sessions in this project, newest first: what each began with, the last request and the last answer, with ids to open. Use it to catch up.",
  parameters: {
    type: "object",
    properties: {
      limit: { type: "integer", minimum: 1, maximum: 50, description: "sessions, default 5" },
      ...ORIGIN_PROPERTIES,
      allProjects: { type: "boolean", description: "not only the project this server was started in" },
      since: { type: "string", description: "ISO time" },
      after: { type: "string", description: "next page" },
    },
    additionalProperties: false,
  },
  async run(context, params): Promise<ToolResult> {
    const { limit = DEFAULT_LIMIT, since, after, ...chosen } = readParams<Params>(recentTool, params);
    const { engine, owner } = context;
    const { listed, project } = await listChosen(context, chosen);
    const rows = listed.filter(wanted(since, after));
    const shown: RecentConversation[] = [];
    for (const row of rows.slice(0, limit)) shown.push(await outlineConversation(engine, { owner }, row));
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    const next = last === undefined ? null : cursorOf(last);
    const text = render(shown, { total: rows.length, project, next }, context);
    return { text, details: { conversations: shown, project: project ?? null, next } };
  },
};

/** Conversations of the project that the server was started in, unless others are requested or there are none yet. */
async function listChosen(
  { engine, owner, project: here }: CallContext,
  { project, agent, exceptSession, allProjects = false }: Params,
): Promise<{ listed: ConversationRow[]; project: string | undefined }> {
  const filter = { owner, agent, exceptSession };
  const named = project ?? (allProjects ? undefined : here);
  const listed = await listByLatest(engine, { ...filter, project: named });
  if (listed.length > 0 || project !== undefined || named === undefined) return { listed, project: named };
  return { listed: await listByLatest(engine, filter), project: undefined };
}

const cursorOf = (row: ConversationRow): string => `${latestOf(row)}.${row.conversationId}`;

/** Conversations that are new enough, and after the cursor. */
function wanted(since: string | undefined, after: string | undefined): (row: ConversationRow) => boolean {
  const from = since === undefined ? -Infinity : readTime(since);
  const [time, id] = after === undefined ? [Infinity, Infinity] : readCursor(after);
  return (row) => {
    const latest = latestOf(row);
    return latest >= from && (latest < time || (latest === time && row.conversationId < id));
  };
}

function readTime(text: string): number {
  const time = Date.parse(text);
  if (!Number.isNaN(time)) return time;
  throw new EngineError("usage", `cannot run lcm_recent: since is not a time: "${text}"`, {
    hint: "pass an ISO time such as 2026-11-16 or 2026-11-16T09:30:00Z",
  });
}

function readCursor(text: string): [time: number, id: number] {
  const found = /^(\d+)\.(\d+)$/.exec(text);
  if (found) return [Number(found[1]), Number(found[2])];
  throw new EngineError("usage", `cannot run lcm_recent: after is not a cursor of this list: "${text}"`, {
    hint: "pass the value that the previous page returned",
  });
}

function render(
  shown: readonly RecentConversation[],
  {
    total,
    project,
    next,
  }: { readonly total: number; readonly project: string | undefined; readonly next: string | null },
  { timeZone }: CallContext,
): string {
  const blocks = shown.map((conversation) => {
    const { conversationId, title, messages, lastAt, lastRequest, lastAnswer, agent, sessionId } =
      conversation;
    const origin = agent === null ? "" : `${agent} session=${sessionId}, `;
    const time = lastAt === null ? "no message with a time" : formatTime(lastAt, timeZone);
    return [
      `[conv=${conversationId}] ${title} (${origin}${messages} messages, last ${time})`,
      ...(lastRequest === null ? [] : [`  asked last [${lastRequest.id}]: ${lastRequest.text}`]),
      ...(lastAnswer === null ? [] : [`  answered last [${lastAnswer.id}]: ${lastAnswer.text}`]),
    ].join("\n");
  });
  return [
    `${total} sessions${project === undefined ? "" : ` in ${project}`}, ${shown.length} shown.`,
    ...blocks,
    ...(next === null ? [] : [`More: after="${next}".`]),
  ].join("\n");
}
