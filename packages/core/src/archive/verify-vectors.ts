/** Rules for a stored vector, in any database: the dimensions of its space, and length one. */
import { formatMessageId } from "../model/ids.ts";
import { dotProduct, vectorFromBytes } from "../model/vector.ts";
import type { Problems } from "./verify-problems.ts";

/** float32 has about seven digits; a sum over thousands of squares loses some of them. */
const TOLERANCE = 1e-3;

export interface StoredVector {
  readonly messageId: number;
  /** Empty for a message without text. */
  readonly bytes: Uint8Array;
  readonly model: string;
  readonly dimensions: number;
}

export function checkVector(stored: StoredVector, problems: Pick<Problems, "add">): void {
  const { messageId, bytes, model, dimensions } = stored;
  if (bytes.byteLength === 0) return;
  const name = formatMessageId(messageId);
  if (bytes.byteLength !== dimensions * 4) {
    const given = bytes.byteLength / 4;
    const text = `the vector of ${name} has ${given} dimensions, those of ${model} have ${dimensions}`;
    return problems.add("vector", name, text);
  }
  const vector = vectorFromBytes(bytes);
  if (!(Math.abs(dotProduct(vector, vector) - 1) < TOLERANCE))
    problems.add("vector", name, `the vector of ${name} is not of length one`);
}

/** A vector of a message that is hidden, revised, forgotten or gone. */
export function refuseVector(
  { messageId, model }: Pick<StoredVector, "messageId" | "model">,
  problems: Pick<Problems, "add">,
): void {
  const name = formatMessageId(messageId);
  problems.add("vector", name, `${name} has a vector of ${model} but should have none`);
}
