import { fc } from "@lossless/testkit/properties.ts";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, test } from "vitest";
import { TOKEN_SAMPLES } from "../../../../bench/token-samples.ts";
import {
  applyFactor,
  calibrate,
  countRepeats,
  estimateSentTokens,
  estimateTextTokens,
  MAX_FACTOR,
  MIN_FACTOR,
  UNCALIBRATED,
} from "../../src/text/tokens.ts";
import type { Calibration } from "../../src/text/tokens.ts";
import { estimatePlainly } from "./plain-estimate.ts";

const anyText = fc.string({ unit: "binary", maxLength: 200 });

/** Texts in which every kind of run meets every other, halves of characters included. */
const mixedText = fc
  .array(
    fc.oneof(
      fc.constantFrom(..." \t\n\raAbZ09.,-={"),
      fc.integer({ min: 0, max: 0xff }).map((unit) => String.fromCharCode(unit)),
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      fc.integer({ min: 0xd800, max: 0xdfff }).map((unit) => String.fromCharCode(unit)),
    ),
    { maxLength: 80 },
  )
  .map((units) => units.join(""));

function calibrateOften(start: Calibration, ratio: number, times: number): Calibration {
  let state = start;
  for (let time = 0; time < times; time++)
    state = calibrate(state, { estimated: 10_000, reported: 10_000 * ratio });
  return state;
}

describe("the token estimate", () => {
  test.each(TOKEN_SAMPLES)("is close to a real tokenizer for $kind", ({ text }) => {
    const real = countTokens(text);
    expect(Math.abs(estimateTextTokens(text) / real - 1)).toBeLessThan(0.15);
  });

  test.each(TOKEN_SAMPLES)("is the same for $kind when it is sent", ({ text }) => {
    expect(estimateSentTokens(text)).toBe(estimateTextTokens(text));
  });

  test("of a text that is sent counts each character of a long run", () => {
    const ascii = Array.from({ length: 128 }, (_, unit) => String.fromCharCode(unit));
    for (const character of [...ascii, ..."éñяα中龘の가ไاअ…→─█😀", "\r\n"])
      for (const times of [16, 17, 31, 100, 1_024]) {
        const text = `a ${character.repeat(times)} word`;
        expect(estimateSentTokens(text), `${times} times ${JSON.stringify(character)}`).toBeGreaterThan(
          0.9 * countTokens(text) - 22,
        );
      }
  });

  test("of a text that is sent counts every run once, wherever it is", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(80), { maxLength: 20 }), fc.nat(9), (lengths, shift) => {
        const runs = lengths.map((length) => "[".repeat(length));
        const extra = lengths.reduce((sum, length) => sum + (length / 2 - 1 < 16 ? 0 : length / 2 - 1), 0);
        expect(countRepeats(`${"ab ".repeat(shift)}${runs.join(" x ")}`)).toBe(Math.round(extra));
      }),
    );
  });

  test("costs nothing for nothing and something for anything", () => {
    expect(estimateTextTokens("")).toBe(0);
    expect(estimateTextTokens(" ")).toBe(1);
    expect(estimateTextTokens("\ud800")).toBeGreaterThan(0);
  });

  test("is the one that stored counts rest on, for any text", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, mixedText), (text) => {
        expect(estimateTextTokens(text)).toBe(estimatePlainly(text));
      }),
      { numRuns: 500 },
    );
  });

  test("does not depend on where a long text is cut to be counted", () => {
    fc.assert(
      fc.property(
        mixedText,
        fc.constantFrom("", "a", "Word ", " ", "\n", "..", "7", "字"),
        fc.nat(70_000),
        (text, run, length) => {
          const long = `${text}${run.repeat(20_000)}${text.repeat(300)}`.slice(0, length);
          expect(estimateTextTokens(long)).toBe(estimatePlainly(long));
        },
      ),
      { numRuns: 60 },
    );
  });

  test.each([["a"], ["Ab1 .\n"], ["\t"], ["字"], ["\ud800"]])(
    "is the same around the length that is counted at once (%j)",
    (run) => {
      for (const length of [16_381, 16_382, 16_383, 16_384, 32_765, 32_766, 32_767]) {
        const text = run.repeat(length).slice(0, length);
        expect(estimateTextTokens(text)).toBe(estimatePlainly(text));
        expect(estimateTextTokens(`${text}!b`)).toBe(estimatePlainly(`${text}!b`));
      }
    },
  );

  test("is a whole number of at most two tokens per unit for any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const tokens = estimateTextTokens(text);
        expect(Number.isInteger(tokens)).toBe(true);
        expect(tokens).toBeGreaterThanOrEqual(text === "" ? 0 : 1);
        expect(tokens).toBeLessThanOrEqual(2 * text.length + 1);
      }),
    );
  });

  test("of a text is close to the sum of its parts", () => {
    fc.assert(
      fc.property(fc.lorem({ maxCount: 40 }), fc.lorem({ maxCount: 40 }), (one, other) => {
        const sum = estimateTextTokens(one) + estimateTextTokens(other);
        expect(Math.abs(estimateTextTokens(`${one} ${other}`) - sum)).toBeLessThanOrEqual(3);
      }),
    );
  });
});

describe("calibration", () => {
  test("learns a model's factor from steady reports", () => {
    expect(calibrateOften(UNCALIBRATED, 1.3, 20).factor).toBeCloseTo(1.3, 1);
    expect(calibrateOften(UNCALIBRATED, 0.8, 20).factor).toBeCloseTo(0.8, 1);
  });

  test("hardly moves for one report that is far off", () => {
    const steady = calibrateOften(UNCALIBRATED, 1.1, 20);
    const after = calibrate(steady, { estimated: 10_000, reported: 90_000 });
    expect(after.factor / steady.factor).toBeLessThan(1.03);
  });

  test.each([
    ["a small request", { estimated: 40, reported: 80 }],
    ["no usage", { estimated: 10_000, reported: 0 }],
    ["rubbish", { estimated: 10_000, reported: Number.NaN }],
    ["endless usage", { estimated: 10_000, reported: Infinity }],
  ])("ignores %s", (_what, report) => {
    expect(calibrate(UNCALIBRATED, report)).toBe(UNCALIBRATED);
  });

  test("stays within its bounds whatever is reported", () => {
    const report = fc.record({ estimated: fc.double(), reported: fc.double() });
    fc.assert(
      fc.property(fc.array(report, { maxLength: 30 }), (reports) => {
        const { factor } = reports.reduce(calibrate, UNCALIBRATED);
        expect(factor).toBeGreaterThanOrEqual(MIN_FACTOR);
        expect(factor).toBeLessThanOrEqual(MAX_FACTOR);
      }),
    );
  });

  test("rounds an applied factor up", () => {
    expect(applyFactor(1001, 1.25)).toBe(1252);
    expect(applyFactor(100, 50)).toBe(180);
  });
});
