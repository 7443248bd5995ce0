/** Sessions and heads for verbs that write as they go. */
import { Heads, must } from "@lossless/core/adapter";
import type { Connection } from "./connection.ts";
import { PlanReads } from "./plan-reads.ts";

const SELECT_SESSION = "SELECT session_ref FROM sessions WHERE owner = ? AND session_id = ?";

export function findSession(connection: Connection, owner: string, sessionId: string): number | null {
  return connection.get<{ session_ref: number }>(SELECT_SESSION, owner, sessionId)?.session_ref ?? null;
}

/** Heads that are read, and written, through the connection. */
export function openHeads(connection: Connection): Heads {
  const reads = new PlanReads(connection);
  const source = {
    readHead: (id: number) => reads.lockHeads([id])[0],
    nextId: (table: Parameters<PlanReads["ids"]>[0]) => must(reads.ids(table, 1)[0], `a number of ${table}`),
  };
  return new Heads(source, connection);
}
