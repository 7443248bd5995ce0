/**
 * Checks an event and its session before anything is stored. A database returns some names and numbers changed, or not at all: a lone
 * surrogate becomes another character, a position beyond 2^53 makes its conversation unreadable. They are refused here.
 *
 * Invariant: whatever passes is read back unchanged.
 */
import { EngineError } from "../model/errors.ts";
import type { Arrival, SessionRef } from "../model/message.ts";

/** The last time a Date can represent, in milliseconds. */
const LAST_TIME_MS = 8.64e15;

/** Leaves room for 2^32 messages after it. */
const LAST_POSITION = 2 ** 52;

export function checkSession(session: SessionRef): void {
  for (const field of ["key", "id", "owner"] as const) {
    const problem = findNameProblem(session?.[field]);
    if (problem !== null) throw refuse(`cannot use the session: its ${field} ${problem}`);
  }
}

export function checkArrival(arrival: Arrival): void {
  const problem = findArrivalProblem(arrival);
  if (problem !== null) throw refuse(`cannot store an event: its ${problem}`);
}

function findArrivalProblem({ eventId, position, createdAt }: Arrival): string | null {
  const problem = findNameProblem(eventId ?? "absent");
  if (problem !== null) return `eventId ${problem}`;
  if (!Number.isInteger(position ?? 0) || Math.abs(position ?? 0) > LAST_POSITION)
    return `position must be a whole number up to 2^52, not ${String(position)}`;
  return isTime(createdAt ?? 0)
    ? null
    : `createdAt must be milliseconds since 1970, not ${String(createdAt)}`;
}

/** A time that can be stored and written as a date. */
export const isTime = (value: unknown): value is number =>
  typeof value === "number" && Math.abs(value) <= LAST_TIME_MS;

/** Why a database could not return this name of a session, owner or event unchanged; null if it can. */
export function findNameProblem(name: unknown): string | null {
  if (typeof name !== "string" || name === "") return "must be a non-empty text";
  return name.isWellFormed() && !name.includes("\0")
    ? null
    : "must not contain a lone surrogate or a NUL character";
}

const refuse = (message: string): EngineError => new EngineError("invalid_input", message);
