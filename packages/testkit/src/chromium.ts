/**
 * A real Chromium without a window, for the tests, the benchmark and the pictures of the web inspector. Each start has a temporary profile.
 * Records the errors that pages printed and the addresses they requested, so that a test can assert that there were none.
 */
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { HANG_LIMIT_MS } from "./hang-limit.ts";

const PLACES = [
  process.env["LCM_CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const FLAGS =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage";

/** Null when none is installed. `LCM_CHROMIUM` names another one. */
export function findChromium(): string | null {
  return PLACES.find((path) => path !== undefined && path !== "" && existsSync(path)) ?? null;
}

export function startChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: FLAGS.split(" ") });
}

/** A page, and its errors. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors and warnings on the console, exceptions, refusals of the content security policy, requests that failed. */
  readonly troubles: string[];
  readonly requests: string[];
}

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(HANG_LIMIT_MS);
  const page = await context.newPage();
  const troubles: string[] = [];
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") troubles.push(message.text());
  });
  return { page, context, troubles, requests };
}
