/**
 * The second process of `file-simulation.ts`: reads an archive that another process writes, and says which of the lines that were acknowledged it
 * cannot read back to the byte, which are stored twice, and which are in another order than in a file. It stays open, as the door of another
 * program does.
 */
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";

export interface AskedLines {
  readonly sessionId: string;
  readonly events: readonly { readonly eventId: string; readonly versions: readonly string[] }[];
  /** Ids of the lines of each file as it was at an import, in its order. */
  readonly orders: readonly (readonly string[])[];
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
  const listed = await listEvents(engine);
  const stored = Map.groupBy(listed, (eventId) => eventId);
  const places = new Map(listed.map((eventId, place) => [eventId, place]));
  const faults: string[] = [];
  for (const { sessionId, events, orders } of asked) {
    const bytes = events.flatMap(({ eventId, versions }) =>
      versions.map((line) => ({ eventId, bytes: Buffer.from(line) })),
    );
    for (const eventId of await engine.findUnproven({ sessionId, events: bytes }))
      faults.push(`a version of ${eventId} cannot be read`);
    for (const { eventId } of events) {
      const times = stored.get(eventId)?.length ?? 0;
      if (times !== 1) faults.push(`${eventId} is stored ${times} times`);
    }
    for (const order of orders) {
      const at = order.findIndex(
        (eventId, index) => (places.get(eventId) ?? 0) < (places.get(order[index - 1] ?? "") ?? 0),
      );
      if (at > 0) faults.push(`${order[at]} comes before ${order[at - 1]}, which it follows in its file`);
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
