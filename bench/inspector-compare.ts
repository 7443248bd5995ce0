/**
 * Compares the inspector with that of an earlier commit, alternating in the same run: the first view after `lcm web` has printed its address,
 * each click as the first one and later, and the size of the page. `npm run bench -- inspector-compare COMMIT [messages] [folder]`. Each side
 * has its own archive of the same messages; both are created once and kept in the folder.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { findChromium, startChromium } from "@lossless/testkit/chromium.ts";
import type { Browser, Page } from "playwright-core";
import { openWorktree, readCommit } from "./compare.ts";
import { median, round } from "./history.ts";
import { listClicks, measureClick, SIZE_LIMIT_BYTES, weighPage, withPage } from "./inspector.ts";
import type { Click } from "./inspector.ts";
import type { BenchResult } from "./report.ts";

const MESSAGES = 100_000;
const OPENINGS = 3;
const ROUNDS = 9;
const BAR = 1.2;

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
          "before ms": "",
          "now ms": gzip,
          ratio: "",
          bar: SIZE_LIMIT_BYTES,
          holds: gzip <= SIZE_LIMIT_BYTES ? "yes" : "NO",
        },
      ],
      notes: [
        `Medians of ${OPENINGS} for first clicks (first view: of all openings) and ${ROUNDS} for later ones; both sides in turns.`,
      ],
    };
  } finally {
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
  for (let opening = 0; opening < OPENINGS; opening++)
    for (const [at, click] of clicks.entries())
      for (const [index, { tree, database }] of sides.entries()) {
        const use = async (page: Page, { viewMs }: { readonly viewMs: number }): Promise<void> => {
          if (click.from) await measureClick(page, click.from);
          first[at]?.[index]?.push(await measureClick(page, click));
          views[index]?.push(viewMs);
        };
        await withPage(browser, database, use, tree);
      }
  return { views, first };
}

/** Both inspectors stay open, and each round clicks in one after the other. The first round does not count. */
async function measureLater(
  browser: Browser,
  [before, now]: readonly [Side, Side],
  clicks: readonly Click[],
): Promise<readonly Pair[]> {
  const later = clicks.map((): Pair => [[], []]);
  const play = async (old: Page, young: Page): Promise<void> => {
    for (let turn = 0; turn <= ROUNDS; turn++)
      for (const [at, click] of clicks.entries())
        for (const [index, page] of [old, young].entries()) {
          const tookMs = await measureClick(page, click);
          if (turn > 0) later[at]?.[index]?.push(tookMs);
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

function toRow(what: string, [before, now]: Pair): Row {
  const ratio = median(now) / median(before);
  return {
    what,
    "before ms": Math.round(median(before)),
    "now ms": Math.round(median(now)),
    ratio: round(ratio, 2),
    bar: BAR,
    holds: ratio <= BAR ? "yes" : "NO",
  };
}
