/** What the tests in a browser share: going to a view, and waiting for it. */
import type { Page } from "playwright-core";
import { expect } from "vitest";

export { findBarriers } from "@lossless/testkit/axe.ts";

export const VIEWS = [
  "#/overview",
  "#/conversation/1",
  "#/graph/1",
  "#/context/1",
  "#/timeline/1",
  "#/search?q=parcel",
  "#/figures",
  "#/health",
] as const;

/** A wide screen, a laptop and a phone. */
export const LOOKS = [1440, 1024, 390].flatMap((width) => [
  ["light", width] as const,
  ["dark", width] as const,
]);

/** What says that a view has everything it shows. */
const READY: Readonly<Record<string, string>> = {
  overview: ".growth .plot",
  conversation: "article",
  graph: ".toolbar .legend",
  context: ".turns .plot",
  timeline: ".plot",
  search: ".hit, .view",
  figures: "tfoot",
  health: ".care",
};

export async function go(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
}

export async function goAndWait(page: Page, hash: string): Promise<void> {
  await go(page, hash);
  const name = /^#\/([a-z]+)/.exec(hash)?.[1] ?? "overview";
  await waitForView(page, `${name.charAt(0).toUpperCase()}${name.slice(1)}`);
}

/** Waits until a view, by the name it shows, has everything. */
export async function waitForView(page: Page, name: string): Promise<void> {
  const view = `.view[aria-label=${name}]`;
  await page.locator(view).waitFor();
  await page
    .locator(`${view} ${READY[name.toLowerCase()] ?? "*"}`)
    .first()
    .waitFor();
}

/** Looks again and again until an expression is true in the page. What runs inside the page itself would need a looser policy. */
export async function until(page: Page, expression: string): Promise<void> {
  await expect
    .poll(() => page.evaluate<boolean>(`Boolean(${expression})`), { message: expression })
    .toBe(true);
}
