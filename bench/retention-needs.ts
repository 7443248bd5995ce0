/**
 * Identifiers an agent later uses: which of them are in our context, in the host's own summary and in the last turns, at the size of the host's
 * summary and at that size with a tail of 32,000 characters. The engine gets only the budget, characters / 4 as tokens, and a context is cut at
 * the size. Every compaction has the same weight. Without a model.
 */
import { writeFileSync } from "node:fs";
import { openEngine } from "lossless-claw";
import { importTranscript } from "@lossless/interchange";
import { makeClock } from "@lossless/testkit/random.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { renderContext } from "./engine-context.ts";
import { keptShare, lastChars, readNeedCases, TAIL_CHARS } from "./needs.ts";
import type { NeedCase } from "./needs.ts";
import { mean, percent } from "./retention-figures.ts";
import type { Row } from "./retention-figures.ts";
import { showProgress } from "./history.ts";

/** The minimum ratio of what ours keeps to what the host keeps, at each of the two sizes. */
const GOALS = { summary: 1.5, tail: 1.15 };
/**
 * Each context is made this often, with other ids of summaries: a token more or less in an id can decide what still fits, and in a small
 * window that moves a case by some points.
 */
const SEEDS = [1, 2, 3, 4, 5];
/** At most this share of a summary is a list of names. */
const MAX_NAMES = 0.25;

/** `untouched`: also the held-out sessions; look at them rarely. `show` prints our contexts, of the others only. */
export async function measureNeeds(options: {
  readonly untouched: boolean;
  readonly show: boolean;
}): Promise<Row[]> {
  const cases = [
    ...readNeedCases({ untouched: false }),
    ...(options.untouched ? readNeedCases({ untouched: true }) : []),
  ];
  const scores: Score[] = [];
  for (const each of cases) {
    showProgress(each.name);
    scores.push(await scoreCase(each, options.show && !each.isUntouched));
  }
  showProgress("");
  const compactions = scores.filter(({ of }) => of.kind === "compaction");
  const groups: [string, Score[]][] = [
    ["compactions tuned on", compactions.filter(({ of }) => !of.isUntouched)],
    ["compactions untouched", compactions.filter(({ of }) => of.isUntouched)],
    ["all compactions", options.untouched ? compactions : []],
    ["cut points tuned on", scores.filter(({ of }) => of.kind === "cut")],
  ];
  return [
    ...compactions.filter(({ of }) => !of.isUntouched).map((score) => scoreRow(score.of.name, [score])),
    ...groups.filter(([, members]) => members.length > 0).map(([name, members]) => scoreRow(name, members)),
  ];
}

interface SizeScore {
  readonly ours: number;
  readonly host: number | null;
  readonly last: number;
  readonly room: number;
}

interface Score {
  readonly of: NeedCase;
  readonly summary: SizeScore;
  readonly tail: SizeScore;
  /** The largest share of the characters of the summaries in one of our contexts that is in lists of names. */
  readonly names: number;
  /** Share of the characters of our context, at the size of the host's summary, in summaries. */
  readonly told: number;
}

async function scoreCase(of: NeedCase, show: boolean): Promise<Score> {
  const { host, chars, texts } = of;
  const small: string[] = [];
  const large: string[] = [];
  for (const seed of SEEDS) {
    small.push(await assembleFor(of, chars, seed));
    large.push(await assembleFor(of, chars + TAIL_CHARS, seed));
  }
  if (show) console.log(`\n===== ${of.name}, ${chars} characters\n${small[0]}\n`);
  return {
    of,
    summary: scoreSize(of, small, chars, host),
    tail: scoreSize(
      of,
      large,
      chars + TAIL_CHARS,
      host === null ? null : host + lastChars(texts, TAIL_CHARS),
    ),
    names: Math.max(...[...small, ...large].map(nameShare)),
    told: mean(small.map((context) => contentsOf(context).length / context.length)),
  };
}

function scoreSize(of: NeedCase, ours: readonly string[], chars: number, rival: string | null): SizeScore {
  return {
    ours: mean(ours.map((context) => keptShare(of.need, context.slice(0, chars)))),
    host: rival === null ? null : keptShare(of.need, rival),
    last: keptShare(of.need, lastChars(of.texts, chars)),
    room: mean(ours.map((context) => Math.min(1, context.length / chars))),
  };
}

/** Imports the transcript up to the cut and folds it for the budget. */
async function assembleFor(of: NeedCase, chars: number, seed: number): Promise<string> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const file = folder.file("before.jsonl");
  writeFileSync(file, `${of.lines.join("\n")}\n`);
  const budgetTokens = Math.floor(chars / 4);
  const clock = makeClock(seed);
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false, clock });
  try {
    await importTranscript({ engine, path: file });
    // One sweep has a limit of passes; idle time comes again and again.
    while ((await engine.maintain({ conversationId: 1, budgetTokens })).changed);
    return renderContext(await engine.assemble({ conversationId: 1, budgetTokens }));
  } finally {
    await engine.close();
  }
}

const CONTENT = /<content>\n([\s\S]*?)\n {2}<\/content>/g;
/** As the summariser writes them. Brackets in a quoted sentence or signature, such as `(string, error)`, are not lists of names. */
const NAME_LIST =
  /^(?:Files|Functions|Names|Commits|Commands run|Errors): [^\n]*$|\(defines [^\s(),;]+(?:(?:, |; uses )[^\s(),;]+)*\)/gm;

const contentsOf = (context: string): string =>
  [...context.matchAll(CONTENT)].map(([, content]) => content).join("\n");

/** Lines of names and names in brackets. */
function nameShare(context: string): number {
  const summaries = contentsOf(context);
  const names = [...summaries.matchAll(NAME_LIST)].reduce((sum, [list]) => sum + list.length, 0);
  return summaries === "" ? 0 : names / summaries.length;
}

function scoreRow(name: string, scores: readonly Score[]): Row {
  const names = Math.max(...scores.map((score) => score.names));
  return {
    case: name,
    cases: scores.length,
    needed: Math.round(mean(scores.map(({ of }) => of.need.size))),
    ...sizeColumns(
      "",
      GOALS.summary,
      scores.map(({ summary }) => summary),
    ),
    told: percent(mean(scores.map((score) => score.told))),
    ...sizeColumns(
      " + tail",
      GOALS.tail,
      scores.map(({ tail }) => tail),
    ),
    names: `${percent(names)}${names > MAX_NAMES ? " NO" : ""}`,
  };
}

function sizeColumns(suffix: string, goal: number, sizes: readonly SizeScore[]): Row {
  const ours = mean(sizes.map((size) => size.ours));
  const hosts = sizes.map((size) => size.host).filter((host) => host !== null);
  const times = hosts.length === 0 ? null : ours / mean(hosts);
  return {
    [`ours${suffix}`]: percent(ours),
    [`host${suffix}`]: hosts.length === 0 ? "–" : percent(mean(hosts)),
    [`last${suffix}`]: percent(mean(sizes.map((size) => size.last))),
    [`× host${suffix}`]: times === null ? "–" : `${times.toFixed(2)}${times < goal ? " NO" : ""}`,
    [`room${suffix}`]: percent(mean(sizes.map((size) => size.room))),
  };
}
