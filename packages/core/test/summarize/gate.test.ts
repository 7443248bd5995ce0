import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { acceptSummary, type GateInput } from "../../src/summarize/gate.ts";
import { estimate } from "./sources.ts";

const NAMES = Array.from({ length: 20 }, (_, i) => `handler_${i}`);
const SOURCES =
  `${NAMES.join(" calls ")}. The team looked at the code and the tests. ${NAMES.join(", ")}. `.repeat(4);
const GOOD =
  "The team changed handler_1 and handler_2, and the tests of handler_3 pass.\nExpand for details about: the tests.";

function gate(text: string, change: Partial<GateInput> = {}) {
  const sourcesText = change.sourcesText ?? SOURCES;
  return acceptSummary({
    text,
    sourcesText,
    sourceTokens: estimate(sourcesText),
    targetTokens: 100,
    estimate,
    maxOverageFactor: 3,
    ...change,
  });
}

const reasonOf = (result: ReturnType<typeof gate>): string =>
  result.kind === "rejected" ? result.reason : "accepted";

describe("accepting", () => {
  test("a good summary passes unchanged", () => {
    expect(gate(GOOD)).toEqual({ kind: "accepted", text: GOOD, tokens: estimate(GOOD) });
  });

  test("a missing closing line is added and names what was left out", () => {
    const result = gate("The team changed handler_1 and handler_2 and handler_3.");
    expect(result.kind === "accepted" && result.text).toMatch(
      /handler_3\.\nExpand for details about: handler_\d+(; handler_\d+)+\.$/,
    );
  });

  test("a closing line that is added names no pieces of timestamps", () => {
    const stamps = Array.from(
      { length: 9 },
      (_, i) => `[2026-05-0${i + 1}T09:3${i % 6}:00.000Z] pump_station failed`,
    );
    const result = gate("The station failed nine times in May and was restarted by hand.", {
      sourcesText: [...stamps, ...stamps].join("\n"),
    });
    expect(result.kind === "accepted" && result.text).toMatch(/\nExpand for details about: pump_station\.$/);
  });

  test.each([
    ["a closed block", `<think>What should I say?</think>\n${GOOD}`],
    ["a block with attributes", `<reasoning effort="low">hm</reasoning>${GOOD}`],
    ["an end mark without a start", `I should mention handler_9.</think>\n${GOOD}`],
    ["a block that never ends, after the summary", `${GOOD}\n<thinking>was that all?`],
  ])("reasoning is taken off: %s", (_, text) => {
    expect(gate(text)).toMatchObject({ kind: "accepted", text: GOOD });
  });

  test.each([
    ["a preamble", `Sure! Here is the summary of the conversation:\n${GOOD}`],
    ["a fence", `\`\`\`text\n${GOOD}\n\`\`\``],
    ["a tag", `<summary>\n${GOOD}\n</summary>`],
  ])("wrapping is taken off: %s", (_, text) => {
    expect(gate(text)).toMatchObject({ kind: "accepted", text: GOOD });
  });
});

describe("rejecting", () => {
  test.each([
    ["empty", ""],
    ["empty", " \n\n "],
    ["empty", "Expand for details about: everything."],
    ["reasoning_only", "<think>I wonder"],
    ["reasoning_only", "<think>I wonder.</think>"],
    ["reasoning_only", "Thinking process: first I read the sources."],
    ["refusal", "I'm sorry, but I can't help with that."],
    ["too_long", `handler_1 ${"and the tests of handler_2 pass ".repeat(60)}`],
    [
      "drops_identifiers",
      "The team looked at the code and the tests, and then at the code again.\nExpand for details about: it.",
    ],
  ])("%s", (reason, text) => {
    expect(reasonOf(gate(text))).toBe(reason);
  });

  const short =
    "[2026-05-01 09:30] user: The pump in Lyon stops at 61 dB, order part RX-20 from Boris before Friday please.\n".repeat(
      3,
    );

  test.each([
    [
      "nine words without a fact",
      short,
      "They discussed a problem and agreed on what follows.",
      "drops_identifiers",
    ],
    [
      "the closing line does not count",
      short,
      "They discussed a problem.\nExpand for details about: RX-20.",
      "drops_identifiers",
    ],
    ["one fact is enough", short, "A pump in Lyon is too loud.", "accepted"],
    [
      "words count where nothing else does",
      "We looked for the old boat near the harbour and repaired both sails, the rudder, some ropes and an anchor chain.".repeat(
        2,
      ),
      "Several matters came up again.",
      "drops_identifiers",
    ],
    [
      "sources that say nothing",
      "Yes, thanks, that is fine with me, and with her too. ".repeat(5),
      "All is fine.",
      "accepted",
    ],
  ])("facts of short sources: %s", (_, sourcesText, text, expected) => {
    expect(reasonOf(gate(text, { sourcesText }))).toBe(expected);
  });

  test("not_shorter: a summary as long as its sources", () => {
    expect(reasonOf(gate(GOOD, { sourceTokens: estimate(GOOD) }))).toBe("not_shorter");
  });

  test("an apology inside a real summary is no refusal", () => {
    expect(
      gate(`Sorry, said Mira. ${"Then handler_1 and handler_2 and handler_3 were changed. ".repeat(8)}`, {
        targetTokens: 400,
      }).kind,
    ).toBe("accepted");
  });
});

describe("language", () => {
  const chinese = "我们决定使用数据库，端口是五四三三，负责人是王小明。".repeat(20);
  const german =
    "Wir haben beschlossen, dass der Server nicht mit dem alten Schlüssel läuft und das Team auf eine neue Fassung wartet. ".repeat(
      12,
    );
  const english =
    "The team decided that the server will not run with the old key and that they are waiting for a new version of this. ".repeat(
      3,
    );

  test.each([
    ["Chinese sources, English summary", chinese, english, "wrong_language"],
    [
      "Chinese sources, Chinese summary",
      chinese,
      "我们决定使用数据库，负责人是王小明。端口是五四三三。",
      "accepted",
    ],
    [
      "English sources, Chinese summary",
      english.repeat(6),
      "团队决定不再使用旧的密钥，并且正在等待新的版本发布，由负责人通知大家。",
      "wrong_language",
    ],
    ["German sources, English summary", german, english, "wrong_language"],
    [
      "German sources, German summary",
      german,
      "Das Team wartet auf eine neue Fassung und der Server läuft nicht mit dem alten Schlüssel.",
      "accepted",
    ],
    ["mixed sources, English summary", german + english.repeat(8), english, "accepted"],
  ])("%s", (_, sourcesText, text, expected) => {
    expect(reasonOf(gate(text, { sourcesText, targetTokens: 300 }))).toBe(expected);
  });
});

test("property: what is accepted is never empty, never over the limit, and carries the closing line", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.lorem({ maxCount: 120 }),
        fc.constantFrom("<think>", GOOD, `<think>a</think>${GOOD}`),
      ),
      fc.integer({ min: 5, max: 200 }),
      (text, targetTokens) => {
        const result = gate(text, { targetTokens });
        if (result.kind === "rejected") return;
        expect(result.tokens).toBe(estimate(result.text));
        expect(result.tokens).toBeLessThanOrEqual(targetTokens * 3);
        expect(result.text).toContain("Expand for details about:");
      },
    ),
  );
});
