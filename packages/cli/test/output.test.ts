/** What is printed for people: stored text breaks at words on a terminal, and keeps its lines everywhere else. */
import { stripVTControlCharacters } from "node:util";
import { afterEach, expect, test } from "vitest";
import { renderStored } from "../src/output.ts";
import { renderHead } from "../src/commands/recall/recall-shared.ts";

const { isTTY, columns } = process.stdout;
const pretend = (terminal: { isTTY: boolean; columns: number }): unknown =>
  Object.assign(process.stdout, terminal);
afterEach(() => pretend({ isTTY, columns }));

const TEXT = `short\n  - a point that is longer than the forty columns of this terminal\n${"x".repeat(50)}`;

test("text wraps at words under its own indent, and a word that is too long is cut", () => {
  pretend({ isTTY: true, columns: 40 });
  expect(renderStored(TEXT).split("\n")).toEqual([
    "  short",
    "    - a point that is longer than the",
    "    forty columns of this terminal",
    `  ${"x".repeat(38)}`,
    `  ${"x".repeat(12)}`,
  ]);
});

test("a head line wraps under its text", () => {
  pretend({ isTTY: true, columns: 40 });
  const head = renderHead("msg_12", ["assistant", "2026-02-14 13:36", '"A heading of some words"', "cli"]);
  expect(stripVTControlCharacters(head)).toBe(
    'msg_12  assistant, 2026-02-14 13:36,\n  "A heading of some words", cli',
  );
});

test("piped text keeps its lines", () => {
  pretend({ isTTY: false, columns: 40 });
  expect(renderStored(TEXT)).toBe(TEXT.replaceAll(/^/gm, "  "));
  expect(renderHead("msg_12", ["assistant", "x".repeat(60)])).toContain(`assistant, ${"x".repeat(60)}`);
});
