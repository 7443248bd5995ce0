import { open, truncate, writeFile, type FileHandle } from "node:fs/promises";
import { join } from "node:path";

import { fc } from "@lossless/testkit/properties.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { describe, expect, onTestFinished, test } from "vitest";

import { readLineRuns, readLines, type Line, type ReadLinesOptions } from "../src/transcript/lines.ts";

import { makeTemporaryDirectory } from "@lossless/testkit";

async function openFile(content: string | Buffer): Promise<{ file: FileHandle; path: string; end: number }> {
  const path = join(makeTemporaryDirectory(), "file.jsonl");
  await writeFile(path, content);
  const file = await open(path, "r");
  onTestFinished(() => file.close());
  return { file, path, end: Buffer.byteLength(content) };
}

async function collect(content: string | Buffer, options: Partial<ReadLinesOptions> = {}): Promise<Line[]> {
  const { file, path, end } = await openFile(content);
  const lines: Line[] = [];
  for await (const line of readLines(file, { path, end, ...options })) lines.push(line);
  return lines;
}

function textOf(line: Line): string {
  return Buffer.from(line.bytes).toString("latin1");
}

describe("readLines", () => {
  test("gives every line with its number and place, blank lines and carriage returns included", async () => {
    const lines = await collect('{"a":1}\r\n\n x');
    expect(
      lines.map((line) => [textOf(line), line.lineNumber, line.offset, line.endOffset, line.terminated]),
    ).toEqual([
      ['{"a":1}\r', 1, 0, 9, true],
      ["", 2, 9, 10, true],
      [" x", 3, 10, 12, false],
    ]);
  });

  test("gives nothing for an empty file and no extra line behind the last line feed", async () => {
    expect(await collect("")).toEqual([]);
    expect((await collect("a\n")).map(textOf)).toEqual(["a"]);
  });

  test("starts at an offset with the number it is told, and stops at the end it is told", async () => {
    const lines = await collect("one\ntwo\nthree\nfour\n", { offset: 4, lineNumber: 2, end: 11 });
    expect(lines.map((line) => [textOf(line), line.lineNumber, line.terminated])).toEqual([
      ["two", 2, true],
      ["thr", 3, false],
    ]);
  });

  test("gives the same lines from a buffer that is used again, for as long as they hold", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(0x0a, 0x61, 0x62, 0xff), { maxLength: 60 }),
        fc.integer({ min: 1, max: 9 }),
        async (values, chunkBytes) => {
          const { file, path, end } = await openFile(Buffer.from(values));
          const seen: string[] = [];
          for await (const lines of readLineRuns(file, { path, end, chunkBytes, reusesBuffer: true }))
            seen.push(...lines.map(textOf));
          expect(seen).toEqual((await collect(Buffer.from(values))).map(textOf));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("puts any bytes back together, whatever the size of a chunk", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(0x0a, 0x0d, 0x61, 0xff, 0x00), { maxLength: 60 }),
        fc.integer({ min: 1, max: 9 }),
        async (values, chunkBytes) => {
          const content = Buffer.from(values);
          const lines = await collect(content, { chunkBytes });
          const joined = lines.map((line) => textOf(line) + (line.terminated ? "\n" : "")).join("");
          expect(joined).toBe(content.toString("latin1"));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("refuses a line beyond the limit with its number, size and the limit, after giving the lines before it", async () => {
    const { file, path, end } = await openFile(`ok\n${"x".repeat(5000)}\nnext\n`);
    const seen: string[] = [];
    const reading = (async () => {
      for await (const line of readLines(file, { path, end, maxLineBytes: 100, chunkBytes: 64 }))
        seen.push(textOf(line));
    })();
    await expect(reading).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringMatching(/line 2 has 5000 bytes, the limit is 100/u),
    });
    expect(seen).toEqual(["ok"]);
  });

  test.runIf(isSoak)("measures a line of a gigabyte without holding it", async () => {
    const { file, path } = await openFile("ok\n");
    const size = 2 ** 30;
    await truncate(path, size);
    const before = process.memoryUsage().rss;
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20);
    onTestFinished(() => clearInterval(watch));
    const seen: string[] = [];
    const reading = (async () => {
      for await (const line of readLines(file, { path, end: size })) seen.push(textOf(line));
    })();
    await expect(reading).rejects.toMatchObject({ code: "invalid_input" });
    expect(seen).toEqual(["ok"]);
    expect(peak - before).toBeLessThan(200 * 2 ** 20);
  });

  test("stops between chunks when it is told to", async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(collect("a\n", { signal: controller.signal })).rejects.toMatchObject({ code: "aborted" });
  });
});
