/**
 * One gateway of a team: stores turns of its own conversations, and occasionally an event of a conversation that the whole team stores, and
 * prints the number of each turn once it is stored. It waits for a server that is temporarily down, as a host does with its spool. The events
 * depend only on its number, so that the parent knows every one.
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "@lossless/core";
import type { Arrival, SessionRef } from "@lossless/core";
import { openEngine } from "lossless-claw";

export interface TeamOrders {
  readonly database: string;
  readonly writer: number;
  readonly conversations: number;
  readonly turns: number;
  /** The first turn to store. */
  readonly from: number;
}

export const TEAM_SESSION: SessionRef = { key: "agent:main:team", id: "team", owner: "main" };
export const TURN_MESSAGES = 8;
const SHARED_EVERY = 25;
const RETRY_MS = 200;

export const sessionOf = (writer: number, conversation: number): SessionRef => ({
  key: `agent:main:${writer}-${conversation}`,
  id: `${writer}-${conversation}`,
  owner: "main",
});

export const eventIdsOf = (turn: number): string[] =>
  Array.from({ length: TURN_MESSAGES }, (_, n) => `${turn}-${n}`);

/** The event of the shared conversation that belongs to a turn. */
export const sharedEventOf = (turn: number): string | null =>
  turn % SHARED_EVERY === 0 ? `shared-${turn / SHARED_EVERY}` : null;

const SUBJECTS = ["the harbour", "a ledger", "the tides", "a sextant", "the cargo", "the crew", "a lantern"];

function makeTurn(writer: number, turn: number): Arrival[] {
  const subject = SUBJECTS[(writer + turn) % SUBJECTS.length] ?? "";
  const looks = [1, 2, 3].flatMap((look) => {
    const id = `call-${turn}-${look}`;
    const report = `${subject} as seen on day ${turn}: ${"calm and in order, with nothing to report. ".repeat(1 + ((turn + look) % 6))}`;
    return [
      {
        role: "assistant",
        content: [{ type: "toolCall", id, name: "look", arguments: { subject, turn, look } }],
      },
      { role: "toolResult", toolCallId: id, toolName: "look", content: report },
    ];
  });
  const messages = [
    { role: "user", content: `fact-${writer}-${turn} What about ${subject} on day ${turn}?` },
    ...looks,
    { role: "assistant", content: `On day ${turn}, ${subject} was in order.` },
  ];
  return eventIdsOf(turn).map((eventId, at) => ({ eventId, message: messages[at] }));
}

/** Retries work while the server is unavailable. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EngineError) || !["database_unreachable", "database_busy"].includes(error.code))
        throw error;
      await sleep(RETRY_MS);
    }
  }
}

async function write({ database, writer, conversations, turns, from }: TeamOrders): Promise<void> {
  const engine = await insist(() => openEngine({ database, thread: false }));
  for (let turn = from; turn < turns; turn++) {
    const session = sessionOf(writer, turn % conversations);
    const messages = makeTurn(writer, turn);
    await insist(() => engine.ingest({ session, messages, turn: { advancementKey: `${writer}/${turn}` } }));
    const eventId = sharedEventOf(turn);
    if (eventId !== null) {
      const message = { role: "user", content: `${eventId}: the watch of the whole team` };
      await insist(() => engine.ingest({ session: TEAM_SESSION, messages: [{ eventId, message }] }));
    }
    writeSync(1, `${turn}\n`);
  }
  await insist(() => engine.close());
}

if (process.argv[1] === import.meta.filename) await write(JSON.parse(process.argv[2] ?? "{}") as TeamOrders);
