import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { cutPayloads, findLargePayloads, type Payload } from "../../src/ingest/large-payloads.ts";
import { viewMessage } from "../../src/message/normalize.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";
import { spliceRanges } from "../../src/store/splice.ts";
import { anyText, jsonValue, writeLiteral } from "../message/arbitraries.ts";
import { readTranscriptLines, transcriptFolder } from "../message/shared-data.ts";

const encode = (value: unknown): Buffer => Buffer.from(JSON.stringify(value), "utf8");

function find(bytes: Buffer, thresholdTokens = 100): Payload[] {
  return findLargePayloads(bytes, viewMessage(bytes), { thresholdTokens, estimate: estimateTextTokens });
}

/** Finds, cuts, checks that everything comes back, and returns the body. */
function cut(bytes: Buffer, thresholdTokens = 100): { payloads: Payload[]; body: Buffer } {
  const payloads = find(bytes, thresholdTokens);
  const { body } = cutPayloads(bytes, payloads);
  expect(Buffer.from(spliceRanges(body, payloads)).equals(bytes)).toBe(true);
  return { payloads, body };
}

/** JSON text with everything outside ASCII escaped, as Python writes it by default. */
function encodeAscii(value: unknown): Buffer {
  const json = JSON.stringify(value).replace(/[\u007f-\uffff]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return Buffer.from(json, "latin1");
}

const NOISE = Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * i * 7919 + i * 31) % 256));
const PNG = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), NOISE]);
const PROSE = 'The "quick" brown fox – naïve, 敏捷的狐狸 – jumps.\n'.repeat(60);

describe("finding", () => {
  test("leaves messages alone that are small everywhere", () => {
    expect(find(encode({ role: "user", content: "short" }))).toEqual([]);
    const many = Array.from({ length: 200 }, () => ({ type: "text", text: "a few words" }));
    expect(find(encode({ role: "user", content: many }))).toEqual([]);
  });

  test("takes the inside of a <file> block and keeps the text around it", () => {
    const before = "Please read this:\n";
    const text = `${before}<file name="notes.md" mime="text/markdown">\n${PROSE}</file>\nand answer.`;
    const { payloads, body } = cut(encode({ role: "user", content: text }));
    expect(payloads).toMatchObject([
      {
        kind: "file_block",
        encoding: "json",
        fileName: "notes.md",
        mimeType: "text/markdown",
        partOrdinal: 0,
      },
    ]);
    expect(payloads[0]?.content.toString()).toBe(PROSE.trimEnd());
    expect(JSON.parse(body.toString())).toEqual({
      role: "user",
      content: `${before}<file name="notes.md" mime="text/markdown">\n\n</file>\nand answer.`,
    });
  });

  test("takes several blocks of one text, in any quotes, and none without a name", () => {
    const block = (attributes: string): string => `<file${attributes}>${PROSE}</file>`;
    const text = `${block(" name='a.txt'")} and ${block(" mime=text/csv name=b.csv")}`;
    const { payloads } = cut(encode({ role: "user", content: [{ type: "text", text }] }));
    expect(payloads.map(({ fileName, mimeType }) => [fileName, mimeType])).toEqual([
      ["a.txt", "text/plain"],
      ["b.csv", "text/csv"],
    ]);
    const nameless = cut(encode({ role: "user", content: block("") })).payloads;
    expect(nameless.map(({ kind }) => kind)).toEqual(["text"]);
  });

  test("decodes a <file> block that holds base64", () => {
    const text = `<file name="p.png" mime="image/png">${PNG.toString("base64")}</file>`;
    const { payloads } = cut(encode({ role: "user", content: text }));
    expect(payloads).toMatchObject([
      { kind: "file_block", encoding: "base64", fileName: "p.png", mimeType: "image/png" },
    ]);
    expect(payloads[0]?.content.equals(PNG)).toBe(true);
  });

  test("takes file blocks from the user only", () => {
    const text = `<file name="a.txt">${PROSE}</file>`;
    expect(find(encode({ role: "assistant", content: text })).map(({ kind }) => kind)).toEqual(["text"]);
  });

  test.each([
    ["a block", { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: PROSE }] }],
    [
      "a nested block",
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: PROSE }] }],
      },
    ],
    ["a message of pi", { role: "toolResult", toolCallId: "t", content: [{ type: "text", text: PROSE }] }],
    ["a message of OpenAI", { role: "tool", tool_call_id: "t", content: PROSE }],
    ["an item", { type: "function_call_output", call_id: "t", output: PROSE }],
  ])("takes tool output from %s", (_name, message) => {
    const { payloads } = cut(encode(message));
    expect(payloads).toMatchObject([{ kind: "tool_output", mimeType: "text/plain", partOrdinal: 0 }]);
    expect(payloads[0]?.content.toString()).toBe(PROSE);
  });

  test("knows JSON when a tool prints it", () => {
    const output = JSON.stringify(Array.from({ length: 100 }, (_, id) => ({ id, name: "n" })));
    expect(cut(encode({ role: "tool", content: output })).payloads[0]?.mimeType).toBe("application/json");
  });

  test.each([
    ["pi", { type: "image", data: PNG.toString("base64"), mimeType: "image/png" }],
    [
      "Anthropic",
      { type: "image", source: { type: "base64", media_type: "image/png", data: PNG.toString("base64") } },
    ],
    [
      "OpenAI chat",
      { type: "image_url", image_url: { url: `data:image/png;base64,${PNG.toString("base64")}` } },
    ],
    [
      "OpenAI responses",
      { type: "input_image", image_url: `data:image/png;base64,${PNG.toString("base64")}` },
    ],
  ])("decodes the image of a block of %s", (_name, block) => {
    const { payloads, body } = cut(
      encode({ role: "user", content: [{ type: "text", text: "look" }, block] }),
    );
    expect(payloads).toMatchObject([
      { kind: "image", encoding: "base64", mimeType: "image/png", partOrdinal: 1 },
    ]);
    expect(payloads[0]?.content.equals(PNG)).toBe(true);
    expect(() => JSON.parse(body.toString())).not.toThrow();
  });

  test("takes files with their names", () => {
    const data = Buffer.concat([Buffer.from("%PDF-1.7"), NOISE]).toString("base64");
    const block = {
      type: "file",
      file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` },
    };
    expect(cut(encode({ role: "user", content: [block] })).payloads).toMatchObject([
      { kind: "file", encoding: "base64", fileName: "a.pdf", mimeType: "application/pdf" },
    ]);
  });

  test("takes base64 out of the middle of a text, and the caption stays", () => {
    const text = `[media attached]\n${PNG.toString("base64")}\nWhat is this?`;
    const { payloads, body } = cut(encode({ role: "user", content: text }));
    expect(payloads).toMatchObject([{ kind: "base64", encoding: "base64", mimeType: "image/png" }]);
    expect(JSON.parse(body.toString())).toEqual({
      role: "user",
      content: "[media attached]\n\nWhat is this?",
    });
  });

  test("finds the same data outside of the message, where hosts keep a second copy", () => {
    const data = PNG.toString("base64");
    const line = {
      message: { role: "user", content: [{ type: "image", source: { type: "base64", data } }] },
      toolUseResult: { file: { base64: data } },
    };
    const { payloads, body } = cut(encode(line));
    expect(payloads.map(({ kind, partOrdinal }) => [kind, partOrdinal])).toEqual([
      ["image", 0],
      ["base64", null],
    ]);
    expect(body.length).toBeLessThan(200);
  });

  test("takes the long text between payloads as well", () => {
    const text = `${PROSE}${PNG.toString("base64")} ${PROSE}`;
    expect(cut(encode({ role: "user", content: text })).payloads.map(({ kind }) => kind)).toEqual([
      "text",
      "base64",
      "text",
    ]);
  });

  test("takes long arguments of a call", () => {
    const message = {
      role: "assistant",
      content: [{ type: "tool_use", id: "1", name: "Write", input: { path: "a", text: PROSE } }],
    };
    expect(cut(encode(message)).payloads).toMatchObject([{ kind: "text", partOrdinal: 0 }]);
  });

  test("counts base64 by four characters to a token", () => {
    const bytes = encode({ role: "user", content: [{ type: "image", data: NOISE.toString("base64") }] });
    expect(find(bytes, 1000)).toHaveLength(1);
    expect(find(bytes, 1001)).toHaveLength(0);
  });

  test("takes a text that reaches the threshold and leaves one just below it", () => {
    const tokens = estimateTextTokens(PROSE);
    expect(find(encode({ role: "tool", content: PROSE }), tokens)).toHaveLength(1);
    expect(find(encode({ role: "tool", content: PROSE }), tokens + 1)).toHaveLength(0);
  });
});

describe("the way back", () => {
  test.each([
    ["json", encode({ role: "tool", content: PROSE }), "json"],
    ["json-ascii", encodeAscii({ role: "tool", content: `${PROSE}\x7f\ud83d\ude00` }), "json-ascii"],
    [
      "raw, for escapes nobody else writes",
      Buffer.from(`{"role":"tool","content":"${"\\u0041\\/b ".repeat(200)}"}`),
      "raw",
    ],
    ["raw, for lone surrogates", encode({ role: "tool", content: `${PROSE}\ud800` }), "raw"],
    [
      "raw, for bytes that are no UTF-8",
      Buffer.from(`{"role":"tool","content":"${"caf\xe9 ".repeat(300)}"}`, "latin1"),
      "raw",
    ],
  ])("is %s", (_name, bytes, encoding) => {
    expect(cut(bytes).payloads).toMatchObject([{ encoding }]);
  });

  test.each([
    ["with padding", NOISE.subarray(0, 2998).toString("base64"), "base64"],
    ["without padding", NOISE.subarray(0, 2998).toString("base64").replace(/=+$/, ""), "json"],
    ["in lines", `${NOISE.toString("base64").replace(/.{76}/g, "$&\r\n")}`, "json"],
    ["with a bit too many", `${NOISE.subarray(0, 2998).toString("base64").slice(0, -3)}B==`, "json"],
  ])("is exact for base64 %s", (_name, data, encoding) => {
    const { payloads } = cut(
      encode({ role: "user", content: [{ type: "image", data, mimeType: "image/png" }] }),
    );
    expect(payloads).toMatchObject([{ kind: "image", encoding }]);
    expect(payloads[0]?.mimeType).toBe(encoding === "base64" ? "image/png" : "text/plain");
  });

  test("is exact for base64 whose slashes are escaped", () => {
    const bytes = Buffer.from(
      JSON.stringify({ role: "user", content: NOISE.toString("base64") }).replaceAll("/", "\\/"),
    );
    expect(cut(bytes).payloads).toMatchObject([{ encoding: "raw" }]);
  });

  test("is exact for any message, escapes and threshold", () => {
    const piece = fc.oneof(
      { weight: 3, arbitrary: anyText() },
      fc.constantFrom(
        '<file name="a.txt">',
        "</file>",
        "<file mime='x/y' name=b>",
        "data:image/png;base64,",
        "\n",
        PROSE,
      ),
      fc.uint8Array({ minLength: 200, maxLength: 400 }).map((bytes) => Buffer.from(bytes).toString("base64")),
    );
    const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
    const style = fc.oneof(
      fc.constant(null),
      fc
        .array(fc.nat(8), { minLength: 1, maxLength: 9 })
        .map((numbers) => (i: number) => numbers[i % numbers.length] as number),
    );
    const input = fc.record({
      role: fc.constantFrom("user", "assistant", "tool", "toolResult"),
      text,
      other: fc.oneof(text, jsonValue()),
      style,
      threshold: fc.integer({ min: 1, max: 120 }),
      isAscii: fc.boolean(),
    });
    fc.assert(
      fc.property(input, ({ role, text: content, other, style: choose, threshold, isAscii }) => {
        const message = {
          role,
          content: [
            { type: "text", text: content },
            { type: "tool_result", content: other },
          ],
          other,
        };
        const json = isAscii ? encodeAscii(message) : encode(message);
        const literal = choose
          ? Buffer.from(`{"role":"${role}","content":${writeLiteral(content, choose)}}`)
          : json;
        const { body } = cut(literal, threshold);
        expect(() => JSON.parse(body.toString("utf8"))).not.toThrow();
      }),
      { numRuns: 300 },
    );
  });

  test("is exact for any bytes", () => {
    const jsonish = fc.string({ unit: fc.constantFrom(...'[]{}",:\\ \n1tu0aé'), maxLength: 60 });
    fc.assert(
      fc.property(
        fc.oneof(
          jsonish.map((text) => Buffer.from(text)),
          fc.uint8Array().map(Buffer.from),
        ),
        (bytes) => {
          cut(bytes, 1);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("refuses to cut what would not come back", () => {
    const bytes = encode({ role: "tool", content: PROSE });
    const [payload] = find(bytes) as [Payload];
    expect(() => cutPayloads(bytes, [{ ...payload, encoding: "json-ascii" }])).toThrow("does not come back");
    expect(() => cutPayloads(bytes, [payload, payload])).toThrow("overlap");
    expect(() => cutPayloads(bytes.subarray(0, 50), [payload])).toThrow("outside");
  });
});

describe.each(["claude-code", "pi-v3-derived", "pi", "codex"])("the real transcripts of %s", (name) => {
  const folder = transcriptFolder(name);

  test.skipIf(folder === null)(
    "come back exactly at every threshold (skipped without the shared data)",
    () => {
      let found = 0;
      for (const bytes of readTranscriptLines(folder as string)) {
        for (const threshold of [20, 2000]) {
          const payloads = find(bytes, threshold);
          found += payloads.length;
          const { body } = cutPayloads(bytes, payloads);
          expect(bytes.equals(spliceRanges(body, payloads))).toBe(true);
        }
      }
      expect(found).toBeGreaterThan(0);
    },
  );
});
