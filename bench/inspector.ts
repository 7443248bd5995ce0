/**
 * The web inspector on a large archive, in a real browser: the time to the first view after `lcm web` has printed its address, the time from a
 * click to its result on the screen, as the first click after opening and later, and the size of the page. `npm run bench -- inspector
 * [messages] [folder]`; the archive is created once and kept in the folder.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import path from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { Browser, Page } from "playwright-core";
import { loadPage } from "../packages/web/src/page.ts";
import { median, round as roundTo } from "./history.ts";
import { makeLargeArchive } from "./inspector-archive.ts";
import type { BenchResult } from "./report.ts";

const MESSAGES = 100_000;
const ROUNDS = 7;
/** How often the inspector is started for each kind of click, to measure it as the first. */
const OPENINGS = 3;
const FIRST_LIMIT_MS = 1_000;
const CLICK_LIMIT_MS = 200;
/** A server that answers with an error never shows the result. */
const CLICK_TIMEOUT_MS = 30_000;
/** Of the page's own files, compressed with gzip. */
export const SIZE_LIMIT_BYTES = 120_000;

export interface Click {
  readonly name: string;
  /** The click that must come before this one. */
  readonly from?: Click;
  /** The script that clicks, in the page. */
  readonly act: string;
  /** True in the page when the result is on the screen. */
  readonly isDone: string;
}

const show = (name: string, hash: string, selector: string): Click => ({
  name,
  act: `location.hash = ${JSON.stringify(hash)}`,
  isDone: `document.querySelector(${JSON.stringify(selector)})`,
});

const press = (key: string): string =>
  `document.dispatchEvent(new KeyboardEvent("keydown", { key: ${JSON.stringify(key)}, bubbles: true }))`;

export function listClicks(messages: number): Click[] {
  const middle = Math.floor(messages / 2);
  const conversation = show("conversation", "#/conversation/1", "[aria-label=Conversation] article");
  const graph = show("graph", "#/graph/1", "[aria-label=Graph] .swatch");
  const context = show("context for 32,000 tokens", "#/context/1", "[aria-label=Context] .item");
  return [
    show("overview", "#/overview", "[aria-label=Overview] .card"),
    conversation,
    {
      name: "its last message",
      from: conversation,
      act: press("G"),
      isDone: `document.querySelector("article[aria-label$='msg_${messages}']")`,
    },
    show("a message in the middle, by link", `#msg_${middle}`, `.target[aria-label$='msg_${middle}']`),
    graph,
    {
      name: "a summary in the graph",
      from: graph,
      act: press("ArrowUp"),
      isDone: `document.querySelector(".detail .content")`,
    },
    context,
    {
      name: "context for 200,000 tokens",
      from: context,
      act: `[...document.querySelectorAll("button")].find((one) => one.innerText === "200k").click()`,
      isDone: `document.querySelector(".diff b")`,
    },
    show("timeline", "#/timeline/1", "[aria-label=Timeline] .plot"),
    show("search", "#/search?q=config+error+state", "[aria-label=Search] .hit"),
  ];
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const messages = Number(args[0] ?? MESSAGES);
  const chromium = findChromium();
  if (chromium === null) throw new Error("there is no chromium here; name one in LCM_CHROMIUM");
  const folder = args[1] ?? path.join(tmpdir(), "lcm-bench");
  console.log(`archive of ${messages} messages in ${folder} (made when it is missing, which takes minutes)`);
  const { database } = await makeLargeArchive(folder, messages);
  const clicks = listClicks(messages);
  const browser = await startChromium(chromium);
  try {
    const openings = await measureOpenings(browser, database, clicks);
    const later = await measureLater(browser, database, clicks);
    const weight = await weighPage();
    const toRow = (
      what: string,
      first: readonly number[],
      then: readonly number[],
      limitMs?: number,
    ): Row => ({
      what,
      "first ms": first.length === 0 ? "" : Math.round(median(first)),
      "slowest first ms": first.length === 0 ? "" : Math.round(Math.max(...first)),
      "later ms": then.length === 0 ? "" : roundTo(median(then), limitMs === undefined ? 1 : 0),
      "limit ms": limitMs ?? "",
      holds: limitMs === undefined ? "" : Math.max(median(first), median(then)) <= limitMs ? "yes" : "no",
    });
    return {
      name: `The web inspector on ${messages} messages`,
      rows: [
        toRow("lcm web until its address is printed", openings.startMs, []),
        toRow("first view after that", openings.viewMs, [], FIRST_LIMIT_MS),
        ...clicks.map(({ name }, index) =>
          toRow(name, openings.clickMs[index] ?? [], later.clickMs[index] ?? [], CLICK_LIMIT_MS),
        ),
        toRow("a frame of the graph while it is zoomed", [], later.frameMs),
      ],
      notes: [
        `The page's own files: ${weight.gzip} bytes with gzip, ${weight.brotli} with brotli, ${weight.plain} plain; the limit is ${SIZE_LIMIT_BYTES} with gzip.`,
        `first: the click made the moment the first view was there, in an inspector started for it; median and slowest of ${OPENINGS}. later: median of ${ROUNDS} rounds through all of them.`,
      ],
    };
  } finally {
    await browser.close();
  }
}

/** The size of all files of the page. */
export async function weighPage(): Promise<{ gzip: number; brotli: number; plain: number }> {
  const files = [...(await loadPage()).values()];
  const sum = (compress: (content: Buffer) => Buffer): number =>
    files.reduce((bytes, { content }) => bytes + compress(content).byteLength, 0);
  return {
    gzip: sum((content) => gzipSync(content, { level: 9 })),
    brotli: sum(brotliCompressSync),
    plain: sum((content) => content),
  };
}

type Row = BenchResult["rows"][number];

interface Openings {
  readonly startMs: number[];
  readonly viewMs: number[];
  /** Per click. */
  readonly clickMs: number[][];
}

/** Each click as the first one: nothing of it was read before, and the overview is still being drawn. */
async function measureOpenings(
  browser: Browser,
  database: string,
  clicks: readonly Click[],
): Promise<Openings> {
  const openings: Openings = { startMs: [], viewMs: [], clickMs: clicks.map(() => []) };
  for (let round = 0; round < OPENINGS; round++) {
    for (const [index, click] of clicks.entries()) {
      await withPage(browser, database, async (page, { startMs, viewMs }) => {
        if (click.from) await measureClick(page, click.from);
        openings.clickMs[index]?.push(await measureClick(page, click));
        openings.startMs.push(startMs);
        openings.viewMs.push(viewMs);
      });
    }
  }
  return openings;
}

/** The same clicks in one inspector, round by round; the first round does not count. */
async function measureLater(
  browser: Browser,
  database: string,
  clicks: readonly Click[],
): Promise<{ readonly clickMs: number[][]; readonly frameMs: number[] }> {
  return withPage(browser, database, async (page) => {
    const clickMs: number[][] = clicks.map(() => []);
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [index, click] of clicks.entries()) {
        const tookMs = await measureClick(page, click);
        if (round > 0) clickMs[index]?.push(tookMs);
      }
    }
    return { clickMs, frameMs: await measureFrames(page) };
  });
}

/** A page of an inspector started for it; by the program of `tree`, which is this one when absent. */
export async function withPage<T>(
  browser: Browser,
  database: string,
  work: (page: Page, opened: { readonly startMs: number; readonly viewMs: number }) => Promise<T>,
  tree?: string,
): Promise<T> {
  const { url, startMs, end } = await startServer(database, tree);
  try {
    const { page, context } = await openPage(browser);
    const startedAt = performance.now();
    await page.goto(url);
    await page.locator("[aria-label=Overview] .card").first().waitFor();
    const viewMs = performance.now() - startedAt;
    try {
      return await work(page, { startMs, viewMs });
    } finally {
      await context.close();
    }
  } finally {
    await end();
  }
}

async function startServer(
  database: string,
  tree = path.join(import.meta.dirname, ".."),
): Promise<{ readonly url: string; readonly startMs: number; readonly end: () => Promise<unknown> }> {
  const startedAt = performance.now();
  const program = path.join(tree, "packages/cli/bin/lcm.js");
  const child = spawn(process.execPath, [program, "web", "--db", database], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    printed += chunk.toString();
    const url = /http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]+/.exec(printed)?.[0];
    if (url === undefined) continue;
    const startMs = performance.now() - startedAt;
    const ended = once(child, "exit");
    return { url, startMs, end: () => (child.kill("SIGINT"), ended) };
  }
  throw new Error(`lcm web ended before it printed its address: ${printed}`);
}

/** The time to draw the whole graph once, by scrolling the wheel over it. */
async function measureFrames(page: Page): Promise<number[]> {
  await measureClick(page, show("graph", "#/graph/1", "[aria-label=Graph] .swatch"));
  return page.evaluate(`(async () => {
    const canvas = document.querySelector("canvas.graph");
    const times = [];
    for (let turn = 0; turn < 40; turn++) {
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: turn % 2 === 0 ? -30 : 30, cancelable: true }));
      const before = performance.now();
      // The drawing was requested first: it runs in the same frame, before this.
      await new Promise((done) => requestAnimationFrame((start) => { times.push(performance.now() - Math.max(start, before)); done(); }));
    }
    return times;
  })()`);
}

/** From the click to the frame after its result is there. Leftovers of another view do not count. */
export function measureClick(page: Page, { act, isDone }: Click): Promise<number> {
  return page.evaluate(`new Promise((resolve, reject) => {
    const isDone = () => Boolean(${isDone});
    const before = isDone() ? document.querySelector(".view") : null;
    const startedAt = performance.now();
    ${act};
    const look = () => {
      const isThere = isDone() && document.querySelector(".view") !== before;
      if (performance.now() - startedAt > ${CLICK_TIMEOUT_MS}) reject(new Error("nothing came: " + ${JSON.stringify(isDone)}));
      else if (isThere) requestAnimationFrame(() => resolve(performance.now() - startedAt));
      else setTimeout(look, 1);
    };
    look();
  })`);
}
