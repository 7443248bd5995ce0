/**
 * Time grows with the text, not with its square: whatever somebody has written into a message, a search or a file, nothing takes the thread for
 * long. Each function that reads text of others gets motifs that regular expressions and parsers stumble over, repeated many times and eight
 * times as many.
 */
import { rounds, someOf } from "@lossless/testkit/rounds.ts";
import { describe, expect, test } from "vitest";
import { diffLines } from "../../src/doors/diff.ts";
import { makePrintable, toOneLine } from "../../src/doors/format.ts";
import { truncateToWidth, wrapToWidth } from "../../src/doors/width.ts";
import { exploreContent } from "../../src/ingest/explore.ts";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import { compileRedaction } from "../../src/ingest/redact.ts";
import { hideBase64 } from "../../src/message/base64.ts";
import { viewMessage } from "../../src/message/normalize.ts";
import { quoteResult } from "../../src/assemble/render.ts";
import { matchesSessionPattern } from "../../src/settings/session-patterns.ts";
import { describeCall, describeResult } from "../../src/summarize/actions.ts";
import { hasClosingLine, splitClosingLine } from "../../src/summarize/closing-line.ts";
import { summarizeExtractively } from "../../src/summarize/extractive.ts";
import { acceptSummary, stripReasoning } from "../../src/summarize/gate.ts";
import { readUserText } from "../../src/summarize/injected.ts";
import { cutExcerpts, listSignatures } from "../../src/summarize/outline.ts";
import { stripInjectedContext } from "../../src/summarize/render-sources.ts";
import { readProse, splitLine } from "../../src/summarize/sentences.ts";
import { parseSummaryLines } from "../../src/summarize/summary-lines.ts";
import { zoneClock } from "../../src/summarize/time.ts";
import { encodeForIndex } from "../../src/text/analyze.ts";
import { buildClues } from "../../src/text/build-clues.ts";
import { findDates } from "../../src/text/dates.ts";
import { escapeXml, escapeXmlText } from "../../src/text/escape-xml.ts";
import { findMatches } from "../../src/text/matches.ts";
import { analyzeQuery } from "../../src/text/query.ts";
import { looksLikeRegex, requiredLiterals } from "../../src/text/regex.ts";
import { makeSnippet } from "../../src/text/snippet.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";

const redact = compileRedaction(["@keys", "@tokens", "@cards"]);
const estimate = (text: string): number => Math.ceil(text.length / 4);
const query = analyzeQuery('where did we put the lamp a1b2_c3 "aa bb"');
const jsonOf = (text: string): Buffer => Buffer.from(JSON.stringify({ role: "user", content: text }));
const clock = zoneClock("Europe/Berlin");

const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  redaction: (text) => redact?.(jsonOf(text)),
  "redaction of what is no JSON": (text) => redact?.(Buffer.from(text)),
  "deriving a message": (text) => deriveMessage(jsonOf(text), []),
  "viewing what may be no JSON": (text) => viewMessage(Buffer.from(text)),
  "base64 in a text": hideBase64,
  "index terms": (text) => encodeForIndex(text),
  tokens: estimateTextTokens,
  dates: findDates,
  query: analyzeQuery,
  clues: (text) => buildClues(analyzeQuery(text)),
  matches: (text) => findMatches(text, query),
  snippet: (text) => makeSnippet(text, query, { maxChars: 200 }),
  "regex literals": requiredLiterals,
  "regex or words": looksLikeRegex,
  "XML attribute": escapeXml,
  "XML text": escapeXmlText,
  "quoted result": quoteResult,
  "user's own words": readUserText,
  "injected context": (text) => stripInjectedContext(text, ["system-reminder", "context"]),
  prose: readProse,
  sentences: splitLine,
  signatures: listSignatures,
  excerpts: cutExcerpts,
  "a call": (text) => describeCall("bash", `bash\ncommand: ${text}`),
  "a result": (text) => describeResult(text, false, "command"),
  reasoning: stripReasoning,
  "closing line": (text) => [hasClosingLine(text), splitClosingLine(text)],
  "summary lines": (text) => parseSummaryLines(text, clock.split(Date.UTC(2026, 1, 1))),
  gate: (text) =>
    acceptSummary({
      text,
      sourcesText: text,
      sourceTokens: 1e9,
      targetTokens: 1e9,
      estimate,
      maxOverageFactor: 3,
    }),
  "extractive summary": (text) =>
    summarizeExtractively({
      sources: [{ id: "msg_1", kind: "message", role: "user", at: 0, text }],
      depth: 0,
      targetTokens: 500,
      estimate,
      timeZone: "UTC",
    }),
  "session pattern": (text) => matchesSessionPattern("agent:*:**:cron:*", text),
  "one line": toOneLine,
  printable: makePrintable,
  width: (text) => [truncateToWidth(text, 80), wrapToWidth(text, 80)],
  diff: (text) => diffLines(text, `x${text}`),
  ...Object.fromEntries(
    ["a.json", "a.csv", "a.md", "a.html", "a.xml", "a.yaml", "a.log", "a.ts", "a.py", "a.txt", "a.jsonl"].map(
      (fileName) => [
        `a large file ${fileName}`,
        (text: string) => exploreContent({ fileName, mimeType: undefined, bytes: Buffer.from(text) }),
      ],
    ),
  ),
};

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
/** Linear is 8, with a logarithm 9; a square is 64. Between them is room for what else the machine does. */
const MAX_RATIO = 40;
/** How often both are measured before the longer text is called slow. */
const ROUNDS = 8;
/** What is done by then is quick, whatever its shape. */
const QUICK_MS = 60;
/** Processor time is counted in steps of some milliseconds. */
const LEAST_MS = 2;

function measure(read: (text: string) => unknown, text: string): number {
  const before = process.threadCpuUsage();
  read(text);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/** Whether the longer text takes far more than eight times as long; measured again before it is believed. */
function isSlow(read: (text: string) => unknown, motif: string): string | null {
  const repeat = (size: number): string => motif.repeat(Math.ceil(size / motif.length));
  const [short, long] = [repeat(SIZE), repeat(SIZE * GROWTH)];
  let longest = Infinity;
  let shortest = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    longest = Math.min(longest, measure(read, long));
    if (longest <= QUICK_MS) return null;
    shortest = Math.min(shortest, measure(read, short));
    if (longest <= MAX_RATIO * Math.max(LEAST_MS, shortest)) return null;
  }
  return `${JSON.stringify(motif)}: ${shortest.toFixed(1)} ms, eight times as much: ${longest.toFixed(1)} ms`;
}

describe("eight times the text takes about eight times as long", () => {
  const motifs = someOf(MOTIFS, rounds({ test: 6, soak: MOTIFS.length }));
  test.each(Object.entries(READERS))("%s", (_name, read) => {
    expect(motifs.flatMap((motif) => isSlow(read, motif) ?? [])).toEqual([]);
  });
});
