/**
 * How far the token estimate is from a real tokenizer, per kind of text: small samples written for this purpose, and the real transcripts and
 * conversations under ../shared/data if present. Also how fast it counts. The weights were fitted to o200k; cl100k is shown for comparison: it
 * splits scripts other than Latin much finer. Runs of one repeated character are counted as for a context, which is the only place where they
 * are counted: a context must not be larger than it seems.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { countTokens as countCl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as countO200k } from "gpt-tokenizer/encoding/o200k_base";
import { estimateSentTokens, estimateTextTokens } from "@lossless/core";
import { countRepeats, viewMessage } from "@lossless/core/testing";
import type { BenchResult } from "./report.ts";
import { TOKEN_SAMPLES } from "./token-samples.ts";

const DATA = process.env.LCM_SHARED_DATA ?? path.resolve(import.meta.dirname, "../../shared/data");
/** Real tokenizers are slow; this much of each file shows the error just as well. */
const CHARS_PER_FILE = 60_000;
/** Too short to be a sample. */
const MIN_KIND_CHARS = 1000;
const SPEED_CHARS = 8_000_000;
/** Every ASCII character and some letters and signs of other scripts. */
const REPEATED = [
  ...Array.from({ length: 128 }, (_, unit) => String.fromCharCode(unit)),
  ..."éñяα中龘の가ไاअ…→─█😀",
];
const REPETITIONS = [64, 1_024, 8_192];

export async function run(): Promise<BenchResult> {
  const kinds = new Map<string, string[]>(TOKEN_SAMPLES.map(({ kind, text }) => [`sample: ${kind}`, [text]]));
  const notes: string[] = [];
  if (existsSync(DATA)) for (const [kind, texts] of readRealTexts()) kinds.set(`real: ${kind}`, texts);
  else notes.push(`Real data skipped: there is no ${DATA}.`);
  const rows = [...kinds].map(([kind, texts]) => measure(kind, texts, estimateTextTokens));
  for (const times of REPETITIONS) rows.push(measureWorstRun(times));
  const speed = (count: (text: string) => number): string =>
    measureSpeed([...kinds.values()].flat(), count).toFixed(0);
  notes.push(
    `Speed: ${speed(estimateTextTokens)} MB/s of UTF-8, one thread; looking for repeated characters: ${speed(countRepeats)} MB/s.`,
  );
  return { name: "tokens: estimate against real tokenizers", rows, notes };
}

/** The character of whose repetitions the smallest share is counted. */
function measureWorstRun(times: number): Record<string, string | number> {
  const measured = REPEATED.map((character) =>
    measure(
      `${times} × ${JSON.stringify(character)}, the least counted`,
      [character.repeat(times)],
      estimateSentTokens,
    ),
  );
  return measured.reduce((worst, row) => (Number(row["error %"]) < Number(worst["error %"]) ? row : worst));
}

function measure(
  kind: string,
  texts: readonly string[],
  count: (text: string) => number,
): Record<string, string | number> {
  const sum = (count: (text: string) => number): number =>
    texts.reduce((total, text) => total + count(text), 0);
  const estimate = sum(count);
  const o200k = sum((text) => countO200k(text, { disallowedSpecial: new Set() }));
  const cl100k = sum((text) => countCl100k(text, { disallowedSpecial: new Set() }));
  const chars = sum((text) => text.length);
  return {
    kind,
    chars,
    estimate,
    o200k,
    "error %": percent(estimate, o200k),
    cl100k,
    "against cl100k %": percent(estimate, cl100k),
  };
}

function percent(estimate: number, real: number): number {
  return Math.round(1000 * (estimate / real - 1)) / 10;
}

function measureSpeed(texts: readonly string[], count: (text: string) => number): number {
  const joined = texts.join("\n");
  const text = joined.repeat(Math.ceil(SPEED_CHARS / joined.length)).slice(0, SPEED_CHARS);
  const times = [1, 2, 3].map(() => {
    const start = performance.now();
    count(text);
    return performance.now() - start;
  });
  return Buffer.byteLength(text) / 1000 / Math.min(...times);
}

function readRealTexts(): [string, string[]][] {
  const kinds: [string, string[]][] = [
    ["chat (locomo)", readConversations("locomo")],
    ["chat (realtalk)", readConversations("realtalk")],
    ["assistant chat with code (beam)", readConversations("beam100k")],
    ["Chinese (memdaily)", readConversations("memdaily_zh")],
    ...readAgentLogs(),
    ["JSON lines (claude-code)", readHeads("transcripts/claude-code", ".jsonl")],
    ["JSON (swe-agent)", readHeads("transcripts/swe-agent", ".traj")],
  ];
  return kinds.filter(([, texts]) => texts.join("").length >= MIN_KIND_CHARS);
}

function listFiles(folder: string, extension: string): string[] {
  const directory = path.join(DATA, folder);
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((file) => file.endsWith(extension))
    .map((file) => path.join(directory, file));
}

function readHeads(folder: string, extension: string): string[] {
  return listFiles(folder, extension).map((file) => readFileSync(file, "utf8").slice(0, CHARS_PER_FILE));
}

interface Turns {
  readonly turns?: readonly { readonly text: string }[];
  readonly conversations?: readonly Turns[];
}

function joinTurns(value: Turns): string {
  const own = (value.turns ?? []).map(({ text }) => text);
  return [...own, ...(value.conversations ?? []).map(joinTurns)].join("\n");
}

function readConversations(set: string): string[] {
  return listFiles(`qa/${set}`, ".json").map((file) =>
    joinTurns(JSON.parse(readFileSync(file, "utf8")) as Turns).slice(0, CHARS_PER_FILE),
  );
}

/** Texts of the messages of real agent sessions, by kind. */
function readAgentLogs(): [string, string[]][] {
  const kinds = new Map<string, string[]>();
  for (const file of listFiles("transcripts/pi-v3-derived", ".jsonl")) {
    const texts = new Map<string, string>();
    for (const line of readFileSync(file, "utf8").split("\n")) {
      for (const { type, text } of readParts(line)) texts.set(type, `${texts.get(type) ?? ""}${text}\n`);
    }
    for (const [type, text] of texts) {
      const kind = `agent log, ${type.replace("_", " ")}`;
      kinds.set(kind, [...(kinds.get(kind) ?? []), text.slice(0, CHARS_PER_FILE)]);
    }
  }
  return [...kinds];
}

function readParts(line: string): readonly { readonly type: string; readonly text: string }[] {
  if (!line.includes('"message"')) return [];
  const entry = JSON.parse(line) as { readonly message?: unknown };
  if (entry.message === undefined) return [];
  return viewMessage(Buffer.from(JSON.stringify(entry.message))).parts;
}
