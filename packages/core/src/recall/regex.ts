/**
 * Search by regular expression: over messages, summaries and the lines of large files, the newest first, until the page is full. If the
 * pattern requires a literal, the index shows which messages can match at all (`regex-candidates.ts`). If nothing matches, the pattern is
 * searched as words, and the result says so.
 */
import { given } from "../text/json-object.ts";
import type { Note } from "../model/next-step.ts";
import { EngineError } from "../model/errors.ts";
import type { DatedId, IdRange, PlacedTime } from "../store/recall.ts";
import type { LargeFileRow, Store } from "../store/store.ts";
import { MAX_PATTERN_CHARS } from "../text/index.ts";
import { checkGrep, nextPage, SNIPPET_CHARS } from "./grep.ts";
import { toMessageHit, toSummaryHit } from "./hits.ts";
import type { CheckedGrep, FileHit, FoundHits, GrepHit, GrepRequest } from "./grep.ts";
import { OwnWords } from "./own-words.ts";
import { RegexCandidates } from "./regex-candidates.ts";
import type { RegexScanner, ScanResult } from "./regex-scanner.ts";
import type { ScanMatch, ScanTexts } from "./regex-worker.ts";
import type { Reach } from "./reach.ts";

const DEFAULT_TIMEOUT_MS = 30_000;
/** What a search begins with: most end there. */
const FIRST = {
  /** So many of the newest messages are searched before all others. Their candidates are found in some 10 ms. */
  part: 16_384,
  /** So many messages with a literal show whether it is rare. More are listed only if the first part does not fill the page. */
  listed: 1_000,
  /** Reading so many messages costs less than resolving doubts. */
  few: 500,
};
/** A page is usually full after few texts; if it is not, larger stretches cost less. */
const FIRST_STRETCH = 250;
const MAX_STRETCH = 1_000;
const MAX_FILE_BYTES = 64_000_000;
const BY_REGEX = { score: 1, foundBy: ["regex"] } as const;

/** Refuses a pattern that cannot run, and points to the error. */
export function checkPattern(pattern: string): void {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new EngineError(
      "usage",
      `cannot search: the expression has ${pattern.length} characters, at most ${MAX_PATTERN_CHARS} are allowed`,
      {
        step: { kind: "search_words" },
      },
    );
  }
  const problem = problemOf(pattern);
  if (problem === null) return;
  const at = findProblem(pattern, problem);
  throw new EngineError(
    "usage",
    `cannot search: ${problem} at character ${at + 1} of the expression\n  ${pattern}\n  ${" ".repeat(at)}^`,
    {
      step: { kind: "search_words" },
    },
  );
}

function problemOf(pattern: string): string | null {
  try {
    void new RegExp(pattern);
    return null;
  } catch (error) {
    if (error instanceof SyntaxError) return error.message.replace(/^.*\/[a-z]*: /su, "").toLowerCase();
    throw error;
  }
}

/** The first character from which on the pattern has the problem it ends with. */
function findProblem(pattern: string, problem: string): number {
  let at = pattern.length;
  while (at > 1 && problemOf(pattern.slice(0, at - 1)) === problem) at -= 1;
  return at - 1;
}

export async function grepRegex(
  store: Store,
  scanner: RegexScanner,
  request: GrepRequest,
  reach: Reach,
  now: number,
  first: typeof FIRST = FIRST,
): Promise<FoundHits> {
  const checked = checkGrep(request, reach);
  checkPattern(checked.pattern);
  const deadline = now + (request.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const own = new OwnWords(store, request);
  const limits = { deadline, signal: request.signal };
  const job: Job = { store, own, scanner, checked, limits, first };
  const outcome = request.scope === "files" ? await scanFiles(job, request.fileIds) : await scanTexts(job);
  const { limit, offset } = checked;
  return {
    hits: await outcome.describe(outcome.order.slice(offset, offset + limit)),
    mode: "regex",
    scope: request.scope ?? "both",
    rule: "regex",
    total: outcome.order.length,
    isTotalExact: outcome.isAll,
    complete: outcome.order.length,
    next: nextPage(offset, limit, outcome.order.length),
    truncated: outcome.stopped !== null,
    notes: noteStop(outcome.stopped, outcome.tested),
    searched: reach.label,
  };
}

interface Job {
  readonly store: Store;
  readonly own: OwnWords;
  readonly scanner: RegexScanner;
  readonly checked: CheckedGrep;
  readonly limits: { readonly deadline: number; readonly signal?: AbortSignal | undefined };
  readonly first: typeof FIRST;
}

interface Located {
  readonly kind: "message" | "summary" | "file";
  readonly match: ScanMatch;
}

interface RegexResult {
  readonly order: readonly Located[];
  /** False: there may be more. */
  readonly isAll: boolean;
  readonly stopped: ScanResult["stopped"];
  readonly tested: number;
  describe(page: readonly Located[]): Promise<GrepHit[]>;
}

function noteStop(stopped: ScanResult["stopped"], tested: number): Note[] {
  if (stopped === null) return [];
  const why = stopped === "timeout" ? "the time limit was reached" : "the search was cancelled";
  const text = `Stopped early: ${why} after ${tested} texts. Hits so far are shown.`;
  return [{ text, step: { kind: "narrow_time" } }];
}

async function scanTexts(job: Job): Promise<RegexResult> {
  const { checked, scanner } = job;
  scanner.prepare();
  const order: Located[] = [];
  let tested = 0;
  // One more than the page shows whether there is another.
  const enough = checked.offset + checked.limit + 1;
  const end = (isAll: boolean, stopped: ScanResult["stopped"] = null): RegexResult => ({
    order,
    isAll,
    stopped,
    tested,
    describe: (page) => describeTexts(job, page),
  });
  // Hits are assumed to be as frequent among the next texts as so far.
  const endsWithin = (size: number): boolean => order.length * (tested + size) >= enough * tested;
  for await (const { documents, isLast } of listParts(job)) {
    for await (const { outcome, isEnd } of scanPart(job, documents, endsWithin)) {
      tested += outcome.tested;
      order.push(...(await keepSaid(job, outcome.matches)));
      if (outcome.stopped !== null) return end(false, outcome.stopped);
      if (order.length >= enough && !(isEnd && isLast)) return end(false);
    }
    if (order.length >= enough && !isLast) return end(false);
  }
  return end(true);
}

/** Tests documents in stretches, the newest first. `endsWithin` says whether so many more texts probably fill the page. */
async function* scanPart(
  job: Job,
  documents: readonly Document[],
  endsWithin: (size: number) => boolean,
): AsyncGenerator<{ outcome: ScanResult; isEnd: boolean }> {
  const { scanner, checked, limits } = job;
  const stretches = new Stretches(job, documents);
  const read = (keys: readonly number[]): Promise<ReadonlyMap<number, string>> => readTexts(job, keys);
  let ahead: Promise<ScanTexts> | null = null;
  for (let at = 0, size = FIRST_STRETCH; at < documents.length;) {
    const texts = await (ahead ?? stretches.read(at, size));
    // While a stretch is tested the next one is read, unless the search probably ends with this one, as most do with the first.
    const isLikelyLast = at === 0 || endsWithin(size);
    at += size;
    size = Math.min(2 * size, MAX_STRETCH);
    const scanning = scanner.scanDocuments(checked.pattern, texts, limits, read);
    ahead = isLikelyLast ? null : stretches.read(at, size);
    const [outcome] = await Promise.all([scanning, ahead]);
    yield { outcome, isEnd: at >= documents.length };
  }
}

/** Messages and summaries share the keys of the scanner. */
const keyOf = (kind: "message" | "summary", id: number): number => (kind === "message" ? id : -id);
const kindOf = (key: number): "message" | "summary" => (key > 0 ? "message" : "summary");
const idsOf = (kind: "message" | "summary", keys: readonly number[]): number[] =>
  keys.filter((key) => kindOf(key) === kind).map(Math.abs);

interface Document {
  readonly key: number;
  readonly createdAt: number;
}

/** The documents to test, the newest first, in two parts. Most searches end with the first, whose candidates are soon found. */
async function* listParts({
  store,
  checked: { kinds, scope, pattern },
  first,
}: Job): AsyncGenerator<{ documents: Document[]; isLast: boolean }> {
  const list = async (kind: "message" | "summary", limit?: number): Promise<DatedId[]> =>
    kinds.includes(kind) ? store.listNewest({ kind, scope, within: null, ...given({ limit }) }) : [];
  const candidates = kinds.includes("message")
    ? await RegexCandidates.find(store, pattern, scope, first)
    : null;
  const summaries = await list("summary");
  // Few messages hardly fill a page: the newest of them need not be found before the others.
  if (candidates?.isFew === true) {
    const messages = await store.listNewest({ kind: "message", scope, within: await candidates.list() });
    return yield { documents: merge(messages, summaries), isLast: true };
  }
  const newest = await list("message", first.part + 1);
  const isLast = newest.length <= first.part;
  // Documents of one time are in the same part, because their places order them.
  const border = newest[first.part]?.createdAt ?? -Infinity;
  const isRecent = ({ createdAt }: DatedId): boolean => createdAt > border;
  const recent = newest.filter(isRecent);
  const filtered = candidates === null ? recent : await candidates.filter(recent);
  yield { documents: merge(filtered, summaries.filter(isRecent)), isLast };
  if (isLast) return;
  const within = candidates === null ? null : await candidates.list();
  const older = await store.listNewest({ kind: "message", scope: { ...scope, before: border + 1 }, within });
  yield {
    documents: merge(
      older,
      summaries.filter((one) => !isRecent(one)),
    ),
    isLast: true,
  };
}

/** Both, the newest first. */
function merge(messages: readonly DatedId[], summaries: readonly DatedId[]): Document[] {
  const toDocuments = (kind: "message" | "summary", list: readonly DatedId[]): Document[] =>
    list.map(({ id, createdAt }) => ({ key: keyOf(kind, id), createdAt }));
  const documents = [...toDocuments("message", messages), ...toDocuments("summary", summaries)];
  return messages.length === 0 || summaries.length === 0 ? documents : documents.sort(compareNewest);
}

const compareNewest = (a: Document, b: Document): number =>
  b.createdAt - a.createdAt || Math.abs(b.key) - Math.abs(a.key);

/**
 * Documents in stretches, as they are tested. The list has times and ids; if a stretch ends among documents of the same time, their places
 * decide which of them are in it.
 */
class Stretches {
  readonly #job: Job;
  readonly #documents: Document[];
  /** Before this index, ties are in order of place. */
  #orderedTo = 0;

  constructor(job: Job, documents: readonly Document[]) {
    this.#job = job;
    this.#documents = [...documents];
  }

  async read(from: number, size: number): Promise<ScanTexts> {
    await this.#orderAround(from + size);
    return readStretch(this.#job, this.#documents.slice(from, from + size));
  }

  async #orderAround(end: number): Promise<void> {
    const time = this.#documents[end]?.createdAt;
    const isSame = (at: number): boolean => this.#documents[at]?.createdAt === time;
    if (time === undefined || end <= this.#orderedTo || !isSame(end - 1)) return;
    let [first, last] = [end - 1, end];
    while (isSame(first - 1)) first -= 1;
    while (isSame(last + 1)) last += 1;
    const equals = this.#documents.slice(first, last + 1);
    const placed = await readPlaced(
      this.#job,
      equals.map(({ key }) => key),
    );
    equals.sort((a, b) => compareStanding(placed, a.key, b.key));
    this.#documents.splice(first, equals.length, ...equals);
    this.#orderedTo = last;
  }
}

/** The places of those documents that exist and are current. */
async function readPlaced(
  { store, checked: { kinds, scope } }: Job,
  keys: readonly number[],
): Promise<ReadonlyMap<number, PlacedTime>> {
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const ids = idsOf(kind, keys);
      const placed = ids.length === 0 ? [] : await store.readTimes({ kind, ids, scope });
      return placed.map((one) => [keyOf(kind, one.id), one] as const);
    }),
  );
  return new Map(lists.flat());
}

/** Of the same time, the last place comes first; ids break remaining ties. */
function compareStanding(placed: ReadonlyMap<number, PlacedTime>, a: number, b: number): number {
  const positionOf = (key: number): number => placed.get(key)?.position ?? 0;
  return positionOf(b) - positionOf(a) || Math.abs(b) - Math.abs(a);
}

/** Documents with the texts that are not cached. */
async function readStretch(job: Job, documents: readonly Document[]): Promise<ScanTexts> {
  const unknown = documents.map(({ key }) => key).filter((key) => !job.scanner.keeps(key));
  const texts = unknown.length === 0 ? new Map<number, string>() : await readTexts(job, unknown);
  const present = documents.filter(({ key }) => texts.has(key) || job.scanner.keeps(key));
  return {
    keys: present.map(({ key }) => key),
    createdAts: present.map(({ createdAt }) => createdAt),
    texts: present.map(({ key }) => texts.get(key) ?? null),
  };
}

/** Messages as they arrived, summaries as they are. */
async function readTexts(
  { store, checked: { scope } }: Job,
  keys: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const ranges = idsOf("message", keys)
    .sort((a, b) => a - b)
    .map((id): IdRange => [id, id]);
  const [messages, summaries] = await Promise.all([
    ranges.length === 0 ? [] : store.readTextsWithin(ranges, scope),
    store.readFoundSummaries(idsOf("summary", keys), scope),
  ]);
  return new Map([
    ...messages.map(({ messageId, arrival }) => [messageId, arrival] as const),
    ...summaries.map(({ ref, content }) => [keyOf("summary", ref), content] as const),
  ]);
}

/**
 * The matches that count. Texts cached by an earlier search may have been revised or forgotten since; messages with calls or results of our
 * own tools are tested again without those.
 */
async function keepSaid(job: Job, matches: readonly ScanMatch[]): Promise<Located[]> {
  if (matches.length === 0) return [];
  const { own, scanner, checked, limits } = job;
  const keys = matches.map(([key]) => key);
  const [current] = await Promise.all([readPlaced(job, keys), own.learn(idsOf("message", keys))]);
  const found = matches.filter(([key]) => current.has(key));
  const whole = found.filter(([key]) => own.restOf(key) === undefined);
  const cut = found.flatMap(([key, , , createdAt]) => {
    const text = own.restOf(key) ?? "";
    return text === "" ? [] : [{ key, createdAt, text }];
  });
  const again = cut.length === 0 ? [] : (await scanner.scan(checked.pattern, cut, limits)).matches;
  return [...whole, ...again]
    .sort((a, b) => b[3] - a[3] || compareStanding(current, a[0], b[0]))
    .map(([key, start, end, createdAt]) => ({
      kind: kindOf(key),
      match: [Math.abs(key), start, end, createdAt],
    }));
}

async function describeTexts(
  { store, own, checked: { scope } }: Job,
  page: readonly Located[],
): Promise<GrepHit[]> {
  const shownOf = (kind: Located["kind"]): number[] =>
    page.filter((one) => one.kind === kind).map(({ match }) => match[0]);
  const [texts, found] = await Promise.all([
    store.readTexts(shownOf("message"), scope),
    store.readFoundSummaries(shownOf("summary"), scope),
  ]);
  const messages = new Map(texts.map((text) => [text.messageId, text]));
  const summaries = new Map(found.map((one) => [one.ref, one]));
  return page.flatMap(({ kind, match }): GrepHit[] => {
    const message = kind === "message" ? messages.get(match[0]) : undefined;
    if (message) return [toMessageHit(message, BY_REGEX, cutAround(own.textOf(message), match[1], match[2]))];
    const summary = kind === "summary" ? summaries.get(match[0]) : undefined;
    return summary ? [toSummaryHit(summary, BY_REGEX, cutAround(summary.content, match[1], match[2]))] : [];
  });
}

/** The text around a match, in whole words, white space as single blanks. */
export function cutAround(
  text: string,
  start: number,
  end: number,
): { text: string; ranges: { start: number; end: number }[] } {
  const room = Math.max(0, SNIPPET_CHARS - (end - start));
  const from = start <= room / 2 ? 0 : wordStart(text, start - Math.floor(room / 2), start);
  const until = Math.min(text.length, Math.max(from + SNIPPET_CHARS, start + 1));
  const to = until === text.length ? until : wordEnd(text, Math.min(end, until), until);
  const lead = from > 0 ? "…" : "";
  const flatten = (part: string): string => part.replace(/\s+/g, " ");
  const before = flatten(text.slice(from, start));
  const matched = flatten(text.slice(start, Math.min(end, to)));
  const at = lead.length + before.length;
  return {
    text: `${lead}${before}${matched}${flatten(text.slice(Math.min(end, to), to))}${to < text.length ? "…" : ""}`,
    ranges: matched === "" ? [] : [{ start: at, end: at + matched.length }],
  };
}

function wordStart(text: string, from: number, most: number): number {
  const space = text.slice(from, most).search(/\s\S/);
  return space >= 0 ? from + space + 1 : from;
}

function wordEnd(text: string, least: number, to: number): number {
  const space = text.slice(least, to).search(/\s\S*$/);
  return space >= 0 ? least + space : to;
}

/** Files line by line: each matching line is a hit. */
async function scanFiles(job: Job, fileIds: readonly string[] | undefined): Promise<RegexResult> {
  const { store, scanner, checked, limits } = job;
  const files = await store.listFiles(checked.scope, fileIds ?? null);
  const lines: { file: LargeFileRow; line: number; byteOffset: number; text: string }[] = [];
  let tested = 0;
  let stopped: ScanResult["stopped"] = null;
  const order: Located[] = [];
  for (const file of files) {
    const content =
      file.lineCount === null ? null : await store.readFileContent(file.fileId, checked.scope.owner);
    if (content === null || content.byteLength > MAX_FILE_BYTES) continue;
    const first = lines.length;
    lines.push(...splitLines(content).map((line) => ({ file, ...line })));
    const texts = lines
      .slice(first)
      .map(({ text }, at) => ({ key: first + at, createdAt: file.createdAt, text }));
    const outcome = await scanner.scan(checked.pattern, texts, limits);
    tested += outcome.tested;
    stopped = outcome.stopped;
    order.push(...outcome.matches.map((match) => ({ kind: "file" as const, match })));
    if (stopped !== null) break;
  }
  const describe = async (page: readonly Located[]): Promise<GrepHit[]> =>
    page.flatMap(({ match }): FileHit[] => {
      const found = lines[match[0]];
      return found ? [toFileHit(found, match)] : [];
    });
  return { order, isAll: stopped === null, stopped, tested, describe };
}

function splitLines(content: Uint8Array): { line: number; byteOffset: number; text: string }[] {
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const lines: { line: number; byteOffset: number; text: string }[] = [];
  for (let at = 0; at < buffer.length;) {
    const end = buffer.indexOf(10, at);
    const stop = end < 0 ? buffer.length : end;
    lines.push({
      line: lines.length + 1,
      byteOffset: at,
      text: buffer.toString("utf8", at, stop).replace(/\r$/, ""),
    });
    at = stop + 1;
  }
  return lines;
}

function toFileHit(
  { file, line, byteOffset, text }: { file: LargeFileRow; line: number; byteOffset: number; text: string },
  match: ScanMatch,
): FileHit {
  const snippet = cutAround(text, match[1], match[2]);
  const { fileId, fileName, conversationId, createdAt } = file;
  return {
    id: fileId,
    type: "file",
    fileId,
    fileName,
    conversationId,
    createdAt,
    line,
    byteOffset: byteOffset + Buffer.byteLength(text.slice(0, match[1])),
    snippet: snippet.text,
    ranges: snippet.ranges,
    ...BY_REGEX,
  };
}

/** A pattern read as words: its literals, in order. */
export function readAsWords(pattern: string): string {
  return pattern
    .replace(/\\[bBdDwWsSnrtfv]/g, " ")
    .replace(/\\([^A-Za-z0-9])/g, "$1")
    .replace(/\(\?[:=!<]+|[()[\]{}|*+?^$]|\.(?=[*+?])/g, " ")
    .trim();
}
