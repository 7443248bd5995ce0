/**
 * The second process of `file-simulation.ts`: reads an archive that another process writes, and says which of the lines that were acknowledged it
 * cannot read back to the byte, and which are stored twice. It stays open, as the door of another program does.
 */
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";

export interface AskedLines {
  readonly sessionId: string;
  readonly events: readonly { readonly eventId: string; readonly versions: readonly string[] }[];
}

const PAGE = 500;

/** Event ids of all rows that are not revisions. */
async function listEvents(engine: Engine): Promise<string[]> {
  const ids: string[] = [];
  const { items } = await engine.listConversations({ limit: PAGE });
  for (const { conversationId } of items) {
    for (let after: string | null = null; ;) {
      const page = await engine.listMessages({ conversationId, after, limit: PAGE });
      ids.push(...page.items.flatMap(({ eventId, revises }) => (revises === null ? eventId : [])));
      if (page.next === null) break;
      after = page.next;
    }
  }
  return ids;
}

async function findFaults(engine: Engine, asked: readonly AskedLines[]): Promise<string[]> {
  const stored = Map.groupBy(await listEvents(engine), (eventId) => eventId);
  const faults: string[] = [];
  for (const { sessionId, events } of asked) {
    const bytes = events.flatMap(({ eventId, versions }) =>
      versions.map((line) => ({ eventId, bytes: Buffer.from(line) })),
    );
    for (const eventId of await engine.findUnproven({ sessionId, events: bytes }))
      faults.push(`a version of ${eventId} cannot be read`);
    for (const { eventId } of events) {
      const times = stored.get(eventId)?.length ?? 0;
      if (times !== 1) faults.push(`${eventId} is stored ${times} times`);
    }
  }
  return faults;
}

if (process.argv[1] === import.meta.filename && process.send) {
  const engine = await openEngine({ database: process.argv[2] ?? "", readOnly: true, thread: false });
  process.on("disconnect", () => void engine.close());
  process.on("message", (asked) => {
    findFaults(engine, asked as AskedLines[]).then(
      (faults) => process.send?.(faults),
      (error: unknown) => process.send?.([`the second process failed: ${String(error)}`]),
    );
  });
}
