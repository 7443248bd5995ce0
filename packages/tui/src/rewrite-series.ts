/**
 * Regenerates summaries one after the other: plan, call, review, accept or skip. Holds the state of such a run, without screens and keys.
 * Exactly the reviewed text is stored: accepting never calls a model again.
 */
import type { RewriteResult } from "@lossless/core";
import { estimateCost, planRewrite } from "@lossless/core/repair";
import type { RewriteTarget } from "@lossless/core/repair";
import type { TuiArchive } from "./screen.ts";

export interface RewriteChoice {
  readonly conversationId: number;
  /** Null: all damaged ones. */
  readonly summaryId: string | null;
  readonly isSubtree: boolean;
  readonly isExtractive: boolean;
}

export type Stage =
  | { readonly kind: "preview" }
  | { readonly kind: "calling" }
  | { readonly kind: "review"; readonly answer: RewriteResult }
  | { readonly kind: "done"; readonly reason: string };

export type RewriteDecision = "accepted" | "skipped" | "unchanged" | "no better";

export class RewriteSeries {
  readonly #archive: TuiArchive;
  readonly #onChange: () => void;
  readonly #stop = new AbortController();
  choice: RewriteChoice;
  targets: readonly RewriteTarget[] = [];
  outcomes: RewriteDecision[] = [];
  stage: Stage = { kind: "preview" };
  /** Accepts everything from now on. */
  isAuto = false;

  constructor(archive: TuiArchive, choice: RewriteChoice, onChange: () => void) {
    this.#archive = archive;
    this.#onChange = onChange;
    this.choice = choice;
  }

  get isRepair(): boolean {
    return this.choice.summaryId === null;
  }

  /** The one that is being written or reviewed. */
  get target(): RewriteTarget | undefined {
    return this.targets[this.outcomes.length];
  }

  get usesModel(): boolean {
    return !this.choice.isExtractive && this.#archive.modelName !== null;
  }

  get cost(): { inputTokens: number; outputTokens: number } {
    const sum = { inputTokens: 0, outputTokens: 0 };
    if (!this.usesModel) return sum;
    for (const target of this.targets) {
      const cost = estimateCost(target, this.#archive.settings);
      sum.inputTokens += cost.inputTokens;
      sum.outputTokens += cost.outputTokens;
    }
    return sum;
  }

  count(outcome: RewriteDecision): number {
    return this.outcomes.filter((some) => some === outcome).length;
  }

  async plan(choice: RewriteChoice = this.choice): Promise<void> {
    const { conversationId, summaryId, isSubtree } = choice;
    const selection =
      summaryId === null ? { conversationId, isDamaged: true } : { conversationId, summaryId, isSubtree };
    this.targets = await planRewrite(this.#archive.engine, selection);
    this.choice = choice;
  }

  /** Writes the next text, and continues by itself while no review is needed. */
  async goOn(): Promise<void> {
    for (let target = this.target; target !== undefined; target = this.target) {
      if (this.#stop.signal.aborted) return;
      this.#enter({ kind: "calling" });
      const answer = await this.#write(target, this.isAuto);
      if (this.#stop.signal.aborted) return;
      if (answer.after.content === answer.before.content) this.outcomes.push("unchanged");
      else if (this.isAuto) this.outcomes.push(answer.newId === null ? "no better" : "accepted");
      else return this.#enter({ kind: "review", answer });
    }
    this.#enter({ kind: "done", reason: "" });
  }

  #write({ summaryId }: RewriteTarget, apply: boolean): Promise<RewriteResult> {
    return this.#archive.change((engine) =>
      engine.rewriteSummary({
        summaryId,
        dryRun: !apply,
        isExtractive: this.choice.isExtractive,
        mustHeal: true,
        signal: this.#stop.signal,
      }),
    );
  }

  /** Stores the reviewed text. */
  async accept(): Promise<void> {
    if (this.stage.kind !== "review") return;
    const { oldId, after, sourceKeys } = this.stage.answer;
    const { content, model, level } = after;
    this.#enter({ kind: "calling" });
    const answer = await this.#archive.change((engine) =>
      engine.rewriteSummary({
        summaryId: oldId,
        dryRun: false,
        mustHeal: this.isRepair,
        text: { content, model, level, sourceKeys },
      }),
    );
    this.outcomes.push(answer.newId === null ? "no better" : "accepted");
  }

  skip(): void {
    if (this.stage.kind === "review") this.outcomes.push("skipped");
  }

  /** Ends the run; accepted texts stay. */
  stop(reason: string): void {
    this.#stop.abort();
    if (this.stage.kind !== "done") this.#enter({ kind: "done", reason });
  }

  #enter(stage: Stage): void {
    this.stage = stage;
    this.#onChange();
  }
}
