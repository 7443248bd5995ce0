/**
 * The measures for comparing two versions of the program (`compare.ts`). Runs in its own process from its own tree, so that every version
 * measures itself with its own interfaces. For each name that the parent sends, it takes one sample: the processor time of the work, without its
 * preparation, and the number of units.
 */
import { statSync } from "node:fs";
import { openEngine } from "lossless-claw";
import { MessageSource, TURN_MESSAGES } from "./archive-messages.ts";
import { Archive, processorMs } from "./history.ts";

export interface Sample {
  /** Processor milliseconds, or bytes for a size. */
  readonly cost: number;
  readonly units: number;
}

const SESSION = { key: "agent:main:turns", id: "turns", owner: "main" };
const BUDGET_TOKENS = 200_000;
/**
 * Samples of about a tenth of a second: long enough for the garbage collector to run in each, short enough that neighbouring samples see the
 * same load.
 */
const TURNS = 40;
const QUESTION_ROUNDS = 2;
const OPENINGS = 12;
const ASSEMBLIES = 4;
/** Several full leaves, so that every fold has enough work to measure. */
const FOLD_TOKENS = 120_000;
const HISTORY_MESSAGES = 2_000;

type Measure = () => Promise<Sample>;

/** A separate archive for each measure; it exists until the parent ends the process, then its folder is removed. */
const archives: Archive[] = [];

async function makeArchive(messages: number): Promise<Archive> {
  const archive = new Archive();
  archives.push(archive);
  await archive.add(new MessageSource(1).take(messages));
  await archive.settle();
  return archive;
}

/** `work` returns its number of units. */
async function time(work: () => Promise<number>): Promise<Sample> {
  const start = processorMs();
  const units = await work();
  return { cost: processorMs() - start, units };
}

/** Turns of four messages, each a transaction, including the indexing that follows. */
async function prepareTurns(): Promise<Measure> {
  const archive = await makeArchive(HISTORY_MESSAGES);
  const source = new MessageSource(2);
  return () => {
    const turns = Array.from({ length: TURNS }, () => source.take(TURN_MESSAGES));
    return time(async () => {
      for (const turn of turns) {
        const messages = turn.map(({ eventId, message }) => ({ eventId, message }));
        await archive.engine.ingest({
          session: SESSION,
          messages,
          turn: { advancementKey: `turn/${messages[0]?.eventId}` },
        });
      }
      await archive.settle();
      return TURNS;
    });
  };
}

/** Words in many messages, in few and in none; a question; a regular expression. */
const QUESTIONS: readonly { pattern: string; mode: "full_text" | "regex" }[] = [
  { pattern: "server config default", mode: "full_text" },
  { pattern: "which error did the build return", mode: "full_text" },
  { pattern: "npm run", mode: "full_text" },
  { pattern: "xylophone quartz", mode: "full_text" },
  { pattern: "retur[n] .*file", mode: "regex" },
];

async function prepareSearch(): Promise<Measure> {
  const archive = await makeArchive(2 * HISTORY_MESSAGES);
  return () =>
    time(async () => {
      for (let round = 0; round < QUESTION_ROUNDS; round++)
        for (const question of QUESTIONS) await archive.engine.grep({ allConversations: true, ...question });
      return QUESTION_ROUNDS * QUESTIONS.length;
    });
}

async function prepareOpen(): Promise<Measure> {
  const archive = await makeArchive(HISTORY_MESSAGES);
  return () =>
    time(async () => {
      for (let i = 0; i < OPENINGS; i++) {
        const engine = await openEngine({ database: archive.path, thread: false });
        await engine.status();
        await engine.close();
      }
      return OPENINGS;
    });
}

/** A folded history with its newest turns word for word, at a budget that shows all of it and at one that does not. */
async function prepareAssemble(): Promise<Measure> {
  const archive = await makeArchive(HISTORY_MESSAGES);
  const conversation = await archive.conversation();
  await archive.engine.compact({
    conversationId: conversation.conversationId,
    budgetTokens: BUDGET_TOKENS,
    force: true,
  });
  return () =>
    time(async () => {
      let tokens = 0;
      for (let i = 0; i < ASSEMBLIES; i++)
        for (const budgetTokens of [BUDGET_TOKENS, BUDGET_TOKENS / 4]) {
          const context = await archive.engine.assemble({ conversationId: 1, budgetTokens });
          tokens += context?.estimatedTokens ?? 0;
        }
      return tokens;
    });
}

/** Windows in which not everything fits, with many messages that are not folded: what is left out has to be chosen. */
const SMALL_BUDGETS = [64_000, 32_000, 16_000];
const RECENT_MESSAGES = 400;

async function prepareSmallWindows(): Promise<Measure> {
  const archive = await makeArchive(HISTORY_MESSAGES);
  await archive.engine.compact({ conversationId: 1, budgetTokens: BUDGET_TOKENS, force: true });
  await archive.add(new MessageSource(4).take(RECENT_MESSAGES));
  await archive.settle();
  return () =>
    time(async () => {
      let tokens = 0;
      for (let i = 0; i < ASSEMBLIES; i++)
        for (const budgetTokens of SMALL_BUDGETS) {
          const context = await archive.engine.assemble({ conversationId: 1, budgetTokens });
          tokens += context?.estimatedTokens ?? 0;
        }
      return tokens;
    });
}

/** New turns after an already folded history; units are the tokens that summaries were made from. */
async function prepareFold(): Promise<Measure> {
  const archive = await makeArchive(HISTORY_MESSAGES);
  const source = new MessageSource(3);
  const fold = async (): Promise<readonly string[]> =>
    (await archive.engine.compact({ conversationId: 1, budgetTokens: BUDGET_TOKENS, force: true }))
      .summaryIds;
  await fold();
  return async () => {
    const before = (await archive.conversation()).shownTokens;
    do await archive.add(source.take(TURN_MESSAGES));
    while ((await archive.conversation()).shownTokens < before + FOLD_TOKENS);
    await archive.settle();
    let made: readonly string[] = [];
    const { cost } = await time(async () => (made = await fold()).length);
    let units = 0;
    for (const summaryId of made) units += (await archive.store.readSummary(summaryId))?.sourceTokens ?? 0;
    return { cost, units };
  };
}

/** Bytes of a closed database; the same at every sample, so it is measured once. */
async function prepareSize(): Promise<Measure> {
  const archive = await makeArchive(2 * HISTORY_MESSAGES);
  await archive.engine.compact({ conversationId: 1, budgetTokens: BUDGET_TOKENS, force: true });
  await archive.settle();
  await archive.engine.close();
  const cost = statSync(archive.path).size;
  return () => Promise.resolve({ cost, units: 2 * HISTORY_MESSAGES });
}

const PREPARE: Readonly<Record<string, () => Promise<Measure>>> = {
  "turn ingest": prepareTurns,
  search: prepareSearch,
  open: prepareOpen,
  assemble: prepareAssemble,
  "assemble in small windows": prepareSmallWindows,
  fold: prepareFold,
  "database size": prepareSize,
};

const prepared = new Map<string, Promise<Measure>>();

async function takeSample(name: string): Promise<Sample> {
  const prepare = PREPARE[name];
  if (!prepare) throw new Error(`there is no measure "${name}"`);
  const measure = prepared.get(name) ?? prepare();
  prepared.set(name, measure);
  return (await measure)();
}

async function closeAll(): Promise<void> {
  for (const archive of archives) await archive.close();
}

process.on("message", (name: string) => {
  takeSample(name).then(
    (sample) => process.send?.({ sample }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
process.on("disconnect", () => void closeAll());
