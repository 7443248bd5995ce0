/** Conversations as text: how one began, its last question and answer, and its messages page by page. */
import { formatMessageId } from "@lossless/core";
import type {
  ConversationRow,
  DescribedMessage,
  Engine,
  MessageRow,
  Origin,
  OriginFilter,
} from "@lossless/core";

/** The part of a message that a list shows. */
const CLIP_CHARS = 300;
const TITLE_CHARS = 80;
/** How many rows a list searches for text: an agent's turn can have dozens of tool rows. */
const LOOK_ROWS = 200;
/** There are at most thousands of conversations; their rows are small and read at once. */
const LIST_ROWS = 10_000;

export interface Scope {
  readonly owner?: string | undefined;
}

/** The conversations that a list shows. */
type Chosen = Scope & OriginFilter;

export interface Said {
  readonly id: string;
  readonly createdAt: number;
  readonly text: string;
}

export interface RecentConversation extends Origin {
  readonly conversationId: number;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly title: string;
  readonly messages: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly lastRequest: Said | null;
  readonly lastAnswer: Said | null;
}

/** All readable conversations, the one with the latest message first. */
export async function listByLatest(engine: Engine, scope: Chosen): Promise<ConversationRow[]> {
  const rows: ConversationRow[] = [];
  let after: string | null = null;
  do {
    const page = await engine.listConversations({ ...scope, after, limit: LIST_ROWS });
    rows.push(...page.items);
    after = page.next;
  } while (after !== null);
  return rows.toSorted((a, b) => latestOf(b) - latestOf(a) || b.conversationId - a.conversationId);
}

export const latestOf = ({ lastAt, createdAt }: ConversationRow): number => lastAt ?? createdAt;

export async function outlineConversation(
  engine: Engine,
  scope: Scope,
  row: ConversationRow,
): Promise<RecentConversation> {
  const { conversationId, sessionKey, sessionId, messages, firstAt, lastAt } = row;
  const { agent, project, branch, model } = row;
  const newest = await listShown(engine, scope, conversationId);
  return {
    conversationId,
    sessionKey,
    sessionId,
    agent,
    project,
    branch,
    model,
    title: await readTitle(engine, scope, row),
    messages,
    firstAt,
    lastAt,
    lastRequest: await findSaid(engine, scope, newest, "user"),
    lastAnswer: await findSaid(engine, scope, newest, "assistant"),
  };
}

/** Its title in lists. */
export async function readTitle(
  engine: Engine,
  scope: Scope,
  { conversationId, sessionKey }: ConversationRow,
): Promise<string> {
  const row = await engine.readConversation({ ...scope, conversationId });
  return clip(row?.heading ?? sessionKey, TITLE_CHARS);
}

export interface ConversationPage {
  readonly messages: readonly DescribedMessage[];
  readonly next: string | null;
}

/** Messages word for word, from the end of the previous page. Null: no such conversation, or one of another owner. */
export async function readPage(
  engine: Engine,
  scope: Scope,
  conversationId: number,
  after: string | undefined,
): Promise<ConversationPage | null> {
  if ((await engine.readConversation({ ...scope, conversationId })) === null) return null;
  const [first, last] = await Promise.all(
    (["oldest", "newest"] as const).map((direction) =>
      engine.listMessages({ ...scope, conversationId, direction, order: "arrival", limit: 1 }),
    ),
  );
  const ends = [first?.items[0], last?.items[0]].flatMap((row) =>
    row === undefined ? [] : [formatMessageId(row.messageId)],
  );
  if (ends.length < 2) return { messages: [], next: null };
  const described = await engine.describe({ ...scope, conversationId, id: ends.join(".."), after });
  return described.type === "messages" ? described : null;
}

async function listShown(engine: Engine, scope: Scope, conversationId: number): Promise<MessageRow[]> {
  const page = await engine.listMessages({ ...scope, conversationId, direction: "newest", limit: LOOK_ROWS });
  return page.items.filter(({ hidden }) => hidden.length === 0);
}

/** The first row in which this role says something in words. */
async function findSaid(
  engine: Engine,
  scope: Scope,
  rows: readonly MessageRow[],
  role: string,
): Promise<Said | null> {
  for (const { messageId, createdAt } of rows.filter((row) => row.role === role)) {
    const message = await engine.readMessage({ ...scope, messageId });
    const texts = message?.view.parts.filter(({ type }) => type === "text").map(({ text }) => text) ?? [];
    const text = clip(texts.join("\n"), CLIP_CHARS);
    if (text !== "") return { id: formatMessageId(messageId), createdAt, text };
  }
  return null;
}

function clip(text: string, limit: number): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length <= limit ? line : `${line.slice(0, limit - 1).trimEnd()}…`;
}
