/**
 * Takes the pictures of the web inspector that the docs show: runs the tour on the sample, opens its archive and visits every view. `node
 * scripts/take-screenshots.ts` writes docs/images; `--all DIR` writes every view there, light, dark and narrow, for review.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { Page } from "playwright-core";
import { startInspector } from "../packages/web/src/server.ts";

const ROOT = path.join(import.meta.dirname, "..");

interface Shot {
  readonly name: string;
  readonly hash: string;
  /** Whether the page may write. */
  readonly isWriting?: boolean;
  /** Whether the docs show it. */
  readonly isKept?: boolean;
  readonly ready: string;
  readonly act?: (page: Page) => Promise<void>;
}

const SHOTS: readonly Shot[] = [
  { name: "overview", hash: "#/overview", isKept: true, ready: ".growth .plot" },
  { name: "conversation", hash: "#msg_93", isKept: true, ready: ".target" },
  { name: "graph", hash: "#/graph/1?message=93", isKept: true, ready: ".detail .content" },
  {
    name: "context",
    hash: "#/context/1?budget=8000",
    isKept: true,
    ready: ".turns .plot",
    act: (page) => page.locator(".item").nth(1).click(),
  },
  { name: "timeline", hash: "#/timeline/1", isKept: true, ready: ".plot" },
  { name: "search", hash: "#/search?q=why%20is%20the%20back-off%20capped", isKept: true, ready: ".hit" },
  {
    name: "health",
    hash: "#/health",
    ready: ".care",
    act: async (page) => {
      await page.getByRole("button", { name: "Check everything" }).click();
      await page.locator(".verdict").waitFor();
    },
  },
  { name: "care", hash: "#/health", isWriting: true, ready: ".care .action" },
  {
    name: "forget",
    isWriting: true,
    hash: "#msg_93",
    isKept: true,
    ready: ".target .action",
    act: async (page) => {
      await page.locator(".target .action").click();
      await page.locator(".action-dialog .touched").waitFor();
    },
  },
];

interface Look {
  readonly suffix: string;
  readonly width: number;
  readonly height: number;
  readonly scheme: "light" | "dark";
}

const LOOKS: readonly Look[] = [
  { suffix: "", width: 1280, height: 800, scheme: "light" },
  { suffix: "-dark", width: 1280, height: 800, scheme: "dark" },
  { suffix: "-narrow", width: 390, height: 844, scheme: "dark" },
];

const { values } = parseArgs({ options: { all: { type: "string" } } });
const chromium = findChromium();
if (chromium === null) throw new Error("there is no chromium here; name one in LCM_CHROMIUM");
const folder = mkdtempSync(path.join(tmpdir(), "lcm-pictures-"));
const browser = await startChromium(chromium);
try {
  const demo = path.join(folder, "demo");
  const script = path.join(ROOT, "packages/cli/src/demo/main.ts");
  const played = spawnSync(process.execPath, [script, "--folder", demo], { encoding: "utf8" });
  if (played.status !== 0) throw new Error(`the tour failed: ${played.stderr}`);
  await takeAll(path.join(demo, "lcm.db"));
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}

async function takeAll(database: string): Promise<void> {
  const { settings } = resolveSettings({ env: {}, config: { databasePath: database } });
  const engine = await openEngine({ database, settings });
  const { examine } = await import("@lossless/core/repair");
  const serve = (isWriting: boolean): ReturnType<typeof startInspector> =>
    startInspector({
      engine,
      scope: {},
      port: 0,
      timezone: "UTC",
      version: "0.1.0",
      write: isWriting ? { settings, model: null } : null,
      examine: () => examine({ engine, settings, databasePath: database, filesDir: settings.largeFilesDir }),
    });
  const [reading, writing] = await Promise.all([serve(false), serve(true)]);
  try {
    const out = values.all ?? path.join(ROOT, "docs/images");
    mkdirSync(out, { recursive: true });
    const looks = values.all === undefined ? [LOOKS[0]] : LOOKS;
    for (const look of looks) {
      if (look === undefined) continue;
      await takeLook(reading.url, out, look, (shot) => shot.isWriting !== true);
      await takeLook(writing.url, out, look, (shot) => shot.isWriting === true);
    }
  } finally {
    await reading.close();
    await writing.close();
    await engine.close();
  }
}

async function takeLook(
  url: string,
  out: string,
  { suffix, width, height, scheme }: Look,
  isWanted: (shot: Shot) => boolean,
): Promise<void> {
  const { page, context, troubles } = await openPage(browser, {
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: "reduce",
  });
  await page.goto(url);
  await page.locator(".cards").first().waitFor();
  for (const { name, hash, isKept, ready, act } of SHOTS.filter(isWanted)) {
    if (values.all === undefined && isKept !== true) continue;
    await page.evaluate(`location.hash = "#/search"`);
    await page.locator("form[role=search]").waitFor();
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.locator(ready).first().waitFor();
    await act?.(page);
    // Canvases are drawn in the next frame.
    await page.locator("[aria-busy]").first().waitFor({ state: "detached" });
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    await page.screenshot({ path: path.join(out, `inspector-${name}${suffix}.png`) });
  }
  await context.close();
  if (troubles.length > 0) throw new Error(`the page printed errors:\n${troubles.join("\n")}`);
}
