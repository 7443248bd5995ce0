/**
 * Parameters that some models refuse. Support changes too often for a table, but a refusal names the parameter; so the request is changed
 * accordingly and sent again, and the change is remembered for the next call to that model.
 */
import type { RequestBody } from "./dialect.ts";

export type Quirk = (body: RequestBody) => RequestBody;

/** Parameters that an answer does not depend on. */
const DISPENSABLE = ["temperature", "reasoning_effort", "stream_options"];
const LIMITS = ["max_tokens", "max_completion_tokens"] as const;

/** How to change the body after this refusal; null when it does not name anything we can change. */
export function learnQuirk(body: RequestBody, refusal: string): Quirk | null {
  const dispensable = DISPENSABLE.find((name) => name in body && refusal.includes(name));
  if (dispensable !== undefined) return (other) => omit(other, dispensable);
  const limit = LIMITS.find((name) => name in body);
  if (limit === undefined || !LIMITS.some((name) => refusal.includes(name))) return null;
  const most = /(?:>|at most|maximum[^\d]{0,40})\s*(\d{3,7})\b/.exec(refusal)?.[1];
  if (most !== undefined && Number(most) < Number(body[limit])) {
    return (other) => ({ ...other, [limit]: Math.min(Number(other[limit]), Number(most)) });
  }
  const otherName = LIMITS.find((name) => name !== limit && refusal.includes(name));
  return otherName === undefined ? null : (other) => ({ ...omit(other, limit), [otherName]: other[limit] });
}

function omit(body: RequestBody, name: string): RequestBody {
  return Object.fromEntries(Object.entries(body).filter(([key]) => key !== name));
}
