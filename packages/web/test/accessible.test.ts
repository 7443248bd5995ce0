/** The sample in a real browser: axe finds nothing in any view, light and dark, wide and narrow, and nothing is cut off. */
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { openSample } from "./archive.ts";
import type { Site } from "./archive.ts";
import { findBarriers, goAndWait, LOOKS, VIEWS } from "./browser.ts";

const chromium = findChromium();

describe.skipIf(chromium === null)("the sample, for everyone", () => {
  const folder = makeTemporaryFolder();
  let site: Site;
  let browser: Browser;

  beforeAll(async () => {
    site = await openSample(folder.path);
    browser = await startChromium(chromium ?? "");
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    folder[Symbol.dispose]();
  });

  describe.each(LOOKS)("%s, %d pixels wide", (colorScheme, width) => {
    test("no barrier, nothing cut off, no error", async () => {
      const { page, context, troubles } = await openPage(browser, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      await page.goto(site.inspector.url);
      const found: string[] = [];
      for (const view of VIEWS) {
        await goAndWait(page, view);
        found.push(...(await findBarriers(page)).map((barrier) => `${view} ${barrier}`));
        const isCutOff = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
        if (isCutOff) found.push(`${view} is wider than the screen`);
      }
      expect(found).toEqual([]);
      expect(await page.evaluate("document.documentElement.dataset.theme")).toBe(colorScheme);
      expect(troubles).toEqual([]);
      await context.close();
    });
  });

  test("what opens on a click has no barrier either", async () => {
    const { page, context } = await openPage(browser);
    await page.goto(site.inspector.url);
    await goAndWait(page, "#/graph/1");
    await page.keyboard.press("ArrowDown");
    await page.locator(".under-box summary").click();
    await page.locator(".under li").first().waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await goAndWait(page, "#/context/1");
    await page.locator(".item").first().click();
    await page.locator(".detail .content, .detail article").first().waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await goAndWait(page, "#/health");
    await page.getByRole("button", { name: "Check everything" }).click();
    await page.locator(".verdict").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await context.close();
  });
});
