/**
 * The measurements behind `docs/reliability.md`: one function per claim. Each works on its own archives and returns its counts and whether they
 * are as required.
 */
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { EngineError, PROVIDERS, resolveSettings } from "@lossless/core";
import type { Arrival, Complete, Engine, EngineEvent } from "@lossless/core";
import { findTracer } from "@lossless/testkit/disk-trace.ts";
import { killWriters } from "@lossless/testkit/killed-writer.ts";
import { oddMessage } from "@lossless/testkit/odd-messages.ts";
import { fc } from "@lossless/testkit/properties.ts";
import { listRefusals } from "@lossless/testkit/provider-rules.ts";
import { makeRandom } from "@lossless/testkit/random.ts";
import type { Random } from "@lossless/testkit/random.ts";
import { SAMPLE } from "@lossless/testkit/sample.ts";
import { stepsUpTo } from "@lossless/testkit/shorten-script.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import type { TemporaryFolder } from "@lossless/testkit/temporary.ts";
import { openEngine } from "lossless-claw";
import { exportConversations, importHistory, importTranscript } from "lossless-claw/interchange";
import { playFiles } from "../packages/agents/test/file-simulation.ts";
import { makeSqliteGround } from "../packages/core/test/engine/grounds.ts";
import { findContextFaults } from "../packages/core/test/engine/simulation-checks.ts";
import { play } from "../packages/core/test/engine/simulation-script.ts";
import { measureRealDisk } from "./archive-footprint.ts";
import { MessageSource, VOCABULARY } from "./archive-messages.ts";
import { median, processorMs } from "./history.ts";
import { isLive, isSound, loadArchive } from "./load.ts";
import { isKept, measureWindow } from "./prefix.ts";
import type { MeasuredWindow } from "./prefix.ts";

export interface Finding {
  readonly found: string;
  readonly holds: boolean;
}

export type Measure = (isFull: boolean) => Promise<Finding>;

const SESSION = { key: "agent:main:reliability", id: "reliability", owner: "main" };
const BUDGET_TOKENS = 64_000;
const MUCH_ROOM = 10_000_000;
/** So little that reading more of a conversation than fits would show. */
const ROOM_TOKENS = 4_000;
const MAX_DISK_SHARE = 1.5;
/** Small, so that a few hundred messages are folded several times over. */
const SMALL = {
  freshTailCount: 8,
  leafChunkTokens: 2_000,
  leafTargetTokens: 300,
  condensedTargetTokens: 400,
};

interface OpenOptions {
  readonly complete?: Complete;
  readonly config?: Record<string, unknown>;
  readonly onEvent?: (event: EngineEvent) => void;
}

async function withEngine<T>(
  work: (engine: Engine, folder: TemporaryFolder) => Promise<T>,
  { complete, config, onEvent = () => undefined }: OpenOptions = {},
): Promise<T> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const { settings } = resolveSettings({ env: {}, config: { ...SMALL, ...config } });
  const engine = await openEngine({
    database: folder.file("lcm.db"),
    thread: false,
    settings,
    complete: complete ?? null,
    onEvent,
  });
  try {
    return await work(engine, folder);
  } finally {
    await engine.close();
  }
}

const takeArrivals = (count: number): Arrival[] =>
  new MessageSource(5).take(count).map(({ eventId, message }) => ({ eventId, message }));

const say = (eventId: string, content: string): Arrival => ({ eventId, message: { role: "user", content } });

/** Slices of a transcript are delivered again, some of them decorated by the host. */
export const replay: Measure = (isFull) =>
  withEngine(async (engine) => {
    const oks = Array.from({ length: 500 }, (_, at) => say(`ok${at}`, "ok"));
    const history = [...takeArrivals(isFull ? 4_000 : 400), ...oks];
    await engine.ingest({ session: SESSION, messages: history });
    const { messages: before } = await engine.status();
    const random = makeRandom(1);
    const outcomes = { stored: 0, known: 0, revision: 0, forgotten: 0 };
    let unasked = 0;
    for (let round = 0; round < 50; round++) {
      const from = random.below(history.length);
      const slice = history.slice(from, from + 1 + random.below(history.length));
      const isChanged = round % 5 === 4;
      const sent = isChanged ? slice.slice(0, 10).map((event) => decorate(event, round)) : slice;
      const { results } = await engine.ingest({ session: SESSION, messages: sent });
      for (const { outcome } of results) outcomes[outcome] += 1;
      if (!isChanged) unasked += results.filter(({ outcome }) => outcome !== "known").length;
    }
    const { messages: after } = await engine.status();
    const isWhole = (await engine.verify()).problems.length === 0;
    return {
      found: `50 replays: ${outcomes.known} known, ${outcomes.revision} revisions, ${outcomes.stored} new; ${before} rows before, ${after} after`,
      holds:
        isWhole &&
        outcomes.stored === 0 &&
        unasked === 0 &&
        before === history.length &&
        after === before + outcomes.revision,
    };
  });

const decorate = (event: Arrival, round: number): Arrival => ({
  ...event,
  message: { ...(event.message as object), decoration: round },
});

/** Writers that are killed, then what hosts do to session files and conversations, crashes included; another process reads after each act. */
export const kills: Measure = async (isFull) => {
  using folder = makeTemporaryFolder("lossless-bench-");
  const [rounds, seeds] = isFull ? [200, 20] : [12, 1];
  // Fails at the first message that is lost, duplicated or incomplete.
  const lost = await killWriters({
    database: folder.file("lcm.db"),
    rounds,
    tracer: await findTracer(),
  }).then(
    () => [],
    (error: unknown) => [String(error)],
  );
  const acts = { files: 0, talks: 0 };
  const faults: string[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    const files = await playFiles({ seed, steps: stepsUpTo(40) });
    const script = { seed, steps: stepsUpTo(60), makeGround: makeSqliteGround, crashes: 0.2, proveEvery: 20 };
    const talks = await play(script);
    acts.files += files.trail.length;
    acts.talks += talks.trail.length;
    faults.push(...files.faults, ...talks.faults);
  }
  const told = lost[0] ?? "0 acknowledged messages lost, 0 stored twice";
  return {
    found: `${rounds} kills: ${firstLine(told)}; ${acts.files} acts on session files (cut, sliced, renamed, copied, written again), ${acts.talks} on conversations (replays, resets, forks, crashes): ${firstLine(faults[0] ?? "0 lost, 0 twice")}`,
    holds: lost.length === 0 && faults.length === 0,
  };
};

const firstLine = (text: string): string => text.split("\n")[0] ?? "";

/** Ten writers, a process that meddles with the file, and some that only run a timer. */
export const crowd: Measure = async (isFull) => {
  const load = await loadArchive(isFull ? 1_000_000 : 2_000);
  return {
    found: `${load.stored} of ${load.events} events through 10 writers, an 11th process opening and chmod-ing the file; ${load.failures.length} failed, ${load.problems} problems; an event loop stands still for ${load.stallMs} ms (p99.9) in a writer, ${load.controlMs} ms with a timer alone`,
    holds: isSound(load) && isLive(load),
  };
};

type Timed = "open" | "assemble" | "search";

const ROUNDS = 9;
const WARM_ROUNDS = 3;

/**
 * Processor time compared with that of a small archive, and size on disk. The limit for size applies to human text: words made up from syllables hardly
 * compress, so the share of the generated archive is only reported.
 */
export const sizes: Measure = async (isFull) => {
  using folder = makeTemporaryFolder("lossless-bench-");
  const [few, many] = isFull ? [20_000, 1_000_000] : [1_000, 10_000];
  const [small, large] = [folder.file("small.db"), folder.file("large.db")];
  await fillArchive(small, few);
  const rawBytes = await fillArchive(large, many);
  const times = { open: [[], []], assemble: [[], []], search: [[], []] } as Record<
    Timed,
    [number[], number[]]
  >;
  // The archives are asked in turn. The first rounds are slower, because code is compiled in them.
  for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++)
    for (const [at, database] of [small, large].entries())
      for (const [name, ms] of Object.entries(await timeCalls(database)))
        if (round >= WARM_ROUNDS) times[name as Timed][at]?.push(ms);
  const ratio = (name: Timed): number => median(times[name][1]) / median(times[name][0]);
  const shown = (name: Timed): string =>
    `${median(times[name][1]).toFixed(1)} ms (${ratio(name).toFixed(1)} times that at ${few})`;
  const real = await measureRealDisk(BUDGET_TOKENS);
  const share = real === null ? null : (real.databaseBytes + real.filesBytes) / real.rawBytes;
  const disk =
    share === null
      ? "real transcripts skipped: there is no ../shared/data"
      : `${share.toFixed(2)} bytes on disk for a raw byte of real transcripts, folded, index and large files included`;
  const madeUp = (statSync(large).size / rawBytes).toFixed(2);
  return {
    found: `${many} messages: open ${shown("open")}, assemble ${shown("assemble")}, search ${shown("search")}; ${disk} (${madeUp} for made-up words)`,
    holds:
      ratio("open") <= 2 &&
      ratio("assemble") <= 2 &&
      ratio("search") <= 4 &&
      (share === null || share <= MAX_DISK_SHARE),
  };
};

/** Half of the messages are folded; a cover of which nothing is folded is as long as its conversation. Returns the bytes that arrived. */
async function fillArchive(database: string, size: number): Promise<number> {
  const engine = await openEngine({ database, thread: false });
  const source = new MessageSource(9);
  const sessions = [SESSION, { ...SESSION, key: "agent:main:unfolded", id: "unfolded" }];
  let rawBytes = 0;
  for (let stored = 0; stored < size; stored += 500) {
    const messages = source.take(500);
    for (const { bytes } of messages) rawBytes += bytes.length;
    await engine.ingest({
      session: sessions[(stored / 500) % sessions.length] ?? SESSION,
      messages: messages.map(({ eventId, bytes }) => ({ eventId, bytes })),
    });
  }
  await engine.compact({ conversationId: 1, budgetTokens: BUDGET_TOKENS });
  await engine.flushIndex();
  await engine.close();
  return rawBytes;
}

async function timeCalls(database: string): Promise<Record<Timed, number>> {
  const timed = async <T>(work: () => Promise<T>): Promise<[number, T]> => {
    const from = processorMs();
    const result = await work();
    return [processorMs() - from, result];
  };
  const [open, engine] = await timed(() => openEngine({ database, thread: false }));
  try {
    const makeContexts = async (): Promise<void> => {
      for (const conversationId of [1, 2])
        await engine.assemble({ conversationId, budgetTokens: ROOM_TOKENS });
    };
    await makeContexts();
    const [assemble] = await timed(makeContexts);
    await engine.search({ query: "queue worker", limit: 10 });
    const [search] = await timed(() => engine.search({ query: "config server", limit: 10 }));
    return { open, assemble, search };
  } finally {
    await engine.close();
  }
}

/**
 * Contexts for random budgets: of a transcript, and of histories that no host should write, cut anywhere. Each is checked against the rules of
 * five providers, against its budget, and for showing every message once. None of the odd histories has a failed call.
 */
export const cuts: Measure = (isFull) =>
  withEngine(async (engine, folder) => {
    const ground = await makeSqliteGround(folder.path);
    const random = makeRandom(2);
    await importTranscript({ engine, path: SAMPLE });
    const sample = 1;
    const conversations = [sample, ...(await ingestOddHistories(engine, random, isFull ? 60 : 6))];
    const contexts = isFull ? 2_000 : 120;
    const count = { refused: 0, wrong: 0, errors: 0 };
    for (let at = 0; at < contexts; at++) {
      const conversationId = conversations[at % conversations.length] ?? sample;
      // Reasoning is sent only to the model that wrote it.
      const model = random.next() < 0.5 ? { model: { model: "m" } } : {};
      const whole = await engine.assemble({ conversationId, budgetTokens: MUCH_ROOM, ...model });
      // Every second one is a little too small for all of it: then every word counts that a provider's rules add.
      const budgetTokens =
        at % 2 === 0
          ? Math.floor(400 * 200 ** random.next())
          : Math.max(400, (whole?.estimatedTokens ?? 0) - 1 - random.below(60));
      if (at % 10 === 8) await engine.compact({ conversationId, budgetTokens, force: random.next() < 0.5 });
      const ask = { conversationId, budgetTokens, ...model };
      const faults = await findContextFaults(engine, ground, [ask]);
      const provider = random.pick(PROVIDERS);
      const context = await engine.assemble({ ...ask, provider });
      const messages = context?.messages ?? [];
      const refusals = listRefusals(provider, messages);
      if (refusals.length > 0 || faults.some((fault) => fault.includes(" refuses "))) count.refused += 1;
      if (faults.some((fault) => !fault.includes(" refuses "))) count.wrong += 1;
      if (conversationId !== sample)
        count.errors += messages.filter(({ isError }) => isError === true).length;
    }
    return {
      found: `${2 * contexts} contexts of ${conversations.length} histories for ${PROVIDERS.length} providers: ${count.refused} refused, ${count.wrong} over their budget or not showing every message once, ${count.errors} invented tool errors`,
      holds: count.refused === 0 && count.wrong === 0 && count.errors === 0,
    };
  });

/** Odd messages among pieces of ordinary history, whose tool groups are cut anywhere. */
async function ingestOddHistories(engine: Engine, random: Random, count: number): Promise<number[]> {
  const ordinary = takeArrivals(400).map(({ message }) => message);
  const drawn = fc.sample(fc.array(oddMessage, { minLength: 30, maxLength: 60 }), {
    seed: 2,
    numRuns: count,
  });
  const ids: number[] = [];
  for (const [number, odd] of drawn.entries()) {
    const messages = odd.flatMap((message) => {
      const from = random.below(ordinary.length);
      return [message, ...ordinary.slice(from, from + random.below(6))];
    });
    const { conversationId } = await engine.ingest({
      session: { ...SESSION, key: `agent:main:odd${number}`, id: `odd${number}` },
      messages: messages.map((message, at) => ({ eventId: `odd${number}-${at}`, message })),
    });
    ids.push(conversationId);
  }
  return ids;
}

const answer = (text: string) =>
  ({
    kind: "text",
    text,
    model: { provider: "fake", model: "fake" },
    inputTokens: 0,
    outputTokens: 0,
  }) as const;

/** Words that only a failing model says. */
const NONSENSE = "purple walrus";

/** Ordinary words and nothing else: an answer about them fails for no other reason than its own. */
function takePlainArrivals(count: number): Arrival[] {
  const random = makeRandom(6);
  const sayWords = (): string =>
    Array.from({ length: 30 + random.below(60) }, () => VOCABULARY[random.below(40)] ?? "").join(" ");
  return Array.from({ length: count }, (_, at) => say(`plain${at}`, sayWords()));
}

/** What each says, and whether it can have cost anything. */
const TROUBLES: readonly { readonly complete: Complete; readonly isFree: boolean }[] = [
  {
    complete: async () => {
      throw new Error(`connect ECONNREFUSED ${NONSENSE}`);
    },
    isFree: true,
  },
  { complete: async () => ({ kind: "failure", failure: "auth", message: `401 ${NONSENSE}` }), isFree: true },
  { complete: async () => answer(""), isFree: true },
  { complete: async () => answer(" \n```\n\n```\n"), isFree: true },
  // As good as a summary, but for its being only thought.
  ...["", "</think>"].map((end) => ({
    complete: (async ({ user }) =>
      answer(`<think>${NONSENSE}: ${user.slice(-600)}${end}`)) satisfies Complete,
    isFree: false,
  })),
  // It may have read the prompt anyway: that counts as spent.
  { complete: () => new Promise(() => undefined), isFree: false },
];

export const models: Measure = async () => {
  const count = { fitting: 0, folded: 0, foreign: 0, free: 0 };
  for (const { complete, isFree } of TROUBLES) {
    const config = { summaryTimeoutMs: 1_000, sweepDeadlineMs: 3_000 };
    await withEngine(
      async (engine, folder) => {
        await engine.ingest({ session: SESSION, messages: takePlainArrivals(200) });
        await engine.compact({ conversationId: 1, budgetTokens: 8_000 });
        const context = await engine.assemble({ conversationId: 1, budgetTokens: 8_000 });
        if (context !== null && context.estimatedTokens <= 8_000) count.fitting += 1;
        const { items } = await engine.listSummaries({ conversationId: 1, limit: 100 });
        if (items.length > 0 && items.every(({ content }) => content.trim() !== "")) count.folded += 1;
        count.foreign += items.filter(({ model }) => model !== "extractive").length;
        count.foreign += countFilesWith(folder.path, NONSENSE);
        const spent = (await engine.spend()).reduce(
          (sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens,
          0,
        );
        if (!isFree || spent === 0) count.free += 1;
      },
      { complete, config },
    );
  }
  const all = TROUBLES.length;
  return {
    found: `${count.fitting} of ${all} contexts fit, ${count.folded} of ${all} folded without a model; ${count.foreign} texts of those models in any file; tokens counted as spent where none can have been: ${all - count.free}`,
    holds: count.fitting === all && count.folded === all && count.foreign === 0 && count.free === all,
  };
};

export const cap: Measure = () => {
  let calls = 0;
  const told: string[] = [];
  const complete: Complete = async () => {
    calls += 1;
    return answer("They spoke of the queue.");
  };
  const onEvent = (event: EngineEvent): void => {
    if (event.kind === "degraded") told.push(event.message);
  };
  return withEngine(
    async (engine) => {
      // Three times over the threshold, so that a second message about the cap would be noticed.
      for (const part of [0, 1, 2]) {
        await engine.ingest({
          session: SESSION,
          messages: takeArrivals(600).slice(part * 200, part * 200 + 200),
        });
        await engine.compact({ conversationId: 1, budgetTokens: 8_000 });
      }
      const context = await engine.assemble({ conversationId: 1, budgetTokens: 8_000 });
      const tokens = context?.estimatedTokens ?? Number.POSITIVE_INFINITY;
      const { items: before } = await engine.listSummaries({ conversationId: 1, limit: 500 });
      // A fold that cannot get further stops at once: nothing is regenerated.
      await engine.compact({ conversationId: 1, budgetTokens: 8_000 });
      const { items: after } = await engine.listSummaries({ conversationId: 1, limit: 500 });
      return {
        found: `${calls} calls at a cap of 0, told ${told.length} times in 4 compactions; the context has ${tokens} of 8000 tokens; a compaction more makes ${after.length - before.length} summaries`,
        holds:
          calls === 0 &&
          told.length === 1 &&
          /tokens of the day/.test(told[0] ?? "") &&
          tokens <= 8_000 &&
          before.length > 0 &&
          after.length === before.length,
      };
    },
    { complete, config: { spendMaxTokensPerDay: 0 }, onEvent },
  );
};

/** Between two folds the front of a request keeps its bytes: with folds in idle time, and where none was made and the window is too small. */
export const prefix: Measure = async (isFull) => {
  const turns = isFull ? 1_000 : 100;
  const measured = [await measureWindow(32_000, turns), await measureWindow(32_000, turns, { folds: false })];
  const show = ({ window, shared, changed }: MeasuredWindow): string =>
    `${window} tokens: ${(100 * shared).toFixed(1)} % of a request are the prefix of the one before, ${changed} changed it within an epoch`;
  return {
    found: `${turns} turns, ${measured.map(show).join("; without folds, ")}`,
    holds: measured.every(isKept),
  };
};

/** A text, words of it as a user would type them, and a text that shares some of them. */
const PROBES = [
  ["我们决定把温室的窗户换成双层玻璃", "双层玻璃", "第二层的玻璃柜里有一双手套"],
  ["サーバーの設定ファイルを更新しました", "設定ファイル", "設定を変えてから別のファイルを開いた"],
  ["배송 일정이 다음 주로 변경되었습니다", "배송 일정", "배송이 늦었습니다"],
  ["เราจะย้ายเซิร์ฟเวอร์ในวันพรุ่งนี้", "ย้ายเซิร์ฟเวอร์", "เซิร์ฟเวอร์ทำงานปกติ"],
  [
    "The launch went well 🚀 and the cake 🎂 was good",
    "🎂",
    "The launch went well 🚀 and the bread was good",
  ],
  ["请检查 parseConfigFile 函数的返回值", "parseConfigFile", "We parse the config of that file"],
  ["Die Straßenbahn kommt gleich", "strassenbahn", "Die Bahn kommt auf der Strase"],
  ["Wir treffen uns unter der Brücke", "brucke", "Wir treffen uns an der Bruke"],
  ["The carriers were delivering the parcels", "carrier delivers parcel", "The carrier sent a letter"],
] as const;

export const languages: Measure = () =>
  withEngine(async (engine) => {
    await engine.ingest({ session: SESSION, messages: takeArrivals(400) });
    const probes = PROBES.flatMap(([text, , other], at) => [
      say(`probe${at}`, text),
      say(`other${at}`, other),
    ]);
    await engine.ingest({ session: SESSION, messages: probes });
    const ranks = await Promise.all(
      PROBES.map(async ([text, query]) => {
        const { hits } = await engine.search({ query, limit: 10 });
        const bodies = await Promise.all(hits.map(({ messageId }) => engine.readMessage({ messageId })));
        return bodies.findIndex((body) => body !== null && Buffer.from(body.bytes).toString().includes(text));
      }),
    );
    const first = ranks.filter((rank) => rank === 0).length;
    return {
      found: `${first} of ${PROBES.length} probes are the first hit, without vectors`,
      holds: first === PROBES.length,
    };
  });

export const forgetting: Measure = () =>
  withEngine(async (engine, folder) => {
    const secret = "zqmarmaladeanchor";
    await engine.ingest({ session: SESSION, messages: takeArrivals(200) });
    const { results } = await engine.ingest({
      session: SESSION,
      messages: [say("x", `The word is ${secret}.`), say("y", `${secret}, again.`)],
    });
    await engine.compact({ conversationId: 1, budgetTokens: 2_000, force: true });
    const before = countFilesWith(folder.path, secret);
    const messageIds = results.map(({ messageId }) => messageId);
    const { plan } = await engine.forget({ messageIds, reason: "asked" });
    await engine.backup({ path: folder.file("backup.db") });
    const { hits } = await engine.search({ query: secret, limit: 10 });
    const after = countFilesWith(folder.path, secret);
    return {
      found: `in ${before} files before, ${after} files after, a later backup included; ${hits.length} hits; the receipt names ${plan.messageIds.length} messages`,
      holds: before > 0 && after === 0 && hits.length === 0 && plan.messageIds.length === 2,
    };
  });

const countFilesWith = (folder: string, text: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && readFileSync(`${entry.parentPath}/${entry.name}`).includes(text),
  ).length;

export const owners: Measure = () =>
  withEngine(async (engine) => {
    const stranger = { key: "agent:other:attic", id: "attic", owner: "other" };
    const { results } = await engine.ingest({
      session: stranger,
      messages: [say("x", "The safe opens with 9999.")],
    });
    await engine.ingest({ session: SESSION, messages: [say("a", "Where is the safe?")] });
    const { messageId = 0 } = results[0] ?? {};
    const scopes = [{}, { allConversations: true }, { conversationId: 1 }, { owner: "other" }];
    const tries = scopes.flatMap((scope) => [
      () => engine.grep({ session: SESSION, pattern: "9999", ...scope }),
      () => engine.grep({ session: SESSION, pattern: "99+", mode: "regex", ...scope }),
      () => engine.describe({ session: SESSION, id: `msg_${messageId}`, ...scope }),
      () => engine.ask({ session: SESSION, prompt: "What opens the safe?", ...scope }),
    ]);
    let seen = 0;
    for (const attempt of tries) {
      // A refusal is also a result; what counts is whether it contains the text.
      const told = await attempt().then((result) => JSON.stringify(result), String);
      if (told.includes("opens with")) seen += 1;
    }
    return { found: `${tries.length} attempts, ${seen} saw the row`, holds: seen === 0 };
  });

const BAD_CONFIGS = [
  { leafChunkTokens: 1_000 },
  { freshTailMaxTokens: 0 },
  { contextThreshold: 7 },
  { leafMinFanout: -1 },
  { leafChunkTokens: 1_000, leafTargetTokens: 1_000, condensedMinFanoutHard: 5 },
];

/** Whether the strict reader refuses settings, or says what is wrong with them. */
function isRefusedOrTold(config: Record<string, unknown>): boolean {
  try {
    return resolveSettings({ env: {}, config }).notices.length > 0;
  } catch (error) {
    return error instanceof EngineError;
  }
}

/** Read as a host's settings are: what cannot work goes back to its default, with a line that says so. */
export const settings: Measure = async () => {
  const corrected = BAD_CONFIGS.filter((config) => {
    const { replaced } = resolveSettings({ env: {}, config, tolerant: true, replaceConflicts: true });
    const keys = new Set(replaced.map(({ key }) => key));
    return (
      Object.keys(config).every((key) => keys.has(key)) && replaced.every(({ message }) => message !== "")
    );
  }).length;
  const told = BAD_CONFIGS.filter(isRefusedOrTold).length;
  return {
    found: `${corrected} of ${BAD_CONFIGS.length} corrected, each value with a line that says so; read strictly, ${told} refused or told of`,
    holds: corrected === BAD_CONFIGS.length && told === BAD_CONFIGS.length,
  };
};

export const interchange: Measure = () =>
  withEngine(async (engine, folder) => {
    await importTranscript({ engine, path: SAMPLE });
    const again = await importTranscript({ engine, path: SAMPLE });
    const copy = folder.file("renamed.jsonl");
    copyFileSync(SAMPLE, copy);
    const renamed = await importTranscript({ engine, path: copy });
    // Without its last line it is not what was read before: it is read from its start, and known by its ids.
    const whole = readFileSync(SAMPLE);
    writeFileSync(copy, whole.subarray(0, whole.lastIndexOf("\n", -2) + 1));
    const cut = await importTranscript({ engine, path: copy });
    await engine.compact({ conversationId: 1, budgetTokens: 32_000 });
    const [out, back] = [folder.file("out.lcmx"), folder.file("back.lcmx")];
    const second = folder.file("second.db");
    const history = { database: second, path: out, largeFileThresholdTokens: 25_000 };
    await exportConversations({ database: folder.file("lcm.db"), format: "archive", out });
    await importHistory("archive", history);
    const twice = await importHistory("archive", history);
    await exportConversations({ database: second, format: "archive", out: back });
    const isSame = readFileSync(out).equals(readFileSync(back));
    return {
      found: `second import of a transcript: ${again.imported} new; of a renamed copy: ${renamed.imported} new; of a cut copy: ${cut.imported + cut.revisions} new; of an archive: ${twice.imported} new; exported again: ${isSame ? "the same bytes" : "other bytes"}`,
      holds:
        again.imported === 0 &&
        renamed.imported === 0 &&
        cut.imported + cut.revisions === 0 &&
        twice.imported === 0 &&
        isSame,
    };
  });
