/**
 * Search by regular expression: over messages, summaries and the lines of large files. Everything in the scope is tested; where the
 * pattern requires literals, the index of words or the blocks of spelled words say which messages can match at all. Without a hit the
 * pattern is looked for as words, and the answer says so.
 */
import type { Note } from "../model/next-step.ts";
import { readSearchText } from "../message/normalize.ts";
import { EngineError } from "../model/errors.ts";
import type { IdRange, RecallScope, ScannedText } from "../store/recall.ts";
import type { LargeFileRow, Store } from "../store/store.ts";
import { analyzeForIndex, requiredLiterals, requiredRuns } from "../text/index.ts";
import type { TextClue } from "../text/index.ts";
import { checkGrep, nextPage, SNIPPET_CHARS } from "./grep.ts";
import { toMessageHit, toSummaryHit } from "./hits.ts";
import type { CheckedGrep, FileHit, GrepResult, GrepHit, GrepRequest } from "./grep.ts";
import { OwnWords } from "./own-words.ts";
import type { GroupTexts, RegexScanner, ScanOutcome } from "./regex-scanner.ts";
import type { ScanMatch, ScanText } from "./regex-worker.ts";
import type { Reach } from "./scope.ts";

const MAX_PATTERN_CHARS = 500;
const DEFAULT_TIMEOUT_MS = 30_000;
/** Fewer messages than this are read and tested by themselves. */
const MAX_NARROWED = 2_000;
const READ_PAGE = 500;
const MAX_CHECKED = 5_000;
const MAX_FILE_BYTES = 64_000_000;
const BY_REGEX = { score: 1, foundBy: ["regex"] } as const;

/** Refuses a pattern that cannot run, and points at the place. */
export function checkPattern(pattern: string): void {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new EngineError(
      "usage",
      `cannot search: the expression has ${pattern.length} characters, at most ${MAX_PATTERN_CHARS} are taken`,
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
): Promise<GrepResult> {
  const checked = checkGrep(request, reach);
  checkPattern(checked.pattern);
  const deadline = now + (request.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const own = new OwnWords(store, request);
  const job: Job = { store, own, scanner, checked, limits: { deadline, signal: request.signal } };
  const outcome = request.scope === "files" ? await scanFiles(job, request.fileIds) : await scanTexts(job);
  const { limit, offset } = checked;
  return {
    hits: await outcome.describe(outcome.order.slice(offset, offset + limit)),
    mode: "regex",
    scope: request.scope ?? "both",
    rule: "regex",
    total: outcome.order.length,
    isTotalExact: outcome.stopped === null,
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
}

interface Located {
  readonly kind: "message" | "summary" | "file";
  readonly match: ScanMatch;
}

interface Outcome {
  readonly order: readonly Located[];
  readonly stopped: ScanOutcome["stopped"];
  readonly tested: number;
  describe(page: readonly Located[]): Promise<GrepHit[]>;
}

function noteStop(stopped: ScanOutcome["stopped"], tested: number): Note[] {
  if (stopped === null) return [];
  const why = stopped === "timeout" ? "the time limit was reached" : "the search was cancelled";
  const text = `Stopped early: ${why} after ${tested} texts. Hits so far are shown.`;
  return [{ text, step: { kind: "narrow_time" } }];
}

async function scanTexts(job: Job): Promise<Outcome> {
  const { checked } = job;
  const parts: (ScanOutcome & { kind: Located["kind"] })[] = [];
  for (const kind of checked.kinds) {
    if (parts.some(({ stopped }) => stopped !== null)) break;
    parts.push({ kind, ...(kind === "message" ? await scanSaid(job) : await scanSummaries(job)) });
  }
  const order = parts
    .flatMap(({ kind, matches }) => matches.map((match) => ({ kind, match })))
    .toSorted((a, b) => b.match[3] - a.match[3] || b.match[0] - a.match[0]);
  return {
    order,
    stopped: parts.find(({ stopped }) => stopped !== null)?.stopped ?? null,
    tested: parts.reduce((sum, { tested }) => sum + tested, 0),
    describe: (page) => describeTexts(job, page),
  };
}

/** Matches in what was said: messages with calls or results of our own tools are tested again without those. */
async function scanSaid(job: Job): Promise<ScanOutcome> {
  const { scanner, checked, limits, own } = job;
  const outcome = await scanMessages(job);
  await own.learn(outcome.matches.map(([id]) => id));
  const matches = outcome.matches.filter(([id]) => own.restOf(id) === undefined);
  if (matches.length === outcome.matches.length) return outcome;
  const texts = outcome.matches.flatMap(([id, , , createdAt]) => {
    const text = own.restOf(id) ?? "";
    return text === "" ? [] : [{ id, createdAt, role: "", text }];
  });
  const again = await scanner.scan(checked.pattern, texts, limits);
  return {
    matches: [...matches, ...again.matches],
    tested: outcome.tested,
    stopped: outcome.stopped ?? again.stopped,
  };
}

async function scanMessages(job: Job): Promise<ScanOutcome> {
  const { store, scanner, checked, limits } = job;
  const { scope, pattern } = checked;
  const narrowed = await narrowToMessages(store, pattern, scope);
  if (narrowed !== null) {
    const ranges = narrowed.toSorted((a, b) => a - b).map((id): IdRange => [id, id]);
    return scanPages(job, [await store.readTextsWithin(ranges, scope)]);
  }
  const inherited = (scope.inherited ?? []).map(({ conversationId }) => conversationId);
  const conversations =
    scope.conversationIds?.concat(inherited) ??
    (await store.listScope(scope.owner === undefined ? {} : { owner: scope.owner }));
  if (!scanner.keepsAll(conversations)) {
    const ranges = await narrowToRanges(store, pattern, scope);
    if (ranges !== null) return scanPages(job, readRanges(store, ranges, scope));
  }
  const groups = conversations.map((conversationId): GroupTexts => ({
    group: conversationId,
    read: (afterSeq) => readConversation(store, conversationId, afterSeq),
  }));
  const outcome = await scanner.scanGroups(pattern, groups, scope, limits);
  return { ...outcome, matches: await keepCurrent(store, outcome.matches, scope) };
}

/** Texts that were kept since an earlier search may have been revised or forgotten meanwhile; of a fork's parent not all is in the scope. */
async function keepCurrent(
  store: Store,
  matches: readonly ScanMatch[],
  scope: RecallScope,
): Promise<ScanMatch[]> {
  const current = new Set<number>();
  for (let at = 0; at < matches.length; at += MAX_CHECKED) {
    const ids = matches.slice(at, at + MAX_CHECKED).map(([id]) => id);
    for (const { id } of await store.readTimes({ kind: "message", ids, scope })) current.add(id);
  }
  return matches.filter(([id]) => current.has(id));
}

/** Tests texts that are read for this search alone; those without a required literal need no test. */
async function scanPages(
  { scanner, checked, limits }: Job,
  pages: Iterable<readonly ScannedText[]> | AsyncIterable<readonly ScannedText[]>,
): Promise<ScanOutcome> {
  const literals = requiredLiterals(checked.pattern);
  const matches: ScanMatch[] = [];
  let tested = 0;
  for await (const page of pages) {
    tested += page.length;
    const texts = page
      .map((text) => ({ ...toScanText(text), text: readSearchText(text.arrival) }))
      .filter(({ text }) => literals.every((literal) => text.includes(literal)));
    if (texts.length === 0) continue;
    const outcome = await scanner.scan(checked.pattern, texts, limits);
    matches.push(...outcome.matches);
    tested += outcome.tested - texts.length;
    if (outcome.stopped !== null) return { matches, tested, stopped: outcome.stopped };
  }
  return { matches, tested, stopped: null };
}

async function* readRanges(
  store: Store,
  ranges: readonly IdRange[],
  scope: RecallScope,
): AsyncGenerator<ScannedText[]> {
  let page: IdRange[] = [];
  let room = READ_PAGE;
  for (let [first, last] of ranges) {
    while (first <= last) {
      const end = Math.min(last, first + room - 1);
      page.push([first, end]);
      room -= end - first + 1;
      first = end + 1;
      if (room > 0) continue;
      yield await store.readTextsWithin(page, scope);
      page = [];
      room = READ_PAGE;
    }
  }
  if (page.length > 0) yield await store.readTextsWithin(page, scope);
}

async function* readConversation(
  store: Store,
  conversationId: number,
  afterSeq: number,
): AsyncGenerator<ScannedText[]> {
  for (let after = afterSeq; ;) {
    const page = await store.readTextsAfter(conversationId, after, READ_PAGE);
    const last = page.at(-1);
    if (!last) return;
    after = last.seq;
    yield page;
  }
}

const toScanText = ({
  messageId,
  createdAt,
  role,
}: {
  messageId: number;
  createdAt: number;
  role: string;
}): Omit<ScanText, "text"> => ({
  id: messageId,
  createdAt,
  role,
});

/** Where messages that can match stand, as far as their spelling tells; null: anywhere. */
async function narrowToRanges(store: Store, pattern: string, scope: RecallScope): Promise<IdRange[] | null> {
  const runs = requiredRuns(pattern);
  return runs.length === 0 ? null : store.findRuns(runs, scope);
}

/** The messages that can match, when the index can tell and they are few; null: all have to be tested. */
async function narrowToMessages(store: Store, pattern: string, scope: RecallScope): Promise<number[] | null> {
  const words = [...new Set(requiredLiterals(pattern).flatMap(wholeWords))];
  if (words.length === 0) return null;
  const clues = words.map((word): TextClue => ({ kind: "run", words: [word] }));
  const { listings, pendingIds } = await store.findClues({
    kind: "message",
    clues,
    scope,
    limit: MAX_NARROWED,
  });
  const complete = listings
    .filter(({ listedFrom }) => listedFrom === null)
    .toSorted((a, b) => a.ids.length - b.ids.length);
  const [first, ...rest] = complete.map(({ ids }) => new Set(ids));
  if (!first) return null;
  // What the index does not know yet may match as well.
  return [...new Set([...[...first].filter((id) => rest.every((ids) => ids.has(id))), ...pendingIds])];
}

/** Index words of a literal that are certain to stand as words in any text that contains it: those with blanks on both sides. */
function wholeWords(literal: string): string[] {
  return [...literal.matchAll(/(?<=\s)[A-Za-z0-9]+(?=\s)/g)]
    .map(([word]) => analyzeForIndex(word).words)
    .filter((term) => /^[a-z0-9]+$/.test(term));
}

async function scanSummaries(job: Job): Promise<ScanOutcome> {
  const { store, scanner, checked, limits } = job;
  const summaries = await store.readFoundSummaries(null, checked.scope);
  if (summaries.length === 0) return { matches: [], tested: 0, stopped: null };
  const texts = summaries.map(({ ref, latestAt, content }) => ({
    id: ref,
    createdAt: latestAt,
    role: "",
    text: content,
  }));
  return scanner.scan(checked.pattern, texts, limits);
}

async function describeTexts(
  { store, own, checked: { scope } }: Job,
  page: readonly Located[],
): Promise<GrepHit[]> {
  const idsOf = (kind: Located["kind"]): number[] =>
    page.filter((one) => one.kind === kind).map(({ match }) => match[0]);
  const messages = new Map(
    (await store.readTexts(idsOf("message"), scope)).map((text) => [text.messageId, text]),
  );
  const refs = idsOf("summary");
  const summaries = new Map(
    (refs.length === 0 ? [] : await store.readFoundSummaries(refs, scope)).map((one) => [one.ref, one]),
  );
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
async function scanFiles(job: Job, fileIds: readonly string[] | undefined): Promise<Outcome> {
  const { store, scanner, checked, limits } = job;
  const files = await store.listFiles(checked.scope, fileIds ?? null);
  const lines: { file: LargeFileRow; line: number; byteOffset: number; text: string }[] = [];
  let tested = 0;
  let stopped: ScanOutcome["stopped"] = null;
  const order: Located[] = [];
  for (const file of files) {
    const content =
      file.lineCount === null ? null : await store.readFileContent(file.fileId, checked.scope.owner);
    if (content === null || content.byteLength > MAX_FILE_BYTES) continue;
    const first = lines.length;
    lines.push(...splitLines(content).map((line) => ({ file, ...line })));
    const texts = lines
      .slice(first)
      .map(({ text }, at) => ({ id: first + at, createdAt: file.createdAt, role: "", text }));
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
  return { order, stopped, tested, describe };
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

/** What a pattern says when it is read as words: its literals, in order. */
export function readAsWords(pattern: string): string {
  return pattern
    .replace(/\\[bBdDwWsSnrtfv]/g, " ")
    .replace(/\\([^A-Za-z0-9])/g, "$1")
    .replace(/\(\?[:=!<]+|[()[\]{}|*+?^$]|\.(?=[*+?])/g, " ")
    .trim();
}
