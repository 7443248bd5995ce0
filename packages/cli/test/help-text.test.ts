/** Help on a terminal: no line is broken inside a word. */
import { expect, test } from "vitest";
import { wrapHelp } from "../src/help-text.ts";

const HELP = `
Reads sessions of Claude Code and of many other agents, archives and databases. Every line is
kept byte for byte.

Examples:
  lcm import session.jsonl     one file
  lcm import ~/.claude/projects --dry-run --since 2026-01-01  read everything, store nothing
`;

test("paragraphs are filled to the width, and examples keep their lines", () => {
  expect(wrapHelp(HELP, 50)).toBe(`
Reads sessions of Claude Code and of many other
agents, archives and databases. Every line is kept
byte for byte.

Examples:
  lcm import session.jsonl     one file
  lcm import ~/.claude/projects --dry-run --since 2026-01-01
      read everything, store nothing
`);
});

test("an explanation that does not fit continues in its own column on the next line", () => {
  expect(wrapHelp("  lcm web --open  open the page in your browser at once", 40)).toBe(
    "  lcm web --open  open the page in your\n                  browser at once",
  );
});

test("nothing changes where everything fits", () => {
  expect(wrapHelp("\n  --open  open it\n\nExamples:\n  lcm web\n", 80)).toBe(
    "\n  --open  open it\n\nExamples:\n  lcm web\n",
  );
});
