/**
 * The line of names at the end of a summary: what the lines above do not mention, by use and recency, grouped so that a reader can use it
 * ("Files: …; functions: …; commands run: …; errors: …"). Also parses the line, because a condensing pass chooses among the names again.
 * Invariant: lists of names take at most a quarter of a summary, names in brackets included.
 */
import type { Term, Vocabulary } from "./terms.ts";

export const NAME_GROUPS = ["files", "functions", "names", "commits", "commands run", "errors"] as const;
export type NameGroup = (typeof NAME_GROUPS)[number];

/** At most a quarter of a summary is names; the margin allows for error in the character count. */
export const NAME_SHARE = 0.24;
/**
 * The share of the room for commands and errors: names are what a reader cannot guess again. In a short list one of them gets a larger
 * share.
 */
const QUOTE_SHARE = 0.1;
const MOST_QUOTES = 0.25;
const ONE_QUOTE = 48;
const MAX_QUOTE = 72;

/** How strongly age discounts a name, and how fast: what was used last is used next. */
const RECENCY = 0.5;
const HALF_LIFE = 0.08;

/** A short name takes less room than a long one and says as much. */
const LENGTH_POWER = 0.4;

export interface QuotedName {
  readonly group: "commands run" | "errors";
  readonly text: string;
}

/** Names worth a place in the list, best first. */
export function rankNames(vocabulary: Vocabulary, sources: number): number[] {
  const scores = new Map<number, number>();
  vocabulary.terms.forEach((term, id) => {
    if (isListable(term)) scores.set(id, scoreOf(term, sources));
  });
  // A file is listed with its path if known: tools take paths.
  for (const id of scores.keys()) {
    const { kind, piece } = vocabulary.terms[id] as Term;
    const name = kind === "path" ? scores.get(piece) : undefined;
    if (name === undefined) continue;
    scores.set(id, Math.max(scores.get(id) ?? 0, name * PATH_FACTOR));
    scores.set(piece, name * NAME_ALONE_FACTOR);
  }
  return [...scores].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([id]) => id);
}

function scoreOf(term: Term, sources: number): number {
  const age = sources <= 1 ? 0 : (sources - 1 - term.last) / (sources - 1);
  const use = Math.log1p(2 * term.spoken + term.seen) + (term.byUser ? 0.5 : 0);
  const freshness = 1 - RECENCY + RECENCY * Math.exp(-age / HALF_LIFE);
  const isFolder = term.kind === "path" && !FILE.test(term.text);
  return (
    (use * freshness * (isFolder ? FOLDER_FACTOR : 1) * (isPassing(term) ? PASSING_FACTOR : 1)) /
    term.text.length ** LENGTH_POWER
  );
}

/** The share of its last piece's mentions that a path takes over, and the share left to the piece. */
const PATH_FACTOR = 0.5;
const NAME_ALONE_FACTOR = 0.6;
/** A name that occurs once, in some output, comes after names that somebody used. */
const isPassing = ({ spoken, seen }: Term): boolean => spoken === 0 && seen < 2;

const PASSING_FACTOR = 0.35;
/** Folders and branches say less than files. */
const FOLDER_FACTOR = 0.5;

const HASH = /^(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}$/;
/** A number of an order, a lot or a ticket: not a name unless somebody mentions it. */
const CODE = /^[A-Z]{1,4}-?\d+$/;
/** Numbers in disguise, pieces of times, fragments of a cut word, the two sides of a diff, escaped characters, and what looks like a file. */
const DEBRIS = /^(?:0[xob]|v?\d|_|-|[ab]\/|u00[0-9a-f]{2}|console\.|node\.js$)|_$|[0-9a-f]{6,}-/i;
/** An address, or an import from one. */
const ADDRESS = /^(?:[\w-]+\.)+(?:com|dev|edu|gov|io|net|org)\//i;
const FILE =
  /\.(?:tsx?|jsx?|[cm][jt]s|py|go|rs|java|kts?|rb|php|c|h|cc|cpp|hpp|cs|swift|scala|lua|pl|r|jl|ex|hs|mdx?|txt|rst|jsonl?|jsonc|ya?ml|toml|ini|cfg|conf|env|sh|bash|ps1|sql|html?|s?css|less|xml|csv|tsv|lock|log|proto|graphql|vue|svelte|ipynb|pdf|png|jpe?g|svg|db|sqlite|tf|gradle|mod|sum)$/;
const MIN_LENGTH = 4;
const MAX_LENGTH = 100;

/** Something that can be looked up again. */
function isListable({ text, kind, spoken }: Term): boolean {
  if (kind !== "identifier" && kind !== "path") return false;
  if (text.length < MIN_LENGTH || text.length > MAX_LENGTH || DEBRIS.test(text)) return false;
  if (HASH.test(text) || CODE.test(text)) return spoken > 0;
  if (ADDRESS.test(text)) return false;
  if (FILE.test(text)) return !text.startsWith(".") || text.includes("/");
  // `example.org/a/b` is an import or an address; a folder is worth listing if somebody mentioned it.
  if (text.includes("/")) return spoken > 1 && !/\.\w+(?:\/|$)/.test(text);
  // `fmt.Errorf` is a call of other code; its last piece is a separate name if it has the shape of one.
  return !text.includes(".") && !text.includes("-");
}

function groupOf(id: number, term: Term, vocabulary: Vocabulary): NameGroup {
  if (term.kind === "path") return "files";
  if (vocabulary.functions.has(id)) return "functions";
  return HASH.test(term.text) ? "commits" : "names";
}

export interface NameListInput {
  readonly vocabulary: Vocabulary;
  readonly ranked: readonly number[];
  readonly covered: ReadonlySet<number>;
  /** Best first; those shown in the lines above are omitted. */
  readonly quoted: readonly QuotedName[];
  /** Characters of the whole line. */
  readonly room: number;
}

/** One line, or none when there is nothing to name or no room. */
export function renderNameList(input: NameListInput): string[] {
  const groups = new Map<NameGroup, string[]>(NAME_GROUPS.map((group) => [group, []]));
  const quoteRoom = Math.max(input.room * QUOTE_SHARE, Math.min(ONE_QUOTE, input.room * MOST_QUOTES));
  let used = 0;
  const add = (group: NameGroup, text: string, limit: number): boolean => {
    const list = groups.get(group) as string[];
    const cost = text.length + 2 + (list.length === 0 ? group.length + 2 : 0);
    if (used + cost > limit) return false;
    used += cost;
    list.push(text);
    return true;
  };
  for (const { group, text } of input.quoted) {
    const quote = text.replaceAll("; ", ", ");
    const isListed = groups.get(group)?.some((listed) => listed.includes(quote)) === true;
    if (quote.length <= MAX_QUOTE && !isListed) add(group, quote, quoteRoom);
  }
  const shown = new Set(input.covered);
  // The listed paths of each file name, so that none is listed again from a folder further down. The room limits their number.
  const paths = new Map<number, string[]>();
  for (const id of input.ranked) {
    if (used > input.room - MIN_LENGTH) break;
    const term = input.vocabulary.terms[id] as Term;
    if (shown.has(id)) continue;
    shown.add(id);
    const longer = paths.get(term.piece) ?? [];
    if (longer.some((path) => path.endsWith(`/${term.text}`))) continue;
    if (!add(groupOf(id, term, input.vocabulary), term.text, input.room) || term.piece < 0) continue;
    shown.add(term.piece);
    longer.push(term.text);
    paths.set(term.piece, longer);
  }
  const text = [...groups]
    .filter(([, list]) => list.length > 0)
    .map(([group, list]) => `${group}: ${list.join(group === "errors" ? " | " : ", ")}`)
    .join("; ");
  return text === "" ? [] : [text.charAt(0).toUpperCase() + text.slice(1)];
}

const LINE = new RegExp(`^(?:${NAME_GROUPS.join("|")}): `, "i");
const GROUP = new RegExp(`(?:^|; )(${NAME_GROUPS.join("|")}): `, "i");

export const isNameList = (line: string): boolean => LINE.test(line) || line.startsWith("Also mentioned:");

/** The groups of a line of names, as written; a line in an older format is one group. */
export function parseNameList(line: string): [group: NameGroup, list: string][] {
  if (!LINE.test(line)) return [["names", line.replace(/^[^:]*:/, "")]];
  const pieces = line.split(GROUP).slice(1);
  const groups: [NameGroup, string][] = [];
  for (let i = 0; i + 1 < pieces.length; i += 2)
    groups.push([(pieces[i] as string).toLowerCase() as NameGroup, pieces[i + 1] as string]);
  return groups;
}
