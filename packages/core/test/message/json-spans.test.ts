import { isDeepStrictEqual } from "node:util";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import {
  decodeLiteral,
  findMember,
  findRoot,
  findSpan,
  iterateElements,
  iterateLongStrings,
  listElements,
  mapMembers,
  mapTextOffsets,
  type JsonSource,
} from "../../src/message/json-spans.ts";
import type { ByteRange } from "../../src/model/message.ts";
import { anyText, jsonValue, writeLiteral } from "./arbitraries.ts";

const sourceOf = (bytes: Buffer): JsonSource => ({ bytes, noted: [] });

const slice = (bytes: Buffer, range: ByteRange | null): string =>
  range === null ? "nothing found" : bytes.toString("utf8", range.at, range.at + range.length);

/** JSON text with arbitrary white space and escapes; `style` decides at every turn. */
function writeOddly(value: unknown, style: (index: number) => number): string {
  let turn = 0;
  const gap = (): string => ["", " ", "\n\t", "\r\n  "][style(turn++) % 4] as string;
  const write = (item: unknown): string => {
    if (typeof item === "string") return writeLiteral(item, () => style(turn++));
    if (Object.is(item, -0)) return "-0";
    if (typeof item !== "object" || item === null) return JSON.stringify(item);
    if (Array.isArray(item)) return `[${gap()}${item.map((one) => write(one) + gap()).join("," + gap())}]`;
    const members = Object.entries(item).map(
      ([key, one]) => write(key) + gap() + ":" + gap() + write(one) + gap(),
    );
    return `{${gap()}${members.join("," + gap())}}`;
  };
  return gap() + write(value) + gap();
}

const styles = fc.array(fc.nat(11), { minLength: 1, maxLength: 40 }).map((numbers) => {
  return (index: number): number => numbers[index % numbers.length] as number;
});

/** Walks the value and the bytes side by side and checks every slice. */
function expectSpansToMatch(source: JsonSource, range: ByteRange, value: unknown): void {
  const { bytes } = source;
  expect(isDeepStrictEqual(JSON.parse(slice(bytes, range)), value)).toBe(true);
  if (Array.isArray(value)) {
    const elements = [...iterateElements(bytes, range)];
    expect(elements).toHaveLength(value.length);
    expect(listElements(source, range)).toEqual(elements);
    for (const [i, element] of elements.entries()) expectSpansToMatch(source, element, value[i]);
  } else if (typeof value === "object" && value !== null) {
    const members = mapMembers(bytes, range);
    expect([...members.keys()].toSorted()).toEqual(Object.keys(value).toSorted());
    for (const [key, member] of Object.entries(value)) {
      expect(findMember(source, range, key)).toEqual(members.get(key));
      expectSpansToMatch(source, members.get(key) as ByteRange, member);
    }
  }
}

describe("spans", () => {
  test("slice to exactly what JSON.parse shows, whatever the white space and escapes", () => {
    fc.assert(
      fc.property(jsonValue(), styles, (value, style) => {
        const bytes = Buffer.from(writeOddly(value, style), "utf8");
        expectSpansToMatch(sourceOf(bytes), findRoot(bytes) as ByteRange, JSON.parse(bytes.toString("utf8")));
      }),
      { numRuns: 300 },
    );
  });

  test("find a value by path", () => {
    const bytes = Buffer.from(' { "a\\u0062" : [ 1, {"x": "q\\"]}", "é": -0 } ] , "b":2}\n');
    expect(slice(bytes, findSpan(sourceOf(bytes), ["ab", 1, "x"]))).toBe('"q\\"]}"');
    expect(slice(bytes, findSpan(sourceOf(bytes), ["ab", 1, "é"]))).toBe("-0");
    expect(slice(bytes, findSpan(sourceOf(bytes), ["b"]))).toBe("2");
    expect(slice(bytes, findSpan(sourceOf(bytes), []))).toBe(bytes.toString().trim());
    expect(findSpan(sourceOf(bytes), ["ab", 2])).toBeNull();
    expect(findSpan(sourceOf(bytes), ["nothing"])).toBeNull();
    expect(findSpan(sourceOf(bytes), ["b", "deeper"])).toBeNull();
  });

  test("take the last of repeated keys, as JSON.parse does", () => {
    const bytes = Buffer.from('{"k":1,"k":{"v":1},"\\u006b":{"v":2}}');
    expect(slice(bytes, findSpan(sourceOf(bytes), ["k", "v"]))).toBe("2");
    expect(slice(bytes, mapMembers(bytes, findRoot(bytes) as ByteRange).get("k") ?? null)).toBe('{"v":2}');
  });

  test("tell keys by their text, not by their bytes", () => {
    const bytes = Buffer.from('{"é":1,"\\u00c3\\u00a9":2,"Ã©":3,"a":4,"ab":5,"\\u0061b":6}');
    const source = sourceOf(bytes);
    expect(slice(bytes, findSpan(source, ["é"]))).toBe("1");
    expect(slice(bytes, findSpan(source, ["Ã©"]))).toBe("3");
    expect(slice(bytes, findSpan(source, ["ab"]))).toBe("6");
    expect(slice(bytes, findSpan(source, ["a"]))).toBe("4");
    expect(findSpan(source, ["abc"])).toBeNull();
    expect(findSpan(source, [""])).toBeNull();
  });

  test("are found among more containers than are noted", () => {
    const value = { list: Array.from({ length: 200 }, (_, i) => ({ id: i, inner: [[{ deep: i }]] })) };
    const bytes = Buffer.from(JSON.stringify(value));
    const source = sourceOf(bytes);
    expectSpansToMatch(source, findRoot(bytes) as ByteRange, value);
    expect(source.noted.length).toBeLessThan(200);
  });

  test("step over values nested 20 000 levels deep", () => {
    const bytes = Buffer.from("[".repeat(20_000) + '"x"' + "]".repeat(20_000));
    expect(slice(bytes, findSpan(sourceOf(bytes), [0, 0]))).toHaveLength(39_999);
    expect(findRoot(bytes)).toEqual({ at: 0, length: bytes.length });
  });

  test("stand behind a byte order mark", () => {
    const bytes = Buffer.from('\ufeff{"a":1}');
    expect(slice(bytes, findSpan(sourceOf(bytes), ["a"]))).toBe("1");
  });

  test("never read out of bounds or hang, whatever the bytes", () => {
    const jsonish = fc.string({ unit: fc.constantFrom(...'[]{}",:\\ \n1tu0aé'), maxLength: 40 });
    fc.assert(
      fc.property(
        fc.oneof(
          jsonish.map((text) => Buffer.from(text)),
          fc.uint8Array().map(Buffer.from),
        ),
        (bytes) => {
          const root = findRoot(bytes);
          if (root === null) return;
          const members = [...mapMembers(bytes, root)];
          const ranges = [root, ...iterateElements(bytes, root), ...members.map(([, range]) => range)];
          const source = sourceOf(bytes);
          expect(listElements(source, root)).toEqual([...iterateElements(bytes, root)]);
          for (const [key, range] of members) expect(findMember(source, root, key)).toEqual(range);
          for (const { at, length } of ranges) {
            expect(at >= 0 && length > 0 && at + length <= bytes.length).toBe(true);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("list long string values but no keys", () => {
    const long = "y".repeat(50);
    const bytes = Buffer.from(`{"${long}" : "${long}", "a": ["short", "${long}\\""]}`);
    expect([...iterateLongStrings(bytes, 50)].map((range) => slice(bytes, range))).toEqual([
      `"${long}"`,
      `"${long}\\""`,
    ]);
  });
});

describe("offsets inside a literal", () => {
  test("cut the literal where the text is cut, whatever the escapes", () => {
    fc.assert(
      fc.property(anyText(), styles, fc.nat(), fc.nat(), (text, style, a, b) => {
        const bytes = Buffer.from(`  ${writeLiteral(text, style)}`, "utf8");
        const literal = { at: 2, length: bytes.length - 2 };
        const decoded = decodeLiteral(bytes, literal) as string;
        expect(decoded).toBe(text);
        const [from, to] = [a % (text.length + 1), b % (text.length + 1)].toSorted((x, y) => x - y) as [
          number,
          number,
        ];
        const offsets = mapTextOffsets(bytes, literal, [from, to]);
        if (offsets === null) {
          expect([from, to].some((position) => splitsPair(text, position))).toBe(true);
          return;
        }
        const inner = `"${bytes.toString("utf8", offsets[0], offsets[1])}"`;
        expect(JSON.parse(inner)).toBe(text.slice(from, to));
      }),
      { numRuns: 500 },
    );
  });

  test("are refused for bytes that are no UTF-8", () => {
    expect(mapTextOffsets(Buffer.from([0x22, 0xff, 0x22]), { at: 0, length: 3 }, [1])).toBeNull();
  });
});

function splitsPair(text: string, position: number): boolean {
  const before = text.codePointAt(position - 1);
  return before !== undefined && before > 0xffff;
}
