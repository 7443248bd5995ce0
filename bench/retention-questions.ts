/**
 * Answers that are still in the context: for long conversations with questions about them, the share of each answer's words (as its evidence
 * spells them) in a context of a given size. Without a model.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { estimateTextTokens } from "@lossless/core";
import type { Arrival } from "@lossless/core";
import type { SourceLine } from "@lossless/core/testing";
import { findSharedData } from "@lossless/testkit/shared-data.ts";
import { assembleAfterFolding } from "./engine-context.ts";
import type { When } from "./engine-context.ts";
import { mean, percent } from "./retention-figures.ts";
import type { Turn } from "./recall-questions.ts";
import type { Row } from "./retention-figures.ts";
import { asText, foldHistory } from "./retention-fold.ts";

export interface Conversation {
  readonly sources: readonly SourceLine[];
  readonly questions: readonly { readonly answer: string; readonly evidence: readonly string[] }[];
}

const SETS = ["locomo", "realtalk", "beam100k"];
const SHARES = [0.1, 0.25];

/**
 * How much of the answers is still in the context, for a budget of a tenth and a quarter of the conversation, folded when due and on request.
 * Baselines have the size of our context.
 */
export async function measureQuestions(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const set of SETS) {
    const conversations = readConversations(set);
    if (conversations.length === 0) continue;
    for (const share of SHARES)
      for (const when of ["due", "requested"] as const)
        rows.push(await questionRow(set, { when, share }, conversations));
  }
  return rows;
}

async function questionRow(
  set: string,
  { when, share }: { when: When; share: number },
  conversations: readonly Conversation[],
): Promise<Row> {
  const kept: Record<string, number[]> = { "our context": [], folded: [], "last turns": [], truncated: [] };
  const sizes: number[] = [];
  for (const conversation of conversations) {
    const history = asText(conversation.sources);
    const ours = await assembleAfterFolding(
      [conversation.sources.map(toArrival)],
      Math.floor(estimateTextTokens(history) * share),
      when,
    );
    const chars = ours.text.length;
    sizes.push(chars / history.length);
    const contexts = {
      "our context": ours.text,
      folded: foldHistory(conversation.sources, chars),
      "last turns": history.slice(-chars),
      truncated: history.slice(0, chars),
    };
    for (const [name, context] of Object.entries(contexts))
      kept[name]?.push(...scoreAnswers(conversation, context));
  }
  const columns = Object.entries(kept).flatMap(([name, values]) => [
    [name, percent(mean(values))],
    [`${name}, whole`, percent(mean(values.map((value) => (value === 1 ? 1 : 0))))],
  ]);
  return {
    case: set,
    questions: kept.folded?.length ?? 0,
    "folded for": `${percent(share)}, ${when}`,
    size: percent(mean(sizes)),
    ...(Object.fromEntries(columns) as Row),
  };
}

function toArrival({ id, role, speaker, at, text }: SourceLine): Arrival {
  const content = speaker === undefined ? text : `${speaker}: ${text}`;
  const message = {
    role: role === "assistant" ? "assistant" : "user",
    content,
    timestamp: at ?? undefined,
  };
  return { eventId: id, message };
}

/** For each question, the share of its answer's words in the context. */
function scoreAnswers(conversation: Conversation, context: string): number[] {
  const words = new Set(splitWords(context));
  return wantedWords(conversation).map((wanted) => shareOfWords(words, wanted));
}

// ---- the table of the documents

const DOCUMENTED: readonly (readonly [turns: number, compression: number, kept: number])[] = [
  [10, 0.27, 0.98],
  [30, 0.65, 0.96],
  [50, 0.78, 0.94],
  [100, 0.88, 0.92],
];

/** A turn is a question and its answer. Ours is folded on request to at most the documented size: how much of the answers is still in it. */
export async function measureTurns(): Promise<Row[]> {
  const conversations = readConversations("beam100k");
  const rows: Row[] = [];
  for (const [turns, compression, claimed] of conversations.length === 0 ? [] : DOCUMENTED) {
    const rawTokens: number[] = [];
    const ourTokens: number[] = [];
    const kept: Record<"ours" | "last turns", number[]> = { ours: [], "last turns": [] };
    for (const conversation of conversations.map((whole) => takeTurns(whole, turns))) {
      const history = asText(conversation.sources);
      const raw = estimateTextTokens(history);
      const arrivals = [conversation.sources.map(toArrival)];
      const ours = await assembleAfterFolding(arrivals, Math.floor(raw * (1 - compression)), "requested");
      rawTokens.push(raw);
      ourTokens.push(ours.tokens);
      kept.ours.push(...scoreAnswers(conversation, ours.text));
      kept["last turns"].push(...scoreAnswers(conversation, history.slice(-ours.text.length)));
    }
    rows.push({
      turns,
      questions: kept.ours.length,
      "raw tokens": Math.round(mean(rawTokens)),
      "our tokens": Math.round(mean(ourTokens)),
      compression: percent(1 - mean(ourTokens) / mean(rawTokens)),
      documented: percent(compression),
      kept: percent(mean(kept.ours)),
      "documented kept": percent(claimed),
      "last turns kept": percent(mean(kept["last turns"])),
    });
  }
  return rows;
}

/** The first turns, and the questions they can answer. */
function takeTurns({ sources, questions }: Conversation, turns: number): Conversation {
  const taken = sources.slice(0, turns * 2);
  const ids = new Set(taken.map((source) => source.id));
  return {
    sources: taken,
    questions: questions.filter(({ evidence }) => evidence.length > 0 && evidence.every((id) => ids.has(id))),
  };
}

// ---- reading

/** For each question, the words of its answer that its evidence contains; a question without any is not measured. */
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
  const data = findSharedData();
  const folder = data === null ? null : path.join(data, "qa", set);
  if (folder === null || !existsSync(folder)) return [];
  return readdirSync(folder).map((file) => readConversation(path.join(folder, file)));
}

interface RawConversation {
  readonly sessions?: readonly { readonly id: string; readonly time?: string }[];
  readonly turns: readonly Turn[];
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
