/** Health: the doctor's checks, with the command that mends each finding. It proves the whole archive, so it runs when asked. */
import { examine } from "../api.ts";
import type { DoctorReport } from "../api.ts";
import { fill, h, textNodes } from "../dom.ts";
import { countOf } from "../format.ts";
import { renderFailure, renderLoading } from "../view.ts";
import type { View } from "../view.ts";

export function openHealth(): View {
  const report = h("div", { role: "region", "aria-live": "polite", "aria-label": "Report" });
  const button = h("button", { type: "button" }, "Check everything");
  button.addEventListener("click", () => {
    button.disabled = true;
    fill(report, renderLoading("and proving every message"));
    examine()
      .then((found) => fill(report, ...renderReport(found)))
      .catch((error: unknown) => fill(report, renderFailure(error)))
      .finally(() => {
        button.disabled = false;
      });
  });
  return {
    element: h(
      "section",
      { class: "view", "aria-label": "Health" },
      h("div", { class: "toolbar" }, h("h1", {}, "Health"), button),
      h(
        "p",
        { class: "faint" },
        "Rebuilds every message and compares it with its commitment, walks the chains, and looks at the index, summaries, debts, files, permissions and backups. Changes nothing.",
      ),
      report,
    ),
  };
}

function renderReport({ ok, counts, findings }: DoctorReport): HTMLElement[] {
  const total = `${countOf(counts.error, "error")}, ${countOf(counts.warning, "warning")}, ${countOf(counts.info, "note")}`;
  return [
    h(
      "p",
      { class: ok ? "good" : "bad" },
      h("b", {}, ok ? "Whole and unaltered. " : "Something is wrong. "),
      total,
    ),
    h(
      "ul",
      { class: "findings" },
      ...findings
        .slice(0, 500)
        .map(({ severity, code, id, message, mend }) =>
          h(
            "li",
            { class: `finding ${severity}` },
            h(
              "header",
              {},
              h("span", { class: "role" }, severity),
              h("span", { class: "id" }, ...textNodes(code)),
              h("span", { class: "faint" }, ...textNodes(id)),
            ),
            h("p", { class: "prose" }, ...textNodes(message)),
            mend !== null && h("pre", { class: "code", tabindex: 0 }, ...textNodes(mend)),
          ),
        ),
    ),
  ];
}
