/**
 * Rewrite and repair: which summaries would be regenerated and what that costs, the call, old and new side by side, accept or skip.
 * `rewrite-series.ts` decides what is shown here.
 */
import type { HeadedConversation } from "@lossless/core";
import type { RewriteTarget } from "@lossless/core/repair";
import { countOf, describeFailure, formatCount, renderBar, toOneLine } from "@lossless/core/doors";
import { isBack, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, type Paint, type Span } from "../paint.ts";
import { RewriteSeries } from "../rewrite-series.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import { renderSideBySide } from "../side-by-side.ts";

const KEYS: Readonly<Record<RewriteSeries["stage"]["kind"], readonly KeyHelp[]>> = {
  preview: [
    { keys: "Enter", does: "write them" },
    { keys: "S", does: "everything below, too" },
    { keys: "m", does: "with or without a model" },
    { keys: "→ l", does: "show it in the graph" },
    { keys: "Esc", does: "leave it" },
  ],
  calling: [{ keys: "Esc", does: "stop" }],
  review: [
    { keys: "y Enter", does: "accept" },
    { keys: "n", does: "skip" },
    { keys: "A", does: "accept all" },
    { keys: "↑ ↓ PgUp PgDn", does: "scroll" },
    { keys: "Esc", does: "stop" },
  ],
  done: [{ keys: "Esc", does: "back" }],
};

/** Lines above the rows of the preview. */
const HEAD_ROWS = 5;

export class RewriteScreen implements Screen {
  readonly conversation: HeadedConversation;
  readonly name: string;
  readonly #desk: Desk;
  readonly #run: RewriteSeries;
  #cursor: ListCursor = LIST_START;
  #top = 0;
  #isPlanned = false;
  #diff: { readonly key: string; readonly lines: readonly string[] } | null = null;

  constructor(desk: Desk, conversation: HeadedConversation, summaryId: string | null) {
    this.#desk = desk;
    this.conversation = conversation;
    this.name = summaryId === null ? "repair" : "rewrite";
    this.#run = new RewriteSeries(
      desk.archive,
      {
        conversationId: conversation.conversationId,
        summaryId,
        isSubtree: false,
        isExtractive: desk.archive.modelName === null,
      },
      () => desk.redraw(),
    );
  }

  get keys(): readonly KeyHelp[] {
    return KEYS[this.#run.stage.kind];
  }

  /** Enter writes all of them, so a click on the chosen one shows only that one. */
  get area(): ListArea | null {
    const { stage, targets } = this.#run;
    if (stage.kind !== "preview") return null;
    return { ...placeList(this.#cursor, targets.length, this.#desk.size, HEAD_ROWS), openKey: "right" };
  }

  get #rows(): number {
    return Math.max(1, this.#desk.size.rows - HEAD_ROWS);
  }

  async load(): Promise<void> {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    await this.#run.plan();
  }

  close(): void {
    this.#run.stop("stopped");
  }

  async handle(key: Key): Promise<boolean> {
    const { kind } = this.#run.stage;
    const move = readMove(key.name, kind === "preview" ? this.#rows : this.#desk.size.rows - 2);
    if (move !== null) {
      if (kind === "preview")
        this.#cursor = moveInList(this.#cursor, move, this.#run.targets.length, this.#rows);
      else if (move.kind === "first") this.#top = 0;
      else this.#top = move.kind === "last" ? Number.MAX_SAFE_INTEGER : Math.max(0, this.#top + move.rows);
      return true;
    }
    const isLeaving = isBack(key.name);
    if (isLeaving && (kind === "calling" || kind === "review")) {
      this.#run.stop("stopped");
      return true;
    }
    if (isLeaving) {
      await this.#desk.back({ hasChanged: this.#run.count("accepted") > 0 });
      return true;
    }
    return this.#answer(key.name);
  }

  async #answer(name: string): Promise<boolean> {
    const { stage } = this.#run;
    if (stage.kind === "preview") return this.#choose(name);
    if (stage.kind !== "review") return false;
    if (name === "y" || name === "enter") return this.#goOn(() => this.#run.accept());
    if (name === "n") {
      this.#run.skip();
      return this.#goOn();
    }
    if (name !== "A") return false;
    this.#run.isAuto = true;
    return this.#goOn(() => this.#run.accept());
  }

  async #choose(name: string): Promise<boolean> {
    const { choice, targets } = this.#run;
    if (name === "enter") return targets.length > 0 && this.#goOn();
    const target = targets[this.#cursor.selected];
    if ((name === "right" || name === "l") && target !== undefined)
      return this.#desk.go.graph(this.conversation, target.summaryId);
    if (name === "S" && choice.summaryId !== null) {
      await this.#run.plan({ ...choice, isSubtree: !choice.isSubtree });
      return true;
    }
    if (name !== "m") return false;
    if (this.#desk.archive.modelName === null)
      this.#desk.say("no model is named: set summaryModel, or start with --model");
    else this.#run.choice = { ...choice, isExtractive: !choice.isExtractive };
    return true;
  }

  /** In the background, so that Esc works while a model writes. */
  #goOn(first: () => Promise<void> = () => Promise.resolve()): boolean {
    this.#top = 0;
    this.#desk.run(async () => {
      try {
        await first();
        await this.#run.goOn();
      } catch (error) {
        const { code, message } = describeFailure(error);
        if (code === "internal") throw error;
        this.#run.stop(message);
      }
    });
    return true;
  }

  render(size: Size, paint: Paint): string[] {
    const { stage } = this.#run;
    if (stage.kind === "preview") return this.#renderPreview(size, paint);
    const head = this.#renderHead(size.columns, paint);
    if (stage.kind === "review") return [...head, ...this.#renderReview(size, paint)];
    if (stage.kind === "calling") {
      const { target } = this.#run;
      return [...head, "", `  Writing ${target?.summaryId ?? "…"} …`, paint.faint("  Esc stops.")];
    }
    return [...head, "", ...this.#renderEnd(stage.reason, paint)];
  }

  #renderHead(columns: number, paint: Paint): string[] {
    const { targets, outcomes, target, stage } = this.#run;
    const at = Math.min(targets.length, outcomes.length + (stage.kind === "done" ? 0 : 1));
    const bar = renderBar(targets.length === 0 ? 1 : outcomes.length / targets.length, 16);
    const what = stage.kind === "review" ? describeReview(stage.answer) : (target?.summaryId ?? "");
    return [
      renderSpans(
        [span("  "), span(bar, paint.good), span(` ${at} of ${targets.length}  `), span(what, paint.faint)],
        columns,
      ),
    ];
  }

  #renderReview({ columns, rows }: Size, paint: Paint): readonly string[] {
    const { stage } = this.#run;
    if (stage.kind !== "review") return [];
    const { oldId, before, after } = stage.answer;
    const key = `${oldId}\n${columns}\n${after.content.length}`;
    if (this.#diff?.key !== key)
      this.#diff = { key, lines: renderSideBySide(before.content, after.content, columns, paint) };
    const room = Math.max(1, rows - 1);
    this.#top = Math.max(0, Math.min(this.#top, this.#diff.lines.length - room));
    return this.#diff.lines.slice(this.#top, this.#top + room);
  }

  #renderPreview({ columns, rows }: Size, paint: Paint): string[] {
    const { targets, isRepair, choice } = this.#run;
    if (targets.length === 0)
      return ["", `  ${paint.good("ok")}  ${isRepair ? "no summary is damaged" : "nothing to regenerate"}`];
    const what = `${countOf(targets.length, "summary", "summaries")} would be regenerated${choice.isSubtree ? ", the finest first" : ""}. Nothing has been changed yet.`;
    const head = ["", `  ${what}`, `  ${this.#describeCost()}`, ""];
    const room = Math.max(1, rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, targets.length, room);
    const { top, selected } = this.#cursor;
    const titles = renderSpans(
      [span("  SUMMARY               DEPTH   TOKENS   SOURCES  DAMAGE", paint.faint)],
      columns,
    );
    const lines = targets
      .slice(top, top + room)
      .map((target, at) =>
        renderRow(renderTarget(target, paint), { columns, isSelected: top + at === selected, paint }),
      );
    return [...head.map((line) => renderSpans([span(line)], columns)), titles, ...lines];
  }

  #describeCost(): string {
    const { archive } = this.#desk;
    if (!this.#run.usesModel) return "Cost: nothing. The engine writes them itself, without a model.";
    const { inputTokens, outputTokens } = this.#run.cost;
    return `Cost: about ${formatCount(inputTokens)} tokens in and ${formatCount(outputTokens)} out, with ${toOneLine(archive.modelName ?? "")}.`;
  }

  #renderEnd(reason: string, paint: Paint): string[] {
    const { targets } = this.#run;
    const accepted = this.#run.count("accepted");
    const others = (["skipped", "unchanged", "no better"] as const)
      .filter((outcome) => this.#run.count(outcome) > 0)
      .map((outcome) => `${formatCount(this.#run.count(outcome))} ${outcome}`);
    const left = targets.length - this.#run.outcomes.length;
    return [
      ...(reason === "" ? [] : [`  ${paint.warning(toOneLine(reason))}`]),
      `  ${paint.good("ok")}  ${[`${formatCount(accepted)} accepted`, ...others, ...(left > 0 ? [`${formatCount(left)} not written`] : [])].join(", ")}`,
      "",
      paint.faint("  The old texts are kept, replaced. Esc leads back."),
    ];
  }
}

function describeReview({
  oldId,
  before,
  after,
}: Extract<RewriteSeries["stage"], { kind: "review" }>["answer"]): string {
  const tokens = `${formatCount(before.tokens)} → ${formatCount(after.tokens)} tokens`;
  return `${oldId}  ${tokens}  ${toOneLine(before.model)} → ${toOneLine(after.model)}`;
}

function renderTarget(
  { summaryId, depth, tokens, sourceTokens, damage }: RewriteTarget,
  paint: Paint,
): Span[] {
  return [
    cell(summaryId, 20, { style: paint.name }),
    cell(`d${depth}`, 7, { right: true }),
    cell(formatCount(tokens), 9, { right: true }),
    cell(formatCount(sourceTokens), 10, { right: true }),
    span(`  ${damage?.replaceAll("_", " ") ?? ""}`, paint.warning),
  ];
}
