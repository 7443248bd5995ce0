/** Reading a session of a coding agent in a real browser, from a topic to its tokens. */
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { WatchedPage } from "@lossless/testkit/chromium.ts";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { openCoding } from "./archive.ts";
import type { Site } from "./archive.ts";
import { findBarriers, go, until } from "./browser.ts";

const chromium = findChromium();

describe.skipIf(chromium === null)("reading a session", () => {
  const folder = makeTemporaryFolder();
  let site: Site;
  let browser: Browser;
  let watched: WatchedPage;

  beforeAll(async () => {
    site = await openCoding(folder.path);
    browser = await startChromium(chromium ?? "");
    watched = await openPage(browser, { permissions: ["clipboard-read", "clipboard-write"] });
    await watched.page.goto(site.inspector.url);
    await watched.page.locator(".cards").waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    folder[Symbol.dispose]();
  });

  test("a topic leads to its conversation and its tokens in five actions", async () => {
    const { page } = watched;
    await page.getByRole("searchbox", { name: "Find a conversation" }).fill("zebra");
    await page.keyboard.press("Enter");
    await page.locator(".hit a.title").first().click();
    // The sizes of turns come later; the mark stays in view.
    await page.locator(".turn").first().waitFor();
    const mark = page.locator(".target mark", { hasText: "zebra" }).first();
    const isInView = async (): Promise<boolean> => {
      const top = (await mark.boundingBox())?.y ?? -1;
      return top > 0 && top < 800;
    };
    await expect.poll(isInView).toBe(true);
    await page.locator(".of", { hasText: /shop · claude-code · main.*tokens said/ }).waitFor();
    expect(await page.title()).toMatch(/^Round the .*price.* · Conversation/);
  });

  test("a hit deep in a long result is in view where most of its words are", async () => {
    const { page } = watched;
    await go(page, "#/search?q=walrus+iceberg");
    await page.locator(".hit a.title").first().click();
    const mark = page.locator(".target mark", { hasText: "iceberg" });
    const isInView = async (): Promise<boolean> => {
      const [box, code] = await Promise.all([
        mark.boundingBox(),
        page.locator(".target .code").boundingBox(),
      ]);
      return box !== null && code !== null && box.y > Math.max(0, code.y) && box.y < 800;
    };
    await expect.poll(isInView).toBe(true);
  });

  test("words in the address of a conversation are looked for in it", async () => {
    const { page } = watched;
    await go(page, "#/conversation/1?q=zebra");
    await page.locator(".finder", { hasText: "1 found" }).waitFor();
    await page.locator(".target mark", { hasText: "zebra" }).first().waitFor();
  });

  test("a hit with another form of the word is opened, and the form is marked", async () => {
    const { page } = watched;
    await go(page, "#/conversation/1?q=exits");
    await page.locator("article.target details[open]", { hasText: "exit code 1" }).waitFor();
    await page
      .locator("article.target mark", { hasText: /^exit$/ })
      .first()
      .waitFor();
    await go(page, "#/conversation/1");
    await until(page, "document.querySelector('article.target') === null");
  });

  test("Markdown becomes elements; HTML stays text, and links lead only outside", async () => {
    const { page } = watched;
    await go(page, "#/conversation/1");
    const answer = page.locator("article", { hasText: "Plan" }).first();
    await answer.locator("ol li code", { hasText: "basket.ts" }).waitFor();
    expect(await answer.locator("td").allInnerTexts()).toEqual(["1", "2"]);
    expect(
      await answer.locator("a[target=_blank]").evaluateAll((all) => all.map((a) => a.getAttribute("href"))),
    ).toEqual(["https://example.org/a"]);
    expect(await answer.locator("img").count()).toBe(0);
    expect(await answer.innerText()).toContain("<img src=x onerror=alert(1)>");
    // Only what is named as code is coloured.
    expect(await answer.locator(".code-keyword").allInnerTexts()).toEqual(["const"]);
  });

  test("rows that show nothing new are not built again", async () => {
    const { page } = watched;
    await go(page, "#/overview");
    await page.locator(".cards").waitFor();
    const built = Promise.withResolvers<void>();
    await page.route("**/turn-sums?*", async (route) => (await built.promise, route.continue()));
    await go(page, "#/conversation/1");
    const answer = page.locator("article", { hasText: "Plan" }).first();
    await answer.evaluate((element) => element.setAttribute("data-first", ""));
    built.resolve();
    await page.locator(".turn").first().waitFor();
    await page.unroute("**/turn-sums?*");
    expect(await answer.getAttribute("data-first")).toBe("");
  });

  test("a call and its result are one card, an edit shows its lines, and housekeeping has a switch", async () => {
    const { page } = watched;
    const edit = page.locator("details.call[open]", { hasText: "src/basket.ts" });
    expect(await edit.locator(".diff-gone").innerText()).toContain("return sum;");
    expect(await edit.locator(".diff-new").innerText()).toContain("Math.round");
    await edit.locator(".outcome", { hasText: /^\+\d+ −\d+$/ }).waitFor();
    await page.locator("details.call.failed .outcome", { hasText: "error: exit code 1" }).waitFor();
    expect(await page.locator("article.role-tool").count()).toBe(0);
    await page.locator(".turn", { hasText: /6 messages · .* tokens · 5 min/ }).waitFor();
    const housekeeping = page.locator("article.hidden-message");
    expect(await housekeeping.count()).toBe(0);
    await page.getByLabel("housekeeping").check();
    // A line of the host that says nothing to people is shown as it is stored.
    await housekeeping.locator("summary", { hasText: /^model_change .*other/ }).waitFor();
    await until(page, "location.hash === '#/conversation/1?housekeeping=1'");
    await page.getByLabel("housekeeping").uncheck();
  });

  test("going back finds the place that was left", async () => {
    const { page } = watched;
    await page.locator(".vlist").focus();
    await page.keyboard.press("G");
    await page.locator("article", { hasText: "Later word 79" }).waitFor();
    await until(page, "history.state?.at > 20");
    await go(page, "#/figures");
    await page.locator("tfoot").waitFor();
    await page.goBack();
    await page.locator("article", { hasText: "Later word 79" }).waitFor();
  });

  test("it can be copied as Markdown, and resumed in its host", async () => {
    const { page } = watched;
    await page.getByRole("button", { name: "Resume this session" }).click();
    await page.locator(".command pre", { hasText: "cd /home/me/shop && claude --resume 4b1c2d3e" }).waitFor();
    await page.getByRole("button", { name: "Copy as Markdown" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(copied).toContain("## user, 2026-03-01 09:00\n\nRound the **price** of the basket");
    expect(copied).toContain("**tool call: Bash**");
    expect(copied).toContain("Later word 79");
  });

  test("the context says why it is as large as it is, and shows first words", async () => {
    const { page } = watched;
    await go(page, "#/context/1");
    await page.locator(".sentence", { hasText: "because none of them is folded" }).waitFor();
    await page.locator(".item-words", { hasText: "Round the **price** of the basket" }).waitFor();
  });

  test("an unfolded conversation says how to fold it, and folds after a preview where it may", async () => {
    const { page } = watched;
    await go(page, "#/graph/1");
    await page
      .locator(".detail pre", { hasText: "lcm compact --conversation 1 --budget 32k --force" })
      .waitFor();
    const writable = await openCoding(`${folder.path}/writable`, { write: true });
    const other = await openPage(browser);
    try {
      await other.page.goto(`${writable.inspector.url}#/graph/1`);
      await other.page.getByRole("button", { name: "Fold it …" }).click();
      await other.page.locator("dialog", { hasText: "no model" }).waitFor();
      await other.page.getByRole("button", { name: "Fold", exact: true }).click();
      await other.page.locator("dialog", { hasText: /written/ }).waitFor();
      await other.page.getByRole("button", { name: "Close" }).last().click();
      await other.page.locator(".toolbar .of", { hasText: /summar/ }).waitFor();
      expect(other.troubles).toEqual([]);
    } finally {
      await other.context.close();
      await writable.close();
    }
  });

  test.each([1440, 1024, 390])("no barrier at %d pixels, light and dark", async (width) => {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, context, troubles } = await openPage(browser, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      await page.goto(`${site.inspector.url}#/conversation/1`);
      await page.locator(".turn").first().waitFor();
      await page.locator(".of", { hasText: "tokens said" }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
      expect(troubles).toEqual([]);
      await context.close();
    }
  });

  test("a conversation that does not exist is reported once", async () => {
    const { page, troubles } = watched;
    const before = troubles.length;
    for (const view of ["Conversation", "Graph", "Context", "Timeline"]) {
      await go(page, `#/${view.toLowerCase()}/999`);
      await page.locator(`.view[aria-label=${view}] [role=alert]`).first().waitFor();
      await page.locator("[aria-busy]").waitFor({ state: "detached" });
      const alerts = await page.locator("[role=alert]").allInnerTexts();
      expect(alerts, view).toEqual(["cannot find conversation 999"]);
    }
    // The browser itself prints every status 404.
    expect(troubles.splice(before).filter((trouble) => !trouble.includes("404"))).toEqual([]);
  });

  test("nothing was printed as an error", () => {
    expect(watched.troubles).toEqual([]);
  });
});
