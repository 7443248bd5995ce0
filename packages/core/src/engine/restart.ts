/**
 * Prepares the text for a model whose host has compacted its context, from the newest messages of a conversation. Read-only; calls no
 * model.
 */
import { formatMessageId } from "../model/ids.ts";
import type { MessageRow, Page } from "../store/store.ts";
import { readMessages } from "../summarize/run-sources.ts";
import type { SourceLine } from "../summarize/source.ts";
import { writeRestart } from "../summarize/restart.ts";
import { estimateSentTokens } from "../text/tokens.ts";
import type { OneConversation } from "./browse.ts";
import type { EngineState } from "./state.ts";

export interface RestartRequest extends OneConversation {
  readonly maxTokens: number;
}

/** How many shown messages are read, from the newest back: a day's work. */
const MAX_MESSAGES = 400;
const MAX_BYTES = 4_000_000;
/** Most rows that a host writes are hidden; this many are read to find those that are not. */
const PAGE_ROWS = 1_000;
const MAX_PAGES = 5;

/** Null when there is nothing to continue with. */
export async function prepareRestart(
  engine: EngineState,
  { conversationId, owner, maxTokens }: RestartRequest,
): Promise<string | null> {
  const conversation = await engine.store.readConversation(conversationId, owner);
  if (conversation === null) return null;
  const newest = await listShown(engine, conversationId, "newest", MAX_PAGES);
  const oldest = await listShown(engine, conversationId, "oldest", 1);
  const [begin, end] = [oldest[0], newest[0]];
  if (begin === undefined || end === undefined) return null;
  const sources = await readAll(engine, takeBytes(newest).toReversed());
  const firstUser = oldest.find(({ role }) => role === "user");
  const first = firstUser === undefined ? [] : await readAll(engine, [firstUser]);
  return writeRestart({
    sources,
    first: first[0] ?? null,
    range: [formatMessageId(begin.messageId), formatMessageId(end.messageId)],
    maxTokens,
    estimate: estimateSentTokens,
    timeZone: engine.settings.timezone,
  });
}

async function listShown(
  { store }: EngineState,
  conversationId: number,
  direction: "newest" | "oldest",
  maxPages: number,
): Promise<MessageRow[]> {
  const shown: MessageRow[] = [];
  let after: string | null = null;
  for (let page = 0; page < maxPages && shown.length < MAX_MESSAGES; page += 1) {
    const request = { conversationId, direction, order: "position", after, limit: PAGE_ROWS } as const;
    const { items, next }: Page<MessageRow> = await store.listMessages(request);
    shown.push(...items.filter(isShown));
    if (next === null) break;
    after = next;
  }
  return shown.slice(0, MAX_MESSAGES);
}

const isShown = ({ hidden, forgottenAt, newest }: MessageRow): boolean =>
  hidden.length === 0 && forgottenAt === null && newest === null;

/** The first of them, up to a limit on the bytes to read. */
function takeBytes(rows: readonly MessageRow[]): MessageRow[] {
  let bytes = 0;
  return rows.filter(({ arrivalBytes }) => (bytes += arrivalBytes) <= MAX_BYTES);
}

async function readAll({ store }: EngineState, rows: readonly MessageRow[]): Promise<SourceLine[]> {
  const texts = await store.readTexts(
    rows.map(({ messageId }) => messageId),
    {},
  );
  return readMessages(texts.toSorted((a, b) => a.position - b.position));
}
