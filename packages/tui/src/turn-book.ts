/** The turns of conversations: how many messages and tokens each has, and how long it took. Read once and extended as agents write. */
import type { ConversationRow, Engine, Outline, Scope } from "@lossless/core";
import { Outlines, sumTurns, type TurnSum } from "@lossless/core/doors";

export interface NumberedTurn extends TurnSum {
  /** From 1. */
  readonly number: number;
}

export interface Turns {
  readonly outline: Outline;
  /** By the message that begins them. */
  readonly byMessage: ReadonlyMap<number, NumberedTurn>;
}

export class TurnBook {
  readonly #outlines: Outlines;
  readonly #kept = new WeakMap<Outline, Turns>();

  constructor(engine: Engine, scope: Scope) {
    this.#outlines = new Outlines(engine, scope);
  }

  async read(conversation: ConversationRow): Promise<Turns> {
    const outline = await this.#outlines.read(conversation);
    const kept = this.#kept.get(outline);
    if (kept !== undefined) return kept;
    const numbered = sumTurns(outline).map((turn, at): [number, NumberedTurn] => [
      turn.messageId,
      { ...turn, number: at + 1 },
    ]);
    const turns = { outline, byMessage: new Map(numbered) };
    this.#kept.set(outline, turns);
    return turns;
  }
}
