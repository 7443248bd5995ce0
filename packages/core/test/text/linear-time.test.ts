/** Time grows with the text, not with its square: whatever somebody has written into a message, a search, a setting or a file. */
import { listSlow } from "@lossless/testkit/linear-time.ts";
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
import { resolveSettings } from "../../src/settings/settings-resolve.ts";
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
  settings: (text) =>
    resolveSettings({
      env: { LCM_TIMEZONE: text },
      config: { [text]: 1, freshTailCount: text, ignoreSessionPatterns: [text] },
      tolerant: true,
      replaceConflicts: true,
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

describe("eight times the text takes about eight times as long", () => {
  test.each(Object.entries(READERS))("%s", async (_name, read) => {
    expect(await listSlow(read)).toEqual([]);
  });
});
