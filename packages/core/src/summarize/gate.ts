/**
 * The gate that every model-written summary passes before it is stored. It strips reasoning and wrapping, refuses texts that would harm the
 * archive's reader (empty, too long, another language, facts lost), and checks the closing line. Pure: it never repairs a bad summary, it
 * only says why it is bad, so that the caller can escalate.
 */
import { hasClosingLine, renderClosingLine, splitClosingLine } from "./closing-line.ts";
import { dropsFacts, rankIdentifiers } from "./kept-facts.ts";

export type RejectReason =
  | "empty"
  | "reasoning_only"
  | "refusal"
  | "not_shorter"
  | "too_long"
  | "wrong_language"
  | "drops_identifiers";

export type GateResult =
  | { readonly kind: "accepted"; readonly text: string; readonly tokens: number }
  | { readonly kind: "rejected"; readonly reason: RejectReason };

export interface GateInput {
  readonly text: string;
  readonly sourcesText: string;
  readonly sourceTokens: number;
  readonly targetTokens: number;
  readonly estimate: (text: string) => number;
  /** How many times the target a summary may cost. */
  readonly maxOverageFactor: number;
}

const MAX_TOPICS = 6;

export function acceptSummary(input: GateInput): GateResult {
  const stripped = stripReasoning(input.text);
  if (stripped === null) return reject("reasoning_only");
  const body = stripWrapping(stripped);
  if (splitClosingLine(body).body.trim() === "")
    return reject(input.text.trim() === "" ? "empty" : emptyReason(input.text));
  if (isRefusal(body)) return reject("refusal");
  const wanted = rankIdentifiers(input.sourcesText);
  const text = hasClosingLine(body) ? body : `${body}\n${renderClosingLine(missingTopics(body, wanted))}`;
  const tokens = input.estimate(text);
  if (tokens > input.targetTokens * input.maxOverageFactor) return reject("too_long");
  if (tokens >= input.sourceTokens) return reject("not_shorter");
  if (isOtherLanguage(input.sourcesText, body)) return reject("wrong_language");
  if (dropsFacts(splitClosingLine(body).body, input.sourcesText)) return reject("drops_identifiers");
  return { kind: "accepted", text, tokens };
}

const reject = (reason: RejectReason): GateResult => ({ kind: "rejected", reason });

/** An answer with nothing but a closed reasoning block is `reasoning_only`; one of fences and blanks is empty. */
const emptyReason = (text: string): RejectReason => (OPEN_BLOCK.test(text) ? "reasoning_only" : "empty");

// ---- reasoning and wrapping

const NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad";
const BLOCK_START = `(?:^|\\n)[ \\t]*<(${NAMES})(?:\\s[^<>]*)?>`;
const OPEN_BLOCK = new RegExp(BLOCK_START, "i");
const ORPHAN_END = new RegExp(`^[\\s\\S]*?</(?:${NAMES})>`, "i");
const REASONING_TITLE =
  /^[#*_>\s]*(?:thinking process|my thought process|thought process|chain of thought|reasoning)\s*[:*_]/i;

/** The text without reasoning blocks; null when an unclosed block or a heading shows that there is only reasoning. */
export function stripReasoning(text: string): string | null {
  let out = dropClosedBlocks(text);
  const open = OPEN_BLOCK.exec(out);
  if (open !== null) {
    const before = out.slice(0, open.index).trim();
    if (before === "") return null;
    out = before;
  } else if (ORPHAN_END.test(out)) {
    // Some models send only the end mark: everything before it is reasoning.
    out = out.replace(ORPHAN_END, "");
  }
  return REASONING_TITLE.test(out) ? null : out.trim();
}

/** In one pass: if a block never ends, everything from its start on is kept. */
function dropClosedBlocks(text: string): string {
  const lower = text.toLowerCase();
  const start = new RegExp(BLOCK_START, "gi");
  let kept = "";
  let from = 0;
  for (let match = start.exec(text); match !== null; match = start.exec(text)) {
    const end = `</${(match[1] ?? "").toLowerCase()}>`;
    const at = lower.indexOf(end, start.lastIndex);
    if (at < 0) break;
    kept += text.slice(from, match.index + (text[match.index] === "\n" ? 1 : 0));
    from = at + end.length;
    start.lastIndex = from;
  }
  return kept + text.slice(from);
}

const PREAMBLE =
  /^(?:(?:sure|certainly|okay|of course)[,.!]?\s*)?(?:here(?:'s| is| are)|below is|the following is)\b[^\n]{0,80}(?:summary|record|account)[^\n]{0,80}:\s*\n/i;

function stripWrapping(text: string): string {
  let out = text.trim();
  const fenced = /^```[\w-]*\n([\s\S]*?)\n?```$/.exec(out);
  if (fenced !== null) out = (fenced[1] as string).trim();
  out = out.replace(PREAMBLE, "");
  const tagged = /^<summary>([\s\S]*)<\/summary>$/i.exec(out.trim());
  return (tagged === null ? out : (tagged[1] as string)).trim();
}

const REFUSAL =
  /^(?:i(?:'m| am) (?:sorry|unable|not able)|sorry[,.]|i (?:can(?:'t|not)|won't|will not) (?:help|assist|summari[sz]e|comply|do|provide|fulfil|continue)|as an ai\b|对不起|抱歉|我无法|我不能)/i;

/** A refusal is short; a summary that begins with somebody's apology is not. */
const isRefusal = (text: string): boolean => text.length < 400 && REFUSAL.test(text);

// ---- closing line

function missingTopics(text: string, wanted: readonly string[]): string[] {
  return wanted.filter((term) => !text.includes(term)).slice(0, MAX_TOPICS);
}

// ---- language

const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ["latin", /[A-Za-z\u00c0-\u024f]/g],
  ["han", /[\u3400-\u9fff]/g],
  ["kana", /[\u3040-\u30ff]/g],
  ["hangul", /[\uac00-\ud7af]/g],
  ["cyrillic", /[\u0400-\u052f]/g],
  ["arabic", /[\u0600-\u06ff]/g],
  ["hebrew", /[\u0590-\u05ff]/g],
  ["greek", /[\u0370-\u03ff]/g],
  ["thai", /[\u0e00-\u0e7f]/g],
  ["devanagari", /[\u0900-\u097f]/g],
];

/** Function words that the other languages of the list do not share. */
const MARKERS: Readonly<Record<string, ReadonlySet<string>>> = {
  english: new Set("the and of to that with was for this have from not they are which".split(" ")),
  german: new Set("der und das nicht ist mit ein für auf sich dass wird auch werden eine".split(" ")),
  french: new Set("les des est une dans pour pas avec sur sont cette vous nous mais être".split(" ")),
  spanish: new Set("los las una por con para como pero más fue esta este muy hay cuando".split(" ")),
  italian: new Set("gli della che sono non per questo anche più nel alla dei delle stato quando".split(" ")),
  portuguese: new Set("não uma com para dos mais foi pelo pela isso você também são está quando".split(" ")),
  dutch: new Set("het een van niet dat zijn voor met aan ook wordt naar werd deze maar".split(" ")),
};

/** Text is sampled: a megabyte says no more about its language than its first pages. */
const SAMPLE_CHARS = 60_000;
const MIN_LETTERS = 80;
const MIN_MARKERS = 12;
const CLEAR_SHARE = 0.75;

function isOtherLanguage(sourcesText: string, summary: string): boolean {
  const source = measureScripts(sourcesText.slice(0, SAMPLE_CHARS));
  const result = measureScripts(summary);
  if (source === null || result === null) return false;
  const main = source.order[0] as string;
  // Code and commands are Latin everywhere, so Latin may appear beside any script, but not replace it.
  if (main !== "latin") return (result.share.get(main) ?? 0) < (source.share.get(main) ?? 0) * 0.2;
  if (result.order[0] !== "latin") return (source.share.get(result.order[0] as string) ?? 0) < 0.1;
  const from = clearLanguage(sourcesText.slice(0, SAMPLE_CHARS));
  const to = clearLanguage(summary);
  return from !== null && to !== null && from !== to;
}

function measureScripts(text: string): { share: Map<string, number>; order: string[] } | null {
  const counts = SCRIPTS.map(([name, pattern]) => [name, text.match(pattern)?.length ?? 0] as const);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  // One ideograph is worth about four letters, hence the lower bound for other scripts.
  const other = total - (counts[0]?.[1] ?? 0);
  if (total + other * 3 < MIN_LETTERS) return null;
  const weighted = counts.map(([name, count]) => [name, name === "latin" ? count : count * 3] as const);
  const sum = weighted.reduce((all, [, count]) => all + count, 0);
  const order = weighted.filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  return {
    share: new Map(weighted.map(([name, count]) => [name, count / sum])),
    order: order.map(([name]) => name),
  };
}

/** The language of most function words, if they are many and nearly all of one language. */
function clearLanguage(text: string): string | null {
  const counts = new Map<string, number>();
  let total = 0;
  for (const [word] of text.toLowerCase().matchAll(/[a-z\u00c0-\u024f]{2,8}/g)) {
    for (const [language, markers] of Object.entries(MARKERS)) {
      if (!markers.has(word)) continue;
      counts.set(language, (counts.get(language) ?? 0) + 1);
      total++;
    }
  }
  if (total < MIN_MARKERS) return null;
  const [best] = [...counts].sort((a, b) => b[1] - a[1]);
  return best !== undefined && best[1] >= total * CLEAR_SHARE ? best[0] : null;
}
