/**
 * Chooses units within a token budget: greedy weighted coverage. A term counts in full the first time it is covered and little afterwards,
 * so repetition loses by itself; a message that already contributed much yields to others. Pure and deterministic: the earlier unit wins
 * ties. The picks are in order of value, so any prefix of them is the best summary of a smaller size.
 */
import type { Unit } from "./summary-units.ts";
import type { Term, Vocabulary } from "./terms.ts";
import { isPlain } from "./terms.ts";

export interface Pick {
  readonly unit: Unit;
  /** Terms named in brackets; picking a unit again only adds names. */
  readonly names: readonly number[];
}

export interface Selection {
  readonly picks: Pick[];
  /** Units left out, most valuable first. */
  readonly left: Unit[];
}

/** Names one offer adds, and the maximum for one unit. */
const NAMES_AT_ONCE = 4;
const MAX_NAMES = 4;
/** A repeated term is worth this share of a new one. */
const REPEAT_SHARE = 0.08;
/** Weight of terms from which a sentence's cue counts in full. */
const FULL_CONTENT = 2;
/** Below this a unit is not worth a line, whatever room is left; words say less than actions. */
const MIN_GAIN = { said: 0.5, tasks: 0.5, action: 0.25 } as const;
/** Tokens of a new line besides its words: the time, the speaker, the break. */
const LINE_TOKENS = 7;
const NAME_OVERHEAD_CHARS = 2;
const CHARS_PER_TOKEN = 3.6;
/** A name in brackets says less than the same name in a sentence. */
const NAME_SHARE = 0.85;

export interface SelectOptions {
  readonly vocabulary: Vocabulary;
  readonly budgetTokens: number;
  /** Whether pinned units are kept however little they say for their length. They do not decide what else is chosen. */
  readonly keepsPinned: boolean;
  readonly estimate: (text: string) => number;
}

export function selectUnits(units: readonly Unit[], options: SelectOptions): Selection {
  return new Selector(units, options).run();
}

interface Offer {
  readonly index: number;
  readonly ratio: number;
  readonly cost: number;
  readonly gain: number;
  readonly names: readonly number[];
}

class Selector {
  readonly #units: readonly Unit[];
  readonly #options: SelectOptions;
  readonly #covered: Uint8Array;
  readonly #costs: number[];
  readonly #names: (readonly number[])[];
  readonly #terms: (readonly number[])[];
  readonly #taken = new Map<string, number>();
  /** Units that differ only in numbers share a pattern: ten of them say little more than one. */
  readonly #patterns: string[];
  readonly #alike = new Map<string, number>();
  readonly #said = new Set<string>();
  /** Names already given to each chosen unit. */
  readonly #given: number[];
  readonly #heap: Offer[] = [];

  constructor(units: readonly Unit[], options: SelectOptions) {
    this.#units = units;
    this.#options = options;
    this.#covered = new Uint8Array(options.vocabulary.terms.length);
    this.#costs = units.map((unit) => options.estimate(unit.head + unit.tail) + 1);
    this.#patterns = units.map((unit) => unit.head.replace(/\d+/g, "#"));
    this.#given = units.map(() => -1);
    this.#terms = units.map((unit) => dropPieces(unit.terms, options.vocabulary));
    this.#names = units.map((unit) => rankNames(unit, options.vocabulary));
  }

  run(): Selection {
    for (let i = 0; i < this.#units.length; i++) this.#push(this.#offer(i));
    const picks: Pick[] = [];
    const left: Unit[] = [];
    let spent = 0;
    while (this.#heap.length > 0 && spent < this.#options.budgetTokens) {
      const stale = this.#pop();
      const fresh = this.#offer(stale.index);
      if (this.#heap.length > 0 && isWorse(fresh, this.#heap[0] as Offer)) {
        this.#push(fresh);
        continue;
      }
      const unit = this.#units[fresh.index] as Unit;
      if (fresh.gain < MIN_GAIN[unit.kind]) this.#leave(fresh.index, left);
      else {
        this.#take(fresh, unit);
        picks.push({ unit, names: fresh.names });
        spent += fresh.cost;
        if (unit.names.length > 0) this.#push(this.#offer(fresh.index));
      }
    }
    while (this.#heap.length > 0) this.#leave(this.#pop().index, left);
    const isKept = ({ isPinned }: Unit): boolean => isPinned && this.#options.keepsPinned;
    const pinned = left.filter(isKept).map((unit): Pick => ({ unit, names: [] }));
    return { picks: [...picks, ...pinned], left: left.filter((unit) => !isKept(unit)) };
  }

  #leave(index: number, left: Unit[]): void {
    if (this.#given[index] === -1) left.push(this.#units[index] as Unit);
  }

  #take(offer: Offer, unit: Unit): void {
    for (const id of unit.terms) this.#cover(id);
    for (const id of offer.names) this.#cover(id);
    const given = this.#given[offer.index] as number;
    this.#given[offer.index] = Math.max(0, given) + offer.names.length;
    if (given >= 0) return;
    this.#said.add(unit.head);
    const pattern = this.#patterns[offer.index] as string;
    this.#taken.set(unit.line, (this.#taken.get(unit.line) ?? 0) + 1);
    this.#alike.set(pattern, (this.#alike.get(pattern) ?? 0) + 1);
  }

  #cover(id: number): void {
    this.#covered[id] = 1;
    const piece = this.#options.vocabulary.terms[id]?.piece ?? -1;
    if (piece >= 0) this.#covered[piece] = 1;
  }

  /** What a unit would add now: the unit with its best names, or, if it is already chosen, a few more names. */
  #offer(index: number): Offer {
    const unit = this.#units[index] as Unit;
    const given = this.#given[index] as number;
    const { names, worth, tokens } = this.#offerNames(index, MAX_NAMES - Math.max(0, given));
    if (given >= 0) return { index, gain: worth, cost: tokens + 0.1, ratio: worth / (tokens + 0.1), names };
    const taken = this.#taken.get(unit.line) ?? 0;
    if (unit.kind === "said" && this.#said.has(unit.head))
      return { index, gain: 0, cost: 1, ratio: 0, names: [] };
    const alike = this.#alike.get(this.#patterns[index] as string) ?? 0;
    const gain = (this.#worthOf(index) + worth) / (1 + 0.18 * taken + 0.5 * alike);
    const cost = (this.#costs[index] as number) + tokens + (taken === 0 ? LINE_TOKENS : 2);
    return { index, gain, cost, ratio: gain / cost, names };
  }

  /**
   * New terms count in full. The bonus for wording fades if the terms were already covered, and if there are hardly any: "we must never do
   * that" decides nothing that a reader could use.
   */
  #worthOf(index: number): number {
    const unit = this.#units[index] as Unit;
    let fresh = 0;
    let known = 0;
    for (const id of this.#terms[index] as readonly number[]) {
      const { weight } = this.#options.vocabulary.terms[id] as Term;
      if (this.#covered[id] === 1) known += weight;
      else fresh += weight;
    }
    const content = fresh + known;
    const novelty = content === 0 ? 1 : 0.25 + 0.75 * (fresh / content);
    const substance = unit.kind === "said" && !unit.isVerbatim ? Math.min(1, content / FULL_CONTENT) : 1;
    return (unit.bonus * novelty * substance + fresh + known * REPEAT_SHARE) * unit.worth;
  }

  #offerNames(index: number, room: number): { names: number[]; worth: number; tokens: number } {
    const { vocabulary } = this.#options;
    const names: number[] = [];
    let worth = 0;
    let chars = 0;
    for (const id of this.#names[index] as readonly number[]) {
      if (names.length >= Math.min(room, NAMES_AT_ONCE)) break;
      if (this.#covered[id] === 1 || names.some((other) => isShownBy(id, other, vocabulary))) continue;
      const term = vocabulary.terms[id] as Term;
      names.push(id);
      worth += term.weight * NAME_SHARE;
      chars += term.text.length + NAME_OVERHEAD_CHARS;
    }
    return { names, worth, tokens: chars / CHARS_PER_TOKEN };
  }

  #push(offer: Offer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(offer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isWorse(heap[parent] as Offer, offer)) break;
      heap[at] = heap[parent] as Offer;
      at = parent;
    }
    heap[at] = offer;
  }

  #pop(): Offer {
    const heap = this.#heap;
    const top = heap[0] as Offer;
    const last = heap.pop() as Offer;
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isWorse(heap[child] as Offer, heap[child + 1] as Offer)) child++;
      if (!isWorse(last, heap[child] as Offer)) break;
      heap[at] = heap[child] as Offer;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

function isWorse(a: Offer, b: Offer): boolean {
  return a.ratio < b.ratio || (a.ratio === b.ratio && a.index > b.index);
}

/** Whether printing `other` prints `id` too, or the two differ only before the last dot or slash. */
function isShownBy(id: number, other: number, vocabulary: Vocabulary): boolean {
  const piece = vocabulary.terms[id]?.piece ?? -1;
  const otherPiece = vocabulary.terms[other]?.piece ?? -1;
  return otherPiece === id || piece === other || (piece >= 0 && piece === otherPiece);
}

/** `a/b.ts` is one thing, not two, though it also covers `b.ts`. */
function dropPieces(terms: readonly number[], vocabulary: Vocabulary): readonly number[] {
  const pieces = new Set(terms.map((id) => vocabulary.terms[id]?.piece ?? -1));
  return pieces.size === 1 && pieces.has(-1) ? terms : terms.filter((id) => !pieces.has(id));
}

/** Names worth printing: said by somebody or seen again, best first. */
function rankNames(unit: Unit, vocabulary: Vocabulary): number[] {
  const names = unit.names.filter((id) => {
    const term = vocabulary.terms[id];
    return (
      term !== undefined &&
      !isPlain(term.kind) &&
      term.kind !== "compound" &&
      (term.spoken > 0 || term.seen > 1)
    );
  });
  const worth = (id: number): number => vocabulary.terms[id]?.weight ?? 0;
  names.sort((a, b) => worth(b) - worth(a) || a - b);
  return names.slice(0, 40);
}
