/** Reads a whole archive as rows that can be compared with a host's transcript. For tests: everything is in memory. */

import type { ConversationRow, Engine, HiddenReason } from "@lossless/core";

export interface ArchivedRow {
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly eventId: string;
  readonly hidden: readonly HiddenReason[];
  readonly message: unknown;
}

const PAGE = 500;

export async function readArchive(engine: Engine): Promise<ArchivedRow[]> {
  const conversations: ConversationRow[] = [];
  for (let after: string | null = null, first = true; first || after !== null; first = false) {
    const page: { items: ConversationRow[]; next: string | null } = await engine.listConversations({
      after,
      limit: PAGE,
    });
    conversations.push(...page.items);
    after = page.next;
  }
  const rows: ArchivedRow[] = [];
  for (const conversation of conversations.toSorted((a, b) => a.conversationId - b.conversationId)) {
    rows.push(...(await readConversation(engine, conversation)));
  }
  return rows;
}

async function readConversation(
  engine: Engine,
  { conversationId, sessionKey }: ConversationRow,
): Promise<ArchivedRow[]> {
  const rows: ArchivedRow[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Engine["listMessages"]>> = await engine.listMessages({
      conversationId,
      after,
      limit: PAGE,
    });
    for (const { messageId, sessionId, eventId, hidden } of page.items) {
      const stored = await engine.readMessage({ messageId });
      const message = JSON.parse(Buffer.from(stored!.bytes).toString("utf8")) as unknown;
      rows.push({ sessionKey, sessionId, eventId, hidden, message });
    }
    after = page.next;
  } while (after !== null);
  return rows;
}
