/**
 * The engine's cost of folding: milliseconds per pass with a summariser that takes no time, in conversations of several sizes. A pass reads its
 * run, plans, and publishes in its own transaction. Sizes alternate, so that other load affects all alike.
 *
 * `npm run bench -- fold [--sizes 2000,20000,200000] [--rounds 24]`
 */
import { MessageSource, TURN_MESSAGES } from "./archive-messages.ts";
import {
  Archive,
  judge,
  median,
  processorMs,
  readRounds,
  readSizes,
  round,
  showProgress,
} from "./history.ts";
import type { BenchResult } from "./report.ts";

type Row = Record<string, string | number>;

const DEFAULT_SIZES = [2_000, 20_000, 200_000];
const DEFAULT_ROUNDS = 32;
const BUDGET_TOKENS = 200_000;
/** Tokens that a round adds: a full leaf and a little more. */
const ROUND_TOKENS = 22_000;
const MAX_GROWTH = 1.5;

interface Subject {
  readonly size: number;
  readonly archive: Archive;
  readonly source: MessageSource;
  /** Of each round, the mean over its passes. */
  readonly passMs: number[];
  readonly leafMs: number[];
  readonly condensedMs: number[];
  readonly idleMs: number[];
  readonly catchUp: { readonly passes: number; readonly msPerPass: number };
}

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const sizes = readSizes(args, DEFAULT_SIZES);
  const rounds = readRounds(args, DEFAULT_ROUNDS);
  const subjects: Subject[] = [];
  try {
    for (const size of sizes) subjects.push(await prepare(size));
    for (let i = 0; i < rounds; i++) {
      showProgress(`round ${i + 1}/${rounds}`);
      for (const subject of i % 2 === 0 ? subjects : subjects.toReversed()) await measureRound(subject);
    }
    return {
      name: "fold",
      rows: subjects.flatMap((subject) => render(subject, subjects[0] ?? subject)),
      notes: NOTES,
    };
  } finally {
    for (const { archive } of subjects) await archive.close();
    showProgress("");
  }
}

const NOTES = [
  "ms of processor time per pass, the median; the wait for the disk, one commit per pass, is the same at every size. Leaf and condensed passes happen as turns of about 22,000 tokens come in behind a history that is folded already.",
  "Catching up: the mean over all passes of folding the history at once, in leaves of many short messages.",
  "Idle: a call of maintain that finds nothing to do.",
];

/** A conversation of a given size, folded as far as possible. */
async function prepare(size: number): Promise<Subject> {
  const archive = new Archive();
  await archive.addShort(size, (stored) => showProgress(`storing ${stored}/${size}`));
  await archive.settle();
  const conversation = await archive.conversation();
  const start = processorMs();
  let passes = 0;
  for (;;) {
    showProgress(`folding ${size}: ${passes} passes`);
    const answer = await archive.engine.compact({
      conversationId: conversation.conversationId,
      budgetTokens: BUDGET_TOKENS,
      force: true,
    });
    passes += answer.passes;
    if (!answer.compacted) break;
  }
  const catchUp = { passes, msPerPass: (processorMs() - start) / Math.max(1, passes) };
  await archive.engine.maintain({ conversationId: conversation.conversationId, budgetTokens: BUDGET_TOKENS });
  return {
    size,
    archive,
    source: new MessageSource(1),
    passMs: [],
    leafMs: [],
    condensedMs: [],
    idleMs: [],
    catchUp,
  };
}

async function measureRound(subject: Subject): Promise<void> {
  const { archive, source } = subject;
  await addTokens(archive, source, ROUND_TOKENS);
  await archive.settle();
  const conversation = await archive.conversation();
  const times: number[] = [];
  let last = processorMs();
  const onProgress = (): void => {
    const now = processorMs();
    times.push(now - last);
    last = now;
  };
  const answer = await archive.engine.compact({
    conversationId: conversation.conversationId,
    budgetTokens: BUDGET_TOKENS,
    force: true,
    onProgress,
  });
  if (times.length > 0) subject.passMs.push(times.reduce((sum, ms) => sum + ms, 0) / times.length);
  for (const [pass, summaryId] of answer.summaryIds.entries()) {
    const summary = await archive.store.readSummary(summaryId);
    (summary?.kind === "leaf" ? subject.leafMs : subject.condensedMs).push(times[pass] ?? 0);
  }
  await archive.engine.maintain({ conversationId: conversation.conversationId, budgetTokens: BUDGET_TOKENS });
  const start = processorMs();
  await archive.engine.maintain({ conversationId: conversation.conversationId, budgetTokens: BUDGET_TOKENS });
  subject.idleMs.push(processorMs() - start);
}

async function addTokens(archive: Archive, source: MessageSource, tokens: number): Promise<void> {
  const before = (await archive.conversation()).shownTokens;
  do await archive.add(source.take(TURN_MESSAGES));
  while ((await archive.conversation()).shownTokens < before + tokens);
}

function render(subject: Subject, smallest: Subject): Row[] {
  const { size } = subject;
  const row = (what: string, pick: (of: Subject) => number, passes: number, isGoal: boolean): Row => {
    const growth = pick(subject) / pick(smallest);
    return {
      what,
      messages: size,
      passes,
      "ms/pass": round(pick(subject), 2),
      [`× ${smallest.size}`]: round(growth, 2),
      ...(isGoal && subject !== smallest ? judge(growth, MAX_GROWTH) : {}),
    };
  };
  return [
    row("a pass", (of) => median(of.passMs), subject.leafMs.length + subject.condensedMs.length, true),
    row("leaf", (of) => median(of.leafMs), subject.leafMs.length, true),
    row("condensed", (of) => median(of.condensedMs), subject.condensedMs.length, true),
    row("catching up", (of) => of.catchUp.msPerPass, subject.catchUp.passes, false),
    row("idle", (of) => median(of.idleMs), subject.idleMs.length, false),
  ];
}
