import { describe, expect, test } from "vitest";
import {
  cleanSources,
  listFileOperations,
  renderSources,
  stripInjectedContext,
} from "../../src/summarize/render-sources.ts";
import { act, answer, say, summary, withParts } from "./sources.ts";

const options = { timeZone: "America/New_York", stripTags: ["relevant-memories"] };

describe("renderSources", () => {
  test("gives each item its time in the zone and its speaker", () => {
    expect(renderSources([say("user", "Ship it.", 0, "Mira")], options)).toBe(
      "[2026-02-14 06:00 America/New_York] Mira: Ship it.",
    );
  });

  test("spells out tool calls and errors", () => {
    const text = renderSources(
      [act("exec", { command: "make" }, 0), answer("no rule to make target", 0, true)],
      options,
    );
    expect(text).toContain("(tool call exec: ran make)");
    expect(text).toContain("(tool error) no rule to make target");
  });

  test("leaves out reasoning, injected context and base64", () => {
    const text = renderSources(
      [
        withParts("assistant", [{ type: "reasoning", text: "secret thought" }], 0),
        withParts(
          "user",
          [{ type: "text", text: '<relevant-memories n="2">old stuff</relevant-memories>What now?' }],
          1,
        ),
        answer(`data:image/png;base64,${"iVBORw0KGgo1AAAA".repeat(40)}`, 2),
      ],
      options,
    );
    expect(text).not.toMatch(/secret thought|old stuff|iVBORw0KGgo1/);
    expect(text).toContain("What now?");
    expect(text).toContain("encoded characters");
  });

  test("shows both ends of a long result", () => {
    const text = renderSources([answer(`START${"x ".repeat(9_000)}END`, 0)], {
      ...options,
      maxResultChars: 1_000,
    });
    expect(text).toContain("START");
    expect(text).toContain("END");
    expect(text).toMatch(/characters left out/);
    expect(text.length).toBeLessThan(1_200);
  });

  test("names the summaries it renders", () => {
    expect(renderSources([summary("All done.", 0)], options)).toMatch(
      /^\[2026-02-14 06:00 America\/New_York\] summary sum_\d+:\nAll done\.$/,
    );
  });

  test("an item with nothing to say leaves no trace", () => {
    expect(renderSources([say("assistant", "  ", 0)], options)).toBe("");
  });
});

test("lists each file operation once, in order", () => {
  const sources = [
    act("read", { path: "a.ts" }, 0),
    act("edit", { path: "a.ts", old_string: "1", new_string: "2" }, 1),
    act("read", { path: "a.ts" }, 2),
    act("exec", { command: "ls" }, 3),
  ];
  expect(listFileOperations(sources)).toEqual(["read a.ts", "edited a.ts"]);
});

test("an unclosed injected tag loses its mark and nothing else", () => {
  expect(stripInjectedContext("a <memo>b", ["memo"])).toBe("a b");
  expect(stripInjectedContext("a <memo>b</memo> c <memory>d</memory>", ["memo"])).toBe(
    "a  c <memory>d</memory>",
  );
});

test("cleaned sources have no injected context, reasoning or base64, and keep everything else", () => {
  const blob = `data:image/png;base64,${"iVBORw0KGgo1AAAA".repeat(40)}`;
  const [message, bare] = cleanSources(
    [
      withParts(
        "user",
        [
          { type: "reasoning", text: "hidden" },
          { type: "text", text: `<memo>old</memo>Look: ${blob}` },
          { type: "tool_call", toolName: "exec", text: "exec\ncommand: make" },
        ],
        0,
      ),
      say("user", "<memo>old</memo>Hi", 1),
    ],
    ["memo"],
  );
  expect(message?.parts?.map((part) => part.type)).toEqual(["text", "tool_call"]);
  expect(message?.parts?.[0]?.text).toMatch(/^Look: \(\d+ encoded characters\)$/);
  expect(bare?.text).toBe("Hi");
});
