/**
 * The thread regular expressions run in. A pattern can take for ever on a text, and nothing inside JavaScript can stop it; so it runs
 * here, where the whole thread can be ended. Keeps the texts it was given, so that the next pattern needs no reading.
 */
import { parentPort } from "node:worker_threads";
import { readSearchText } from "../message/normalize.ts";

/** A text to test: its number, the time and role it can be filtered by. */
export interface ScanText {
  readonly id: number;
  readonly createdAt: number;
  readonly role: string;
  readonly text: string;
}

/** Many texts. Columns, because a copy of each row on its way between threads would name its fields again. */
export interface ScanTexts {
  readonly ids: readonly number[];
  readonly createdAts: readonly number[];
  readonly roles: readonly string[];
  readonly texts: readonly string[];
}

/** Messages whose texts are yet to be read: that is half the work of a first search, and this thread has the time. */
export interface ScanMessages extends Omit<ScanTexts, "texts"> {
  readonly arrivals: readonly string[];
}

export interface ScanFilter {
  readonly since?: number;
  readonly before?: number;
  readonly role?: string;
}

export type ToScanner =
  | { readonly kind: "keep"; readonly group: number; readonly texts: ScanTexts | ScanMessages }
  | {
      readonly kind: "scan";
      readonly job: number;
      readonly pattern: string;
      readonly groups: readonly number[];
      readonly texts: ScanTexts | ScanMessages;
      readonly filter: ScanFilter;
    };

/** A match: the text's number, where it starts and ends, and the time of the text. */
export type ScanMatch = readonly [id: number, start: number, end: number, createdAt: number];

export type FromScanner =
  | {
      readonly kind: "progress";
      readonly job: number;
      readonly matches: readonly ScanMatch[];
      readonly tested: number;
    }
  | { readonly kind: "done"; readonly job: number }
  | { readonly kind: "kept"; readonly chars: number }
  | { readonly kind: "ready" };

/** After so many texts, or so much time, the other side hears how far it is. */
const SLICE_TEXTS = 5_000;
const SLICE_MS = 200;

const kept = new Map<number, ScanTexts[]>();

parentPort?.on("message", (message: ToScanner) => {
  if (message.kind === "keep") keep(message.group, readTexts(message.texts));
  else scan(message);
});
parentPort?.postMessage({ kind: "ready" } satisfies FromScanner);

function keep(group: number, texts: ScanTexts): void {
  const list = kept.get(group);
  if (list === undefined) kept.set(group, [texts]);
  else list.push(texts);
  const chars = texts.texts.reduce((sum, text) => sum + text.length, 0);
  parentPort?.postMessage({ kind: "kept", chars } satisfies FromScanner);
}

function readTexts(page: ScanTexts | ScanMessages): ScanTexts {
  if (!("arrivals" in page)) return page;
  const { arrivals, ...rest } = page;
  return { ...rest, texts: arrivals.map((arrival) => readSearchText(arrival)) };
}

function scan({ job, pattern, groups, texts, filter }: ToScanner & { kind: "scan" }): void {
  const expression = new RegExp(pattern);
  let matches: ScanMatch[] = [];
  let tested = 0;
  let told = performance.now();
  const tell = (): void => {
    parentPort?.postMessage({ kind: "progress", job, matches, tested } satisfies FromScanner);
    matches = [];
    tested = 0;
    told = performance.now();
  };
  for (const page of [readTexts(texts), ...groups.flatMap((group) => kept.get(group) ?? [])]) {
    for (const [at, id] of page.ids.entries()) {
      tested += 1;
      const createdAt = page.createdAts[at] as number;
      if (isWanted(createdAt, page.roles[at] as string, filter)) {
        const found = expression.exec(page.texts[at] as string);
        if (found) matches.push([id, found.index, found.index + found[0].length, createdAt]);
      }
      if (tested >= SLICE_TEXTS || (tested % 64 === 0 && performance.now() - told > SLICE_MS)) tell();
    }
  }
  tell();
  parentPort?.postMessage({ kind: "done", job } satisfies FromScanner);
}

function isWanted(createdAt: number, role: string, filter: ScanFilter): boolean {
  return (
    (filter.since === undefined || createdAt >= filter.since) &&
    (filter.before === undefined || createdAt < filter.before) &&
    (filter.role === undefined || role === filter.role)
  );
}
