/**
 * Version 1 of the token estimate, written to be read: cut into runs by one expression, each run priced by what it is and stands next to.
 * Stored counts rest on it, so the fast one must give the same for every text.
 */

/** In the order in which the products are added. */
const PRICES = {
  spacedWord: 0.92,
  joinedWord: 1.1,
  longLetter: 0.39,
  capital: 0.03,
  digitGroup: 1.12,
  openPunctuation: 0.68,
  change: 0.1,
  lineEnd: 1.2,
  indent: 1.2,
  gap: 1.44,
  mixed: 0.07,
  han: 0.74,
  kana: 0.68,
  hangul: 0.72,
  thai: 0.43,
  cyrillic: 0.29,
  arabic: 0.38,
  indic: 0.38,
  greek: 0.41,
  accented: 0.04,
  symbol: 0.95,
  emoji: 1.66,
  other: 1.46,
  closingPunctuation: 0.97,
};
type Feature = keyof typeof PRICES;

const RUNS = /[A-Z]+[a-z]*|[a-z]+|[0-9]+|[ \t]+|[\r\n]+|[^\x80-\uffffA-Za-z0-9 \t\r\n]+|[\x80-\uffff]/g;

const WIDE: readonly (readonly [RegExp, Feature | null])[] = [
  [/[\u4e00-\u9fff]/, "han"],
  [/[\u3040-\u30ff]/, "kana"],
  [/[\uac00-\ud7a3]/, "hangul"],
  [/[\u0400-\u052f]/, "cyrillic"],
  [/[\u00c0-\u024f\u1e00-\u1eff]/, "accented"],
  [/[\u0590-\u08ff]/, "arabic"],
  [/[\u0900-\u0dff]/, "indic"],
  [/[\u0e00-\u0eff]/, "thai"],
  [/[\u0370-\u03ff]/, "greek"],
  [/[\u2000-\u2bff\u3000-\u303f\uff00-\uffef\u00a0-\u00bf]/, "symbol"],
  [/[\ud800-\udbff]/, "emoji"],
  [/[\udc00-\udfff]/, null],
  [/./s, "other"],
];

export function estimatePlainly(text: string): number {
  if (text === "") return 0;
  const counts = Object.fromEntries(Object.keys(PRICES).map((key) => [key, 0])) as Record<Feature, number>;
  const runs = text.match(RUNS) ?? [];
  for (const [i, run] of runs.entries()) countRun(run, runs[i - 1] ?? " ", runs[i + 1] ?? " ", counts);
  let tokens = 0;
  for (const key of Object.keys(PRICES) as Feature[]) tokens += counts[key] * PRICES[key];
  return Math.max(1, Math.round(tokens));
}

const isWhite = (run: string): boolean => /^[ \t\r\n]/.test(run);

function countRun(run: string, before: string, after: string, counts: Record<Feature, number>): void {
  if (/^[A-Za-z]/.test(run)) {
    counts[isWhite(before) ? "spacedWord" : "joinedWord"] += 1;
    counts.longLetter += Math.max(0, run.length - 8);
    counts.capital += Math.max(0, run.replace(/[a-z]+$/, "").length - 1);
    if (/^[0-9]/.test(before)) counts.mixed += 1;
  } else if (/^[0-9]/.test(run)) {
    counts.digitGroup += Math.ceil(run.length / 3);
  } else if (/^[ \t]/.test(run)) {
    if (run.length > 1 || run === "\t") counts[/^[\r\n]/.test(before) ? "indent" : "gap"] += 1;
  } else if (/^[\r\n]/.test(run)) {
    const isPaidFor = !isWhite(before) && /^[^\x80-\uffffA-Za-z0-9]/.test(before);
    if (!isPaidFor) counts.lineEnd += 1;
  } else if (/^[\x80-\uffff]/.test(run)) {
    const feature = WIDE.find(([pattern]) => pattern.test(run))?.[1];
    if (feature) counts[feature] += 1;
  } else {
    counts[isWhite(after) ? "closingPunctuation" : "openPunctuation"] += 1;
    for (let i = 1; i < run.length; i++) if (run[i] !== run[i - 1]) counts.change += 1;
  }
}
