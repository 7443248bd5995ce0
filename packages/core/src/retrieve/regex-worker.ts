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

export interface ScanFilter {
  readonly since?: number;
  readonly before?: number;
  readonly role?: string;
}

export type ToScanner =
  | { readonly kind: "keep"; readonly group: number; readonly texts: readonly ScanText[] }
  | { readonly kind: "drop" }
  | {
      readonly kind: "scan";
      readonly job: number;
      readonly pattern: string;
      readonly groups: readonly number[];
      readonly texts: readonly ScanText[];
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

const kept = new Map<number, ScanText[]>();

parentPort?.on("message", (message: ToScanner) => {
  if (message.kind === "drop") kept.clear();
  else if (message.kind === "keep")
    kept.set(message.group, [...(kept.get(message.group) ?? []), ...message.texts]);
  else scan(message);
});

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
  for (const list of [texts, ...groups.map((group) => kept.get(group) ?? [])]) {
    for (const item of list) {
      tested += 1;
      if (isWanted(item, filter)) {
        const found = expression.exec(item.text);
        if (found) matches.push([item.id, found.index, found.index + found[0].length, item.createdAt]);
      }
      if (tested >= SLICE_TEXTS || (tested % 64 === 0 && performance.now() - told > SLICE_MS)) tell();
    }
  }
  tell();
  parentPort?.postMessage({ kind: "done", job } satisfies FromScanner);
}

function isWanted(item: ScanText, { since, before, role }: ScanFilter): boolean {
  return (
    (since === undefined || item.createdAt >= since) &&
    (before === undefined || item.createdAt < before) &&
    (role === undefined || item.role === role)
  );
}
