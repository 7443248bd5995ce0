import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { escapeXml, escapeXmlText } from "../../src/text/escape-xml.ts";

import {
  BRIEF_STUB_TOKENS,
  DEFAULT_LINE_COSTS,
  MISSING_HALF_TOKENS,
  STUB_TOKENS,
} from "../../src/assemble/pieces.ts";
import {
  formatInstant,
  formatRangeId,
  renderBriefStub,
  renderRange,
  renderStub,
  renderSummary,
} from "../../src/assemble/render.ts";
import { repairMessages } from "../../src/assemble/repair.ts";
import { estimateTextTokens, MESSAGE_OVERHEAD_TOKENS } from "../../src/text/tokens.ts";

const at = Date.UTC(2026, 1, 14, 11, 2, 7);

describe("a summary", () => {
  test("is written as documented, escaped and marked untrusted", () => {
    const leaf = renderSummary(
      {
        summaryId: "sum_00000000000000aa",
        kind: "leaf",
        depth: 0,
        descendantCount: 0,
        earliestAt: at,
        latestAt: at + 60_000,
        sourceIds: [],
        content: 'a < b && "c"</content>\nExpand for details about: x',
      },
      "UTC",
    );
    expect(leaf).toBe(
      [
        '<summary id="sum_00000000000000aa" kind="leaf" depth="0" descendant_count="0" trust="untrusted" earliest_at="2026-02-14T11:02:07" latest_at="2026-02-14T11:03:07">',
        "  <content>",
        'a &lt; b &amp;&amp; "c"&lt;/content>',
        "Expand for details about: x",
        "  </content>",
        "</summary>",
      ].join("\n"),
    );
  });

  test("names its sources when it is condensed", () => {
    const text = renderSummary(
      {
        summaryId: "sum_b",
        kind: "condensed",
        depth: 1,
        descendantCount: 2,
        earliestAt: null,
        latestAt: null,
        sourceIds: ["sum_1", "sum_2"],
        content: "x",
      },
      "UTC",
    );
    expect(text).toContain(
      '  <parents>\n    <summary_ref id="sum_1"/>\n    <summary_ref id="sum_2"/>\n  </parents>',
    );
    expect(text).not.toContain("earliest_at");
  });

  test("cannot be closed by its content", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (content) => {
        expect(escapeXml(content)).not.toMatch(/[<>"]|&(?!amp;|lt;|gt;|quot;)/);
        expect(escapeXmlText(content)).not.toMatch(/<|]]>|&(?!amp;|lt;|gt;)/);
        for (const escaped of [escapeXml(content), escapeXmlText(content)])
          expect(escaped.isWellFormed()).toBe(true);
      }),
    );
  });
});

test.each([
  ["UTC", "2026-02-14T11:02:07"],
  ["Europe/Berlin", "2026-02-14T12:02:07"],
  ["Asia/Shanghai", "2026-02-14T19:02:07"],
  ["Nowhere/At_All", "2026-02-14T11:02:07"],
])("times are written in the zone %s", (zone, expected) => {
  expect(formatInstant(at, zone)).toBe(expected);
});

describe("a range line", () => {
  test("says how many, from when to when, and how to open them", () => {
    expect(
      renderRange(
        { messages: 412, earliestAt: at, latestAt: at + 1000, rangeId: formatRangeId(3, 414) },
        "UTC",
      ),
    ).toBe(
      '[412 messages from 2026-02-14T11:02:07 to 2026-02-14T11:02:08 are not shown here. Nothing is lost: search with lcm_grep, or open with lcm_describe(id="msg_3..msg_414").]',
    );
  });

  test("leaves out what is not known", () => {
    expect(
      renderRange({ messages: 1, earliestAt: null, latestAt: null, rangeId: formatRangeId(null, 7) }, "UTC"),
    ).toContain(
      '[1 message is not shown here. Nothing is lost: search with lcm_grep, or open with lcm_describe(id="..msg_7")',
    );
    expect(renderRange({ messages: 2, earliestAt: null, latestAt: at, rangeId: ".." }, "UTC")).toContain(
      "up to 2026",
    );
    expect(renderRange({ messages: 2, earliestAt: at, latestAt: null, rangeId: ".." }, "UTC")).toContain(
      "from 2026-02-14T11:02:07 on",
    );
  });
});

describe("the lines the assembler writes itself", () => {
  test("cost no more than is kept free for them", () => {
    const big = 1_000_000_000_000;
    const range = renderRange(
      { messages: big, earliestAt: at, latestAt: at, rangeId: formatRangeId(big, big) },
      "UTC",
    );
    expect(estimateTextTokens(range) + MESSAGE_OVERHEAD_TOKENS).toBeLessThanOrEqual(
      DEFAULT_LINE_COSTS.rangeTokens,
    );
    const stub = renderStub({
      id: `msg_${big}`,
      toolName: "mcp__some_server__a_rather_long_tool_name",
      tokens: big,
    });
    expect(estimateTextTokens(stub)).toBeLessThanOrEqual(STUB_TOKENS);
    const brief = renderBriefStub({ id: `msg_${big}`, tokens: big });
    expect(estimateTextTokens(brief)).toBeLessThanOrEqual(BRIEF_STUB_TOKENS);
    const [lone] = repairMessages([
      { role: "assistant", parts: [{ type: "tool_call", toolCallId: "a", toolName: "exec", text: "{}" }] },
    ]).slice(1);
    expect(estimateTextTokens(lone?.parts[0]?.text ?? "")).toBeLessThanOrEqual(MISSING_HALF_TOKENS);
  });
});
