import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { colourCode, splitFences } from "../../src/reading/highlight.ts";

test("colours comments, strings, numbers and keywords, and leaves the rest", () => {
  const pieces = colourCode(`const a = "x // y"; // note\n# hash\nreturn 42`);
  expect(pieces.filter(({ kind }) => kind !== "plain").map(({ kind, text }) => [kind, text])).toEqual([
    ["keyword", "const"],
    ["string", `"x // y"`],
    ["comment", "// note"],
    ["comment", "# hash"],
    ["keyword", "return"],
    ["number", "42"],
  ]);
});

test("nothing is lost or changed by colouring", () => {
  const pieces = fc.array(
    fc.constantFrom('"', "'", "`", "//", "/*", "*/", "#", "--", "\n", " ", "\\", "if", "x1", "9", "é", "<b>"),
  );
  fc.assert(
    fc.property(pieces, (words) => {
      const code = words.join("");
      expect(
        colourCode(code)
          .map(({ text }) => text)
          .join(""),
      ).toBe(code);
    }),
  );
});

test("fenced code is found, also when the fence never closes", () => {
  expect(splitFences("before\n```ts\nconst a = 1;\n```\nafter")).toEqual([
    { kind: "text", text: "before", language: "" },
    { kind: "code", text: "const a = 1;", language: "ts" },
    { kind: "text", text: "after", language: "" },
  ]);
  expect(splitFences("~~~\ncode").map(({ kind }) => kind)).toEqual(["code"]);
  expect(splitFences("plain").map(({ kind }) => kind)).toEqual(["text"]);
});
