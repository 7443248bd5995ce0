import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { base64ByteLength, findBase64Spans, hideBase64 } from "../../src/message/base64.ts";

/** Bytes whose base64 surely mixes capitals, small letters and digits. */
const noise = fc
  .uint8Array({ minLength: 192, maxLength: 900 })
  .map((bytes) => Buffer.concat([Buffer.from("Aa0zZ9"), Buffer.from(bytes)]));
const prose = fc.lorem({ maxCount: 8, mode: "sentences" });

describe("base64 in a text", () => {
  test("is found to the character, wherever it stands", () => {
    fc.assert(
      fc.property(prose, noise, prose, (before, bytes, after) => {
        const base64 = bytes.toString("base64");
        const text = `${before} ${base64} ${after}`;
        const start = before.length + 1;
        expect(findBase64Spans(text)).toEqual([
          { start, end: start + base64.length, outerStart: start, byteLength: bytes.length },
        ]);
      }),
    );
  });

  test("is found as a data URL, with its type", () => {
    fc.assert(
      fc.property(prose, noise, (before, bytes) => {
        const url = `data:Image/PNG;charset=x;base64,${bytes.toString("base64")}`;
        const [run] = findBase64Spans(`${before}(${url})`);
        expect(run).toMatchObject({
          outerStart: before.length + 1,
          mimeType: "image/png",
          byteLength: bytes.length,
        });
      }),
    );
  });

  test("is found in lines of equal length", () => {
    fc.assert(
      fc.property(
        noise,
        fc.constantFrom("\n", "\r\n"),
        fc.constantFrom(60, 64, 76),
        (bytes, newline, width) => {
          const lines = bytes.toString("base64").match(new RegExp(`.{1,${width}}`, "g")) as string[];
          const wrapped = lines.join(newline);
          const [run, ...more] = findBase64Spans(`see:\n${wrapped}\n\nend`);
          expect(more).toEqual([]);
          expect(run?.start).toBe(5);
          expect(run?.end).toBe(5 + wrapped.length);
        },
      ),
    );
  });

  test("leaves a note behind, and all other text as it is", () => {
    fc.assert(
      fc.property(prose, noise, prose, (before, bytes, after) => {
        const { text, hiddenBytes } = hideBase64(`${before} ${bytes.toString("base64")} ${after}`);
        expect(text).toBe(`${before} [base64 data, ${bytes.length} bytes] ${after}`);
        expect(hiddenBytes).toBe(bytes.length);
      }),
    );
  });

  test("is never seen in prose", () => {
    fc.assert(
      fc.property(fc.lorem({ maxCount: 100 }), (text) => {
        expect(findBase64Spans(text)).toEqual([]);
      }),
    );
  });

  test("has the size that decoding would give", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.boolean(), (bytes, isPadded) => {
        const base64 = Buffer.from(bytes).toString("base64");
        expect(base64ByteLength(isPadded ? base64 : base64.replace(/=+$/, ""))).toBe(bytes.length);
        expect(base64ByteLength(base64.replace(/.{8}/g, "$&\r\n"))).toBe(bytes.length);
      }),
    );
  });
});
