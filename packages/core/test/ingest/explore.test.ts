import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { exploreContent, extensionFor } from "../../src/ingest/explore.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";

const explore = (text: string, fileName?: string, mimeType?: string): string =>
  exploreContent({ bytes: Buffer.from(text), fileName, mimeType });

describe("exploreContent", () => {
  test("shows the shape of JSON", () => {
    const value = { id: 1, tags: ["a", "b"], user: { name: "Ann", deep: { x: 1 } }, none: null };
    expect(explore(JSON.stringify(value))).toBe(
      "JSON object, 74 bytes, 4 keys\n" +
        "{id: number, tags: array(2) of string, user: {name: string, deep: object(1 key)}, none: null}",
    );
    expect(explore('[{"a":1},{"a":2}]')).toBe("JSON array, 17 bytes, 2 elements\nEach: {a: number}");
  });

  test("counts lines of JSON and shows the first", () => {
    expect(explore('{"a":1}\n{"a":2}\n')).toBe("JSON lines, 16 bytes, 2 lines\nFirst: {a: number}");
    expect(explore("oops\n", "x.jsonl")).toContain("First line (no JSON): oops");
  });

  test("names the columns of a table and counts its rows", () => {
    expect(explore('id,name\n1,"Ann, ""A"""\n2,"two\nlines"\n', "a.csv")).toBe(
      'CSV table, 37 bytes, 2 rows, 2 columns: id, name\nFirst row: 1 | Ann, "A"',
    );
    expect(explore("a\tb\r\n1\t2\r\n", "x.tsv")).toBe(
      "TSV table, 10 bytes, 1 row, 2 columns: a, b\nFirst row: 1 | 2",
    );
    expect(explore("x;y\n1;2\n", undefined, "text/csv; charset=utf-8")).toContain("2 columns: x, y");
  });

  test.each([
    [
      "a.ts",
      'import { readFile } from "node:fs";\nimport type { A } from "./a.ts";\nexport interface Box {}\nexport async function open(a: A) {}\nconst add = (x: number) => x + 1;\n',
      ["TypeScript source", "Imports: node:fs, ./a.ts", "Declares: interface Box, function open, const add"],
    ],
    [
      "a.py",
      "import os, sys\nfrom json import loads\n\nclass Tree:\n    def grow(self):\n        pass\n",
      ["Python source", "Imports: os, sys, json", "Declares: class Tree, def grow"],
    ],
    [
      "a.go",
      'package main\n\nimport (\n\t"example.com/x/y"\n)\n\nfunc (s *S) Run() error {\n}\ntype S struct {}\n',
      ["Go source", "example.com/x/y", "Declares: func Run, type S"],
    ],
    [
      "a.rs",
      "use std::io;\npub fn main() {}\nimpl<T> Foo for T {}\n",
      ["Rust source", "Imports: std::io", "fn main"],
    ],
    ["a.sql", "CREATE TABLE users (id INT);\n", ["SQL source", "CREATE TABLE users"]],
  ])("lists imports and symbols of %s", (fileName, text, expected) => {
    for (const piece of expected) expect(explore(text, fileName)).toContain(piece);
  });

  test("knows code that a tool printed with line numbers", () => {
    const code = [
      'import { a } from "./a.ts";',
      "",
      "function one() {",
      "  return a;",
      "}",
      "",
      "class Two {}",
      "export function three(): void {",
      "  one();",
      "}",
    ];
    const listing = code.map((line, i) => `${String(i + 1).padStart(6)}→${line}`).join("\n");
    expect(explore(listing)).toMatch(
      /^Numbered listing of source, \d+ bytes, 10 lines\nImports: \.\/a\.ts\nDeclares: function one, class Two, function three$/,
    );
    expect(explore(code.join("\n"))).toContain("Unnamed source");
  });

  test("lists the headings of Markdown, but not comments in its code", () => {
    const text = "# Title\n\nHello there.\n\n## Setup ##\n\n```sh\n# not a heading\n```\n### Deep\n";
    expect(explore(text, "README.md")).toBe(
      "Markdown, 71 bytes, 10 lines, 3 headings\n# Title / ## Setup / ### Deep\nStarts: Hello there.",
    );
  });

  test("names roots of XML and YAML and the headings of HTML", () => {
    const xml =
      '<?xml version="1.0"?><!-- <no> --><feed a="1"><entry/><entry>hi</entry><title>T</title></feed>';
    expect(explore(xml)).toContain("root <feed>\nBelow it: entry × 2, title");
    expect(explore("a: 1\nb:\n  c: 2\n'd e': x\n", "x.yml")).toContain("Top-level keys: a, b, d e");
    expect(explore("- 1\n- 2\n", "x.yaml")).toContain("A list of 2 items");
    const html =
      "<!doctype html><html><head><title>Hi</title></head><script>x</script><h1>One <b>two</b></h1>";
    expect(explore(html)).toMatch(/Title: Hi\nHeadings: One two\nText: One two$/);
  });

  test("counts the levels of a log and shows its span and first error", () => {
    const lines = Array.from({ length: 20 }, (_, i) => {
      return `2026-01-02T10:00:${String(i).padStart(2, "0")}Z ${i === 7 ? "ERROR disk on fire" : "INFO tick"}`;
    });
    const summary = explore(lines.join("\n"));
    expect(summary).toContain("From 2026-01-02T10:00:00 to 2026-01-02T10:00:19");
    expect(summary).toContain("Levels: INFO 19, ERROR 1");
    expect(summary).toContain("First error: 2026-01-02T10:00:07Z ERROR disk on fire");
  });

  test("shows how plain text begins and what it is about", () => {
    const text = `The lighthouse keeper wrote. ${"The keeper cleaned the lamp of the lighthouse. ".repeat(40)}`;
    const summary = explore(text);
    expect(summary).toMatch(
      /^Text, 1\.9 kB, 1 line\nKeywords: keeper, lighthouse, cleaned, lamp\nStarts: The lighthouse/,
    );
    expect(summary).toContain("Ends: …");
  });

  test.each([
    ["PNG", "89504e470d0a1a0a0000000d49484452000002800000 01e00806", "640 × 480"],
    ["GIF", "474946383961 8002 e001 f70000", "640 × 480"],
    ["JPEG", "ffd8 ffe0 0004 0000 ffc0 0011 08 01e0 0280 03 0000", "640 × 480"],
    ["WEBP", `52494646 00000000 57454250 56503858 0a000000 00000000 7f0200 df0100`, "640 × 480"],
    ["WEBP", `52494646 00000000 57454250 5650384c 0a000000 2f 7fc27700 0000000000`, "640 × 480"],
    ["WEBP", `52494646 00000000 57454250 56503820 0a000000 000000 9d012a 8002 e001`, "640 × 480"],
  ])("reads the size of a %s image", (name, hex, pixels) => {
    const bytes = Buffer.from(hex.replaceAll(" ", ""), "hex");
    expect(exploreContent({ bytes })).toBe(`${name} image, ${pixels} pixels, ${bytes.length} bytes`);
  });

  test("says what other binary files are", () => {
    expect(exploreContent({ bytes: Buffer.from("%PDF-1.7\n\0\0") })).toBe(
      "Binary file, application/pdf, 11 bytes",
    );
    expect(exploreContent({ bytes: Buffer.alloc(10), mimeType: "font/ttf" })).toBe(
      "Binary file, font/ttf, 10 bytes",
    );
    expect(exploreContent({ bytes: Buffer.alloc(0) })).toBe("Empty file");
  });

  test("stays near 200 tokens, answers the same twice, and takes any bytes under any name", () => {
    const extensions = [
      "csv",
      "tsv",
      "jsonl",
      "md",
      "html",
      "xml",
      "yaml",
      "log",
      "ts",
      "py",
      "txt",
      "json",
      "png",
    ];
    const heads = fc.constantFrom(
      "",
      "<a><!--",
      "# h\n",
      "a,b\n",
      '{"a":',
      "<html><script>",
      "\x89PNG\r\n\x1a\n",
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 3000 }).map(Buffer.from),
      fc
        .tuple(heads, fc.string({ maxLength: 3000, unit: "grapheme" }))
        .map(([head, rest]) => Buffer.from(head + rest)),
    );
    fc.assert(
      fc.property(bytes, fc.constantFrom(...extensions), (content, extension) => {
        const file = { bytes: content, fileName: `f.${extension}` };
        const summary = exploreContent(file);
        expect(summary.length).toBeLessThan(1000);
        expect(exploreContent(file)).toBe(summary);
      }),
      { numRuns: 500 },
    );
    const prose = explore("Many different ordinary words follow each other here and there. ".repeat(500));
    expect(estimateTextTokens(prose)).toBeLessThan(260);
  });

  test.each(["<a ", "<!--", "<script ", "<h1>", "a ", "# ", '"', "[", "{"])(
    "describes a megabyte of nothing but %j",
    (piece) => {
      const text = piece.repeat(Math.floor(1_000_000 / piece.length));
      for (const extension of ["xml", "html", "md", "yaml", "csv", "log", "ts", "txt"]) {
        expect(explore(text, `f.${extension}`)).not.toBe("");
      }
    },
  );
});

describe("extensionFor", () => {
  test.each([
    [{ fileName: "Report.CSV" }, "csv"],
    [{ fileName: "archive.tar.gz" }, "gz"],
    [{ fileName: "no-extension", mimeType: "image/jpeg" }, "jpg"],
    [{ fileName: "evil.txt/../../x" }, "txt"],
    [{ fileName: "evil.p h p" }, "txt"],
    [{ mimeType: "text/x-unknown" }, "txt"],
    [{ mimeType: "application/x-unknown" }, "bin"],
    [{ mimeType: "Application/JSON; charset=utf-8" }, "json"],
    [{ mimeType: "constructor" }, "bin"],
    [{}, "txt"],
  ])("gives %j the extension %s", (label, extension) => {
    expect(extensionFor(label)).toBe(extension);
  });

  test("is always safe", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (fileName, mimeType) => {
        expect(extensionFor({ fileName, mimeType })).toMatch(/^[a-z0-9]{1,8}$/);
      }),
    );
  });
});
