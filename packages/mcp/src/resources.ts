/**
 * Stored data by address: `lcm://conversation/3`, `lcm://summary/sum_…`, `lcm://message/msg_…`, `lcm://file/file_…`. Long ones come in pages:
 * the end of a page names the address of the next. Data of other owners is not found.
 */
import { describeTool, EngineError, formatTime, isFileId, isSummaryId, parseMessageId } from "@lossless/core";
import type { Engine, SummaryRow } from "@lossless/core";
import { ResourceNotFoundError } from "@modelcontextprotocol/server";
import type { Resource } from "@modelcontextprotocol/server";
import { listByLatest, readPage, readTitle } from "./conversation-text.ts";
import type { ArchiveReader } from "./reader.ts";

const SCHEME = "lcm:";
const KINDS = ["conversation", "summary", "message", "file"] as const;
type Kind = (typeof KINDS)[number];

const PAGE = 50;
/** The maximum number of completion values. */
const MAX_COMPLETIONS = 100;
/** Conversations whose summaries and files are offered for completion: the latest ones. */
const COMPLETED_CONVERSATIONS = 5;

export interface Template {
  readonly kind: Kind;
  readonly uriTemplate: string;
  readonly title: string;
  readonly description: string;
}

export const TEMPLATES: readonly Template[] = [
  template("conversation", "Conversation", "All messages of a conversation, word for word, in pages"),
  template("summary", "Summary", "A summary with what it was made from"),
  template("message", "Message", "A message, word for word"),
  template("file", "Large file", "A large file that was kept beside the messages"),
];

function template(kind: Kind, title: string, description: string): Template {
  return { kind, uriTemplate: `${SCHEME}//${kind}/{id}{?after}`, title, description };
}

/** Conversations, the one with the latest message first. The cursor is the number already listed. */
export async function listResources(
  reader: ArchiveReader,
  cursor: string | undefined,
): Promise<{ resources: Resource[]; nextCursor?: string }> {
  const engine = await reader.engine();
  const scope = { owner: reader.owner };
  const from = readOffset(cursor);
  const rows = await listByLatest(engine, scope);
  const resources: Resource[] = [];
  for (const row of rows.slice(from, from + PAGE)) {
    const title = await readTitle(engine, scope, row);
    resources.push({
      uri: `${SCHEME}//conversation/${row.conversationId}`,
      name: `conversation ${row.conversationId}`,
      title,
      description: `${row.messages} messages`,
      mimeType: "text/plain",
      ...(row.lastAt === null ? {} : { annotations: { lastModified: new Date(row.lastAt).toISOString() } }),
    });
  }
  const end = from + PAGE;
  return end < rows.length ? { resources, nextCursor: String(end) } : { resources };
}

function readOffset(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (/^\d{1,9}$/.test(cursor)) return Number(cursor);
  throw new EngineError("usage", `cannot list resources: "${cursor}" is not a cursor of this list`);
}

export async function readResource(reader: ArchiveReader, uri: string): Promise<string> {
  const { kind, id, after } = parseUri(uri);
  const engine = await reader.engine();
  try {
    if (kind === "conversation") return await readConversation(engine, reader, uri, id, after);
    const { owner, timeZone } = reader;
    const { text } = await describeTool.run({ engine, owner, timeZone }, { id, after });
    return text;
  } catch (error) {
    if (error instanceof EngineError && error.code === "not_found") throw new ResourceNotFoundError(uri);
    throw error;
  }
}

async function readConversation(
  engine: Engine,
  reader: ArchiveReader,
  uri: string,
  id: string,
  after: string | undefined,
): Promise<string> {
  const page = await readPage(engine, { owner: reader.owner }, Number(id), after);
  if (page === null) throw new ResourceNotFoundError(uri);
  // A host's housekeeping has no text; its content is opened by its id.
  const blocks = page.messages
    .filter(({ text }) => text.trim() !== "")
    .map(
      ({ id, role, createdAt, text }) =>
        `[${id}] ${role}, ${formatTime(createdAt, reader.timeZone)}\n${text}`,
    );
  const rest = `${SCHEME}//conversation/${id}?after=${encodeURIComponent(page.next ?? "")}`;
  return [...blocks, ...(page.next === null ? [] : [`More: ${rest}`])].join("\n\n");
}

interface Address {
  readonly kind: Kind;
  readonly id: string;
  readonly after: string | undefined;
}

/** Parses an address strictly: an unknown one is not found rather than guessed. */
function parseUri(uri: string): Address {
  const url = URL.canParse(uri) ? new URL(uri) : null;
  const kind = KINDS.find((name) => url?.protocol === SCHEME && url.hostname === name);
  const id = url?.pathname.slice(1) ?? "";
  if (url === null || kind === undefined || !isIdOf(kind, id)) throw new ResourceNotFoundError(uri);
  return { kind, id, after: url.searchParams.get("after") ?? undefined };
}

function isIdOf(kind: Kind, id: string): boolean {
  if (kind === "conversation") return /^[1-9]\d{0,14}$/.test(id);
  if (kind === "summary") return isSummaryId(id);
  if (kind === "file") return isFileId(id);
  return id.startsWith("msg_") && parseMessageId(id) !== null;
}

/** Ids that begin with what was typed: conversations by their numbers, summaries and files of the latest conversations. */
export async function completeId(reader: ArchiveReader, kind: Kind, typed: string): Promise<string[]> {
  if (kind === "message") return [];
  const engine = await reader.engine();
  const ids = (await listByLatest(engine, { owner: reader.owner })).map(
    ({ conversationId }) => conversationId,
  );
  const offered =
    kind === "conversation"
      ? ids.map(String)
      : await listIds(engine, reader, kind, ids.slice(0, COMPLETED_CONVERSATIONS));
  return offered.filter((id) => id.startsWith(typed)).slice(0, MAX_COMPLETIONS);
}

async function listIds(
  engine: Engine,
  { owner }: ArchiveReader,
  kind: "summary" | "file",
  conversationIds: readonly number[],
): Promise<string[]> {
  const ids: string[] = [];
  for (const conversationId of conversationIds) {
    if (kind === "file") {
      const files = await engine.listFiles({ conversationId, owner });
      ids.push(...files.map(({ fileId }) => fileId));
    } else {
      const page = await engine.listSummaries({ conversationId, owner, limit: MAX_COMPLETIONS });
      ids.push(...page.items.map(({ summaryId }: SummaryRow) => summaryId));
    }
  }
  return ids;
}
