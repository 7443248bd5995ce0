/**
 * Compares the inspector with that of an earlier commit, alternating in the same run: the first view after `lcm web` has printed its address,
 * each click as the first one and later, and the size of the page. `npm run bench -- inspector-compare COMMIT [messages] [folder]`. Each side
 * has its own archive of the same messages; both are created once and kept in the folder.
 *
 * A first click depends on how far the server had prepared itself by then, and so varies by a factor of three. So every measurement of one side
 * is compared with the one of the other side next to it, and pairs are added until most of them agree on which side of the bar they are.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { findChromium, startChromium } from "@lossless/testkit/chromium.ts";
import type { Browser, Page } from "playwright-core";
import { openWorktree, readCommit } from "./compare.ts";
import { median, round, showProgress } from "./history.ts";
import { listClicks, measureClick, SIZE_LIMIT_BYTES, weighPage, withPage } from "./inspector.ts";
import type { Click } from "./inspector.ts";
import type { BenchResult } from "./report.ts";

const MESSAGES = 100_000;
/** Pairs of fresh pages for each kind of first click. */
const FEWEST_PAIRS = 8;
const MOST_PAIRS = 32;
/** How likely a fair coin would agree with itself as often as pairs that are believed. */
const DOUBT = 0.01;
const ROUNDS = 15;
const BAR = 1.2;
/** Until what the last click of a round left running has ended. */
const REST_MS = 500;

interface Side {
  /** Absent: the working tree. */
  readonly tree?: string;
  readonly database: string;
}

type Row = BenchResult["rows"][number];

export async function run(args: readonly string[]): Promise<BenchResult> {
  const [name = "", count = String(MESSAGES), folder = path.join(tmpdir(), "lcm-bench")] = args;
  const commit = readCommit(["--compare", name]);
  const chromium = findChromium();
  if (commit === null)
    throw new Error("name a commit to compare with: npm run bench -- inspector-compare COMMIT");
  if (chromium === null) throw new Error("there is no chromium here; name one in LCM_CHROMIUM");
  const messages = Number(count);
  using tree = openWorktree(commit);
  console.log(
    `archives of ${messages} messages in ${folder} (made when they are missing, which takes minutes)`,
  );
  const sides: readonly [Side, Side] = [
    { tree: tree.path, database: makeArchive(tree.path, path.join(folder, commit.slice(0, 12)), messages) },
    { database: makeArchive(path.join(import.meta.dirname, ".."), path.join(folder, "now"), messages) },
  ];
  const clicks = listClicks(messages);
  const browser = await startChromium(chromium);
  try {
    const { views, first } = await measureFirst(browser, sides, clicks);
    const later = await measureLater(browser, sides, clicks);
    const { gzip } = await weighPage();
    return {
      name: `The web inspector on ${messages} messages, beside ${commit.slice(0, 12)}`,
      rows: [
        toRow("first view", views),
        ...clicks.map(({ name: click }, index) => toRow(`${click}, first`, first[index] ?? [[], []])),
        ...clicks.map(({ name: click }, index) => toRow(`${click}, later`, later[index] ?? [[], []])),
        {
          what: "bytes of the page, with gzip",
          pairs: "",
          "before ms": "",
          "now ms": gzip,
          ratio: "",
          "middle half": "",
          bar: SIZE_LIMIT_BYTES,
          holds: gzip <= SIZE_LIMIT_BYTES ? "yes" : "NO",
        },
      ],
      notes: [
        "Both sides in turns. ratio: the median of the ratios of neighbouring measurements, with their middle half; ms: medians.",
        `First clicks: ${FEWEST_PAIRS} pairs of fresh pages, and more, up to ${MOST_PAIRS}, as long as they do not agree; first view: all of these. Later clicks: ${ROUNDS} rounds.`,
      ],
    };
  } finally {
    showProgress("");
    await browser.close();
  }
}

/** Created by the code of the tree, in its own process. */
function makeArchive(tree: string, folder: string, messages: number): string {
  mkdirSync(folder, { recursive: true });
  const module = pathToFileURL(path.join(tree, "bench/inspector-archive.ts")).href;
  const script = `const { makeLargeArchive } = await import(${JSON.stringify(module)});
    console.log((await makeLargeArchive(${JSON.stringify(folder)}, ${messages})).database);`;
  const options = { cwd: tree, encoding: "utf8" } as const;
  return execFileSync(process.execPath, ["--input-type=module", "-e", script], options).trim();
}

/** Results of both sides: before and now. */
type Pair = readonly [before: number[], now: number[]];

async function measureFirst(
  browser: Browser,
  sides: readonly [Side, Side],
  clicks: readonly Click[],
): Promise<{ readonly views: Pair; readonly first: readonly Pair[] }> {
  const views: Pair = [[], []];
  const first = clicks.map((): Pair => [[], []]);
  for (let turn = 0; turn < MOST_PAIRS; turn++)
    for (const [at, click] of clicks.entries()) {
      if (turn >= FEWEST_PAIRS && isSettled(first[at] ?? [[], []])) continue;
      showProgress(`first clicks, pair ${turn + 1}: ${click.name}`);
      const order = [...sides.entries()];
      for (const [index, { tree, database }] of turn % 2 === 0 ? order : order.toReversed()) {
        const use = async (page: Page, { viewMs }: { readonly viewMs: number }): Promise<void> => {
          if (click.from) await measureClick(page, click.from);
          first[at]?.[index]?.push(await measureClick(page, click));
          views[index]?.push(viewMs);
        };
        await withPage(browser, database, use, tree);
      }
    }
  return { views, first };
}

/** How much longer now took, pair by pair. */
const toRatios = ([before, now]: Pair): number[] => now.map((ms, at) => ms / (before[at] ?? Number.NaN));

/** So many of the pairs are on one side of the bar that chance does not explain it. */
function isSettled(pair: Pair): boolean {
  const ratios = toRatios(pair);
  const over = ratios.filter((ratio) => ratio > BAR).length;
  const fewer = Math.min(over, ratios.length - over);
  let ways = 1;
  let sum = 1;
  for (let some = 1; some <= fewer; some++) sum += ways *= (ratios.length - some + 1) / some;
  return (2 * sum) / 2 ** ratios.length < DOUBT;
}

/**
 * Both inspectors stay open. A round plays all clicks in one and then in the other, which starts in every second round: what a click leaves
 * running (requests, drawing) slows the next one of its own side, as it does for a user, and never one of the other side. The first round does
 * not count.
 */
async function measureLater(
  browser: Browser,
  [before, now]: readonly [Side, Side],
  clicks: readonly Click[],
): Promise<readonly Pair[]> {
  const later = clicks.map((): Pair => [[], []]);
  const play = async (old: Page, young: Page): Promise<void> => {
    const pages = [...[old, young].entries()];
    for (let turn = 0; turn <= ROUNDS; turn++) {
      showProgress(`later clicks, round ${turn}/${ROUNDS}`);
      for (const [index, page] of turn % 2 === 0 ? pages : pages.toReversed()) {
        for (const [at, click] of clicks.entries()) {
          const tookMs = await measureClick(page, click);
          if (turn > 0) later[at]?.[index]?.push(tookMs);
        }
        await page.waitForTimeout(REST_MS);
      }
    }
  };
  await withPage(
    browser,
    before.database,
    (old) => withPage(browser, now.database, (young) => play(old, young), now.tree),
    before.tree,
  );
  return later;
}

function toRow(what: string, pair: Pair): Row {
  const ratios = toRatios(pair).toSorted((a, b) => a - b);
  const at = (share: number): number => round(ratios[Math.floor(share * (ratios.length - 1))] ?? 0, 2);
  const ratio = round(median(ratios), 2);
  return {
    what,
    pairs: ratios.length,
    "before ms": Math.round(median(pair[0])),
    "now ms": Math.round(median(pair[1])),
    ratio,
    "middle half": `${at(0.25)}–${at(0.75)}`,
    bar: BAR,
    holds: ratio <= BAR ? "yes" : "NO",
  };
}
