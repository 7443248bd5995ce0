/**
 * Identifiers the agent goes on to use: at each real compaction of the Claude Code transcripts, which of the code-shaped words it needs
 * later are still in the context, for our folded history and our context, for the last turns, for truncation, and for the summary the
 * host wrote there itself. Without a model.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { estimateTextTokens } from "@lossless/core";
import { viewMessage } from "@lossless/core/testing";
import type { SourceLine } from "@lossless/core/testing";
import { findSharedData } from "@lossless/testkit/shared-data.ts";
import { assembleAfterFolding, assembleUpTo } from "./engine-context.ts";
import { mean, percent, shareIn, sum } from "./retention-figures.ts";
import type { Row } from "./retention-figures.ts";
import { asText, foldHistory } from "./retention-fold.ts";

/** The newest part of a history that is kept word for word beside its summary. */
const TAIL_CHARS = 32_000;

interface Entry extends SourceLine {
  readonly isHostSummary: boolean;
  /** The line of the transcript, which the engine stores. */
  readonly line: string;
}

interface Cut {
  readonly name: string;
  readonly before: readonly Entry[];
  readonly after: readonly Entry[];
  readonly host: string | null;
  readonly chars: number;
}

/** `show` prints each folded text, to be read by a person. */
export async function measureCompactions(show: boolean): Promise<Row[]> {
  const cuts = readTranscripts().flatMap(([name, entries]) => findCompactions(name, entries));
  const scores: CutScore[] = [];
  for (const cut of cuts) scores.push(await scoreCut(cut, show));
  return [
    ...cuts.map((cut, i) => cutRow(cut, scores[i] as CutScore)),
    ...meanRow(scores),
    ...goalRow(scores),
  ];
}

/** At least so much of what is used later is still there, in the mean over the real compactions. */
const GOALS = { folded: 0.45, "folded + tail": 0.7, "our context": 0.7 } as const;

function goalRow(scores: readonly CutScore[]): Row[] {
  if (scores.length === 0) return [];
  const judged = Object.entries(GOALS).map(([name, least]) => {
    const kept = meanOf(scores.map((score) => score.kept[name] ?? null)) ?? 0;
    return [name, `≥ ${100 * least} %: ${kept >= least ? "yes" : "NO"}`];
  });
  return [{ case: "goal", ...(Object.fromEntries(judged) as Row) }];
}

/** The same question at ordinary places of every long session, where no host wrote a summary: a guard against fitting four cases. */
export async function measureCuts(): Promise<Row[]> {
  const scores: CutScore[] = [];
  for (const [name, all] of readTranscripts()) {
    const entries = all.filter((entry) => !entry.isHostSummary);
    for (const share of [0.4, 0.6, 0.8]) {
      const at = Math.floor(entries.length * share);
      const before = entries.slice(0, at);
      if (asText(before).length < 100_000) continue;
      scores.push(
        await scoreCut(
          { name, before, after: entries.slice(at, at + 150), host: null, chars: 10_000 },
          false,
        ),
      );
    }
  }
  return meanRow(scores.filter((score) => score.used >= 8));
}

function readTranscripts(): [string, Entry[]][] {
  const data = findSharedData();
  const folder = data === null ? null : path.join(data, "transcripts/claude-code");
  if (folder === null || !existsSync(folder)) return [];
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
      line,
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
  /** Size of the host's summary with the tail, of our context for that budget, and of our largest context of at most that size. */
  readonly tokens: { readonly host: number; readonly ours: number; readonly full: number };
}

async function scoreCut(cut: Cut, show: boolean): Promise<CutScore> {
  const history = asText(cut.before);
  const used = listUsedLater(history, cut.after);
  const tail = history.slice(-TAIL_CHARS);
  const folded = foldHistory(cut.before, cut.chars);
  const foldedBeforeTail = foldHistory(cut.before.slice(0, tailStart(cut.before)), cut.chars);
  const hostAndTail = cut.host === null ? history.slice(-cut.chars - TAIL_CHARS) : cut.host + tail;
  const arrivals = cut.before.map(({ id, line }) => ({ eventId: id, bytes: Buffer.from(line) }));
  const hostTokens = estimateTextTokens(hostAndTail);
  const context = await assembleAfterFolding([arrivals], hostTokens);
  const full = await assembleUpTo([arrivals], hostTokens);
  if (show) console.log(`\n===== ${cut.name}, ${cut.chars} characters\n${folded}\n`);
  const kept = (context: string | null): number | null => (context === null ? null : shareIn(context, used));
  return {
    used: used.length,
    compression: 1 - folded.length / history.length,
    tokens: { host: hostTokens, ours: context.tokens, full: full.tokens },
    kept: {
      folded: kept(folded),
      "last turns": kept(history.slice(-cut.chars)),
      truncated: kept(history.slice(0, cut.chars)),
      host: kept(cut.host),
      "folded + tail": kept(foldedBeforeTail + tail),
      "our context": kept(context.text),
      "ours, same size": kept(full.text),
      "last + tail": kept(history.slice(-cut.chars - TAIL_CHARS)),
      "host + tail": kept(cut.host === null ? null : hostAndTail),
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

function cutRow(cut: Cut, score: CutScore): Row {
  return {
    case: cut.name,
    chars: cut.chars,
    used: score.used,
    compression: percent(score.compression),
    ...renderKept(score.kept),
    "tokens with tail": score.tokens.host,
    "our tokens": score.tokens.ours,
    "same size": score.tokens.full,
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
      "tokens with tail": Math.round(mean(scores.map((score) => score.tokens.host))),
      "our tokens": Math.round(mean(scores.map((score) => score.tokens.ours))),
      "same size": Math.round(mean(scores.map((score) => score.tokens.full))),
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
