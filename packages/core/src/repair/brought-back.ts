/**
 * Messages that a restore would bring back although they were forgotten since the backup. Forgotten messages are read from the present
 * archive; if that cannot be read, from the receipts beside it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Engine } from "../engine/engine.ts";
import { EngineError } from "../model/errors.ts";
import { parseMessageId } from "../model/ids.ts";
import type { ArchiveAccess } from "./archive-access.ts";

const PAGE = 1_000;

export interface ArchiveLocation {
  readonly database: string;
  readonly filesDir: string;
}

/** A forgotten message; if only a receipt names it, only its number is known. */
interface Forgotten {
  readonly messageId: number;
  readonly eventId?: string;
}

/** Ids of the messages of `incoming` that the present archive has forgotten. */
export async function listBroughtBack(
  access: ArchiveAccess,
  present: ArchiveLocation,
  incoming: ArchiveLocation,
): Promise<number[]> {
  const forgotten = await listForgotten(access, present);
  if (forgotten.length === 0) return [];
  // Not read-only: that would leave SQLite's files beside it.
  return withArchive(access, incoming, { readOnly: false }, async (engine) => {
    const back: number[] = [];
    for (const { messageId, eventId } of forgotten) {
      const rows = await engine.readRevisions({ messageId });
      const row = rows.find((each) => each.messageId === messageId);
      if (row?.forgottenAt === null && (eventId ?? row.eventId) === row.eventId) back.push(messageId);
    }
    return back;
  });
}

async function listForgotten(access: ArchiveAccess, present: ArchiveLocation): Promise<Forgotten[]> {
  if (!existsSync(present.database)) return readReceipts(present.database);
  try {
    return await withArchive(access, present, { readOnly: true }, findForgotten);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return readReceipts(present.database);
  }
}

async function findForgotten(engine: Engine): Promise<Forgotten[]> {
  const found: Forgotten[] = [];
  for await (const { conversationId } of walk((after) => engine.listConversations({ after, limit: PAGE }))) {
    const [counts] = await engine.countMessages({ conversationIds: [conversationId] });
    if (counts?.hidden.forgotten === 0) continue;
    const rows = walk((after) => engine.listMessages({ conversationId, after, limit: PAGE }));
    for await (const { messageId, eventId, forgottenAt } of rows)
      if (forgottenAt !== null) found.push({ messageId, eventId });
  }
  return found;
}

async function* walk<T>(
  read: (after: string | null) => Promise<{ items: T[]; next: string | null }>,
): AsyncGenerator<T> {
  for (let after: string | null = null; ;) {
    const page = await read(after);
    yield* page.items;
    if (page.next === null) return;
    after = page.next;
  }
}

function readReceipts(databasePath: string): Forgotten[] {
  const folder = dirname(databasePath);
  const prefix = `${basename(databasePath)}.forget-`;
  if (!existsSync(folder)) return [];
  const texts = readdirSync(folder)
    .filter((name) => name.startsWith(prefix) && name.endsWith(".json"))
    .map((name) => readFileSync(join(folder, name), "utf8"));
  const ids = texts.flatMap((text) => text.match(/"msg_\d+"/g) ?? []);
  return [...new Set(ids)].flatMap((id) => {
    const messageId = parseMessageId(id.slice(1, -1));
    return messageId === null ? [] : [{ messageId }];
  });
}

async function withArchive<T>(
  { openEngine }: ArchiveAccess,
  location: ArchiveLocation,
  { readOnly }: { readOnly: boolean },
  work: (engine: Engine) => Promise<T>,
): Promise<T> {
  const engine = await openEngine({ ...location, readOnly, create: false, thread: false });
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}
