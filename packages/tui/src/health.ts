/** The health of each conversation: what it owes, what failed, which of its summaries are damaged. Loaded only for what is on the screen. */
import type { HeadedConversation, Debt, Engine } from "@lossless/core";
import { findDamage } from "@lossless/core/repair";
import { formatCount } from "@lossless/core/doors";

export interface Health {
  readonly text: string;
  readonly isGood: boolean;
}

const PAGE = 256;
const KEPT = 1_000;

export class HealthBook {
  readonly #engine: Engine;
  /** Damaged summaries of a conversation at a version of its summaries. */
  readonly #damaged = new Map<number, { readonly version: string; readonly count: number }>();
  #debts: ReadonlyMap<number, Debt> = new Map();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async readDebts(): Promise<void> {
    this.#debts = new Map((await this.#engine.listDebts()).map((debt) => [debt.conversationId, debt]));
  }

  /** Null until it is loaded. */
  get(row: HeadedConversation): Health | null {
    const known = this.#damaged.get(row.conversationId);
    if (known === undefined) return null;
    return describeHealth(this.#debts.get(row.conversationId) ?? null, known.count);
  }

  /** Checks those that have changed since. */
  async read(rows: readonly HeadedConversation[], isWanted: () => boolean): Promise<void> {
    for (const row of rows) {
      if (!isWanted()) return;
      const version = `${row.foldRevision}:${row.summaries}:${row.messages}`;
      if (this.#damaged.get(row.conversationId)?.version === version) continue;
      const count = row.summaries === 0 ? 0 : await this.#countDamaged(row.conversationId);
      this.#damaged.delete(row.conversationId);
      this.#damaged.set(row.conversationId, { version, count });
      const [oldest] = this.#damaged.keys();
      if (this.#damaged.size > KEPT && oldest !== undefined) this.#damaged.delete(oldest);
    }
  }

  async #countDamaged(conversationId: number): Promise<number> {
    let count = 0;
    for (let after = ""; ;) {
      const page = await this.#engine.listPublished({ after, limit: PAGE, conversationId });
      for (const summary of page) {
        const damage = findDamage(summary);
        if (damage !== null && damage !== "not_smaller") count += 1;
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return count;
      after = last.summaryId;
    }
  }
}

/** The worst first. */
export function describeHealth(debt: Debt | null, damaged: number): Health {
  if (debt?.lastFailure) return { text: "folding fails", isGood: false };
  if (damaged > 0) return { text: `${formatCount(damaged)} damaged`, isGood: false };
  return debt === null ? { text: "ok", isGood: true } : { text: "to fold", isGood: true };
}
