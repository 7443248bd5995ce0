/** Checks the accessibility of a page in a browser with axe. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Violations on the current page, each with the affected elements. Evaluated by the debugger, so the page's policy stays strict. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(
    `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.slice(0, 5).map(({ target, failureSummary }) => target + " " + failureSummary).join(" | ")))`,
  );
}
