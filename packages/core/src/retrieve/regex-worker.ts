/**
 * The thread regular expressions run in. A pattern can take for ever on a text, and nothing inside JavaScript can stop it; so it runs
 * here, where the whole thread can be ended. Keeps the texts it was given, so that the next pattern needs no reading.
 */
import { parentPort } from "node:worker_threads";

/** A text to test: its number, the time and role it can be filtered by. */
export interface ScanText {
  readonly id: number;
  readonly createdAt: number;
  readonly role: string;
  readonly text: string;
}

/** Many texts on their way between threads. Columns, because a copy of each row would name its fields again. */
export interface ScanTexts {
  readonly ids: readonly number[];
  readonly createdAts: readonly number[];
  readonly roles: readonly string[];
  readonly texts: readonly string[];
}

export interface ScanFilter {
  readonly since?: number;
  readonly before?: number;
  readonly role?: string;
}

export type ToScanner =
  | { readonly kind: "keep"; readonly group: number; readonly texts: ScanTexts }
  | { readonly kind: "drop" }
  | {
      readonly kind: "scan";
      readonly job: number;
      readonly pattern: string;
      readonly groups: readonly number[];
      readonly texts: ScanTexts;
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
  | { readonly kind: "done"; readonly job: number };

/** After so many texts, or so much time, the other side hears how far it is. */
const SLICE_TEXTS = 5_000;
const SLICE_MS = 200;

const kept = new Map<number, ScanTexts[]>();

parentPort?.on("message", (message: ToScanner) => {
  if (message.kind === "drop") kept.clear();
  else if (message.kind === "keep") keep(message.group, message.texts);
  else scan(message);
});

function keep(group: number, texts: ScanTexts): void {
  const list = kept.get(group);
  if (list === undefined) kept.set(group, [texts]);
  else list.push(texts);
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
  for (const page of [texts, ...groups.flatMap((group) => kept.get(group) ?? [])]) {
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
