/**
 * The doctor's findings: problems, the worst first, with the command that fixes each. Checking changes nothing; `f` fixes what is safe to fix,
 * after a preview.
 */
import { countOf, formatCount, renderBar, SHELL_WORDS, toOneLine } from "@lossless/core/doors";
import { isSummaryId, wordStep } from "@lossless/core";
import type { DoctorResult, Finding, Severity } from "@lossless/core/repair";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, storedSpan, type Paint, type Style } from "../paint.ts";
import { joinPanes, splitPanes } from "../panes.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import { TextPane } from "../text-pane.ts";
import { toTextLines, type TextLine } from "../wrapped-text.ts";
import { makeConfirmScreen } from "./confirm.ts";
import type { TextContent } from "./text.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "f", does: "fix what is safe" },
  { keys: "Enter", does: "the summary it is about" },
  { keys: "u", does: "check again" },
  { keys: "J K", does: "scroll the text" },
];
const HEAD_ROWS = 2;
/** In a narrower list the message matters more than the code, which is in the title of the text. */
const CODE_COLUMNS = 100;

export class DoctorScreen implements Screen {
  readonly name = "doctor";
  readonly keys = KEYS;
  readonly #desk: Desk;
  readonly #pane = new TextPane();
  #report: DoctorResult | null = null;
  #share = 0;
  #isRunning = false;
  /** Something was fixed since the report. */
  #isStale = false;
  #cursor: ListCursor = LIST_START;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Runs in the background: proving a large archive takes time. */
  load(): Promise<void> {
    if (this.#report === null || this.#isStale) this.#start();
    return Promise.resolve();
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#isStale = false;
    this.#share = 0;
    this.#desk.run(async () => {
      try {
        this.#report = await this.#desk.archive.examine((done, total) => {
          this.#share = total <= 0 ? 1 : done / total;
          this.#desk.redraw();
        });
      } finally {
        this.#isRunning = false;
      }
    });
  }

  get area(): ListArea {
    return placeList(
      this.#cursor,
      this.#report?.findings.length ?? 0,
      splitPanes(this.#desk.size).list,
      HEAD_ROWS,
    );
  }

  async handle(key: Key): Promise<boolean> {
    const { rows } = splitPanes(this.#desk.size).list;
    const move = readMove(key.name, rows - HEAD_ROWS);
    if (move !== null) {
      this.#cursor = moveInList(this.#cursor, move, this.#report?.findings.length ?? 0, rows - HEAD_ROWS);
      return true;
    }
    if (this.#pane.handle(key)) return true;
    if (isOpen(key.name)) return this.#open();
    if (key.name === "f") await this.#fix();
    else if (key.name === "u") this.#start();
    else return false;
    return true;
  }

  get #fixable(): readonly Finding[] {
    return this.#report?.findings.filter(({ fix }) => fix !== undefined) ?? [];
  }

  async #fix(): Promise<void> {
    const findings = this.#fixable;
    if (this.#isRunning) return this.#desk.say("still checking");
    if (findings.length === 0)
      return this.#desk.say("nothing here can be fixed at once: each finding names its command");
    const apply = async (): Promise<string> => {
      const { mended, backupPath, copyPath } = await this.#desk.archive.mend(findings);
      this.#isStale = true;
      const copies = [backupPath, copyPath].filter((path) => path !== null);
      return `fixed ${mended.length} of ${countOf(findings.length, "finding")}${copies.length === 0 ? "" : `; copy: ${copies.join(", ")}`}`;
    };
    const preview = (): Promise<TextContent> =>
      Promise.resolve({
        title: "What would be fixed. Nothing has been changed yet.",
        lines: (paint) => renderFixes(findings, paint),
      });
    await this.#desk.open(makeConfirmScreen(this.#desk, { name: "fix", preview, apply }));
  }

  async #open(): Promise<boolean> {
    const finding = this.#report?.findings[this.#cursor.selected];
    if (finding === undefined) return true;
    if (!isSummaryId(finding.id)) {
      this.#desk.say("this finding is not about a summary");
      return true;
    }
    const { engine, scope } = this.#desk.archive;
    const summary = await engine.readSummary({ ...scope, summaryId: finding.id });
    const { conversationId = 0 } = summary ?? {};
    const conversation = await engine.readConversation({ ...scope, conversationId });
    return conversation === null || this.#desk.go.graph(conversation, finding.id);
  }

  render(size: Size, paint: Paint): string[] {
    const panes = splitPanes(size);
    const { columns } = panes.list;
    const findings = this.#report?.findings ?? [];
    const rows = Math.max(1, panes.list.rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, findings.length, rows);
    const { top, selected } = this.#cursor;
    const lines = findings
      .slice(top, top + rows)
      .map((finding, at) =>
        renderRow(
          [
            cell(finding.fix === undefined ? "" : "+", 2, { style: paint.good }),
            cell(wordSeverity(finding.severity), 9, { style: styleOf(finding.severity, paint) }),
            ...(columns < CODE_COLUMNS ? [] : [cell(finding.code, 22, { style: paint.name })]),
            storedSpan(finding.message),
          ],
          { columns, isSelected: top + at === selected, paint },
        ),
      );
    const finding = findings[selected];
    return joinPanes(
      panes,
      {
        list: [...this.#renderHead(columns, paint), ...lines],
        title: finding === undefined ? "" : `${finding.code} · ${finding.id}`,
        detail:
          finding === undefined
            ? []
            : this.#pane.render(`${finding.code} ${finding.id}`, panes.detail, () => [
                ...toTextLines(finding.message),
                ...describeMend(finding).map((text) => ({ text: toOneLine(text), style: paint.name })),
              ]),
      },
      paint,
    );
  }

  #renderHead(columns: number, paint: Paint): string[] {
    const checking = `  checking ${renderBar(this.#share, 20)} ${Math.floor(this.#share * 100)} %`;
    if (this.#report === null) return [renderSpans([span(checking)], columns), ""];
    const { counts, ok, cost } = this.#report;
    const total = `${countOf(counts.error, "error")}, ${countOf(counts.warning, "warning")}, ${countOf(counts.info, "note")}`;
    const isGood = ok && counts.warning === 0;
    const fixable = this.#fixable.length;
    const offer = fixable === 0 ? "" : `f fixes those marked with + (${fixable}). `;
    const spent =
      cost.inputTokens === 0
        ? ""
        : `Regenerating summaries takes about ${formatCount(cost.inputTokens)} tokens in, ${formatCount(cost.outputTokens)} out.`;
    return [
      renderSpans(
        [
          span("  "),
          span(isGood ? "ok" : "problems", isGood ? paint.good : paint.warning),
          span(`  ${total}`),
        ],
        columns,
      ),
      renderSpans([span(this.#isRunning ? checking : `  ${offer}${spent}`, paint.faint)], columns),
    ];
  }
}

const styleOf = (severity: Severity, paint: Paint): Style =>
  severity === "error" ? paint.bad : severity === "warning" ? paint.warning : paint.faint;

/** As in the line of counts. */
const wordSeverity = (severity: Severity): string => (severity === "info" ? "note" : severity);

const renderFixes = (findings: readonly Finding[], paint: Paint): TextLine[] => [
  { text: "" },
  ...findings.flatMap(({ code, message }): TextLine[] => [
    { text: code, style: paint.name },
    { text: `  ${toOneLine(message)}` },
  ]),
  { text: "" },
  {
    text: "A backup comes before anything in the database changes. Messages stay as they are.",
    style: paint.faint,
  },
  { text: "y does it, n leaves it.", style: paint.title },
];

function describeMend({ step, fix, cost }: Finding): string[] {
  return [
    ...(step === null ? [] : [`fix: ${wordStep(step, SHELL_WORDS)}`]),
    ...(fix === undefined ? [] : ["f fixes it here, after a backup"]),
    ...(cost === undefined
      ? []
      : [`cost: about ${formatCount(cost.inputTokens)} tokens in, ${formatCount(cost.outputTokens)} out`]),
  ];
}
