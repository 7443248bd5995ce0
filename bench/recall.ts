/**
 * Does a question as typed find the messages with its answer? Stores the conversations of the evaluation sets through the engine, searches every
 * question with `grep`, and prints recall, rank and empty results per set and category beside the baselines. One default for all sets. `--out
 * DIR` writes run files that the scorer of the data folder accepts; `--set NAME` runs one; `--plain` stores turns without their sessions and
 * times. Rankings are chosen on every other conversation of a set, the first included, and confirmed on the rest: the halves are rows.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openEngine } from "lossless-claw";
import type { Arrival, Engine } from "@lossless/core";
import { importPaths } from "@lossless/interchange";
import { findSharedData } from "@lossless/testkit";
import type { BenchResult } from "./report.ts";

interface Turn {
  readonly id: string;
  readonly session?: string;
  readonly speaker?: string;
  readonly role?: string;
  readonly text: string;
  readonly caption?: string;
  readonly time?: string;
}

interface Asked {
  /** The index of the conversation in its set, from 0. */
  readonly conversation?: number;
  readonly id: string;
  readonly category: string;
  readonly evidence: readonly string[];
  readonly ranked: readonly string[];
}

interface Conversation {
  readonly id: string;
  readonly sessions?: readonly { id: string; time?: string }[];
  readonly turns: readonly Turn[];
  readonly qa: readonly { id: string; question: string; category: string; evidence: readonly string[] }[];
}

const SETS = ["locomo", "realtalk", "beam100k", "memdaily_zh", "beam500k", "longmemeval_sample", "probes"];
const OWNER = "bench";
const SHOWN = 50;
/** Recall@10 and MRR of plain FTS5 with stems and OR, and the goal; for Chinese recall@5 of single characters. */
const BASELINES: Record<string, string> = {
  locomo: ".626 / .460 (goal .77 / .53)",
  realtalk: ".456 / .372 (goal .51 / .42)",
  beam100k: ".405 / .323 (goal .49 / .40)",
  memdaily_zh: "R@5 .859 (goal .88)",
  probes: "R@10 .863 (goal .99)",
};

export async function run(args: readonly string[]): Promise<BenchResult> {
  const data = findSharedData();
  const name = "recall of plain questions";
  if (data === null)
    return { name, rows: [], notes: ["the evaluation data is not here; nothing was measured"] };
  const option = (flag: string): string | undefined =>
    args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined;
  const out = option("--out");
  const only = option("--set");
  const rows: Record<string, string | number>[] = [];
  for (const set of SETS.filter((candidate) => only === undefined || candidate === only)) {
    const folder = mkdtempSync(path.join(tmpdir(), "lossless-recall-"));
    const engine = await openEngine({ database: path.join(folder, "lcm.db"), thread: false });
    try {
      const asked =
        set === "probes"
          ? await askProbes(engine, data)
          : await askSet(engine, data, set, args.includes("--plain"));
      rows.push(...scoreSet(set, asked));
      if (out !== undefined) writeRun(out, set, asked);
    } finally {
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return {
    name,
    rows,
    notes: ["baseline: FTS5 with stems, OR, stop words removed, R@10 / MRR; ms: mean per question"],
  };
}

async function askSet(engine: Engine, data: string, set: string, isPlain: boolean): Promise<Timed[]> {
  const asked: Timed[] = [];
  let at = 0;
  for (const file of readdirSync(path.join(data, "qa", set)).toSorted()) {
    const content = JSON.parse(readFileSync(path.join(data, "qa", set, file), "utf8")) as Conversation & {
      conversations?: Conversation[];
    };
    for (const conversation of content.conversations ?? [content]) {
      const key = `bench:${set}:${conversation.id}`;
      await store(engine, key, isPlain ? makePlain(conversation) : conversation);
      for (const question of conversation.qa.filter(({ evidence }) => evidence.length > 0)) {
        asked.push({ ...question, conversation: at, ...(await ask(engine, key, question.question)) });
      }
      at += 1;
    }
  }
  return asked;
}

/** All turns in one session, one after the other, without times. */
function makePlain({ turns, ...conversation }: Conversation): Conversation {
  const plain = turns.map(({ session: _session, time: _time, ...turn }) => turn);
  return { ...conversation, sessions: [], turns: plain };
}

interface Timed extends Asked {
  readonly ms: number;
}

async function ask(engine: Engine, key: string, pattern: string): Promise<{ ranked: string[]; ms: number }> {
  const started = performance.now();
  const { hits } = await engine.grep({
    session: { key, owner: OWNER },
    pattern,
    mode: "full_text",
    sort: "relevance",
    limit: SHOWN,
  });
  const ranked = hits.flatMap((hit) => (hit.type === "message" ? [hit.eventId] : []));
  return { ranked, ms: performance.now() - started };
}

/** A conversation of a set: its sessions one after another, as a host would have stored them. */
async function store(engine: Engine, key: string, conversation: Conversation): Promise<void> {
  const times = new Map((conversation.sessions ?? []).map(({ id, time }) => [id, readTime(time)]));
  const bySession = Map.groupBy(conversation.turns, (turn) => turn.session ?? "1");
  let clock = 0;
  for (const [session, turns] of bySession) {
    const messages = turns.map((turn): Arrival => {
      clock += 1;
      const createdAt = readTime(turn.time) ?? times.get(session) ?? clock;
      const speaker = turn.speaker === undefined ? "" : `${turn.speaker}: `;
      const content = `${speaker}${turn.text}${turn.caption === undefined ? "" : ` ${turn.caption}`}`;
      return { eventId: turn.id, createdAt, message: { role: turn.role ?? "user", content } };
    });
    await engine.ingest({ session: { key, id: `${key}:${session}`, owner: OWNER }, messages });
  }
}

function readTime(time: string | undefined): number | undefined {
  if (time === undefined) return undefined;
  const chinese = /^(\d{4})年(\d{2})月(\d{2})日 \S+ (\d{2}:\d{2})/.exec(time);
  const parsed = Date.parse(chinese ? `${chinese[1]}-${chinese[2]}-${chinese[3]}T${chinese[4]}Z` : time);
  return Number.isNaN(parsed) ? undefined : parsed;
}

async function askProbes(engine: Engine, data: string): Promise<Timed[]> {
  const probes = JSON.parse(readFileSync(path.join(data, "probes", "known_item.json"), "utf8")) as {
    file: string;
    type: string;
    query: string;
    gold: string[];
  }[];
  const files = new Map<string, ImportedFile>();
  for (const file of new Set(probes.map((probe) => probe.file)))
    files.set(file, await importFile(engine, path.join(data, file)));
  const asked: Timed[] = [];
  for (const [id, { file, type, query, gold }] of probes.entries()) {
    const { key, lines } = files.get(file) as ImportedFile;
    const { ranked, ms } = await ask(engine, key, query);
    asked.push({
      id: String(id),
      category: type,
      evidence: gold,
      ranked: ranked.map((event) => lines.get(event) ?? event),
      ms,
    });
  }
  return asked;
}

interface ImportedFile {
  readonly key: string;
  /** Lines without an id are identified by their number. */
  readonly lines: ReadonlyMap<string, string>;
}

async function importFile(engine: Engine, file: string): Promise<ImportedFile> {
  await importPaths({ engine, paths: [file], owner: OWNER });
  const { items } = await engine.listConversations({ limit: 1 });
  const { conversationId = 0, sessionKey: key = "" } = items[0] ?? {};
  const stored = await engine.listMessages({ conversationId, limit: 10_000 });
  const numbered = stored.items.map(({ eventId }, line) => [eventId, `L${line}`] as const);
  return { key, lines: new Map(numbered.filter(([eventId]) => eventId.startsWith("line:"))) };
}

function scoreSet(set: string, asked: readonly Timed[]): Record<string, string | number>[] {
  const categories = [...Map.groupBy(asked, ({ category }) => category)].toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  const all = { set, category: "all", ...score(asked), baseline: BASELINES[set] ?? "" };
  const halves = [0, 1].map((half) => asked.filter(({ conversation }) => (conversation ?? NaN) % 2 === half));
  const halved = halves.flatMap((some, half) =>
    some.length === 0
      ? []
      : [{ set, category: half === 0 ? "choosing half" : "confirming half", ...score(some) }],
  );
  return [all, ...halved, ...categories.map(([category, some]) => ({ set, category, ...score(some) }))];
}

function score(asked: readonly Timed[]): Record<string, number> {
  const mean = (value: (one: Timed) => number): number =>
    Number((asked.reduce((sum, one) => sum + value(one), 0) / asked.length).toFixed(3));
  const recall = (at: number) => (one: Timed) =>
    one.evidence.filter((id) => one.ranked.slice(0, at).includes(id)).length / one.evidence.length;
  const firstRank = (one: Timed): number => one.ranked.findIndex((id) => one.evidence.includes(id)) + 1;
  return {
    questions: asked.length,
    "R@5": mean(recall(5)),
    "R@10": mean(recall(10)),
    "R@20": mean(recall(20)),
    "R@50": mean(recall(50)),
    "hit@10": mean((one) => (firstRank(one) > 0 && firstRank(one) <= 10 ? 1 : 0)),
    MRR: mean((one) => (firstRank(one) > 0 ? 1 / firstRank(one) : 0)),
    empty: mean((one) => (one.ranked.length === 0 ? 1 : 0)),
    ms: Number((asked.reduce((sum, { ms }) => sum + ms, 0) / asked.length).toFixed(2)),
  };
}

function writeRun(folder: string, set: string, asked: readonly Asked[]): void {
  mkdirSync(folder, { recursive: true });
  const lines = asked.map(({ id, ranked }) => JSON.stringify({ id, ranked }));
  writeFileSync(path.join(folder, `${set}.jsonl`), `${lines.join("\n")}\n`);
}
