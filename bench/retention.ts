/**
 * What is still in the context after folding, without a model, against three rivals of the same size: the last turns, blunt
 * truncation, and the summary the host itself wrote. Four tables, so that none can be gamed: identifiers the agent goes on to
 * use after a real compaction; answers to questions; planted facts after three compactions; and the table of the documents for
 * 10 to 100 turns. Sizes are characters, so that every rival has exactly the same room.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { viewMessage } from "../packages/core/src/message/normalize.ts";
import { estimateTextTokens } from "../packages/core/src/model/tokens.ts";
import { summarizeExtractively } from "../packages/core/src/summarize/extractive.ts";
import type { SourceLine } from "../packages/core/src/summarize/source.ts";
import { speakerOf } from "../packages/core/src/summarize/source.ts";
import type { BenchResult } from "./report.ts";

type Row = Record<string, string | number>;

const ROOT = path.resolve(import.meta.dirname, "..");
const DATA = process.env.LCM_SHARED_DATA ?? path.resolve(ROOT, "../shared/data");
const SAMPLE = path.join(ROOT, "packages/cli/sample");

const LEAF_CHUNK_TOKENS = 20_000;
const LEAF_TARGET_TOKENS = 2_400;
/** Share of the folded history that the newest chunk gets as a summary of its own, as in the rules for a tight budget. */
const NEWEST_SHARE = 0.4;
const TAIL_CHARS = 32_000;

/** `--show` prints the folded text of each real compaction, to be read by a person. */
export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const rows: Row[] = [];
  const notes: string[] = [];
  const add = (table: string, found: readonly Row[], why: string): void => {
    if (found.length === 0) notes.push(`${table}: skipped, ${why}`);
    for (const row of found) rows.push({ table, ...row });
  };
  add(
    "identifiers used later",
    measureCompactions(args.includes("--show")),
    "no transcripts under ../shared/data",
  );
  add("identifiers used later, other cuts", measureCuts(), "no transcripts under ../shared/data");
  add("answers to questions", measureQuestions(), "no questions under ../shared/data");
  add("planted facts", measureFacts(), "no sample session");
  add("turns", measureTurns(), "no questions under ../shared/data");
  notes.push(
    "Identifiers: words with the shape of code (paths, symbols, file names, hashes, flags) that occur before the cut and in the agent's own text and tool calls after it. Kept: they occur in the context.",
    "Folded: leaf chunks of 20,000 tokens, summarised and condensed to the size of the host's summary; no model.",
    "Questions and facts: share of the words of the answer (as its evidence spells them) that are in the context.",
  );
  return { name: "retention", rows, notes };
}

// ---- folding

const estimate = (text: string): number => Math.ceil(text.length / 4);

/** Folds a history into at most `chars` characters the simple way: leaves, then one condensing pass over the older ones. */
export function foldHistory(sources: readonly SourceLine[], chars: number): string {
  const target = Math.floor(chars / 4);
  const chunks = cutChunks(sources);
  const total = sum(chunks.map((chunk) => chunk.tokens));
  const leaves = chunks.map((chunk) => fold(chunk.sources, 0, leafTarget(chunk.tokens)));
  if (sum(leaves.map((leaf) => leaf.length + 2)) <= chars || chunks.length === 1) {
    return chunks
      .map((chunk) => fold(chunk.sources, 0, Math.floor((target * chunk.tokens) / total) - 1))
      .join("\n\n");
  }
  const newest = fold(chunks.at(-1)?.sources ?? [], 0, Math.floor(target * NEWEST_SHARE));
  const older = leaves.slice(0, -1).map((text, i) => asSummary(text, chunks[i]?.sources[0]?.at ?? null, i));
  return `${fold(older, 1, target - estimate(newest) - 1)}\n\n${newest}`;
}

function fold(sources: readonly SourceLine[], depth: number, targetTokens: number): string {
  return summarizeExtractively({ sources, depth, targetTokens, estimate, timeZone: "UTC" }).text;
}

const leafTarget = (tokens: number): number =>
  Math.min(LEAF_TARGET_TOKENS, Math.max(192, Math.floor(tokens * 0.35)));

const asSummary = (text: string, at: number | null, i: number): SourceLine => ({
  id: `sum_${i}`,
  kind: "summary",
  role: "summary",
  at,
  text,
});

interface Chunk {
  readonly sources: SourceLine[];
  tokens: number;
}

/** Chunks of about equal size, none much above the limit. */
function cutChunks(sources: readonly SourceLine[]): Chunk[] {
  const total = sum(sources.map((source) => estimate(source.text)));
  const size = total / Math.max(1, Math.ceil(total / LEAF_CHUNK_TOKENS));
  const chunks: Chunk[] = [{ sources: [], tokens: 0 }];
  for (const source of sources) {
    const tokens = estimate(source.text);
    let open = chunks.at(-1) as Chunk;
    if (open.sources.length > 0 && open.tokens + tokens / 2 > size)
      chunks.push((open = { sources: [], tokens: 0 }));
    open.sources.push(source);
    open.tokens += tokens;
  }
  return chunks;
}

/** A conversation as plain text: what the last turns and truncation are cut from. */
const asText = (sources: readonly SourceLine[]): string =>
  sources.map((source) => `${speakerOf(source)}: ${source.text}`).join("\n");

// ---- identifiers used later

interface Entry extends SourceLine {
  readonly isHostSummary: boolean;
}

interface Cut {
  readonly name: string;
  readonly before: readonly Entry[];
  readonly after: readonly Entry[];
  readonly host: string | null;
  readonly chars: number;
}

function measureCompactions(show: boolean): Row[] {
  const cuts = readTranscripts().flatMap(([name, entries]) => findCompactions(name, entries));
  const scores = cuts.map((cut) => scoreCut(cut, show));
  return [...cuts.map((cut, i) => cutRow(cut, scores[i] as CutScore)), ...meanRow(scores)];
}

/** The same question at ordinary places of every long session, where no host wrote a summary: a guard against fitting four cases. */
function measureCuts(): Row[] {
  const scores: CutScore[] = [];
  for (const [name, all] of readTranscripts()) {
    const entries = all.filter((entry) => !entry.isHostSummary);
    for (const share of [0.4, 0.6, 0.8]) {
      const at = Math.floor(entries.length * share);
      const before = entries.slice(0, at);
      if (asText(before).length < 100_000) continue;
      scores.push(
        scoreCut({ name, before, after: entries.slice(at, at + 150), host: null, chars: 10_000 }, false),
      );
    }
  }
  return meanRow(scores.filter((score) => score.used >= 8));
}

function readTranscripts(): [string, Entry[]][] {
  const folder = path.join(DATA, "transcripts/claude-code");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((file) => [file, readEntries(path.join(folder, file))]);
}

function readEntries(file: string): Entry[] {
  const entries: Entry[] = [];
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const flags = readFlags(line);
    if (flags === null) continue;
    const view = viewMessage(Buffer.from(line));
    if (!view.isMessage) continue;
    const parts = view.parts.filter((part) => part.type !== "reasoning");
    const text = parts.map((part) => part.text).join("\n");
    entries.push({
      id: String(entries.length),
      kind: "message",
      role: view.role,
      at: view.createdAt ?? null,
      text,
      parts,
      isHostSummary: flags.isHostSummary,
    });
  }
  return entries;
}

function readFlags(line: string): { isHostSummary: boolean } | null {
  let value: Record<string, unknown> | null;
  try {
    value = JSON.parse(line) as Record<string, unknown> | null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (value === null || (value.type !== "user" && value.type !== "assistant")) return null;
  return value.isSidechain === true || value.isMeta === true
    ? null
    : { isHostSummary: value.isCompactSummary === true };
}

function findCompactions(name: string, entries: readonly Entry[]): Cut[] {
  const places = entries.map((entry, i) => (entry.isHostSummary ? i : -1)).filter((i) => i >= 0);
  return places.map((at, nth) => {
    const host = entries[at]?.text ?? "";
    const after = entries.slice(at + 1, places[nth + 1] ?? entries.length);
    return { name, before: entries.slice(0, at), after, host, chars: host.length };
  });
}

interface CutScore {
  readonly used: number;
  readonly kept: Readonly<Record<string, number | null>>;
  readonly compression: number;
}

function scoreCut(cut: Cut, show: boolean): CutScore {
  const history = asText(cut.before);
  const used = listUsedLater(history, cut.after);
  const tail = history.slice(-TAIL_CHARS);
  const folded = foldHistory(cut.before, cut.chars);
  const foldedBeforeTail = foldHistory(cut.before.slice(0, tailStart(cut.before)), cut.chars);
  if (show) console.log(`\n===== ${cut.name}, ${cut.chars} characters\n${folded}\n`);
  const kept = (context: string | null): number | null => (context === null ? null : shareIn(context, used));
  return {
    used: used.length,
    compression: 1 - folded.length / history.length,
    kept: {
      folded: kept(folded),
      "last turns": kept(history.slice(-cut.chars)),
      truncated: kept(history.slice(0, cut.chars)),
      host: kept(cut.host),
      "folded + tail": kept(foldedBeforeTail + tail),
      "last + tail": kept(history.slice(-cut.chars - TAIL_CHARS)),
      "host + tail": kept(cut.host === null ? null : cut.host + tail),
    },
  };
}

/** First entry that lies wholly in the verbatim tail. */
function tailStart(entries: readonly Entry[]): number {
  let chars = 0;
  let at = entries.length;
  while (at > 0 && chars + (entries[at - 1] as Entry).text.length <= TAIL_CHARS)
    chars += (entries[--at] as Entry).text.length;
  return at;
}

const CODE_WORD = /[A-Za-z0-9_\-./@]+[A-Za-z0-9_]/g;
const CODE_SHAPE = /[a-z][A-Z]|_|\/|[a-zA-Z0-9]\.[a-zA-Z]|^--[a-z]|^[0-9a-f]{7,}$|[a-z]\d|-/;

function listUsedLater(history: string, after: readonly Entry[]): string[] {
  const said = after
    .filter((entry) => entry.role === "assistant")
    .map(ownWords)
    .join("\n");
  const words = new Set<string>();
  for (const [word] of said.matchAll(CODE_WORD)) {
    if (word.length >= 4 && word.length <= 120 && /[a-zA-Z]/.test(word) && CODE_SHAPE.test(word))
      words.add(word);
  }
  return [...words].filter((word) => history.includes(word));
}

/** The names of arguments are the tool's words, not the agent's. */
function ownWords(entry: Entry): string {
  return (entry.parts ?? [])
    .map((part) =>
      part.type === "tool_call" ? part.text.replace(/^[\w-]+: |^(?:todos|edits)$/gm, "") : part.text,
    )
    .join("\n");
}

const shareIn = (context: string, words: readonly string[]): number =>
  words.length === 0 ? 1 : words.filter((word) => context.includes(word)).length / words.length;

function cutRow(cut: Cut, score: CutScore): Row {
  return {
    case: cut.name,
    chars: cut.chars,
    used: score.used,
    compression: percent(score.compression),
    ...renderKept(score.kept),
  };
}

function meanRow(scores: readonly CutScore[]): Row[] {
  const [first] = scores;
  if (first === undefined) return [];
  const kept = Object.fromEntries(
    Object.keys(first.kept).map((key) => [key, meanOf(scores.map((score) => score.kept[key] ?? null))]),
  );
  const used = sum(scores.map((score) => score.used));
  return [
    {
      case: `mean of ${scores.length}`,
      chars: "",
      used,
      compression: percent(mean(scores.map((score) => score.compression))),
      ...renderKept(kept),
    },
  ];
}

const renderKept = (kept: Readonly<Record<string, number | null>>): Row =>
  Object.fromEntries(
    Object.entries(kept).map(([key, value]) => [key, value === null ? "–" : percent(value)]),
  );

function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : mean(known);
}

// ---- answers to questions

interface Conversation {
  readonly sources: readonly SourceLine[];
  readonly questions: readonly { readonly answer: string; readonly evidence: readonly string[] }[];
}

const SETS = ["locomo", "realtalk", "beam100k"];

function measureQuestions(): Row[] {
  const rows: Row[] = [];
  for (const set of SETS) {
    const conversations = readConversations(set);
    if (conversations.length === 0) continue;
    for (const share of [0.1, 0.25]) rows.push(questionRow(set, share, conversations));
  }
  return rows;
}

function questionRow(set: string, share: number, conversations: readonly Conversation[]): Row {
  const kept: Record<string, number[]> = { folded: [], "last turns": [], truncated: [] };
  for (const conversation of conversations) {
    const history = asText(conversation.sources);
    const chars = Math.floor(history.length * share);
    const contexts = {
      folded: foldHistory(conversation.sources, chars),
      "last turns": history.slice(-chars),
      truncated: history.slice(0, chars),
    };
    const wanted = wantedWords(conversation);
    for (const [name, context] of Object.entries(contexts)) {
      const words = new Set(splitWords(context));
      kept[name]?.push(...wanted.map((answer) => shareOfWords(words, answer)));
    }
  }
  const columns = Object.entries(kept).flatMap(([name, values]) => [
    [name, percent(mean(values))],
    [`${name}, whole answers`, percent(mean(values.map((value) => (value === 1 ? 1 : 0))))],
  ]);
  return {
    case: `${set} at ${percent(share)}`,
    used: kept.folded?.length ?? 0,
    ...(Object.fromEntries(columns) as Row),
  };
}

/** For each question, the words of its answer that its evidence contains; a question without any measures nothing. */
function wantedWords(conversation: Conversation): string[][] {
  const byId = new Map(conversation.sources.map((source) => [source.id, source.text]));
  const wanted: string[][] = [];
  for (const { answer, evidence } of conversation.questions) {
    const given = new Set(splitWords(evidence.map((id) => byId.get(id) ?? "").join(" ")));
    const words = splitWords(answer).filter((word) => given.has(word));
    if (words.length > 0) wanted.push(words);
  }
  return wanted;
}

const FILLERS = new Set(
  "a an the and or of in on at to for with by from is are was were be been it its this that they them their he she his her i you my your we our as not no yes did do does has have had will would can could about into also based there which what who when where how than then so if but more most some any all each other".split(
    " ",
  ),
);

const splitWords = (text: string): string[] => [
  ...new Set(
    (text.toLowerCase().match(/[a-z0-9][a-z0-9'.-]*[a-z0-9]|[a-z0-9]|[\u4e00-\u9fff]/g) ?? []).filter(
      (word) => !FILLERS.has(word),
    ),
  ),
];

const shareOfWords = (words: ReadonlySet<string>, wanted: readonly string[]): number =>
  wanted.filter((word) => words.has(word)).length / wanted.length;

function readConversations(set: string): Conversation[] {
  const folder = path.join(DATA, "qa", set);
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((file) => readConversation(path.join(folder, file)));
}

interface RawConversation {
  readonly sessions?: readonly { readonly id: string; readonly time?: string }[];
  readonly turns: readonly {
    readonly id: string;
    readonly session?: string;
    readonly speaker?: string;
    readonly role?: string;
    readonly text: string;
    readonly caption?: string;
    readonly time?: string;
  }[];
  readonly qa: readonly { readonly answer: unknown; readonly evidence: readonly string[] }[];
}

function readConversation(file: string): Conversation {
  const raw = JSON.parse(readFileSync(file, "utf8")) as RawConversation;
  const sessionTime = new Map((raw.sessions ?? []).map((session) => [session.id, parseTime(session.time)]));
  const sources = raw.turns.map((turn): SourceLine => {
    const text = turn.caption === undefined ? turn.text : `${turn.text} [image: ${turn.caption}]`;
    const at = parseTime(turn.time) ?? sessionTime.get(turn.session ?? "") ?? null;
    const base = { id: turn.id, kind: "message" as const, role: turn.role ?? "user", at, text };
    return turn.speaker === undefined ? base : { ...base, speaker: turn.speaker };
  });
  return { sources, questions: raw.qa.map(({ answer, evidence }) => ({ answer: String(answer), evidence })) };
}

function parseTime(text: string | undefined): number | null {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

// ---- planted facts

interface Fact {
  readonly id: string;
  readonly class: string;
  readonly must: readonly string[];
}

/** Three compactions: at each third of the session everything so far, the older fold included, is folded again. */
function measureFacts(): Row[] {
  const session = path.join(SAMPLE, "sample-session.jsonl");
  if (!existsSync(session) || !existsSync(path.join(SAMPLE, "facts.json"))) return [];
  const facts = JSON.parse(readFileSync(path.join(SAMPLE, "facts.json"), "utf8")) as Fact[];
  const sources = readSession(session);
  const history = asText(sources);
  return [0.1, 0.2].map((share) => {
    const chars = Math.floor(history.length * share);
    const contexts = {
      folded: foldThrice(sources, chars),
      "last turns": history.slice(-chars),
      truncated: history.slice(0, chars),
    };
    const columns = Object.entries(contexts).map(([name, context]) => [
      name,
      percent(mean(facts.map((fact) => factShare(fact, context)))),
    ]);
    return {
      case: `sample at ${percent(share)}`,
      used: facts.length,
      ...(Object.fromEntries(columns) as Row),
      "by class": byClass(facts, contexts.folded),
    };
  });
}

const factShare = (fact: Fact, context: string): number => shareIn(context, fact.must);

function byClass(facts: readonly Fact[], context: string): string {
  const classes = Map.groupBy(facts, (fact) => fact.class);
  return [...classes]
    .map(([name, members]) => `${name} ${percent(mean(members.map((fact) => factShare(fact, context))))}`)
    .join(", ");
}

function foldThrice(sources: readonly SourceLine[], chars: number): string {
  let folded: SourceLine[] = [];
  const third = Math.ceil(sources.length / 3);
  for (let i = 0; i < 3; i++) {
    const fresh = cutChunks(sources.slice(i * third, (i + 1) * third)).map((chunk, nth) =>
      asSummary(fold(chunk.sources, 0, leafTarget(chunk.tokens)), chunk.sources[0]?.at ?? null, nth),
    );
    const all = [...folded, ...fresh];
    folded = [asSummary(fold(all, 1 + i, Math.floor(chars / 4)), all[0]?.at ?? null, i)];
  }
  return folded[0]?.text ?? "";
}

function readSession(file: string): SourceLine[] {
  const sources: SourceLine[] = [];
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const view = viewMessage(Buffer.from(line));
    if (line === "" || !view.isMessage) continue;
    const parts = view.parts.filter((part) => part.type !== "reasoning");
    sources.push({
      id: String(sources.length),
      kind: "message",
      role: view.role,
      at: view.createdAt ?? null,
      text: parts.map((part) => part.text).join("\n"),
      parts,
    });
  }
  return sources;
}

// ---- the table of the documents

const DOCUMENTED: readonly (readonly [number, number, number])[] = [
  [10, 0.27, 0.98],
  [30, 0.65, 0.96],
  [50, 0.78, 0.94],
  [100, 0.88, 0.92],
];

/** A turn is a question and its answer. Ours is measured at the documented compression: what of the answers is still there. */
function measureTurns(): Row[] {
  const conversations = readConversations("beam100k");
  if (conversations.length === 0) return [];
  return DOCUMENTED.map(([turns, compression, claimed]) => {
    const scores: number[] = [];
    const rawTokens: number[] = [];
    const foldedTokens: number[] = [];
    for (const conversation of conversations) {
      const sources = conversation.sources.slice(0, turns * 2);
      const ids = new Set(sources.map((source) => source.id));
      const asked = conversation.questions.filter(
        ({ evidence }) => evidence.length > 0 && evidence.every((id) => ids.has(id)),
      );
      const history = asText(sources);
      const context = foldHistory(sources, Math.floor(history.length * (1 - compression)));
      rawTokens.push(estimateTextTokens(history));
      foldedTokens.push(estimateTextTokens(context));
      const words = new Set(splitWords(context));
      scores.push(...wantedWords({ sources, questions: asked }).map((wanted) => shareOfWords(words, wanted)));
    }
    return {
      case: `${turns} turns`,
      used: scores.length,
      "raw tokens": Math.round(mean(rawTokens)),
      "folded tokens": Math.round(mean(foldedTokens)),
      compression: percent(1 - mean(foldedTokens) / mean(rawTokens)),
      "documented compression": percent(compression),
      kept: percent(mean(scores)),
      "documented kept": percent(claimed),
    };
  });
}

// ---- figures

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
const mean = (values: readonly number[]): number => (values.length === 0 ? 0 : sum(values) / values.length);
const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;
