/** Texts that Markdown would take seconds or the whole stack for are shown as they are. */
import { expect, test } from "vitest";
import { markUpText } from "../../src/reading/markdown.ts";
import { renderHtml } from "../../src/reading/markup.ts";
import { readCall } from "../../src/reading/tool-call.ts";

const kindOf = (text: string): unknown => markUpText(text)[0]?.attributes["class"];

test.each([
  ["quotes in quotes", ">".repeat(19_000)],
  ["lists in lists", "1. ".repeat(6_000)],
  ["emphasis that never ends", "*a ".repeat(6_000)],
  ["one word", `${"a".repeat(19_000)}@`],
  ["signs behind what is no fence", `\`\`\`a\`\n${"*a ".repeat(6_000)}`],
])("%s", (_name, text) => {
  expect(kindOf(text)).toBe("prose");
  expect(renderHtml(markUpText(text))).toContain(text.slice(-100).replaceAll(">", "&gt;"));
});

test("long code, long lists and a few levels are Markdown still", () => {
  const code = `Look:\n\n\`\`\`py\n${"a_b[c] = d_e[f]\n".repeat(500)}${"x".repeat(3_000)}\n\`\`\`\n`;
  for (const text of [code, "- **a** `b`\n".repeat(90), `${"> ".repeat(9)}deep`])
    expect(kindOf(text)).toBe("markdown");
});

test("arguments in arguments do not take the stack", () => {
  const block: unknown = JSON.parse(`${'{"input":'.repeat(5_000)}{"command":"ls"}${"}".repeat(5_000)}`);
  expect(readCall(block)?.diff).toBeNull();
  expect(readCall({ function: { arguments: '{"command":"ls"}' } })?.line).toBe("ls");
});

test("a search is described by what it looks for, and where", () => {
  const read = (input: object): string | undefined => readCall({ input })?.line;
  expect(read({ path: "src", pattern: "readCall" })).toBe("readCall in src");
  expect(read({ pattern: "**/*.ts" })).toBe("**/*.ts");
  expect(read({ file_path: "a.ts", limit: 3 })).toBe("a.ts");
});
