/** What the screens show, before it is drawn: the graph as lines, the context before a summary was made, health, the filter. All pure. */
import type { HeadedConversation, Debt, SummaryOutline } from "@lossless/core";
import { describe, expect, test } from "vitest";
import { listContextLines, putBack, type ContextLine } from "../src/context-lines.ts";
import { matchesFilter } from "../src/conversation-list.ts";
import { buildNodes, drawGraph, listAbove, type GraphLine } from "../src/graph-lines.ts";
import { describeHealth } from "../src/health.ts";
import { splitSnippet } from "../src/screens/search.ts";

const node = (summaryId: string, depth: number, startPosition: number, state = "cover"): SummaryOutline =>
  ({ summaryId, depth, startPosition, state, kind: depth === 0 ? "leaf" : "condensed" }) as SummaryOutline;

/** A fold of two summaries, the first made from two leaves; a root over both; a leaf that was replaced. */
const nodes = buildNodes({
  nodes: [
    node("a", 0, 1),
    node("top", 1, 1),
    node("root", 2, 1, "reserve"),
    node("old", 0, 1, "retired"),
    node("b", 0, 5),
    node("c", 0, 9),
  ],
  edges: [
    ["top", "a"],
    ["top", "b"],
    ["root", "top"],
    ["root", "c"],
  ],
});

const draw = (open: readonly string[], withRetired = false): string[] =>
  drawGraph({
    nodes,
    open: new Set(open),
    messages: new Map([["a", [11, 12]]]),
    withRetired,
  }).map((line: GraphLine) =>
    line.kind === "message"
      ? `${line.prefix}msg_${line.messageId}`
      : `${line.prefix}${line.isOpen ? "−" : "+"}${line.node.summaryId}${line.sourcesAbove > 0 ? ` ↑${line.sourcesAbove}` : ""}`,
  );

describe("the graph as lines", () => {
  test("begins with the fold, then what else was made", () => {
    expect(draw([])).toEqual(["+top", "+c", "+root"]);
    expect(draw([], true)).toEqual(["+top", "+c", "+root", "+old"]);
  });

  test("opens down to messages, and draws nothing twice", () => {
    expect(draw(["top", "a", "root"])).toEqual([
      "−top",
      "├─ −a",
      "│  ├─ msg_11",
      "│  └─ msg_12",
      "└─ +b",
      "+c",
      "−root ↑2",
    ]);
  });

  test("names what must be open for a summary to be seen, along the fold where it can", () => {
    expect(listAbove(nodes, "b")).toEqual(["top", "root"]);
    expect(listAbove(nodes, "c")).toEqual(["root"]);
    expect(listAbove(nodes, "nothing")).toEqual([]);
  });
});

describe("the former context", () => {
  const line = (id: string): ContextLine =>
    ({ id, summaryId: id.startsWith("sum_") ? id : null, messageId: null, isFormer: false }) as ContextLine;
  const report = {
    summaryId: "sum_0000000000000001",
    conversationId: 1,
    sources: [
      { id: "sum_0000000000000002", tokens: 5, isShown: true },
      { id: "msg_7", tokens: 3, isShown: false },
    ],
    tokensBefore: 4,
    tokensAfter: 8,
    ordinal: 1,
    itemsBehind: 1,
  };

  test("has the sources in the place of the summary", () => {
    const lines = putBack(["msg_1", "sum_0000000000000001", "msg_9"].map(line), report);
    expect(lines.map(({ id, isFormer }) => [id, isFormer])).toEqual([
      ["msg_1", false],
      ["sum_0000000000000002", true],
      ["msg_7", true],
      ["msg_9", false],
    ]);
    expect(lines[1]).toMatchObject({ kind: "summary", tokens: 5 });
    expect(lines[2]).toMatchObject({
      kind: "message",
      messageId: 7,
      reason: expect.stringContaining("hidden"),
    });
  });

  test("is the sources alone where the summary is not shown", () => {
    expect(putBack([line("msg_1")], report).map(({ id }) => id)).toEqual(["sum_0000000000000002", "msg_7"]);
  });

  test("names items as the context does", () => {
    const item = {
      kind: "range",
      ids: ["msg_1", "msg_9"],
      messageId: null,
      summaryId: null,
      seq: null,
      startPosition: 0,
      endPosition: 1,
      tokens: 30,
      messages: 9,
      depth: -1,
      earliestAt: 1,
      latestAt: 2,
      reason: "no room",
      role: null,
    } as const;
    expect(listContextLines({ items: [item] })).toMatchObject([
      { id: "msg_1…msg_9", label: "range", reason: "no room" },
    ]);
  });
});

test("health tells the worst first", () => {
  const debt = { lastFailure: null } as Debt;
  expect(describeHealth(null, 0)).toEqual({ text: "ok", isGood: true });
  expect(describeHealth(debt, 0)).toEqual({ text: "to fold", isGood: true });
  expect(describeHealth(debt, 2)).toEqual({ text: "2 damaged", isGood: false });
  expect(describeHealth({ ...debt, lastFailure: "no answer" }, 2)).toEqual({
    text: "folding fails",
    isGood: false,
  });
});

test("a filter asks for all of its words, in any order and case", () => {
  const row = {
    conversationId: 12,
    heading: "Move the Tide tables",
    tags: [],
    sessionKey: "agent:main:Telegram",
    sessionId: "s",
    owner: "main",
    archivedAt: null,
  };
  const matches = (filter: string): boolean => matchesFilter(row as unknown as HeadedConversation, filter);
  expect(["", "tide", "telegram main", "12", "active"].map(matches)).toEqual([true, true, true, true, true]);
  expect(["discord", "telegram discord", "archived"].map(matches)).toEqual([false, false, false]);
});

test("a snippet is shown in pieces that add up to it", () => {
  const pieces = splitSnippet({
    snippet: "find the word here",
    ranges: [
      { start: 5, end: 8 },
      { start: 9, end: 13 },
    ],
  });
  expect(pieces.map(({ text }) => text).join("")).toBe("find the word here");
  expect(pieces.filter(({ isMatch }) => isMatch).map(({ text }) => text)).toEqual(["the", "word"]);
});
