/** A hundred thousand messages in a real browser: every view opens, any place is a step away, and only what is seen exists. */
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { WatchedPage } from "@lossless/testkit/chromium.ts";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { LARGE_MESSAGES, openLarge } from "./archive.ts";
import type { Site } from "./archive.ts";
import { go, goAndWait, VIEWS } from "./browser.ts";

const chromium = findChromium();

describe.skipIf(chromium === null)("a hundred thousand messages", () => {
  const folder = makeTemporaryFolder();
  let site: Site;
  let browser: Browser;
  let watched: WatchedPage;

  beforeAll(async () => {
    site = await openLarge(folder.path);
    browser = await startChromium(chromium ?? "");
    watched = await openPage(browser);
    await watched.page.goto(site.inspector.url);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    folder[Symbol.dispose]();
  });

  test("every view opens", async () => {
    for (const view of VIEWS) await goAndWait(watched.page, view);
    await goAndWait(watched.page, "#/overview");
    expect(await watched.page.locator(".scroll-x tbody").innerText()).toContain("100,000");
  });

  test("first, last and any message in between are there at once, and few rows exist", async () => {
    const { page } = watched;
    await goAndWait(page, "#/conversation/1");
    await page.locator("main").focus();
    await page.keyboard.press("G");
    await page.getByText(`Step ${LARGE_MESSAGES - 1}:`).waitFor();
    await go(page, "#msg_50001");
    await page.locator(".target", { hasText: "Step 50000:" }).waitFor();
    await page.locator(".path", { hasText: "sum_" }).waitFor();
    expect(await page.locator(".vrow").count()).toBeLessThan(80);
  });

  test("the context stands for all of them at any budget", async () => {
    const { page } = watched;
    for (const budget of [2_000, 32_000, 1_000_000]) {
      await goAndWait(page, `#/context/1?budget=${budget}`);
      await page.locator(".cards", { hasText: "messages: all of them" }).waitFor();
    }
  });

  test("nothing was printed as an error, and nobody else was asked", () => {
    expect(watched.troubles).toEqual([]);
    const { origin } = new URL(site.inspector.url);
    expect([...new Set(watched.requests.map((url) => new URL(url).origin))]).toEqual([origin]);
  });
});
