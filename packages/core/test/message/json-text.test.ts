import { isDeepStrictEqual } from "node:util";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { serializeExact } from "../../src/message/json-text.ts";
import { EngineError } from "../../src/model/errors.ts";
import { jsonValue } from "./arbitraries.ts";

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(EngineError);
    expect((error as EngineError).code).toBe("invalid_input");
    return (error as EngineError).message;
  }
  return "nothing was refused";
}

function nest(levels: number, leaf: unknown): unknown {
  let value = leaf;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { in: value, "": null };
  return value;
}

/** Levels of nesting, counted without recursion, and the leaf found at the end. */
function measure(root: unknown): { levels: number; leaf: unknown } {
  let value = root;
  let levels = 0;
  while (typeof value === "object" && value !== null) {
    value = Array.isArray(value) ? value[0] : (value as { in: unknown }).in;
    levels++;
  }
  return { levels, leaf: value };
}

describe("serializeExact", () => {
  test("gives text that parses back deeply equal, in the same key order", () => {
    fc.assert(
      fc.property(jsonValue(), (value) => {
        const back: unknown = JSON.parse(serializeExact(value));
        expect(isDeepStrictEqual(back, value)).toBe(true);
        expect(listKeys(back)).toEqual(listKeys(value));
      }),
      { numRuns: 500 },
    );
  });

  test("writes what JSON.stringify writes wherever that loses nothing", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const expected = JSON.stringify(value);
        fc.pre(isDeepStrictEqual(JSON.parse(expected), value));
        expect(serializeExact(value)).toBe(expected);
      }),
    );
  });

  test("survives UTF-8 with lone surrogates, because they are escaped", () => {
    const value = { "\udc00": "a\ud800b", pair: "\ud83d\ude00" };
    const bytes = Buffer.from(serializeExact(value), "utf8");
    expect(JSON.parse(bytes.toString("utf8"))).toStrictEqual(value);
  });

  test.each([
    ["-0", -0, "-0"],
    ["-0 inside", [{ a: -0 }], '[{"a":-0}]'],
    ["1e21", 1e21, "1e+21"],
    ["the smallest number", 5e-324, "5e-324"],
    ["null", null, "null"],
    ["an own __proto__ key", JSON.parse('{"__proto__":-0}'), '{"__proto__":-0}'],
    ["undefined members", { a: undefined, b: -0, c: undefined }, '{"b":-0}'],
    ["undefined elements", [undefined, 1], "[null,1]"],
    ["empty containers", [{}, [], -0], "[{},[],-0]"],
    ["a date, by its toJSON", { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["an object without prototype", Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ["a boxed number", Object(7), "7"],
  ])("writes %s", (_name, value: unknown, expected) => {
    expect(serializeExact(value)).toBe(expected);
  });

  test("writes values nested 20 000 levels deep", () => {
    const text = serializeExact(nest(20_000, "leaf"));
    expect(measure(JSON.parse(text))).toEqual({ levels: 20_000, leaf: "leaf" });
  });

  test("writes a string of 10 MB", () => {
    const value = { text: 'ä"\n\ud800'.repeat(2_500_000) };
    expect((JSON.parse(serializeExact(value)) as typeof value).text === value.text).toBe(true);
  });

  test("names the place it cannot write", () => {
    const circular: { list: unknown[] } = { list: [] };
    circular.list.push({ me: circular });
    expect(messageOf(() => serializeExact(undefined))).toContain("$ is undefined");
    expect(messageOf(() => serializeExact({ a: [1, 2n] }))).toContain("$.a[1] is a BigInt");
    expect(messageOf(() => serializeExact({ "odd key": { f() {} } }))).toContain(
      '$["odd key"].f is a function',
    );
    expect(messageOf(() => serializeExact([Symbol("s")]))).toContain("$[0] is a symbol");
    expect(messageOf(() => serializeExact({ a: { b: Number.NaN } }))).toContain("$.a.b is NaN");
    expect(messageOf(() => serializeExact([Infinity]))).toContain("$[0] is Infinity");
    expect(messageOf(() => serializeExact(circular))).toContain("$.list[0].me is a circular reference");
    expect(messageOf(() => serializeExact({ m: new Map() }))).toContain("$.m is a Map");
  });

  test("writes a shared object twice, which is no circle", () => {
    const shared = { n: -0 };
    expect(serializeExact([shared, shared])).toBe('[{"n":-0},{"n":-0}]');
  });
});

function listKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(listKeys);
  if (typeof value !== "object" || value === null) return null;
  return Object.entries(value).map(([key, member]) => [key, listKeys(member)]);
}
