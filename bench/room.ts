/**
 * How well contexts use their room: real sessions folded for one window and shown in others, where explicit targets of a fold end, how often a
 * fold happens, how many random contexts are larger than their budget, and how often a message had to be filled with our placeholder text.
 * Without a model.
 *
 * `npm run bench -- room [--json] [--untouched]`; a few minutes of processor time. With `--untouched` the held-out sessions.
 */
import { basename } from "node:path";
import { openEngine } from "lossless-claw";
import type { AssembledContext, Engine } from "@lossless/core";
import { importTranscript } from "@lossless/interchange";
import { findSharedData, listTranscripts } from "@lossless/testkit/shared-data.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { MessageSource, TURN_MESSAGES } from "./archive-messages.ts";
import { round, showProgress } from "./history.ts";
import type { BenchResult } from "./report.ts";
import { countOver } from "./room-random.ts";

type Row = Record<string, string | number>;

const TUNED = ["23-72de7ea2ff-0", "91-b42542f24f-0", "43-2b48f6b6e6-0", "f5-dab3d95bc1-0"];
const UNTOUCHED = ["25-730c662552-0", "5c-5cb639eac4-0"];
const FOLDED_FOR = 32_000;
const SHOWN_AT = [6_000, 8_000, 12_000, 16_000];
const SMALL = 8_000;
const LARGE = 128_000;
const TARGETS = [24_000, 12_070, 3_184];
/** Windows and turns for counting folds. */
const FOLD_WINDOWS = [200_000, 64_000, 32_000, 8_000];
const FOLD_TURNS = 200;
const TURN_TOKENS = 1_000;
const SESSION = { key: "agent:main:bench", id: "bench", owner: "main" };
/** The text of a message that would be empty. */
const FILLER = "[This message has no text.]";

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const files = listSessions(args.includes("--untouched") ? UNTOUCHED : TUNED);
  const sessions: SessionFigures[] = [];
  for (const file of files) sessions.push(await measureSession(file));
  const tables = [
    { title: `Folded for ${FOLDED_FOR}, shown in less`, rows: sessions.flatMap(({ tight }) => tight) },
    { title: `Folded for ${SMALL}, shown for ${LARGE}`, rows: sessions.map(({ later }) => later) },
    { title: "Where compact with a target ends", rows: sessions.flatMap(({ targets }) => targets) },
  ];
  const rest = args.includes("--untouched") ? [] : [await randomTable(), await foldTable()];
  showProgress("");
  return {
    name: "room",
    rows: sessions.length === 0 ? [] : [sumUp(sessions)],
    tables: [...(sessions.length === 0 ? [] : tables), ...rest],
    notes: sessions.length === 0 ? ["skipped: no sessions under ../shared/data"] : NOTES,
  };
}

const NOTES = [
  "Used: tokens of the context as a share of the budget. Owed: of 80 % of the budget and what arrived after the anchor.",
  "Over: contexts of random conversations larger than their budget, though they hold more than the newest user message and its open tool group.",
];

interface SessionFigures {
  readonly tight: readonly Row[];
  readonly later: Row;
  readonly targets: readonly Row[];
}

function listSessions(names: readonly string[]): string[] {
  const data = findSharedData();
  if (data === null) return [];
  const all = ["claude-code", "claude-code-more"].flatMap((kind) => listTranscripts(data, kind));
  return all.filter((file) => names.includes(basename(file, ".jsonl")));
}

async function measureSession(file: string): Promise<SessionFigures> {
  const session = basename(file).slice(0, 2);
  showProgress(`session ${session}`);
  const tight = await withSession(file, async (engine) => {
    await foldFor(engine, FOLDED_FOR);
    const rows: Row[] = [];
    for (const budget of SHOWN_AT) rows.push(describe(session, budget, await assemble(engine, budget)));
    return rows;
  });
  const later = await withSession(file, async (engine) => {
    await foldFor(engine, SMALL);
    return describe(session, LARGE, await assemble(engine, LARGE));
  });
  const targets: Row[] = [];
  for (const targetTokens of TARGETS) {
    const answer = await withSession(file, (engine) =>
      engine.compact({ conversationId: 1, budgetTokens: FOLDED_FOR, targetTokens }),
    );
    const { tokensBefore, tokensAfter, passes } = answer;
    targets.push({
      session,
      target: targetTokens,
      before: tokensBefore,
      after: tokensAfter,
      "of target %": round((100 * tokensAfter) / targetTokens, 1),
      passes,
    });
  }
  return { tight, later, targets };
}

async function withSession<T>(file: string, work: (engine: Engine) => Promise<T>): Promise<T> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    await importTranscript({ engine, path: file });
    return await work(engine);
  } finally {
    await engine.close();
  }
}

/** One sweep has a limit of passes; idle time comes again and again. */
async function foldFor(engine: Engine, budgetTokens: number): Promise<void> {
  while ((await engine.maintain({ conversationId: 1, budgetTokens })).changed);
}

async function assemble(engine: Engine, budgetTokens: number): Promise<AssembledContext> {
  const context = await engine.assemble({ conversationId: 1, budgetTokens });
  if (!context) throw new Error("cannot measure a session that has no context");
  return context;
}

function describe(session: string, budget: number, context: AssembledContext): Row {
  const { items, estimatedTokens, mode } = context;
  const afterAnchor = items
    .filter(({ reason }) => reason === "verbatim since the anchor")
    .reduce((sum, { tokens }) => sum + tokens, 0);
  const range = items.find(({ kind }) => kind === "range");
  return {
    session,
    budget,
    mode,
    tokens: estimatedTokens,
    "used %": round((100 * estimatedTokens) / budget, 1),
    "owed %": round((100 * estimatedTokens) / (0.8 * budget + afterAnchor), 1),
    "not shown": range?.messages ?? 0,
    fillers: JSON.stringify(context.messages).split(JSON.stringify(FILLER).slice(1, -1)).length - 1,
  };
}

function sumUp(sessions: readonly SessionFigures[]): Row {
  const tight = sessions.flatMap((session) => session.tight);
  const used = tight.map((row) => Number(row["used %"]));
  const owed = tight.map((row) => Number(row["owed %"]));
  return {
    contexts: tight.length,
    "used mean %": round(mean(used), 1),
    "used worst %": Math.min(...used),
    "owed mean %": round(mean(owed), 1),
    "owed worst %": Math.min(...owed),
    "later mean %": round(mean(sessions.map(({ later }) => Number(later["used %"]))), 1),
    fillers: tight.reduce((sum, row) => sum + Number(row.fillers), 0),
  };
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

async function randomTable(): Promise<{ title: string; rows: Row[] }> {
  showProgress("random contexts");
  return { title: "Random contexts over their budget", rows: [{ ...(await countOver()) }] };
}

async function foldTable(): Promise<{ title: string; rows: Row[] }> {
  const rows: Row[] = [];
  for (const window of FOLD_WINDOWS) rows.push(await countFolds(window));
  return { title: "Folds at the threshold", rows };
}

/** Folds during turns of about the same size, and how full the window is after the fullest of them. */
async function countFolds(window: number): Promise<Row> {
  using folder = makeTemporaryFolder("lossless-bench-");
  let folds = 0;
  let fullest = 0;
  const engine = await openEngine({
    database: folder.file("lcm.db"),
    thread: false,
    onEvent: (event) => {
      if (event.kind !== "compacted") return;
      folds++;
      fullest = Math.max(fullest, event.tokensAfter);
    },
  });
  try {
    const source = new MessageSource(1);
    let stored = 0;
    for (let turn = 1; turn <= FOLD_TURNS; turn++) {
      showProgress(`folds in ${window} tokens: turn ${turn}/${FOLD_TURNS}`);
      while (stored < turn * TURN_TOKENS) {
        const messages = source.take(TURN_MESSAGES);
        const { tokens } = await storeTurn(engine, messages);
        stored += tokens;
      }
      await engine.maintain({ conversationId: 1, budgetTokens: window });
    }
  } finally {
    await engine.close();
  }
  return {
    window,
    turns: FOLD_TURNS,
    folds,
    "per 100 turns": round((100 * folds) / FOLD_TURNS, 1),
    "fullest after %": round((100 * fullest) / window, 1),
  };
}

async function storeTurn(
  engine: Engine,
  messages: readonly { eventId: string; message: Record<string, unknown>; text: string }[],
): Promise<{ tokens: number }> {
  await engine.ingest({
    session: SESSION,
    messages: messages.map(({ eventId, message }) => ({ eventId, message })),
  });
  return { tokens: messages.reduce((sum, { text }) => sum + Math.ceil(text.length / 4), 0) };
}
