/** Without a mouse: the way from the first page to a conversation, its cards, graph, context, figures and health, by Tab, Enter, arrows and Escape alone. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { openSite } from "./archive.ts";
import { until, waitForView } from "./browser.ts";

const chromium = findChromium();
const MAX_STEPS = 80;

/** What has the focus: its role or tag and name, and whether it can be seen that it has it. */
interface Focus {
  readonly name: string;
  readonly isMarked: boolean;
  readonly isInView: boolean;
}

const FOCUS = `(() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    name: element.tagName.toLowerCase() + " " + (element.getAttribute("aria-label") ?? element.textContent ?? "").trim().slice(0, 60),
    isMarked: outlineStyle !== "none" && parseFloat(outlineWidth) >= 1,
    isInView: box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth,
  };
})()`;

describe.skipIf(chromium === null)("the keyboard alone", () => {
  test.each([1440, 390])("reaches and uses everything on the main path at %d pixels", async (width) => {
    using folder = makeTemporaryFolder();
    const site = await openSite(folder.path);
    const browser = await startChromium(chromium ?? "");
    try {
      const { page, troubles } = await openPage(browser, { viewport: { width, height: 800 } });
      await page.goto(site.inspector.url);
      await page.locator(".conversations tbody tr").nth(1).waitFor();
      await walk(page);
      expect(troubles).toEqual([]);
    } finally {
      await browser.close();
      await site.close();
    }
  });
});

async function walk(page: Page): Promise<void> {
  const press = (key: string): Promise<void> => page.keyboard.press(key);
  const openView = async (name: string): Promise<void> => {
    await tabTo(page, new RegExp(`^a ${name}$`), "Shift+Tab");
    await press("Enter");
    await waitForView(page, name);
  };
  // Find and open.
  await tabTo(page, /^input Find a conversation/);
  await page.keyboard.type("parcel label");
  await until(page, "document.querySelectorAll('.conversations tbody tr').length === 1");
  await tabTo(page, /^a Step 0: the parcel label printer/);
  await press("Enter");
  await page.locator("h1", { hasText: "Step 0" }).waitFor();
  // Expand a card, and close it again.
  await page.locator("details.call").first().waitFor();
  await tabTo(page, /^summary read_file/);
  await press("Enter");
  await page.locator("details.call[open] pre").first().waitFor();
  // Graph: arrows walk, plus and minus zoom.
  await openView("Graph");
  await tabTo(page, /^canvas Graph of summaries/);
  await press("ArrowDown");
  await page.locator(".detail .content").waitFor();
  await press("+");
  await press("0");
  await tabTo(page, /^summary The \d+ messages under it/);
  await press("Enter");
  await page.locator(".under li").first().waitFor();
  // Context: another budget, then a row.
  await openView("Context");
  await tabTo(page, /^button 8k/);
  await press("Enter");
  await page.locator(".budget", { hasText: "8,000" }).waitFor();
  await page.locator(".item").first().waitFor();
  await tabTo(page, /^button (?:summary|message|user|assistant|leaf|depth|d\d)/i);
  await press("Enter");
  await page.locator(".detail .content, .detail article").first().waitFor();
  // Figures by agent; health; the keys, and Escape.
  await openView("Figures");
  await tabTo(page, /^a Agent$/);
  await press("Enter");
  await until(page, "location.hash === '#/figures?by=agent'");
  await openView("Health");
  await tabTo(page, /^button Check everything/);
  await press("Enter");
  await page.locator(".verdict").waitFor();
  await tabTo(page, /^button Keys/, "Shift+Tab");
  await press("Enter");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
}

/** Steps until what is named has the focus. Wherever it is on the way, it is seen. */
async function tabTo(page: Page, wanted: RegExp, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  const seen: string[] = [];
  for (let step = 0; step < MAX_STEPS; step++) {
    await page.keyboard.press(key);
    const focus = await page.evaluate<Focus | null>(FOCUS);
    if (focus === null) continue;
    seen.push(focus.name);
    expect({ ...focus, key }).toEqual({ name: focus.name, key, isMarked: true, isInView: true });
    if (wanted.test(focus.name)) return;
  }
  throw new Error(`${String(wanted)} is not reached; on the way were ${seen.join(", ")}`);
}
