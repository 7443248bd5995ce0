/** Changing things from the page in a real browser: nothing without a preview and a confirmation, and the views follow. */
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { WatchedPage } from "@lossless/testkit/chromium.ts";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { openSite } from "./archive.ts";
import type { Site } from "./archive.ts";
import { findBarriers, go, goAndWait } from "./browser.ts";

const chromium = findChromium();

describe.skipIf(chromium === null)("an inspector that may write", () => {
  const folder = makeTemporaryFolder();
  let site: Site;
  let browser: Browser;
  let watched: WatchedPage;

  beforeAll(async () => {
    site = await openSite(folder.path, { write: true });
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

  const dialog = () => watched.page.locator(".action-dialog");
  const press = (name: string) => dialog().getByRole("button", { name, exact: true }).click();

  test("says that it can", async () => {
    expect(await watched.page.locator(".mode").innerText()).toBe("can write");
  });

  test("backs up after a preview; cancelling does nothing", async () => {
    const { page } = watched;
    await goAndWait(page, "#/health");
    await page.getByRole("button", { name: "Back up …" }).click();
    await dialog().getByText("0 backups").waitFor();
    await press("Cancel");
    await dialog().waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Back up …" }).click();
    // For the archive that is shown, not for the one of the settings.
    await dialog()
      .locator("pre", { hasText: /^lcm backup --db .*lcm\.db/ })
      .waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await press("Back up");
    await dialog().getByText("Backed up and verified").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await press("Close");
  });

  test("names, tags, pins and hides a conversation, and narrows the list by it", async () => {
    const { page } = watched;
    await goAndWait(page, "#/overview");
    const rows = page.locator(".conversations tbody tr");
    await rows.filter({ hasText: "hostile" }).locator(".label-button").click();
    await dialog().getByRole("textbox", { name: "Name" }).fill("A quiet one");
    await dialog().getByRole("textbox", { name: "Tags" }).fill("Depot, odd");
    await dialog().getByLabel("pinned").check();
    expect(await findBarriers(page)).toEqual([]);
    await press("Save");
    await rows.first().getByText("A quiet one").waitFor();
    await goAndWait(page, "#/overview?tag=depot&since=2026-01-01&sort=oldest");
    await page.getByText("1 conversation", { exact: true }).waitFor();
    const [listed] = (await site.writer.listConversations({ tag: "depot", limit: 9 })).items;
    const conversationId = listed?.conversationId ?? 0;
    await site.writer.labelConversation({ conversationId, addTags: ["one, two"] });
    await rows.first().locator(".title").click();
    await page.locator(".heading", { hasText: "A quiet one" }).locator(".tag").first().waitFor();
    await page.locator(".tools .label-button").click();
    await dialog().getByLabel("hidden from lists").check();
    await press("Save");
    await page.locator(".heading", { hasText: "hidden from lists" }).waitFor();
    const labelled = await site.writer.readConversation({ conversationId });
    expect(labelled?.tags.toSorted()).toEqual(["depot", "odd", "one, two"]);
    await page.goBack();
    await page.getByText("0 conversations", { exact: true }).waitFor();
    await page.getByLabel("include hidden").check();
    await page.getByText("1 conversation", { exact: true }).waitFor();
    expect(new URL(page.url()).hash).toContain("hidden=true");
    await page.getByRole("button", { name: "Clear" }).click();
    await rows.first().getByText("Step 0").waitFor();
    expect(new URL(page.url()).hash).toBe("#/overview");
  });

  test("dissolves a summary, and the graph follows", async () => {
    const { page } = watched;
    await goAndWait(page, "#/graph/1");
    await page.keyboard.press("ArrowDown");
    await page.locator(".detail .content").waitFor();
    const before = await page.locator(".toolbar .of").innerText();
    await page.getByRole("button", { name: "Dissolve …" }).click();
    await dialog().locator(".touched li").first().waitFor();
    await press("Dissolve");
    await dialog().getByText("put back").waitFor();
    await press("Close");
    await page.locator(".toolbar .of").filter({ hasNotText: before }).waitFor();
  });

  test("forgets a message only after the word was typed, and shows that it is gone", async () => {
    const { page } = watched;
    await go(page, "#msg_10");
    await page.locator(".target").getByRole("button", { name: "Forget …" }).click();
    await dialog().getByText("This cannot be undone.").waitFor();
    const forget = dialog().getByRole("button", { name: "Forget", exact: true });
    expect(await forget.isDisabled()).toBe(true);
    const word = dialog().getByRole("textbox");
    await word.fill("forge");
    expect(await forget.isDisabled()).toBe(true);
    expect(await findBarriers(page)).toEqual([]);
    await word.fill("forget");
    await forget.click();
    await dialog().getByText("1 message forgotten").waitFor();
    await press("Close");
    await page.locator(".target", { hasText: "forgotten" }).waitFor();
  });

  test("nothing was printed as an error, and nobody else was asked", () => {
    expect(watched.troubles).toEqual([]);
    const { origin } = new URL(site.inspector.url);
    expect([...new Set(watched.requests.map((url) => new URL(url).origin))]).toEqual([origin]);
  });
});
