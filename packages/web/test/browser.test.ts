/** Every view in a real browser: what it shows, that it prints no errors, and that it asks nobody else. Skipped where there is no Chromium. */
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { WatchedPage } from "@lossless/testkit/chromium.ts";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { MAIN, openSite } from "./archive.ts";
import type { Site } from "./archive.ts";
import { go, goAndWait, until } from "./browser.ts";

const chromium = findChromium();
if (chromium === null) console.warn("skipped: no chromium here; install it or name it in LCM_CHROMIUM");

describe.skipIf(chromium === null)("the page in a browser", () => {
  const folder = makeTemporaryFolder();
  let site: Site;
  let browser: Browser;
  let watched: WatchedPage;

  beforeAll(async () => {
    site = await openSite(folder.path);
    browser = await startChromium(chromium ?? "");
    watched = await openPage(browser);
    await watched.page.goto(site.inspector.url);
    await watched.page.locator(".cards").waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    folder[Symbol.dispose]();
  });

  test("the token moves from the address into the tab's session storage, and survives a reload", async () => {
    const { page, context } = watched;
    const { origin, searchParams } = new URL(site.inspector.url);
    const token = searchParams.get("token");
    expect(await page.evaluate("location.href")).toBe(`${origin}/`);
    expect(await page.evaluate("Object.values(sessionStorage)")).toEqual([token]);
    expect(await page.evaluate("Object.values(localStorage)")).not.toContain(token);
    expect(await context.cookies()).toEqual([]);
    await page.reload();
    await page.locator(".cards").waitFor();
    await page.locator(".live", { hasText: "live" }).waitFor();
    // Only the first request, which the printed address itself is, had it in its address.
    expect(watched.requests.filter((url) => url.includes(token ?? "?"))).toEqual([site.inspector.url]);
  });

  test("the printed address leads to the place that it names", async () => {
    const { page, context } = await openPage(browser);
    await page.goto(`${site.inspector.url}#msg_60`);
    await page.locator(".target").waitFor();
    expect(page.url()).toBe(`${new URL(site.inspector.url).origin}/#msg_60`);
    await context.close();
  });

  test("the overview lists the conversations", async () => {
    const { page } = watched;
    await page.locator(".scroll-x tbody tr").nth(1).waitFor();
    expect(await page.locator(".scroll-x tbody tr").count()).toBe(2);
    expect(await page.locator(".scroll-x tbody").innerText()).toContain("agent:<b>hostile</b>");
    // Ids come last.
    expect(await page.locator(".scroll-x thead th").allInnerTexts()).toEqual([
      "Conversation",
      "Last message",
      "Messages",
      "Summaries",
      "In context",
      "Id",
    ]);
    await page.locator(".growth .plot").waitFor();
    expect(await page.locator(".mode").innerText()).toBe("read-only");
  });

  test("words narrow the list, have an address, and lead to a search of everything", async () => {
    const { page } = watched;
    const find = page.getByRole("searchbox", { name: "Find a conversation" });
    await find.fill("step label");
    await until(page, "document.querySelectorAll('.scroll-x tbody tr').length === 1");
    await until(page, "location.hash === '#/overview?q=step+label'");
    await find.fill("nothing is called this");
    await page.locator(".view", { hasText: "No conversation has" }).waitFor();
    await find.fill("label printer");
    await find.press("Enter");
    await page.locator(".hit a.title", { hasText: "Step 0" }).first().click();
    await page.locator(".target mark").first().waitFor();
    await page.locator("h1", { hasText: "Step 0: the parcel label printer" }).waitFor();
    await page.locator(".toolbar .of", { hasText: "tokens said" }).waitFor();
    expect(await page.title()).toMatch(
      /^Step 0: the parcel label printer .* · Conversation · lossless-claw$/,
    );
  });

  test("the agents' own figures are added up by what was chosen, and have addresses", async () => {
    const { page } = watched;
    await go(page, "#/figures?by=tool");
    await page.locator(".cards", { hasText: "Tool calls" }).waitFor();
    expect(await page.locator(".plots .plot").count()).toBe(4);
    await page.getByText("No cost is shown, because lossless-claw ships no prices").waitFor();
    await page.getByRole("row", { name: /^read_file 30 0 1$/ }).waitFor();
    await page.getByRole("link", { name: "Agent" }).click();
    await until(page, "location.hash === '#/figures?by=agent'");
    await page.getByRole("columnheader", { name: "Tokens out" }).waitFor();
  });

  test("the conversation makes only the rows that can be seen, and folds what tools said", async () => {
    const { page } = watched;
    await go(page, "#/conversation/1");
    await page.locator("article").nth(5).waitFor();
    expect(await page.locator(".vrow").count()).toBeLessThan(60);
    const call = page.locator("details.call").first();
    expect(await call.getAttribute("open")).toBeNull();
    await call.locator("summary").click();
    await page.locator("details.call[open] pre", { hasText: "step-1.ts" }).waitFor();
    expect(await page.locator(".code-keyword").count()).toBeGreaterThan(0);
  });

  test("the end of the conversation is one key away", async () => {
    const { page } = watched;
    await page.keyboard.press("Escape");
    await page.locator("main").focus();
    await page.keyboard.press("G");
    await page.getByRole("article", { name: "msg_120", exact: false }).waitFor();
    await page.keyboard.press("g");
    await page.getByRole("article", { name: "user, msg_1", exact: true }).waitFor();
  });

  test("a link to a message shows it in the middle, with the way to the root", async () => {
    const { page } = watched;
    await go(page, "#msg_60");
    const target = page.locator(".target");
    await target.waitFor();
    expect(await target.getAttribute("aria-label")).toMatch(/msg_60$/);
    await page.locator(".path", { hasText: "sum_" }).waitFor();
    const box = await target.boundingBox();
    expect(box?.y).toBeGreaterThan(0);
    expect(box?.y).toBeLessThan(800);
    await page.getByRole("link", { name: "show in the graph" }).click();
    await page.locator(".detail .content").waitFor();
    expect(page.url()).toContain("#/graph/1?message=60");
  });

  test("a search in the conversation marks what it found", async () => {
    const { page } = watched;
    await go(page, "#/conversation/1");
    await page.getByRole("searchbox", { name: "Search in this conversation" }).fill("carrier");
    await page.locator("mark", { hasText: "carrier" }).first().waitFor();
    await page.locator(".toolbar", { hasText: "found" }).waitFor();
  });

  test("hostile content is text: no element of it, no script of it, its tricks are named", async () => {
    const { page } = watched;
    await go(page, "#/conversation/2");
    await page.locator("article").nth(2).waitFor();
    const first = page.locator("article").first();
    expect(await first.innerText()).toContain("<script>window.hacked = 1</script>");
    expect(await page.evaluate("window.hacked ?? null")).toBeNull();
    expect(await page.locator("article script, article img[onerror]").count()).toBe(0);
    expect(await page.locator(".sneaky").first().innerText()).toBe("U+202E");
    const box = await first.boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(1280);
    await until(page, "document.querySelector('figure img')?.naturalWidth === 1");
    await page.getByRole("button", { name: "Show all of it" }).click();
    await until(page, "document.querySelector('article').innerText.length > 30000");
  });

  test("the graph is drawn, keys walk along it, and a summary leads to the messages under it", async () => {
    const { page } = watched;
    await go(page, "#/graph/1");
    await page.locator(".toolbar", { hasText: "summar" }).waitFor();
    await until(
      page,
      // Read from a copy: Chromium warns when a canvas that is drawn by the graphics card is read more than once.
      `(() => { const canvas = document.querySelector('canvas.graph'); const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true }); copy.drawImage(canvas, 0, 0); return copy.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0); })()`,
    );
    await page.keyboard.press("ArrowDown");
    await page.locator(".detail .content", { hasText: "parcel" }).waitFor();
    await page.keyboard.press("+");
    await page.keyboard.press("0");
    await page.locator(".under-box summary").click();
    await page.locator(".under li").first().waitFor();
    await page.locator(".under a").first().click();
    await page.locator(".target").waitFor();
  });

  test("a pointer over a summary is told what it covers, and a click opens it", async () => {
    const { page } = watched;
    await go(page, "#/graph/1");
    await page.locator(".toolbar", { hasText: "summar" }).waitFor();
    const canvas = page.locator("canvas.graph");
    const box = await canvas.boundingBox();
    const place = { x: 30, y: (box?.height ?? 0) - 80 };
    await canvas.hover({ position: place });
    await page.locator(".tip", { hasText: "covers" }).waitFor();
    // Its first words come when they are read.
    await expect
      .poll(async () => {
        await canvas.hover({ position: { x: place.x + Math.round(Math.random()), y: place.y } });
        return page.locator(".tip").innerText();
      })
      .toContain("parcel label printer");
    await canvas.click({ position: place });
    await page.locator(".detail .content").waitFor();
    const id = await page.locator(".detail h2").innerText();
    await until(page, `location.hash === "#${id}"`);
    await go(page, "#/overview");
    await page.locator(".cards").waitFor();
    await go(page, `#${id}`);
    await page.locator(".detail h2", { hasText: id }).waitFor();
  });

  test("the context follows the slider, says what changed with the turn, and why each item is there", async () => {
    const { page } = watched;
    await go(page, "#/context/1");
    await page.locator(".item").nth(3).waitFor();
    await page.locator(".turns", { hasText: "Since the previous turn" }).waitFor();
    await page.locator(".turns", { hasText: "Prefix stability" }).waitFor();
    await page.getByRole("slider").fill("60");
    await page.locator(".diff b", { hasText: "Compared with 32,000 tokens" }).waitFor();
    await page.locator(".item").first().click();
    await page.locator(".detail", { hasText: "Why:" }).waitFor();
    // Budget and item are in the address, and it opens both.
    await until(page, String.raw`/^#.context.1\?budget=\d+&item=(?:sum|msg)_/.test(location.hash)`);
    const { hash } = new URL(page.url());
    await go(page, "#/overview");
    await page.locator(".cards").waitFor();
    await go(page, hash);
    await page.locator(".item.chosen").waitFor();
    await page.locator(".detail", { hasText: "Why:" }).waitFor();
    await page.locator("canvas.strip").hover({ position: { x: 5, y: 5 } });
    await page.locator(".strip-box .tip", { hasText: "tokens" }).waitFor();
  });

  test("the timeline has real plots, with the compactions marked", async () => {
    const { page } = watched;
    await go(page, "#/timeline/1");
    await page.locator(".plot").nth(1).waitFor();
    expect(await page.locator(".plot-line.raw").getAttribute("points")).toMatch(/^[\d.]+,[\d.]+ /);
    expect(await page.locator(".plot-mark").count()).toBe(1);
  });

  test("search finds, marks and says by which rule; passages are cited", async () => {
    const { page } = watched;
    await go(page, "#/search?q=label%20printer");
    await page.locator(".hit mark").nth(3).waitFor();
    expect(await page.locator(".view").innerText()).toContain("matched: all terms");
    expect(await page.locator(".hit .tag").first().innerText()).toBe("all words");
    await go(page, "#/search?q=what%20is%20step%2017%20about&mode=ask");
    await page.locator(".hit", { hasText: "Step 17:" }).first().waitFor();
  });

  test("a search in one conversation names it by its title, and its address says which it is", async () => {
    const { page } = watched;
    await goAndWait(page, "#/conversation/1");
    await until(page, `document.querySelector(".heading").textContent !== "Conversation"`);
    const title = await page.locator(".heading").innerText();
    await go(page, "#/search?q=label");
    const box = page.getByRole("checkbox", { name: `only in ${title}` });
    await box.check();
    await page.keyboard.press("Enter");
    await until(page, `new URLSearchParams(location.hash.split("?")[1]).get("conversation") === "1"`);
    await page.getByText(/\d hits in this conversation/).waitFor();
    // Opened elsewhere, the address chooses the conversation.
    await goAndWait(page, "#/conversation/2");
    await go(page, "#/search?q=label&conversation=1");
    await box.waitFor();
    expect(await box.isChecked()).toBe(true);
  });

  test("the doctor's findings are shown when asked for, with the command that mends each", async () => {
    const { page } = watched;
    await go(page, "#/health");
    await page.getByRole("button", { name: "Check everything" }).click();
    await page.locator(".verdict.good", { hasText: "Complete and unaltered." }).waitFor();
    await page.locator(".finding pre", { hasText: "lcm backup" }).waitFor();
    expect(await page.locator("button.action").count()).toBe(0);
  });

  test("follows along while an agent writes", async () => {
    const { page } = watched;
    await go(page, "#/conversation/1");
    await page.locator("article").nth(5).waitFor();
    await site.writer.ingest({
      session: MAIN,
      messages: [{ eventId: "live", message: { role: "user", content: "written just now" } }],
    });
    await page.locator(".live", { hasText: "124" }).waitFor();
    await until(page, "document.querySelector('.vrow')?.ariaSetSize !== null");
    await page.locator("main").focus();
    await page.keyboard.press("G");
    await page.locator("article", { hasText: "written just now" }).waitFor();
  });

  test("keys change the view and the theme", async () => {
    const { page } = watched;
    await page.locator("main").focus();
    await page.keyboard.press("5");
    await page.locator(".view[aria-label=Timeline]").waitFor();
    const before = await page.evaluate("document.documentElement.dataset.theme");
    await page.keyboard.press("t");
    expect(await page.evaluate("document.documentElement.dataset.theme")).not.toBe(before);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
  });

  test("nothing was printed as an error, and nobody else was asked", () => {
    expect(watched.troubles).toEqual([]);
    const { origin } = new URL(site.inspector.url);
    expect([...new Set(watched.requests.map((url) => new URL(url).origin))]).toEqual([origin]);
  });

  test("a wrong token opens nothing, and neither does the page of another site", async () => {
    const stranger = await openPage(browser);
    const { origin, port } = new URL(site.inspector.url);
    for (const path of ["/?token=wrong", "/"]) {
      await stranger.page.goto(origin + path);
      await stranger.page.locator("[role=alert]", { hasText: "Open the full address" }).waitFor();
      expect(await stranger.page.locator(".cards").count()).toBe(0);
    }
    // Another port is another site, and may not read even with the token.
    const other = await openSite(makeChild(folder.path));
    try {
      await stranger.page.goto(other.inspector.url);
      await stranger.page.locator(".cards").waitFor();
      const token = new URL(site.inspector.url).searchParams.get("token");
      const seen = await stranger.page.evaluate(
        `fetch("http://127.0.0.1:${port}/api/overview", { headers: { "x-lcm-token": "${token}" } }).then((reply) => reply.status, () => "refused")`,
      );
      expect(seen).toBe("refused");
    } finally {
      await stranger.context.close();
      await other.close();
    }
  });
});

const makeChild = (folder: string): string => `${folder}/other`;
