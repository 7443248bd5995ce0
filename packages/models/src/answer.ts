/**
 * An answer while it arrives. A dialect feeds it from events or from one complete body; the result is the text without reasoning, the usage, and
 * whether the provider reported the end.
 */
import type { Failure } from "./failures.ts";

export class Answer {
  text = "";
  model: string | null = null;
  inputTokens: number | null = null;
  outputTokens: number | null = null;
  /** The provider reported the end of the text. */
  isFinished = false;
  /** Nothing more follows. */
  isDone = false;
  failure: Failure | null = null;

  addText(piece: unknown): void {
    if (typeof piece === "string") this.text += piece;
  }

  noteModel(name: unknown): void {
    if (typeof name === "string" && name !== "") this.model = name;
  }
}

export function sumCounts(...counts: readonly unknown[]): number | null {
  const known = counts.filter((count) => typeof count === "number" && Number.isFinite(count) && count >= 0);
  return known.length === 0 ? null : (known as number[]).reduce((sum, count) => sum + count, 0);
}
