/**
 * A summary without a model: the sentences, actions and names that matter most, in order, with time and speaker, within a token target,
 * ending with the closing line. Used when no model is configured, at a spend cap, and as the last level of escalation. Pure and
 * deterministic: the same sources give the same bytes. Never longer than the target.
 */
import { CLOSING_PREFIX, renderClosingLine } from "./closing-line.ts";
import type { Pick, Selection } from "./select.ts";
import { selectUnits } from "./select.ts";
import { cutAtWord } from "./sentences.ts";
import type { SourceLine } from "./source.ts";
import { NAME_SHARE, type QuotedName, rankNames, renderNameList } from "./name-list.ts";
import { DECIDED, renderGoal, renderNames, SECTION_LABELS, type Section } from "./summary-lines.ts";
import { Vocabulary } from "./terms.ts";
import { zoneClock } from "./time.ts";
import type { Unit, UnitSet } from "./summary-units.ts";
import { cutUnits } from "./summary-units.ts";
import { listTopics } from "./topics.ts";

export interface ExtractiveInput {
  readonly sources: readonly SourceLine[];
  /** Depth of the summary to be made: 0 from messages, higher from summaries. */
  readonly depth: number;
  readonly targetTokens: number;
  /** Tokens of the summaries that this one replaces, which are fewer than those of the messages it is made from. */
  readonly replacedTokens?: number | undefined;
  readonly estimate: (text: string) => number;
  readonly timeZone: string;
  /** The summary before this one; what it already says counts less here. */
  readonly previous?: string;
  /** Whether the conversation begins with the sources, so that the first request is the goal. Absent: where there is no `previous`. */
  readonly isStart?: boolean;
  /** Writes the marker by which `doctor` finds summaries made without a model after a failure. */
  readonly marker?: boolean;
}

export interface ExtractiveSummary {
  readonly text: string;
  readonly tokens: number;
}

export const FALLBACK_MARKER = "[LCM fallback summary]";

/** How strongly age discounts a term. A leaf does not know its future; condensing looks back from the newest summary. */
const LEAF_RECENCY = 0.35;
const CONDENSED_RECENCY = 0.6;
const KNOWN_BEFORE_FACTOR = 0.7;
/** People address each other by name: that says nothing new. */
const SPEAKER_FACTOR = 0.1;
/** Share of the target for the closing line. */
const CLOSING_SHARE = 0.06;
/** Share of the target that one verbatim text may take. */
const VERBATIM_SHARE = 0.25;
/** Only a summary with enough room says how many messages it represents. */
const MIN_COUNT_TARGET = 100;
const MAX_TOPICS = 8;
/** Units are picked beyond the target, because joined lines cost less than estimated; the layout cuts back. */
const OVERPICK = 1.6;
/** Picks beyond the prefix that are tried for the remaining room. */
const MAX_FILLERS = 12;
/** A text this close to the target is not worth another attempt. */
const FULL_ENOUGH = 0.97;
/** A source this small relative to the target is still shortened, so that a fold always saves. */
const MAX_SHARE_OF_SOURCE = 0.75;

export function summarizeExtractively(input: ExtractiveInput): ExtractiveSummary {
  const { estimate } = input;
  const vocabulary = new Vocabulary();
  const target = limitTarget(input);
  const set = cutUnits(input.sources, {
    clock: zoneClock(input.timeZone),
    vocabulary,
    isStart: input.sources[0]?.kind === "message" && (input.isStart ?? (input.previous ?? "") === ""),
    isCondensed: input.depth > 0,
    cutVerbatim: (text, maxChars) =>
      cutToTokens(cutAtWord(text, maxChars), target * VERBATIM_SHARE, estimate),
  });
  const recency = input.depth === 0 ? LEAF_RECENCY : CONDENSED_RECENCY;
  vocabulary.weigh(set.length, { recency, isWork: set.isWork });
  for (const name of set.speakers) discount(vocabulary, name, SPEAKER_FACTOR);
  discountKnown(vocabulary, input.previous);
  const selection = selectUnits(set.units, {
    vocabulary,
    budgetTokens: target * OVERPICK,
    // Where an agent works, the first request is the goal of everything that follows; in a chat it is one question of many.
    keepsPinned: set.isWork,
    estimate,
  });
  const page = new Page(input, target, vocabulary, set, selection);
  const text = page.fit();
  return { text, tokens: estimate(text) };
}

function cutToTokens(text: string, tokens: number, estimate: (text: string) => number): string {
  const cost = estimate(text);
  return cost <= tokens ? text : cutAtWord(text, Math.max(2, Math.floor((text.length * tokens) / cost)));
}

/** Estimating every source takes time; it is only needed if the sources might be smaller than the target. */
function limitTarget(input: ExtractiveInput): number {
  const replaced = input.replacedTokens ?? 0;
  if (replaced > 0) return Math.max(1, Math.min(input.targetTokens, shorten(replaced)));
  let length = 0;
  for (const source of input.sources) length += source.text.length;
  if (length > input.targetTokens * 8) return input.targetTokens;
  let tokens = 0;
  for (const source of input.sources) tokens += input.estimate(source.text);
  // Nothing was said here, only searched for: the closing line is the whole text.
  if (tokens === 0) return input.targetTokens;
  return Math.max(1, Math.min(input.targetTokens, shorten(tokens)));
}

const shorten = (tokens: number): number => Math.floor(tokens * MAX_SHARE_OF_SOURCE);

function discountKnown(vocabulary: Vocabulary, previous: string | undefined): void {
  if (previous === undefined || previous === "") return;
  const known = new Vocabulary();
  known.observe(previous, 0, "agent");
  for (const { text } of known.terms) discount(vocabulary, text, KNOWN_BEFORE_FACTOR);
}

function discount(vocabulary: Vocabulary, text: string, factor: number): void {
  const id = vocabulary.idOf(text);
  const term = id === undefined ? undefined : vocabulary.terms[id];
  if (term !== undefined) term.weight *= factor;
}

/** Lays out a prefix of the picks; the longest prefix that fits is the summary. */
class Page {
  readonly #input: ExtractiveInput;
  readonly #target: number;
  readonly #vocabulary: Vocabulary;
  readonly #set: UnitSet;
  readonly #selection: Selection;
  /** What must be kept first, then by value. */
  readonly #picks: readonly Pick[];
  readonly #ranked: readonly number[];
  readonly #quoted: readonly QuotedName[];

  constructor(
    input: ExtractiveInput,
    target: number,
    vocabulary: Vocabulary,
    set: UnitSet,
    selection: Selection,
  ) {
    this.#input = input;
    this.#target = target;
    this.#vocabulary = vocabulary;
    this.#set = set;
    this.#selection = selection;
    this.#picks = [
      ...selection.picks.filter(({ unit }) => unit.isPinned),
      ...selection.picks.filter(({ unit }) => !unit.isPinned),
    ];
    this.#ranked = rankNames(vocabulary, set.length);
    this.#quoted = listQuoted(set);
  }

  /** The longest prefix of the picks that fits, then any smaller picks that still fit after it. */
  fit(): string {
    const picks = this.#picks;
    let low = 0;
    let high = picks.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#fits(this.#render(picks.slice(0, middle)))) low = middle;
      else high = middle - 1;
    }
    // In the smallest summaries one sentence that was said comes before any names.
    if (low === 0) return this.#cutToTarget(this.#renderFirst());
    const chosen = picks.slice(0, low);
    let text = this.#render(chosen);
    for (const pick of picks.slice(low + 1, low + 1 + MAX_FILLERS)) {
      if (this.#input.estimate(text) >= this.#target * FULL_ENOUGH) break;
      const longer = this.#render([...chosen, pick]);
      if (!this.#fits(longer)) continue;
      chosen.push(pick);
      text = longer;
    }
    return this.#cutToTarget(text);
  }

  #renderFirst(): string {
    const texts = this.#picks.slice(0, MAX_FILLERS).map((pick) => this.#render([pick], false));
    return texts.find((text) => this.#fits(text)) ?? this.#render([], false);
  }

  #fits(text: string): boolean {
    return this.#input.estimate(text) <= this.#target;
  }

  #render(picks: readonly Pick[], hasNames = true): string {
    const covered = coverOf(picks, this.#vocabulary);
    const lines = this.#input.marker === true ? [FALLBACK_MARKER] : [];
    lines.push(...renderBody(picks, this.#vocabulary, zoneClock(this.#input.timeZone).name));
    const closing = this.#renderClosing(picks);
    const names = hasNames ? this.#renderNames(covered, picks, lines.join("\n"), closing) : [];
    return [...lines, ...names, closing].join("\n");
  }

  /** Names fill the rest of their share, after the names in brackets. */
  #renderNames(
    covered: ReadonlySet<number>,
    picks: readonly Pick[],
    body: string,
    closing: string,
  ): string[] {
    const bracketed = picks.reduce((sum, { names }) => sum + this.#lengthOf(names), 0);
    const other = body.length + closing.length - bracketed;
    const room = Math.floor((other * NAME_SHARE) / (1 - NAME_SHARE)) - bracketed;
    const quoted = this.#quoted.filter(({ text }) => !body.includes(text));
    return renderNameList({ vocabulary: this.#vocabulary, ranked: this.#ranked, covered, quoted, room });
  }

  #lengthOf(names: readonly number[]): number {
    return names.reduce((sum, id) => sum + (this.#vocabulary.terms[id]?.text.length ?? 0) + 3, 0);
  }

  #renderClosing(picks: readonly Pick[]): string {
    const room = Math.max(12, Math.min(80, this.#target * CLOSING_SHARE));
    const shown = new Set(picks.map((pick) => pick.unit));
    const dropped = [...this.#selection.picks.map((pick) => pick.unit), ...this.#selection.left].filter(
      (unit) => !shown.has(unit),
    );
    const topics: string[] = [];
    let used = this.#input.estimate(CLOSING_PREFIX);
    for (const topic of listTopics(this.#set, dropped)) {
      const cost = this.#input.estimate(topic) + 1;
      if (used + cost > room) {
        // A name that is too long must not leave the line without any.
        if (topics.length === 0) continue;
        break;
      }
      if (topics.length >= MAX_TOPICS) break;
      used += cost;
      topics.push(topic);
    }
    return renderClosingLine(topics, this.#target < MIN_COUNT_TARGET ? 0 : this.#input.sources.length);
  }

  /** Only a target of a few tokens gets here with a text that is too long. */
  #cutToTarget(text: string): string {
    const { estimate } = this.#input;
    let cut = text;
    while (cut.length > 1 && estimate(cut) > Math.max(1, this.#input.targetTokens)) {
      cut = cutAtWord(cut, Math.max(1, Math.floor(cut.length * 0.8)));
    }
    return cut;
  }
}

function coverOf(picks: readonly Pick[], vocabulary: Vocabulary): Set<number> {
  const covered = new Set<number>();
  for (const { unit, names } of picks) {
    for (const id of [...unit.terms, ...names]) {
      covered.add(id);
      covered.add(vocabulary.terms[id]?.piece ?? -1);
    }
  }
  return covered;
}

/** Commands and errors for the line of names, the newest first: those of this run, then those that older summaries listed. */
function listQuoted({ units, quoted }: UnitSet): QuotedName[] {
  const own = units.flatMap(({ command, error }): QuotedName[] => [
    ...(error === "" ? [] : [{ group: "errors" as const, text: error }]),
    ...(command === "" ? [] : [{ group: "commands run" as const, text: command }]),
  ]);
  return [...quoted, ...own].reverse();
}

// ---- layout

const MERGE_MINUTES = 20;
/** The time of a line this soon after another one is not worth its tokens. */
const TIME_STEP_MINUTES = 30;
const MAX_LINE = 900;

interface OpenLine {
  readonly date: string;
  readonly time: string;
  readonly speaker: string;
  readonly isVerbatim: boolean;
  text: string;
}

/** The lines after the events state the progress of the work; the goal comes before them. */
function renderBody(picks: readonly Pick[], vocabulary: Vocabulary, zone: string): string[] {
  const shown = new Set<string>();
  const lines: OpenLine[] = [];
  const stated = new Map<Section, string[]>();
  const goal: string[] = [];
  for (const pick of mergePicks(picks)) {
    const { unit } = pick;
    const piece = renderPick(pick, vocabulary, shown);
    if (unit.section === "goal") goal.push(renderGoal(unit, piece));
    else if (unit.section !== null && unit.section !== "decided")
      stated.set(unit.section, [...(stated.get(unit.section) ?? []), piece]);
    else pushLine(lines, unit, piece);
  }
  const rest = SECTION_LABELS.flatMap(([section, label]) => {
    const texts = stated.get(section) ?? [];
    return texts.length === 0 ? [] : [`${label}${endSentence(texts.join("; "))}`];
  });
  return [...goal, ...addDates(lines, zone), ...rest];
}

function pushLine(lines: OpenLine[], unit: Unit, piece: string): void {
  const open = lines.at(-1);
  const speaker = `${unit.speaker}${unit.section === "decided" && unit.speaker !== "" ? DECIDED : ""}`;
  if (open !== undefined && belongs(open, unit, speaker)) open.text = joinPieces(open.text, piece, unit.kind);
  else
    lines.push({
      date: unit.date,
      time: unit.time,
      speaker,
      isVerbatim: unit.isVerbatim,
      text: unit.isVerbatim ? piece : startPiece(piece),
    });
}

/** One entry per unit with all its names, in reading order. */
function mergePicks(picks: readonly Pick[]): Pick[] {
  const merged = new Map<Unit, Pick>();
  for (const { unit, names } of picks) {
    merged.set(unit, { unit, names: [...(merged.get(unit)?.names ?? []), ...names] });
  }
  return [...merged.values()].sort((a, b) => a.unit.order - b.unit.order);
}

/** A time is written when it says something new: at another day, for a speaker who was not read yet, and after a while. */
function addDates(lines: readonly OpenLine[], zone: string): string[] {
  const out: string[] = [];
  const met = new Set<string>();
  let date = "";
  let told = Number.NEGATIVE_INFINITY;
  for (const line of lines) {
    if (line.date !== "" && line.date !== date) {
      out.push(date === "" ? `${line.date} ${zone}` : line.date);
      date = line.date;
      told = Number.NEGATIVE_INFINITY;
    }
    const since = line.time === "" ? 0 : Math.abs(minutesOf(line.time) - told);
    const isTold = since >= TIME_STEP_MINUTES || !met.has(line.speaker);
    met.add(line.speaker);
    if (isTold && line.time !== "") told = minutesOf(line.time);
    const stamp = [isTold ? line.time : "", line.speaker].filter(Boolean).join(" ");
    out.push(`${stamp === "" ? "" : `${stamp}: `}${line.isVerbatim ? line.text : endSentence(line.text)}`);
  }
  return out;
}

function belongs(open: OpenLine, unit: Unit, speaker: string): boolean {
  if (open.isVerbatim || unit.isVerbatim) return false;
  if (open.speaker !== speaker || open.date !== unit.date || open.text.length > MAX_LINE) return false;
  if (open.time === unit.time) return true;
  const gap = minutesOf(unit.time) - minutesOf(open.time);
  return gap >= 0 && gap <= MERGE_MINUTES;
}

const minutesOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));

/** The first mention of a file gives its path, later ones its name. */
function renderPick(pick: Pick, vocabulary: Vocabulary, shown: Set<string>): string {
  if (pick.unit.isVerbatim) return `"${pick.unit.head}"`;
  const head = pick.unit.head.replace(/`([^`\s]*\/[^`\s]+)`/g, (mark, path: string) => {
    if (!shown.has(path)) {
      shown.add(path);
      return mark;
    }
    return `\`${baseName(path)}\``;
  });
  return `${head}${renderNames(pick.names, vocabulary)}${pick.unit.tail}`;
}

function baseName(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash >= 0 && slash < path.length - 1 ? path.slice(slash + 1) : path;
}

function joinPieces(text: string, piece: string, kind: Unit["kind"]): string {
  if (kind === "said" || /[.!?…:。！？：]$/.test(text)) return `${endSentence(text)} ${startPiece(piece)}`;
  return `${text}; ${piece}`;
}

function startPiece(piece: string): string {
  return /^[a-z]+[ ,:]/.test(piece) ? piece.charAt(0).toUpperCase() + piece.slice(1) : piece;
}

function endSentence(text: string): string {
  if (/[.!?…。！？]["')\]`]?$/.test(text)) return text;
  return `${text.replace(/[:;：；,，]$/, "")}.`;
}
