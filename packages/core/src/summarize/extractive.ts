/**
 * A summary without a model: the sentences, actions and names that matter most, in order, with time and speaker, within a token
 * target, ending with the closing line. Used when no model is configured, at a spend cap, and as the last level of escalation.
 * Pure and deterministic: the same sources give the same bytes. Never longer than the target.
 */
import { CLOSING_PREFIX, renderClosingLine } from "./closing-line.ts";
import type { Pick, Selection } from "./select.ts";
import { selectUnits } from "./select.ts";
import { cutAtWord, hasOddMarks } from "./sentences.ts";
import type { SourceLine } from "./source.ts";
import { renderNames } from "./summary-lines.ts";
import { isPlain, type Term, Vocabulary } from "./terms.ts";
import { zoneClock } from "./time.ts";
import type { Unit, UnitSet } from "./summary-units.ts";
import { cutUnits } from "./summary-units.ts";

export interface ExtractiveInput {
  readonly sources: readonly SourceLine[];
  /** Depth of the summary to be made: 0 from messages, higher from summaries. */
  readonly depth: number;
  readonly targetTokens: number;
  readonly estimate: (text: string) => number;
  readonly timeZone: string;
  /** The summary that stands before this one; what it already says counts for less here. */
  readonly previous?: string;
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
/** Shares of the target for the lines of names and for the closing line. */
const CONTEXT_SHARE = 0.14;
const CLOSING_SHARE = 0.08;
const MAX_TOPICS = 8;
/** Units are picked beyond the target, because lines that join cost less than was reckoned; the layout cuts back. */
const OVERPICK = 1.6;
/** Picks beyond the prefix that are tried for the room left. */
const MAX_FILLERS = 12;
/** A text this close to the target is not worth another look. */
const FULL_ENOUGH = 0.97;
/** A source this small relative to the target is still shortened, so that a fold always saves. */
const MAX_SHARE_OF_SOURCE = 0.75;

export function summarizeExtractively(input: ExtractiveInput): ExtractiveSummary {
  const { estimate } = input;
  const vocabulary = new Vocabulary();
  const set = cutUnits(input.sources, zoneClock(input.timeZone), vocabulary);
  vocabulary.weigh(input.sources.length, input.depth === 0 ? LEAF_RECENCY : CONDENSED_RECENCY);
  discountKnown(vocabulary, input.previous);
  const target = limitTarget(input);
  const selection = selectUnits(set.units, { vocabulary, budgetTokens: target * OVERPICK, estimate });
  const page = new Page(input, target, vocabulary, set, selection);
  const text = page.fit();
  return { text, tokens: estimate(text) };
}

/** Estimating every source costs time; it is only needed where the sources might be smaller than the target. */
function limitTarget(input: ExtractiveInput): number {
  let length = 0;
  for (const source of input.sources) length += source.text.length;
  if (length > input.targetTokens * 8) return input.targetTokens;
  let tokens = 0;
  for (const source of input.sources) tokens += input.estimate(source.text);
  // Nothing was said here, only searched for: the closing line is all there is to write.
  if (tokens === 0) return input.targetTokens;
  return Math.max(1, Math.min(input.targetTokens, Math.floor(tokens * MAX_SHARE_OF_SOURCE)));
}

function discountKnown(vocabulary: Vocabulary, previous: string | undefined): void {
  if (previous === undefined || previous === "") return;
  const known = new Vocabulary();
  known.observe(previous, 0, "agent");
  for (const { text } of known.terms) {
    const id = vocabulary.idOf(text);
    const term = id === undefined ? undefined : vocabulary.terms[id];
    if (term !== undefined) term.weight *= KNOWN_BEFORE_FACTOR;
  }
}

/** Lays out a prefix of the picks; the longest prefix that fits is the summary. */
class Page {
  readonly #input: ExtractiveInput;
  readonly #target: number;
  readonly #vocabulary: Vocabulary;
  readonly #set: UnitSet;
  readonly #selection: Selection;
  readonly #ranked: readonly number[];

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
    this.#ranked = rankMentions(vocabulary);
  }

  /** The best prefix of the picks that fits, then whatever smaller pick still fits behind it. */
  fit(): string {
    const { picks } = this.#selection;
    let low = 0;
    let high = picks.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#fits(this.#render(picks.slice(0, middle)))) low = middle;
      else high = middle - 1;
    }
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

  #fits(text: string): boolean {
    return this.#input.estimate(text) <= this.#target;
  }

  #render(picks: readonly Pick[]): string {
    const covered = coverOf(picks, this.#vocabulary);
    const lines = this.#input.marker === true ? [FALLBACK_MARKER] : [];
    lines.push(...renderBody(picks, this.#vocabulary, zoneClock(this.#input.timeZone).name));
    lines.push(...this.#renderContext(covered));
    lines.push(this.#renderClosing(covered, picks));
    return lines.join("\n");
  }

  /** Names that no chosen line carries but that were used more than in passing, with the place they belong to. */
  #renderContext(covered: ReadonlySet<number>): string[] {
    let room = this.#target * CONTEXT_SHARE;
    const byHome = new Map<string, string[]>();
    const shown = new Set(covered);
    for (const id of this.#ranked) {
      if (shown.has(id)) continue;
      const term = this.#vocabulary.terms[id] as Term;
      shown.add(id).add(term.piece);
      const home = baseName(this.#set.homes.get(id) ?? "");
      const cost = term.text.length / 3.4 + (byHome.has(home) ? 1 : 5);
      if (cost > room) break;
      room -= cost;
      byHome.set(home, [...(byHome.get(home) ?? []), term.text]);
    }
    if (byHome.size === 0) return [];
    const groups = [...byHome].map(([home, names]) =>
      home === "" ? names.join(", ") : `in ${home} ${names.join(", ")}`,
    );
    return [`Also mentioned: ${groups.join("; ")}.`];
  }

  #renderClosing(covered: ReadonlySet<number>, picks: readonly Pick[]): string {
    const room = Math.max(12, Math.min(80, this.#target * CLOSING_SHARE));
    const shown = new Set(picks.map((pick) => pick.unit));
    const dropped = [...this.#selection.picks.map((pick) => pick.unit), ...this.#selection.left].filter(
      (unit) => !shown.has(unit),
    );
    const topics: string[] = [];
    let used = this.#input.estimate(CLOSING_PREFIX);
    for (const topic of listTopics(dropped, this.#set.topics, this.#vocabulary, covered)) {
      const cost = this.#input.estimate(topic) + 1;
      if (topics.length >= MAX_TOPICS || used + cost > room) break;
      used += cost;
      topics.push(topic);
    }
    return renderClosingLine(topics);
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

function rankMentions(vocabulary: Vocabulary): number[] {
  const ids: number[] = [];
  vocabulary.terms.forEach((term, id) => {
    const isCode = !isPlain(term.kind) && term.kind !== "compound";
    if (
      isCode &&
      term.text.length > 3 &&
      (term.spoken > 1 || (term.spoken > 0 && term.seen > 1) || term.byUser)
    )
      ids.push(id);
  });
  return ids.sort((a, b) => (vocabulary.terms[b]?.weight ?? 0) - (vocabulary.terms[a]?.weight ?? 0) || a - b);
}

// ---- layout

const MERGE_MINUTES = 20;
const MAX_LINE = 900;

interface OpenLine {
  readonly date: string;
  readonly time: string;
  readonly speaker: string;
  text: string;
}

function renderBody(picks: readonly Pick[], vocabulary: Vocabulary, zone: string): string[] {
  const shown = new Set<string>();
  const lines: OpenLine[] = [];
  for (const pick of mergePicks(picks)) {
    const piece = renderPick(pick, vocabulary, shown);
    const open = lines.at(-1);
    if (open !== undefined && belongs(open, pick.unit))
      open.text = joinPieces(open.text, piece, pick.unit.kind);
    else
      lines.push({
        date: pick.unit.date,
        time: pick.unit.time,
        speaker: pick.unit.speaker,
        text: startPiece(piece),
      });
  }
  return addDates(lines, zone);
}

/** One entry per unit with all its names, in reading order. */
function mergePicks(picks: readonly Pick[]): Pick[] {
  const merged = new Map<Unit, Pick>();
  for (const { unit, names } of picks) {
    merged.set(unit, { unit, names: [...(merged.get(unit)?.names ?? []), ...names] });
  }
  return [...merged.values()].sort((a, b) => a.unit.order - b.unit.order);
}

function addDates(lines: readonly OpenLine[], zone: string): string[] {
  const out: string[] = [];
  let date = "";
  for (const line of lines) {
    if (line.date !== "" && line.date !== date) {
      out.push(date === "" ? `${line.date} ${zone}` : line.date);
      date = line.date;
    }
    const stamp = [line.time, line.speaker].filter(Boolean).join(" ");
    out.push(`${stamp === "" ? "" : `${stamp}: `}${endSentence(line.text)}`);
  }
  return out;
}

function belongs(open: OpenLine, unit: Unit): boolean {
  if (open.speaker !== unit.speaker || open.date !== unit.date || open.text.length > MAX_LINE) return false;
  if (open.time === unit.time) return true;
  const gap = minutesOf(unit.time) - minutesOf(open.time);
  return gap >= 0 && gap <= MERGE_MINUTES;
}

const minutesOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));

/** The first mention of a file gives its path, later ones its name. */
function renderPick(pick: Pick, vocabulary: Vocabulary, shown: Set<string>): string {
  const head = pick.unit.head.replace(/`([^`\s]*\/[^`\s]+)`/g, (mark, path: string) => {
    if (!shown.has(path)) {
      shown.add(path);
      return mark;
    }
    return `\`${baseName(path)}\``;
  });
  return `${head}${renderNames(pick.names, pick.unit.defined, vocabulary)}${pick.unit.tail}`;
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

// ---- topics of the closing line

function* listTopics(
  dropped: readonly Unit[],
  older: readonly string[],
  vocabulary: Vocabulary,
  covered: ReadonlySet<number>,
): Generator<string> {
  const seen = new Set<string>();
  const olderNewestFirst = [...older].reverse();
  for (let i = 0; i < Math.max(dropped.length, olderNewestFirst.length); i++) {
    const unit = dropped[i];
    for (const topic of [
      unit === undefined ? null : topicOf(unit, vocabulary, covered),
      olderNewestFirst[i] ?? null,
    ]) {
      if (topic === null || seen.has(topic)) continue;
      seen.add(topic);
      yield topic;
    }
  }
}

/** A dropped unit in a few words: the target of an action, or the words around its strongest term. */
function topicOf(unit: Unit, vocabulary: Vocabulary, covered: ReadonlySet<number>): string | null {
  if (unit.worth < 1) return null;
  if (unit.label !== "") return unit.label;
  if (unit.kind === "action") return null;
  let best: string | null = null;
  let weight = 0;
  for (const id of unit.terms) {
    const term = vocabulary.terms[id];
    if (term === undefined || covered.has(id) || term.weight <= weight) continue;
    weight = term.weight;
    best = term.text;
  }
  return best === null ? null : phraseAround(unit.head, best);
}

const TOPIC_WORDS = 6;
const TOPIC_GLYPHS = 18;

/** A few words of the sentence around the term; empty when they would say nothing. */
function phraseAround(text: string, term: string): string | null {
  const words = text.split(/\s+/);
  const at = words.findIndex((word) => word.toLowerCase().includes(term.toLowerCase()));
  if (at < 0) return null;
  const hit = words[at] as string;
  if (words.length < 3 || hit.length > 40) return sliceAround(hit, term);
  const phrase: string[] = [hit];
  for (
    let i = at + 1;
    i < words.length && phrase.length < TOPIC_WORDS && !endsClause(phrase.at(-1) as string);
    i++
  ) {
    phrase.push(words[i] as string);
  }
  for (let i = at - 1; i >= 0 && phrase.length < TOPIC_WORDS && !endsClause(words[i] as string); i--)
    phrase.unshift(words[i] as string);
  const joined = (phrase.join(" ").split(" (")[0] as string).replace(/^[("'[*]+|[)"'\],.;:!?*…]+$/g, "");
  const clean = hasOddMarks(joined) ? joined.replaceAll("`", "") : joined;
  const isTelling = phrase.length > 1 || clean.includes("`");
  return isTelling && /[\p{L}]{3}/u.test(clean) ? clean : null;
}

const endsClause = (word: string): boolean => /[,.;:!?)…]$/.test(word);

/** Scripts without spaces: some characters on both sides, up to the next mark. */
function sliceAround(text: string, term: string): string {
  const at = Math.max(0, text.indexOf(term));
  const before =
    text
      .slice(0, at)
      .split(/[，。！？；：、]/)
      .at(-1) ?? "";
  const after = text.slice(at).split(/[，。！？；：、]/)[0] ?? "";
  return `${before.slice(-TOPIC_GLYPHS / 2)}${after.slice(0, TOPIC_GLYPHS)}`;
}
