/**
 * Checks the citations of an answer that a model wrote. Ids that were not read are removed; sentences that cite no passage are listed
 * separately, because nobody can check them.
 */
export interface CheckedAnswer {
  /** Without invented ids. */
  readonly text: string;
  readonly citedIds: string[];
  readonly unknown: string[];
  /** Sentences that cite no passage that was read, verbatim. */
  readonly uncited: string[];
}

const ID = /\b(?:msg_\d+|sum_[0-9a-f]{16})\b/g;
/** Ids in brackets at the beginning of a sentence belong to the one before: the full stop came too early. */
const LEADING_IDS = /^\s*\[[^\]]*\b(?:msg_\d+|sum_[0-9a-f]{16})\b[^\]]*\][\s.,;]*/;
/** Shorter ones are not claims: "Yes.", "In short:". */
const MIN_WORDS = 3;

export function checkCitations(answer: string, readIds: readonly string[]): CheckedAnswer {
  const read = new Set(readIds);
  const named = [...new Set(answer.match(ID) ?? [])];
  const unknown = named.filter((id) => !read.has(id));
  const known = unknown.reduce(
    (rest, id) => rest.replaceAll(new RegExp(`(?:,\\s*)?\\b${id}\\b`, "g"), ""),
    answer,
  );
  const text = known.replace(/\s?\[\s*,?\s*\]/g, "").trim();
  return { text, citedIds: named.filter((id) => read.has(id)), unknown, uncited: findUncited(text) };
}

const sentences = new Intl.Segmenter("en", { granularity: "sentence" });
const words = new Intl.Segmenter("en", { granularity: "word" });

function findUncited(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    if (/^\s*#|:\s*$/.test(line)) return [];
    return attachIds([...sentences.segment(line)].map(({ segment }) => segment))
      .filter((sentence) => sentence.match(ID) === null && countWords(sentence) >= MIN_WORDS)
      .map((sentence) => sentence.trim().replace(/^[-*•]\s+/, ""));
  });
}

/** Moves ids after a full stop to the sentence before it. */
function attachIds(pieces: readonly string[]): string[] {
  const attached: string[] = [];
  for (const piece of pieces) {
    const ids = LEADING_IDS.exec(piece)?.[0] ?? "";
    if (ids !== "" && attached.length > 0) attached[attached.length - 1] += ids;
    const rest = attached.length > 0 ? piece.slice(ids.length) : piece;
    if (rest.trim() !== "") attached.push(rest);
  }
  return attached;
}

function countWords(text: string): number {
  let count = 0;
  for (const { isWordLike } of words.segment(text)) if (isWordLike) count += 1;
  return count;
}
