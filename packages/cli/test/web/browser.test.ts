/** Every view in a real browser: what it shows, that it prints no errors, and that it asks nobody else. Skipped where there is no Chromium. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeFolder } from "../support.ts";
import { MAIN, openSite } from "./archive.ts";
import type { Site } from "./archive.ts";
import { Browser, findChromium } from "./browser.ts";

const chromium = findChromium();
if (chromium === null) console.warn("skipped: no chromium here; install it or name it in LCM_CHROMIUM");

describe.skipIf(chromium === null)("the page in a browser", () => {
  const folder = makeFolder();
  let site: Site;
  let browser: Browser;

  beforeAll(async () => {
    site = await openSite(folder.path);
    browser = await Browser.start(chromium ?? "");
    await browser.open(site.inspector.url);
    await browser.until("document.querySelector('.cards')");
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    folder.remove();
  });

  const go = (hash: string): Promise<unknown> => browser.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  const count = (selector: string): Promise<number> =>
    browser.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`);
  const textOf = (selector: string): Promise<string> =>
    browser.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);

  test("the token is gone from the address, and the overview lists the conversations", async () => {
    expect(await browser.evaluate("location.search")).toBe("");
    await browser.until("document.querySelectorAll('.scroll-x tbody tr').length === 2");
    expect(await textOf(".scroll-x tbody")).toContain("agent:<b>hostile</b>");
    await browser.until("document.querySelector('.plot')");
  });

  test("the conversation makes only the rows that can be seen, and folds what tools said", async () => {
    await go("#/conversation/1");
    await browser.until("document.querySelectorAll('article').length > 5");
    expect(await count(".vrow")).toBeLessThan(60);
    await browser.until(
      "document.querySelector('details.call') && !document.querySelector('details.call').open",
    );
    await browser.evaluate("document.querySelector('details.call summary').click()");
    await browser.until("document.querySelector('details.call[open] pre')?.innerText.includes('step-1.ts')");
    expect(await count(".code-keyword")).toBeGreaterThan(0);
  });

  test("the end of the conversation is one key away", async () => {
    await browser.evaluate("document.activeElement.blur()");
    await browser.press("G");
    await browser.until(
      "[...document.querySelectorAll('article')].some((one) => one.innerText.includes('msg_120'))",
    );
    await browser.press("g");
    await browser.until(
      "[...document.querySelectorAll('article')].some((one) => one.innerText.includes('msg_1 ') || one.ariaLabel.endsWith('msg_1'))",
    );
  });

  test("a link to a message shows it in the middle, with the way to the root", async () => {
    await go("#msg_60");
    await browser.until(
      "document.querySelector('.target')?.ariaLabel.endsWith('msg_60') && document.querySelector('.path').innerText.includes('sum_')",
    );
    const top = await browser.evaluate<number>(
      "document.querySelector('.target').getBoundingClientRect().top",
    );
    expect(top).toBeGreaterThan(0);
    expect(top).toBeLessThan(800);
  });

  test("a search in the conversation marks what it found", async () => {
    await browser.evaluate(
      "(() => { const input = document.querySelector('.toolbar input'); input.value = 'carrier'; input.dispatchEvent(new Event('input')); })()",
    );
    await browser.until(
      "document.querySelector('mark')?.innerText === 'carrier' && document.querySelector('.toolbar').innerText.includes('found')",
    );
  });

  test("hostile content is text: no element of it, no script of it, its tricks are named", async () => {
    await go("#/conversation/2");
    await browser.until("document.querySelectorAll('article').length === 3");
    expect(await textOf("article")).toContain("<script>window.hacked = 1</script>");
    expect(await browser.evaluate("window.hacked ?? null")).toBeNull();
    expect(await count("article script, article img[onerror]")).toBe(0);
    expect(await textOf(".sneaky")).toBe("U+202E");
    const isWithin =
      "[...document.querySelectorAll('article')].every((one) => one.getBoundingClientRect().right <= innerWidth)";
    expect(await browser.evaluate(isWithin)).toBe(true);
    await browser.until("document.querySelector('figure img')?.naturalWidth === 1");
    await browser.evaluate("document.querySelector('.more').click()");
    await browser.until("document.querySelector('article').innerText.length > 30000");
  });

  test("the graph is drawn, and keys walk along it", async () => {
    await go("#/graph/1");
    await browser.until("document.querySelector('.toolbar').innerText.includes('summar')");
    await browser.until(
      `(() => { const canvas = document.querySelector('canvas.graph'); const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; return pixels.some((value) => value > 0); })()`,
    );
    await browser.press("ArrowDown");
    await browser.until("document.querySelector('.detail .content')?.innerText.includes('parcel')");
    await browser.press("+");
    await browser.press("0");
  });

  test("a link to a summary opens it in the graph", async () => {
    const id = await textOf(".detail h2");
    await go("#/overview");
    await browser.until("document.querySelector('.cards')");
    await go(`#${id}`);
    await browser.until(`document.querySelector('.detail h2')?.innerText === ${JSON.stringify(id)}`);
  });

  test("the context follows the slider and says what changed", async () => {
    await go("#/context/1");
    await browser.until("document.querySelectorAll('.item').length > 3");
    await browser.evaluate(
      "(() => { const slider = document.querySelector('input[type=range]'); slider.value = 60; slider.dispatchEvent(new Event('input')); })()",
    );
    await browser.until("document.querySelector('.diff b')?.innerText.startsWith('Against 32,000 tokens')");
    await browser.evaluate("document.querySelector('.item').click()");
    await browser.until("document.querySelector('.detail').innerText.includes('Why:')");
  });

  test("the timeline has real plots", async () => {
    await go("#/timeline/1");
    await browser.until("document.querySelectorAll('.plot').length >= 2");
    expect(
      await browser.evaluate<string>("document.querySelector('.plot-line.raw').getAttribute('points')"),
    ).toMatch(/^[\d.]+,[\d.]+ /);
  });

  test("search finds, marks and says by which rule; passages are cited", async () => {
    await go("#/search?q=label%20printer");
    await browser.until(
      "document.querySelectorAll('.hit').length > 3 && document.querySelector('.hit mark')",
    );
    expect(await textOf(".view")).toContain("found by: everything that was asked for");
    await go("#/search?q=what%20is%20step%2017%20about&mode=ask");
    await browser.until("document.querySelector('.hit')?.innerText.includes('Step 17:')");
  });

  test("the doctor's findings are shown when asked for", async () => {
    await go("#/health");
    await browser.until("document.querySelector('.toolbar button')");
    await browser.evaluate("document.querySelector('.toolbar button').click()");
    await browser.until("document.querySelector('.good, .bad')");
    expect(await textOf(".good")).toContain("Whole and unaltered.");
  });

  test("follows along while an agent writes", async () => {
    await go("#/conversation/1");
    await browser.until("document.querySelectorAll('article').length > 5");
    await site.writer.ingest({
      session: MAIN,
      messages: [{ eventId: "live", message: { role: "user", content: "written just now" } }],
    });
    await browser.until("document.querySelector('.live').innerText.includes('124')");
    await browser.evaluate("document.activeElement.blur()");
    await browser.until("document.querySelector('.vrow')?.ariaSetSize !== null");
    await browser.press("G");
    await browser.until(
      "[...document.querySelectorAll('article')].some((one) => one.innerText.includes('written just now'))",
    );
  });

  test("fits a narrow screen in the dark", async () => {
    await browser.setScheme("dark");
    await browser.resize(390, 780);
    for (const view of [
      "overview",
      "conversation/1",
      "graph/1",
      "context/1",
      "timeline/1",
      "search",
      "health",
    ]) {
      await go(`#/${view}`);
      await browser.until("document.querySelector('.view')?.innerText.trim() !== ''");
      expect({
        view,
        isWide: await browser.evaluate("document.documentElement.scrollWidth > innerWidth"),
      }).toEqual({ view, isWide: false });
    }
    expect(await browser.evaluate("document.documentElement.dataset.theme")).toBe("dark");
  });

  test("every control has a name", async () => {
    for (const view of ["overview", "conversation/1", "graph/1", "context/1", "search", "health"]) {
      await go(`#/${view}`);
      await browser.until("document.querySelector('.view')?.innerText.trim() !== ''");
      const nameless = await browser.evaluate<string[]>(
        `[...document.querySelectorAll('button, a[href], input, select, canvas, img, svg, [tabindex="0"]')]
          .filter((one) => !(one.ariaLabel || one.innerText?.trim() || one.alt || one.closest('label') || one.getAttribute('aria-label')))
          .map((one) => one.outerHTML.slice(0, 80))`,
      );
      expect(nameless).toEqual([]);
    }
  });

  test("nothing was printed as an error, and nobody else was asked", () => {
    expect(browser.troubles).toEqual([]);
    const { origin } = new URL(site.inspector.url);
    expect([...new Set(browser.requests.map((url) => new URL(url).origin))]).toEqual([origin]);
  });
});
