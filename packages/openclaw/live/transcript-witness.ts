/**
 * Reads the host's own records from its database after the gateway has stopped; the archive is compared with them. Only a test may read the
 * host's tables directly; the plugin uses the host's own reader.
 */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { zstdDecompressSync } from "node:zlib";

export interface WitnessedRow {
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly entryId: string;
  readonly role: string;
  readonly message: Record<string, unknown>;
  readonly onBranch: boolean;
  /** The session this one is a copy of; its copied rows have the same ids. */
  readonly copyOf: string | null;
}

export interface Witness {
  /** Every message row, also those that left the active branch. */
  readonly messages: readonly WitnessedRow[];
  /** Ids of the host's own notes among them (a turn that ended before its reply): stored too, and never numbered. */
  readonly notes: ReadonlySet<string>;
  readonly resets: readonly {
    readonly sessionId: string;
    readonly entryId: string;
    readonly reason: string;
  }[];
  /** Turns the host could not deliver. */
  readonly undelivered: number;
}

interface EventRow {
  readonly session_id: string;
  readonly session_key: string;
  readonly event_json: string | null;
  readonly event_zstd: Uint8Array | null;
  readonly on_branch: number;
}

interface TranscriptEvent {
  readonly type: string;
  readonly id: string;
  readonly reason?: string;
  readonly message?: { readonly role: string };
  readonly parentSession?: string;
}

const SELECT_EVENTS = `
  SELECT event.session_id, session.session_key, event.event_json, event.event_zstd, active.event_seq IS NOT NULL AS on_branch
  FROM transcript_events event
  JOIN session_windows session ON session.session_id = event.session_id
  LEFT JOIN session_transcript_active_events active ON active.session_id = event.session_id AND active.event_seq = event.seq
  ORDER BY event.session_id, event.seq`;

export function readWitness(stateDir: string): Witness {
  const messages: WitnessedRow[] = [];
  const resets: { sessionId: string; entryId: string; reason: string }[] = [];
  const notes = new Set<string>();
  const copyOf = new Map<string, string>();
  let undelivered = 0;
  for (const agent of readdirSync(join(stateDir, "agents"))) {
    const database = new DatabaseSync(join(stateDir, "agents", agent, "agent", "openclaw-agent.sqlite"), {
      readOnly: true,
    });
    for (const row of database.prepare(SELECT_EVENTS).all() as unknown as EventRow[]) {
      const event = JSON.parse(
        row.event_json ?? zstdDecompressSync(row.event_zstd!).toString("utf8"),
      ) as TranscriptEvent;
      const ids = { sessionId: row.session_id, entryId: event.id };
      const [, parent] = /^sqlite:[^:]+:([^:]+):/.exec(event.parentSession ?? "") ?? [];
      if (event.type === "session" && parent !== undefined) copyOf.set(row.session_id, parent);
      if (event.type === "message" && event.message !== undefined) {
        const { message } = event;
        messages.push({
          sessionKey: row.session_key,
          ...ids,
          role: message.role,
          message,
          onBranch: row.on_branch === 1,
          copyOf: copyOf.get(row.session_id) ?? null,
        });
      }
      if (event.type === "custom_message") notes.add(`${row.session_id} ${event.id}`);
      if (event.type === "reset") resets.push({ ...ids, reason: event.reason ?? "" });
    }
    const outbox = database.prepare("SELECT COUNT(*) AS turns FROM context_engine_turn_outbox").get() as {
      turns: number;
    };
    undelivered += outbox.turns;
    database.close();
  }
  return { messages, notes, resets, undelivered };
}
