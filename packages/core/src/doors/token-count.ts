/** A number of tokens as people type it. Pure. */

const TOKEN_UNITS: Readonly<Record<string, number>> = { "": 1, k: 1000, m: 1_000_000 };

export const TOKEN_COUNT_RULE = "It must be a number of tokens, such as 32000 or 32k.";

/** 32000, 32_000, 32k or 1m; null if it is none of these. */
export function readTokenCount(text: string): number | null {
  const [, digits = "", unit = ""] = /^(\d[\d_]*(?:\.\d+)?)([km]?)$/i.exec(text.trim()) ?? [];
  const tokens = Math.round(Number(digits.replaceAll("_", "")) * (TOKEN_UNITS[unit.toLowerCase()] ?? 1));
  return digits !== "" && Number.isSafeInteger(tokens) && tokens >= 1 ? tokens : null;
}
