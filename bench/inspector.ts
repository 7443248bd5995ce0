/**
 * The web inspector on a large archive, in a real browser: how long until the first view after `lcm web` has printed its address, how long
 * from a click until what was asked for is on the screen, and how large the page is. `npm run bench -- inspector [messages] [folder]`; the
 * archive is made once and kept in the folder.
 */
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import path from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { findChromium, openPage, startChromium } from "@lossless/testkit/chromium.ts";
import type { Browser, Page } from "playwright-core";
import { loadPage } from "../packages/cli/src/web/page.ts";
import { makeLargeArchive } from "./inspector-archive.ts";
import type { BenchResult } from "./report.ts";

const MESSAGES = 100_000;
const ROUNDS = 7;
const FIRST_LIMIT_MS = 1_000;
const CLICK_LIMIT_MS = 200;
/** A server that answers with an error shows nothing, however long one waits. */
const CLICK_TIMEOUT_MS = 30_000;
const SIZE_LIMIT_BYTES = 500_000;

interface Click {
  readonly name: string;
  /** What does it, in the page. */
  readonly act: string;
  /** True in the page when it is on the screen. */
  readonly isDone: string;
}

const show = (name: string, hash: string, selector: string): Click => ({
  name,
  act: `location.hash = ${JSON.stringify(hash)}`,
  isDone: `document.querySelector(${JSON.stringify(selector)})`,
});

const press = (key: string): string =>
  `document.dispatchEvent(new KeyboardEvent("keydown", { key: ${JSON.stringify(key)}, bubbles: true }))`;

function listClicks(messages: number): Click[] {
  const middle = Math.floor(messages / 2);
  return [
    show("overview", "#/overview", "[aria-label=Overview] .card"),
    show("conversation", "#/conversation/1", "[aria-label=Conversation] article"),
    {
      name: "its last message",
      act: press("G"),
      isDone: `document.querySelector("article[aria-label$='msg_${messages}']")`,
    },
    show("a message in the middle, by link", `#msg_${middle}`, `.target[aria-label$='msg_${middle}']`),
    show("graph", "#/graph/1", "[aria-label=Graph] .swatch"),
    {
      name: "a summary in the graph",
      act: press("ArrowUp"),
      isDone: `document.querySelector(".detail .content")`,
    },
    show("context for 32,000 tokens", "#/context/1", "[aria-label=Context] .item"),
    {
      name: "context for 200,000 tokens",
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
  const files = [...(await loadPage()).values()];
  const browser = await startChromium(chromium);
  const server = await startServer(database);
  try {
    const first = await measureFirst(browser, server.url);
    const clicks = await measureClicks(first.page, listClicks(messages));
    const frameMs = await measureFrames(first.page);
    const sum = (compress: (content: Buffer) => Buffer): number =>
      files.reduce((bytes, { content }) => bytes + compress(content).byteLength, 0);
    const gzipped = sum((content) => gzipSync(content, { level: 9 }));
    return {
      name: `The web inspector on ${messages} messages`,
      rows: [
        {
          what: "lcm web until its address is printed",
          "first ms": Math.round(server.startMs),
          "median ms": "",
          "limit ms": "",
        },
        {
          what: "first view after that",
          "first ms": Math.round(first.tookMs),
          "median ms": "",
          "limit ms": FIRST_LIMIT_MS,
        },
        ...clicks,
        {
          what: "a frame of the graph while it is zoomed",
          "first ms": "",
          "median ms": frameMs,
          "limit ms": "",
        },
      ],
      notes: [
        `The page's own files: ${gzipped} bytes with gzip, ${sum(brotliCompressSync)} with brotli, ${sum((content) => content)} plain; the limit is ${SIZE_LIMIT_BYTES}.`,
        "first: nothing of this view was read before. median: of the rounds after it.",
      ],
    };
  } finally {
    await browser.close();
    server.end();
  }
}

async function startServer(
  database: string,
): Promise<{ readonly url: string; readonly startMs: number; readonly end: () => void }> {
  const startedAt = performance.now();
  const program = path.join(import.meta.dirname, "../packages/cli/bin/lcm.js");
  const child = spawn(process.execPath, [program, "web", "--db", database], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    printed += chunk.toString();
    const url = /http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]+/.exec(printed)?.[0];
    if (url === undefined) continue;
    return { url, startMs: performance.now() - startedAt, end: () => child.kill("SIGINT") };
  }
  throw new Error(`lcm web ended before it printed its address: ${printed}`);
}

async function measureFirst(browser: Browser, url: string): Promise<{ page: Page; tookMs: number }> {
  const { page } = await openPage(browser);
  const startedAt = performance.now();
  await page.goto(url);
  await page.locator("[aria-label=Overview] .card").first().waitFor();
  return { page, tookMs: performance.now() - startedAt };
}

async function measureClicks(page: Page, clicks: readonly Click[]): Promise<BenchResult["rows"]> {
  const times = clicks.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, click] of clicks.entries()) times[index]?.push(await measureClick(page, click));
  }
  return clicks.map(({ name }, index) => {
    const [first = 0, ...later] = times[index] ?? [];
    return {
      what: name,
      "first ms": Math.round(first),
      "median ms": Math.round(later.toSorted((a, b) => a - b)[Math.floor(later.length / 2)] ?? 0),
      "limit ms": CLICK_LIMIT_MS,
    };
  });
}

/** How long it takes to draw the whole graph once, by turning the wheel over it. */
async function measureFrames(page: Page): Promise<number> {
  await measureClick(page, show("graph", "#/graph/1", "[aria-label=Graph] .swatch"));
  const times: number[] = await page.evaluate(`(async () => {
    const canvas = document.querySelector("canvas.graph");
    const times = [];
    for (let turn = 0; turn < 40; turn++) {
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: turn % 2 === 0 ? -30 : 30, cancelable: true }));
      const before = performance.now();
      // The drawing was asked for first: it runs in the same frame, before this.
      await new Promise((done) => requestAnimationFrame((start) => { times.push(performance.now() - Math.max(start, before)); done(); }));
    }
    return times;
  })()`);
  return Number((times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0).toFixed(1));
}

/** From the click to the frame after what it asked for is there. What another view left behind does not count. */
function measureClick(page: Page, { act, isDone }: Click): Promise<number> {
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
