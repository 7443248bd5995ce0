/** A page that `lcm export --format html` wrote, in a real browser, from its file. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findBarriers } from "@lossless/testkit/axe.ts";
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTalk } from "./export-talk.ts";
import { commandsFor, createRunner, makeFolder } from "./support.ts";

const chromium = findChromium();
const home = makeFolder();
const at = (name: string): string => join(home.path, name);
const { lcm, text } = commandsFor(createRunner(home.path), at("a.db"));
afterAll(home.remove);

describe.skipIf(chromium === null)("in a browser, from its file", () => {
  let browser: Browser;
  beforeAll(async () => {
    writeFileSync(at("talk.jsonl"), makeTalk());
    expect((await lcm("import", at("talk.jsonl"))).status).toBe(0);
    await text("export", "--format", "html", "--out", at("talk.html"), "--apply");
    browser = await startChromium(chromium ?? "");
  });
  afterAll(async () => browser?.close());

  const visible = (page: Page): Promise<string[]> =>
    page.locator("article:visible").evaluateAll((all) => all.map((one) => one.id));

  test("shows everything in place, runs nothing of it and asks nobody", async () => {
    const { page, context, troubles, requests } = await openPage(browser);
    await page.goto(pathToFileURL(at("talk.html")).href);
    expect(await page.title()).toMatch(/^Round the .*price/);
    expect(await page.locator(".of").innerText()).toBe(
      "shop · claude-code · main · model-x · 2026-03-01 09:00–09:07",
    );
    expect(await page.locator("ol li code").innerText()).toBe("basket.ts");
    expect(await page.locator(".code-keyword").allInnerTexts()).toEqual(["const"]);
    expect(
      await page
        .locator("article a[target=_blank]")
        .evaluateAll((all) => all.map((a) => a.getAttribute("href"))),
    ).toEqual(["https://example.org/a"]);
    const edit = page.locator("details.call[open]");
    expect(await edit.locator(".diff-new").innerText()).toContain("Math.round");
    expect(await edit.locator(".outcome").innerText()).toBe("+1 −1");
    expect(await page.locator("details.call.failed .outcome").innerText()).toContain("error: exit 1");
    expect(await page.locator("details.reasoning").getAttribute("open")).toBeNull();
    expect(await page.evaluate("document.querySelector('article img').naturalWidth")).toBe(1);
    expect(await page.evaluate("window.hacked")).toBeUndefined();
    expect(troubles).toEqual([]);
    expect(requests.filter((address) => !/^(file|data):/.test(address))).toEqual([]);
    await context.close();
  });

  test("finds, opens what it found, folds, and shows housekeeping when asked", async () => {
    const { page, context } = await openPage(browser);
    await page.goto(pathToFileURL(at("talk.html")).href);
    const before = await visible(page);
    await page.keyboard.press("/");
    await page.keyboard.type("zebra");
    await page.locator("#count", { hasText: "2 of" }).waitFor();
    expect((await visible(page)).length).toBe(2);
    expect(await page.locator("details.call.failed").getAttribute("open")).toBe("");
    expect(await page.evaluate("CSS.highlights.get('found').size")).toBeGreaterThan(1);
    await page.keyboard.press("Enter");
    await page.locator("#count", { hasText: "1 of 2 found" }).waitFor();
    await page.keyboard.press("Escape");
    expect(await visible(page)).toEqual(before);
    expect(await page.locator("details.call.failed").getAttribute("open")).toBeNull();
    await page.getByRole("button", { name: "Open all" }).click();
    expect(await page.getByText("A quiet thought about pelicans").last().isVisible()).toBe(true);
    await page.getByRole("button", { name: "Fold all" }).click();
    expect(await page.locator("details[open]").count()).toBe(0);
    await page.getByLabel("housekeeping").check();
    expect((await visible(page)).length).toBe(before.length + 1);
    await context.close();
  });

  test.each([1440, 390])("no barrier at %d pixels, light and dark, and it can be printed", async (width) => {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, context } = await openPage(browser, { viewport: { width, height: 800 }, colorScheme });
      await page.goto(pathToFileURL(at("talk.html")).href);
      await page.getByRole("button", { name: "Open all" }).click();
      await page.getByLabel("housekeeping").check();
      expect(await findBarriers(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
      const paint = (): Promise<string> => page.evaluate("getComputedStyle(document.body).backgroundColor");
      const first = await paint();
      await page.getByLabel("Colours").selectOption(colorScheme === "light" ? "dark" : "light");
      expect(await paint()).not.toBe(first);
      await keepPicture(page, `export-${width}-${colorScheme}`);
      await page.emulateMedia({ media: "print" });
      expect(await page.locator(".bar").isVisible()).toBe(false);
      await context.close();
    }
  });
});

/** To be looked at: `LCM_PICTURES` names the folder. */
async function keepPicture(page: Page, name: string): Promise<void> {
  const pictures = process.env["LCM_PICTURES"];
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}
