import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import {
  countOf,
  displayWidth,
  formatBytes,
  formatCompression,
  formatSeconds,
  formatShare,
  formatSpan,
  formatTime,
  makePrintable,
  renderCommandLine,
  toOneLine,
  truncateToWidth,
  wrapToWidth,
} from "@lossless/core/doors";
import { renderPairs, renderTable } from "../src/table.ts";
import { renderProgress } from "../src/progress.ts";

describe("width", () => {
  test.each([
    ["plain", 5],
    ["é", 1],
    ["e\u0301", 1],
    ["中文", 4],
    ["ひらがな", 8],
    ["한국어", 6],
    ["🙂", 2],
    ["👩‍👩‍👧", 2],
    ["🇩🇪", 2],
    ["❤️", 2],
    ["a\u001b[31mb\u001b[39m", 2],
    ["", 0],
  ])("%j takes %i columns", (text, columns) => {
    expect(displayWidth(text)).toBe(columns);
  });

  test("a cut text fits and ends with an ellipsis", () => {
    expect(truncateToWidth("中文字符", 5)).toBe("中文…");
    expect(truncateToWidth("short", 5)).toBe("short");
    expect(displayWidth(truncateToWidth("👩‍👩‍👧 family", 4))).toBeLessThanOrEqual(4);
  });

  test("wrapping keeps every character and no line is too wide", () => {
    const text = "words and 没有空格的很长的一段中文文字在这里 and more";
    const lines = wrapToWidth(text, 12);
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(12);
    expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
  });
});

describe("tables", () => {
  const columns = [
    { title: "ID", align: "right" as const },
    { title: "TEXT", flexible: true as const },
    { title: "END" },
  ];

  test("columns line up whatever the script", () => {
    const table = renderTable(
      columns,
      [
        ["1", "中文", "x"],
        ["22", "abc", "y"],
      ],
      { maxWidth: null },
    );
    expect(table).toBe("ID  TEXT  END\n 1  中文  x\n22  abc   y");
  });

  test("on a terminal the flexible column gives way, elsewhere nothing is cut", () => {
    const long = "word ".repeat(30).trim();
    const narrow = renderTable(columns, [["1", long, "x"]], { maxWidth: 40 });
    expect(Math.max(...narrow.split("\n").map(displayWidth))).toBeLessThanOrEqual(40);
    expect(renderTable(columns, [["1", long, "x"]], { maxWidth: null })).toContain(long);
  });

  test("pairs stand under each other", () => {
    expect(
      renderPairs([
        ["a", "1"],
        ["long", "2"],
      ]),
    ).toBe("a     1\nlong  2");
  });
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1000, "1.00 kB"],
  [12_345, "12.3 kB"],
  [999_900, "1.00 MB"],
  [1_234_567_890, "1.23 GB"],
])("%i bytes are %s", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test("counts, times and durations read well", () => {
  expect(countOf(1, "message")).toBe("1 message");
  expect(countOf(1234, "summary", "summaries")).toBe("1,234 summaries");
  expect(formatTime(Date.UTC(2026, 1, 21, 1, 5), "Europe/Berlin")).toBe("2026-02-21 02:05");
  expect(formatTime(null, "UTC")).toBe("–");
  expect(formatSeconds(12.4)).toBe("12 ms");
  expect(formatSeconds(61_000)).toBe("1 min 1 s");
  expect(formatSeconds(600_000)).toBe("10 min");
  expect(formatSeconds(10_800_000)).toBe("3 h");
  expect(formatSeconds(8_100_000)).toBe("2 h 15 min");
});

test("spans, shares and compression read well", () => {
  const at = (day: number, hour: number): number => Date.UTC(2026, 1, day, hour);
  expect(formatSpan(at(2, 7), at(2, 7), "UTC")).toBe("2026-02-02 07:00");
  expect(formatSpan(at(2, 7), at(2, 19), "UTC")).toBe("2026-02-02 07:00–19:00");
  expect(formatSpan(at(2, 7), at(4, 9), "UTC")).toBe("2026-02-02 – 02-04");
  expect(formatSpan(at(2, 7), at(400, 7), "UTC")).toBe("2026-02-02 – 2027-03-07");
  expect(formatSpan(null, null, "UTC")).toBe("–");
  expect(formatShare(1, 3)).toBe("33 %");
  expect(formatShare(1, 1000)).toBe("<1 %");
  expect(formatShare(0, 0)).toBe("0 %");
  expect(formatCompression(1000, 80)).toBe("12.5 : 1");
  expect(formatCompression(1000, 0)).toBe("–");
});

test("stored text cannot steer the terminal", () => {
  expect(makePrintable("a\u001b]0;x\u0007b\r\nc\u009bd\u202Ee")).toBe("a␛]0;x␇b\nc�d�e");
  expect(toOneLine("a\n\n  b\tc")).toBe("a b c");
});

test("a progress line fits its columns", () => {
  const line = renderProgress("Importing", 50, 100, "a long note ".repeat(10), 60);
  expect(displayWidth(line)).toBeLessThanOrEqual(60);
  expect(line).toContain("50 %");
  expect(renderProgress("Empty", 0, 0, "", 60)).toContain("100 %");
});

test("a command line can be pasted back into a shell", () => {
  expect(renderCommandLine(["lcm", "search", "it's here", "--db", "/tmp/x.db"])).toBe(
    String.raw`lcm search 'it'\''s here' --db /tmp/x.db`,
  );
});

test("the short way of measuring agrees with taking the text apart", () => {
  const unit = fc.integer({ min: 0x20, max: 0x26ff }).map((code) => String.fromCodePoint(code));
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 3 }), (text) => {
      // A mark that takes no column forces the long way.
      expect(displayWidth(text)).toBe(displayWidth(`${text}\u200B`));
    }),
    { numRuns: 3_000 },
  );
});
