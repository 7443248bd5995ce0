/**
 * All real transcripts in one archive, in a real browser. Whoever knows only a topic gets to the conversation and its tokens in at most five
 * actions; and an archive that large, like an empty one, has no barriers at any width. Skipped where the transcripts or Chromium are missing.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit";
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import { findSharedData } from "@lossless/testkit/shared-data.ts";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "./archive.ts";
import type { Site } from "./archive.ts";
import { findBarriers, go, LOOKS } from "./browser.ts";

const chromium = findChromium();
const data = findSharedData();
const MAX_ACTIONS = 5;
const LCM = join(import.meta.dirname, "../../cli/bin/lcm.js");

/** What somebody remembers, and the title of the conversation it was in. The words of the last three are in no title. */
const TOPICS: readonly (readonly [topic: string, title: RegExp])[] = [
  ["carry-forward partial commits", /Content-aware carry-forward for partial commits/],
  ["flight ATL PHL", /change my upcoming flight from ATL to PHL/],
  [
    "duplicate constants commitScanLimit and maxCommitsToSearch",
    /let's start working our way through the PR/,
  ],
  ["merge conflicts phase-aware git hooks rebase", /got merge conflicts from parent/],
];

describe.skipIf(chromium === null || data === null)("an archive of all transcripts", () => {
  const folder = makeTemporaryFolder();
  let site: Site;
  let browser: Browser;

  beforeAll(async () => {
    const database = folder.file("lcm.db");
    // Some files are of formats that are refused on purpose; the rest is what counts.
    const imported = spawnSync(
      process.execPath,
      [LCM, "import", join(data ?? "", "transcripts"), "--db", database],
      { encoding: "utf8" },
    );
    site = await openArchive(database);
    expect((await site.writer.status({})).conversations, imported.stderr).toBeGreaterThan(100);
    browser = await startChromium(chromium ?? "");
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    folder[Symbol.dispose]();
  });

  test.each(TOPICS)("from “%s” to its conversation and tokens", async (topic, title) => {
    const { page, context, troubles } = await openPage(browser);
    await page.goto(site.inspector.url);
    await page.locator(".conversations tbody tr").nth(20).waitFor();
    const actions = await findTopic(page, topic);
    await page.locator("h1", { hasText: title }).waitFor();
    await page.locator(".toolbar .of", { hasText: /[\d.]+[kM]? tokens said/ }).waitFor();
    expect(actions).toBeLessThanOrEqual(MAX_ACTIONS);
    expect(troubles).toEqual([]);
    await context.close();
  });

  test("no barrier and nothing cut off at any width, light and dark", async () => {
    const found: string[] = [];
    for (const [colorScheme, width] of LOOKS) {
      const { page, context } = await openPage(browser, { viewport: { width, height: 800 }, colorScheme });
      await page.goto(site.inspector.url);
      for (const view of ["#/overview?agent=pi", "#/conversation/1", "#/search?q=merge+conflict"])
        found.push(
          ...(await look(page, view)).map((barrier) => `${width} ${colorScheme} ${view} ${barrier}`),
        );
      await context.close();
    }
    expect(found).toEqual([]);
  });
});

describe.skipIf(chromium === null)("an empty archive", () => {
  test("no barrier at any width, and every view says what to do", async () => {
    using folder = makeTemporaryFolder();
    const site = await openArchive(folder.file("lcm.db"));
    const browser = await startChromium(chromium ?? "");
    try {
      const found: string[] = [];
      for (const [colorScheme, width] of LOOKS) {
        const { page, context, troubles } = await openPage(browser, {
          viewport: { width, height: 800 },
          colorScheme,
        });
        await page.goto(site.inspector.url);
        for (const view of ["#/overview", "#/graph", "#/figures"])
          found.push(...(await look(page, view)), ...troubles.splice(0));
        for (const view of ["#/overview", "#/figures"]) {
          await go(page, view);
          await page.locator(".view", { hasText: "lcm import" }).waitFor();
        }
        await context.close();
      }
      expect(found).toEqual([]);
    } finally {
      await browser.close();
      await site.close();
    }
  });
});

/** As somebody would who knows nothing else: type it; take what is listed, else search all that was said and take the first hit. */
async function findTopic(page: Page, topic: string): Promise<number> {
  await page.getByRole("searchbox", { name: "Find a conversation" }).fill(topic);
  const says = page.locator("[aria-label=Conversations] [role=status]");
  await says.filter({ hasText: "in the title" }).waitFor();
  if (!(await says.innerText()).startsWith("No conversation")) {
    await page.locator(".conversations .title").first().click();
    return 2;
  }
  await page.keyboard.press("Enter");
  await page.locator(".hit a.title").first().click();
  return 3;
}

async function look(page: Page, hash: string): Promise<string[]> {
  await go(page, hash);
  await page.locator("main .view").waitFor();
  await page.locator("main [aria-busy]").first().waitFor({ state: "detached" });
  const isCutOff = await page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
  return [...(await findBarriers(page)), ...(isCutOff ? [`${hash} is wider than the screen`] : [])];
}
