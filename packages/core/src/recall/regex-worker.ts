/**
 * The thread that runs regular expressions. A pattern can run for ever on a text, and nothing inside JavaScript can stop it; so it runs
 * here, where the whole thread can be ended. Caches texts, up to a limit, so that the next pattern needs no reading.
 */
import { parentPort } from "node:worker_threads";
import { readSearchText } from "../message/normalize.ts";

/** Memory limit of the cache. */
const KEPT_BYTES = 32_000_000;

/** Texts to test, in columns, because copying rows between threads would repeat the field names in each. */
export interface ScanTexts {
  /**
   * Documents of the archive have the ids of messages, or the negative numbers of summaries. Messages are passed as they arrived: reading
   * their texts is half the work of a first search, and this thread has the time.
   */
  readonly keys: readonly number[];
  readonly createdAts: readonly number[];
  /** Null for a cached text. */
  readonly texts: readonly (string | null)[];
}

export interface ToScanner extends ScanTexts {
  readonly job: number;
  readonly pattern: string;
  /** Whether these are documents of the archive, which are worth caching. */
  readonly keeps: boolean;
}

/** A match: the key of the text, its start and end, and the time of the text. */
export type ScanMatch = readonly [key: number, start: number, end: number, createdAt: number];

export type FromScanner =
  | {
      readonly kind: "progress";
      readonly job: number;
      readonly matches: readonly ScanMatch[];
      readonly tested: number;
    }
  /** With the keys of the texts that are cached from now on. */
  | { readonly kind: "done"; readonly job: number; readonly kept: readonly number[] };

/** Progress is reported after this time. */
const SLICE_MS = 200;

const kept = new Map<number, string>();
let keptBytes = 0;

parentPort?.on("message", (message: ToScanner) => scan(message));

/** Caches a text if there is room. */
function keep(key: number, text: string): boolean {
  // V8 takes one byte per character if all of them fit into one.
  const bytes = /[^\0-\xff]/.test(text) ? 2 * text.length : text.length;
  if (keptBytes + bytes > KEPT_BYTES) return false;
  keptBytes += bytes;
  kept.set(key, text);
  return true;
}

function scan({ job, pattern, keeps, keys, createdAts, texts }: ToScanner): void {
  const expression = new RegExp(pattern);
  const keptKeys: number[] = [];
  let matches: ScanMatch[] = [];
  let tested = 0;
  let told = performance.now();
  const tell = (): void => {
    parentPort?.postMessage({ kind: "progress", job, matches, tested } satisfies FromScanner);
    matches = [];
    tested = 0;
    told = performance.now();
  };
  for (const [at, key] of keys.entries()) {
    const given = texts[at] ?? null;
    const text = given === null ? (kept.get(key) ?? "") : keeps && key > 0 ? readSearchText(given) : given;
    if (given !== null && keeps && keep(key, text)) keptKeys.push(key);
    tested += 1;
    const found = expression.exec(text);
    if (found) matches.push([key, found.index, found.index + found[0].length, createdAts[at] as number]);
    if (tested % 64 === 0 && performance.now() - told > SLICE_MS) tell();
  }
  tell();
  parentPort?.postMessage({ kind: "done", job, kept: keptKeys } satisfies FromScanner);
}
