import { expect, test } from "vitest";
import type { RunItem } from "../../src/store/folding.ts";
import { openRun } from "../../src/summarize/open-run.ts";
import { messageItem, summaryItem } from "./runs.ts";

const said = (n: number, tokens = 10): RunItem => ({
  ...messageItem(n, { role: "user", content: `message ${n}` }),
  tokens,
});

const told = (name: string, level = "extractive"): RunItem => {
  const item = summaryItem(1, name);
  return { ...item, summary: item.summary && { ...item.summary, summaryId: name, level } };
};

/** The run after opening, by the ids of its messages and the names of its summaries. */
const openAs = async (run: readonly RunItem[], under: Readonly<Record<string, readonly RunItem[]>>) => {
  const opened = await openRun(run, (id) => Promise.resolve(under[id] ?? []));
  return opened.map(({ messageId, summary }) => messageId ?? summary?.summaryId);
};

test("summaries without a model are opened down to their messages, in order", async () => {
  const under = { a: [told("b"), said(3)], b: [said(1), said(2)], c: [said(4)] };
  expect(await openAs([told("a"), told("c"), said(5)], under)).toEqual([1, 2, 3, 4, 5]);
});

test("what a model wrote stays as it is, and so does what has nothing under it here", async () => {
  const under = { a: [said(1)], b: [said(2)] };
  expect(await openAs([told("a", "normal"), told("b"), told("elsewhere")], under)).toEqual([
    "a",
    2,
    "elsewhere",
  ]);
});

test("the newest are opened, until one pass has read enough", async () => {
  const under = { a: [said(1)], b: [said(2, 90_000)], c: [said(3, 90_000)] };
  expect(await openAs([told("a"), told("b"), told("c")], under)).toEqual(["a", 2, 3]);
});
