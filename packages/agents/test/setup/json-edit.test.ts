/** JSON changed in place: everything else keeps its bytes, comments and large numbers included. */
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { findNode, insertChild, parseJsonc, removeChild, toValue } from "../../src/setup/json-edit.ts";
import { configText } from "./config-text.ts";

const parse = (text: string): NonNullable<ReturnType<typeof parseJsonc>> => {
  const node = parseJsonc(text);
  if (node === null) throw new Error(`not JSON: ${text}`);
  return node;
};

test.each([
  ['{"a":1}', '{"a":1,"x":{"y":[1]}}'],
  ['{ "a": 1 }', '{ "a": 1, "x":{"y":[1]} }'],
  ["{}", '{\n  "x": {\n    "y": [\n      1\n    ]\n  }\n}'],
  ['{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"x": {\n\t\t"y": [\n\t\t\t1\n\t\t]\n\t}\n}\n'],
  ['{\n  "a": 1 // one\n}', '{\n  "a": 1, // one\n  "x": {\n    "y": [\n      1\n    ]\n  }\n}'],
  ['{\r\n  "a": 1,\r\n}', '{\r\n  "a": 1,\r\n  "x": {\r\n    "y": [\r\n      1\r\n    ]\r\n  },\r\n}'],
])("%j", (before, after) => {
  expect(insertChild(before, parse(before), "x", { y: [1] })).toBe(after);
  const node = parse(after);
  const removed = removeChild(after, node, node.children.length - 1);
  expect(removed.replaceAll(/\s/gu, "")).toBe(before.replaceAll(/\s/gu, ""));
  if (before !== "{}") expect(removed).toBe(before);
});

test.each([
  "",
  "{",
  '{"a"}',
  "{'a':1}",
  '{"a":1,,}',
  "[1 2]",
  '{"a":01x}',
  '{"a":1}}',
  "/* open",
  '{"a":"\n"}',
])("%j is not JSON", (text) => {
  expect(parseJsonc(text)).toBeNull();
});

test("a comment does not swallow what follows the entry on the same line", () => {
  const text = '{"a":1, // c\n"x":{},"b":2}';
  const node = parse(text);
  const removed = removeChild(text, node, 1);
  expect(toValue(removed, parse(removed))).toEqual({ a: 1, b: 2 });
  expect(removed).toContain("// c\n");
});

describe("for any configuration", () => {
  test("reading agrees with JSON.parse", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(toValue(text, parse(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  test("what is put in is there, nothing else changes, and taking it out gives the bytes back", () => {
    fc.assert(
      fc.property(configText(), fc.jsonValue(), (text, value) => {
        const before = parse(text);
        const added = insertChild(text, before, "ours", value);
        expect(toValue(added, parse(added))).toEqual({
          ...(toValue(text, before) as object),
          ours: JSON.parse(JSON.stringify(value)) as unknown,
        });
        for (const digits of text.match(/\d{17,}/gu) ?? []) expect(added).toContain(digits);
        const node = parse(added);
        const removed = removeChild(added, node, node.children.length - 1);
        if (before.children.length > 0) expect(removed).toBe(text);
        else expect(removed.replaceAll(/\s/gu, "")).toBe(text.replaceAll(/\s/gu, ""));
      }),
      { numRuns: 400 },
    );
  });

  test("items of lists, too", () => {
    fc.assert(
      fc.property(configText(), (text) => {
        const list = findNode(parse(text), ["list"]);
        if (list?.kind !== "array" || list.children.length === 0) return;
        const added = insertChild(text, list, null, { ours: true });
        const node = findNode(parse(added), ["list"])!;
        expect(node.children).toHaveLength(list.children.length + 1);
        expect(removeChild(added, node, node.children.length - 1)).toBe(text);
      }),
      { numRuns: 400 },
    );
  });
});
