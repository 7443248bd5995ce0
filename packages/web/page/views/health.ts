/**
 * Health: the doctor's checks, with the command that fixes each finding, and maintenance of the archive. The checks prove the whole archive, so
 * they run on demand. If the inspector has write access, the same can be done from here, each after a preview.
 */
import { renderAction } from "../action-dialog.ts";
import { examine, writeAccess } from "../api.ts";
import type { ActionRequest, DoctorReply } from "../api.ts";
import { renderCommand } from "../code.ts";
import { fill, h, textNodes } from "../dom.ts";
import type { Child } from "../dom.ts";
import { countOf, formatCount } from "../format.ts";
import { linkSummary, renderFailure, renderHead, renderLoading } from "../view.ts";
import type { View } from "../view.ts";

type Finding = DoctorReply["findings"][number];

const SHOWN_FINDINGS = 500;

export function openHealth(): View {
  const report = h("div", { role: "region", "aria-live": "polite", "aria-label": "Report" });
  const button = h("button", { type: "button", class: "primary" }, "Check everything");
  const check = async (): Promise<void> => {
    button.disabled = true;
    fill(report, renderLoading("and verifying every message"));
    try {
      fill(report, ...renderReport(await examine(), () => void check()));
    } catch (error) {
      fill(report, renderFailure(error));
    } finally {
      button.disabled = false;
    }
  };
  button.addEventListener("click", () => void check());
  return {
    element: h(
      "section",
      { class: "view", "aria-label": "Health" },
      renderHead("Health", "verify the archive and fix what is wrong"),
      h(
        "div",
        { class: "panel" },
        h(
          "p",
          {},
          "Rebuilds every message and compares it with its hash, checks the hash chains, the index, summaries, pending folds, files, permissions and backups. Changes nothing.",
        ),
        button,
      ),
      report,
      ...renderCare(),
    ),
  };
}

function renderReport({ ok, counts, findings, cost }: DoctorReply, again: () => void): Child[] {
  const total = `${countOf(counts.error, "error")}, ${countOf(counts.warning, "warning")}, ${countOf(counts.info, "note")}`;
  const mendable = findings.filter(({ fix }) => fix !== undefined).length;
  return [
    h(
      "p",
      { class: `verdict ${ok ? "good" : "bad"}` },
      h("b", {}, ok ? "Complete and unaltered." : "Something is wrong."),
      ` ${total}`,
    ),
    mendable > 0 &&
      (renderAction(`Fix ${countOf(mendable, "finding")} …`, () => ({ action: "mend" }), again) ??
        h("p", { class: "faint" }, `${countOf(mendable, "finding")} can be fixed with lcm doctor --fix.`)),
    h(
      "ul",
      { class: "findings" },
      ...findings.slice(0, SHOWN_FINDINGS).map((finding) => renderFinding(finding, again)),
    ),
    cost.inputTokens > 0 &&
      h(
        "p",
        { class: "faint" },
        `Regenerating the damaged summaries with a model takes about ${formatCount(cost.inputTokens)} tokens in and ${formatCount(cost.outputTokens)} out.`,
      ),
  ];
}

function renderFinding({ severity, code, id, message, mend, fix }: Finding, again: () => void): HTMLElement {
  const isSummary = /^sum_[0-9a-f]{16}$/.test(id);
  return h(
    "li",
    { class: `finding ${severity}` },
    h(
      "header",
      {},
      h("span", { class: "role" }, severity),
      h("span", { class: "id" }, ...textNodes(code)),
      isSummary ? linkSummary(id) : h("span", { class: "faint" }, ...textNodes(id)),
      fix !== undefined && h("span", { class: "tag" }, "safe to fix"),
      isSummary &&
        renderAction("Regenerate …", () => ({ action: "rewrite", summaryId: id, isSubtree: false }), again),
    ),
    h("p", { class: "prose" }, ...textNodes(message)),
    mend !== null && renderCommand(mend),
  );
}

interface CareRow {
  readonly name: string;
  readonly says: string;
  readonly command: string;
  readonly request: () => ActionRequest | null;
}

function renderCare(): Child[] {
  const pattern = h("input", { type: "text", "aria-label": "Text to forget", placeholder: "text to forget" });
  const rows: readonly CareRow[] = [
    {
      name: "Back up",
      says: "Copies the archive with its large files and verifies the copy. Agents can keep writing.",
      command: "lcm backup",
      request: () => ({ action: "backup" }),
    },
    {
      name: "Fix",
      says: "Makes a backup, then rebuilds the index, makes files private, finishes pending folds and an interrupted forget.",
      command: "lcm doctor --fix",
      request: () => ({ action: "mend" }),
    },
    {
      name: "Repair summaries",
      says: "Regenerates stand-ins, cut-off, empty and stale summaries. The old texts are kept.",
      command: "lcm repair --all --apply",
      request: () => ({ action: "repair", conversationId: null }),
    },
    {
      name: "Forget",
      says: "Permanently removes every message that contains a text, and everything derived from it.",
      command: "lcm forget --pattern TEXT",
      request: () =>
        pattern.value.trim() === ""
          ? (pattern.focus(), null)
          : { action: "forget", pattern: pattern.value, conversationId: null, reason: "" },
    },
  ];
  const access = writeAccess();
  return [
    h("h2", {}, "Maintenance"),
    h(
      "p",
      { class: "faint" },
      access === null
        ? "This page is read-only. Start it with lcm web --write to do these things here; each shows a preview first."
        : `Each shows a preview first. Summaries are written by ${access.model ?? "the engine itself, without a model"}.`,
    ),
    h(
      "ul",
      { class: "care" },
      ...rows.map(({ name, says, command, request }) =>
        h(
          "li",
          { class: "panel" },
          h("h3", {}, name),
          h("p", {}, says),
          access !== null && name === "Forget" && pattern,
          renderAction(`${name} …`, request, () => undefined) ?? renderCommand(command),
        ),
      ),
    ),
  ];
}
