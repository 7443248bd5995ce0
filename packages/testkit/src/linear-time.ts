/**
 * Checks that time grows linearly with the text: no text may block the thread for long. Each function that reads foreign text gets motifs that
 * are hard for regular expressions and parsers, repeated many times and eight times as many.
 */
import { rounds } from "./rounds.ts";

const MOTIFS = [
  "\n<think>",
  "export\n",
  "<title",
  "a  b",
  "a",
  " ",
  "\n",
  "\t",
  "a ",
  "ab1_",
  "A",
  "aA",
  "0",
  "1-",
  "1.",
  "4111 ",
  "a.b",
  "a/",
  "../",
  "\\",
  "\\n",
  '"',
  "'",
  "`",
  "```\n",
  "``` a\n",
  "(",
  "[",
  "{",
  '{"a":',
  "[1,",
  "<",
  "</",
  "<a ",
  "<think>",
  "</think>",
  '<file name="',
  "<!--",
  "&",
  "&amp;",
  "*",
  "**a",
  "_",
  "- a\n",
  "# a\n",
  "| a ",
  "a,",
  "a;",
  "a: ",
  "a=",
  "key=",
  "eyJ",
  "eyJhbGciOi.",
  "sk-",
  "ghp_",
  "AKIA",
  "-----BEGIN ",
  "-----BEGIN RSA PRIVATE KEY-----\n",
  "http://",
  "a@",
  "a@b.",
  "data:;base64,",
  "QUFB",
  "2026-01-01 ",
  "12:30 ",
  "Mon ",
  "漢",
  "漢 ",
  "é",
  "e\u0301",
  "\u0301",
  "ก",
  "😀",
  "\ud83d",
  "\u200b",
  "…",
  "?",
  "!",
  ". ",
  "Sure! ",
  "Expand for details about: ",
  "function f(",
  "import a",
  "def a",
  "Error: ",
  "at a (b:1:2)\n",
  "user: ",
  "[2026-05-01 09:30] user: ",
  "\u0000",
  "%",
  "$",
  "^",
  "(a|",
  "a+",
  "[^",
];
/** Characters of the shorter text. */
const SIZE = 6_000;
const GROWTH = 8;
/** Linear is 8, with a logarithm 9; quadratic is 64. The margin is for other load on the machine. */
const MAX_RATIO = 40;
/** How often both are measured before the longer text counts as slow. */
const ROUNDS = 8;
/** Anything this fast is fine, whatever its growth. */
const QUICK_MS = 60;
/** Processor time has a resolution of some milliseconds. */
const LEAST_MS = 2;

async function measure(read: (text: string) => unknown, text: string): Promise<number> {
  const before = process.threadCpuUsage();
  await read(text);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/** Whether the longer text takes far more than eight times as long; confirmed by repeated measurement. */
async function isSlow(read: (text: string) => unknown, motif: string, size: number): Promise<string | null> {
  const repeat = (length: number): string => motif.repeat(Math.ceil(length / motif.length));
  const [short, long] = [repeat(size), repeat(size * GROWTH)];
  let longest = Infinity;
  let shortest = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    longest = Math.min(longest, await measure(read, long));
    if (longest <= QUICK_MS) return null;
    shortest = Math.min(shortest, await measure(read, short));
    if (longest <= MAX_RATIO * Math.max(LEAST_MS, shortest)) return null;
  }
  return `${JSON.stringify(motif)}: ${shortest.toFixed(1)} ms, eight times as much: ${longest.toFixed(1)} ms`;
}

export interface LinearOptions {
  /** Characters of the shorter text: more if each costs little. */
  readonly size?: number;
  /** The maximum number of motifs, where only the length matters. */
  readonly motifs?: number;
}

/** The motifs for which eight times the text takes far longer than eight times as long. */
export async function listSlow(
  read: (text: string) => unknown,
  { size = SIZE, motifs = MOTIFS.length }: LinearOptions = {},
): Promise<string[]> {
  const count = Math.min(motifs, rounds({ test: 6, soak: MOTIFS.length }));
  const slow: string[] = [];
  for (let at = 0; at < count; at++) {
    const motif = MOTIFS[Math.floor((at * MOTIFS.length) / count)] ?? "";
    const found = await isSlow(read, motif, size);
    if (found !== null) slow.push(found);
  }
  return slow;
}

/** For a reader that may refuse: that is fine, as long as it is fast. */
export function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    // Refused in time.
    return null;
  }
}
