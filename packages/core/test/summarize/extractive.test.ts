import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { viewMessage } from "../../src/message/normalize.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";
import { FALLBACK_MARKER, summarizeExtractively } from "../../src/summarize/extractive.ts";
import type { SourceLine } from "../../src/summarize/source.ts";
import { answer, estimate, say, summary, withParts, workSession } from "./sources.ts";

const DATA = process.env.LCM_SHARED_DATA ?? path.resolve(import.meta.dirname, "../../../../../shared/data");

function summarize(sources: readonly SourceLine[], targetTokens: number, depth = 0) {
  return summarizeExtractively({ sources, depth, targetTokens, estimate, timeZone: "UTC" });
}

describe("what an extractive summary keeps", () => {
  const { text } = summarize(workSession(), 260);

  test("keeps decisions, constraints, dates, paths, names and numbers", () => {
    for (const fact of [
      "src/upload/retry.ts",
      "2026-03-01",
      "at most 5 attempts",
      "409",
      "backoffMs",
      "250",
    ]) {
      expect(text).toContain(fact);
    }
  });

  test("keeps the command that failed together with its error", () => {
    expect(text).toMatch(/`npm test -- upload` → Error: expected 5 attempts, received 6/);
  });

  test("says when and who", () => {
    expect(text).toMatch(/^2026-02-14 UTC$/m);
    expect(text).toMatch(/^11:00 Mira: /m);
    expect(text).toMatch(/^11:\d\d assistant: /m);
  });

  test("drops chatter and bulk output", () => {
    expect(text).not.toContain("weekend");
    expect(text).not.toContain("copied object into the cache");
  });

  test("reports an edit as an edit, with a small change spelled out", () => {
    expect(text).toContain("`MAX = 9` → `MAX_ATTEMPTS = 5`");
  });

  test("ends with the closing line", () => {
    expect(text.split("\n").at(-1)).toMatch(/^Expand for details about: .+\.$/);
  });
});

describe("form", () => {
  test("gives times in the configured zone and falls back to UTC for an unknown one", () => {
    const zoned = (timeZone: string): string =>
      summarizeExtractively({ sources: workSession(), depth: 0, targetTokens: 300, estimate, timeZone }).text;
    expect(zoned("Asia/Tokyo")).toMatch(/^2026-02-14 Asia\/Tokyo\n20:00 Mira/);
    expect(zoned("Not/AZone")).toMatch(/^2026-02-14 UTC\n11:00 Mira/);
  });

  test("writes the fallback marker only when asked", () => {
    const marked = summarizeExtractively({
      sources: workSession(),
      depth: 0,
      targetTokens: 300,
      estimate,
      timeZone: "UTC",
      marker: true,
    });
    expect(marked.text.startsWith(`${FALLBACK_MARKER}\n`)).toBe(true);
    expect(summarize(workSession(), 300).text).not.toContain(FALLBACK_MARKER);
  });

  test("lists the newest state of a task list", () => {
    const todo = (status: string): SourceLine =>
      withParts(
        "assistant",
        [
          {
            type: "tool_call",
            toolName: "todo",
            text: `todo\ntodos\ncontent: Reset backoffMs\nstatus: ${status}\ncontent: Write the changelog\nstatus: pending`,
          },
        ],
        20,
      );
    const { text } = summarize([...workSession(), todo("pending"), answer("ok", 20), todo("completed")], 320);
    expect(text).toMatch(/open tasks: Write the changelog; done: Reset backoffMs/i);
    expect(text.match(/open tasks/gi)).toHaveLength(1);
  });

  test("never shows reasoning", () => {
    const secret = withParts(
      "assistant",
      [{ type: "reasoning", text: "The hidden_plan_token must stay hidden." }],
      30,
    );
    expect(summarize([...workSession(), secret], 400).text).not.toContain("hidden_plan_token");
  });

  test("does not take a host's notification for the user's words", () => {
    const notice = say(
      "user",
      "<task-notification>\n<status>completed</status>\nIndexing of catalogue_v2 must be repeated.\n</task-notification>",
      42,
    );
    expect(summarize([...workSession(), notice], 400).text).not.toMatch(/user: .*catalogue_v2/);
  });
});

describe("size", () => {
  test.each([64, 128, 512, 1200])(
    "stays within %i tokens and uses them when there is enough to say",
    (target) => {
      const many = Array.from({ length: 8 }, (_, i) =>
        say(
          "user",
          `Decision ${i}: service-${i} must use port ${4000 + i} and the file etc/svc_${i}.toml, because owner_${i} asked for it.`,
          i,
        ),
      );
      const { text, tokens } = summarize(
        [
          ...workSession(),
          ...many,
          ...many.map((line, i) => ({
            ...line,
            id: `again${i}`,
            text: `${line.text} Note ${i * 7}: table_${i} has ${i * 1000} rows.`,
          })),
        ],
        target,
      );
      expect(tokens).toBe(estimate(text));
      expect(tokens).toBeLessThanOrEqual(target);
      if (target <= 512) expect(tokens).toBeGreaterThanOrEqual(target * 0.75);
    },
  );

  test("is shorter than its sources even when the target is not", () => {
    const sources = [
      say("user", "The new host is db-7.internal on port 5433, decided by Ana on Friday.", 0),
      say("assistant", "Noted.", 1),
    ];
    const { tokens } = summarize(sources, 5_000);
    expect(tokens).toBeLessThan(sources.reduce((sum, source) => sum + estimate(source.text), 0));
  });

  test("property: any sources give a deterministic text within the target", () => {
    const part = fc.record({
      type: fc.constantFrom(
        "text",
        "tool_call",
        "tool_result",
        "reasoning",
        "image",
        "file",
        "other",
      ) as fc.Arbitrary<"text">,
      text: fc.oneof(
        fc.string({ unit: "grapheme", maxLength: 300 }),
        fc.lorem({ maxCount: 40 }),
        fc.json({ maxDepth: 2 }),
      ),
    });
    const source = fc.record({
      id: fc.string({ maxLength: 4 }),
      kind: fc.constantFrom("message" as const, "summary" as const),
      role: fc.constantFrom("user", "assistant", "tool"),
      at: fc.option(fc.integer({ min: 0, max: 4e12 })),
      text: fc.string({ unit: "grapheme", maxLength: 400 }),
      parts: fc.array(part, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(
        fc.array(source, { maxLength: 12 }),
        fc.integer({ min: 24, max: 600 }),
        fc.nat(3),
        (sources, target, depth) => {
          const first = summarize(sources, target, depth);
          expect(first).toEqual(summarize(sources, target, depth));
          expect(first.tokens).toBeLessThanOrEqual(target);
          expect(first.text).not.toBe("");
        },
      ),
      { numRuns: 150 },
    );
  });

  test("time grows with the text, not with its square, on hostile lines", () => {
    const before = process.cpuUsage();
    const hostile = [
      "-".repeat(200_000),
      "`a. B ".repeat(40_000),
      "x".repeat(300_000),
      "{".repeat(50_000),
      "a.".repeat(60_000),
    ];
    const { tokens } = summarize(
      hostile.flatMap((text, i) => [
        say("user", text, i),
        answer(text, i),
        withParts("assistant", [{ type: "tool_call", text }], i),
      ]),
      500,
    );
    expect(tokens).toBeLessThanOrEqual(500);
    // Work that grows with the square of a text's length would take minutes.
    expect(process.cpuUsage(before).user).toBeLessThan(20_000_000);
  });
});

describe("languages", () => {
  test("summarises Chinese sentence by sentence", () => {
    const sources = [
      say("user", "你好！今天天气不错。我们决定数据库使用 PostgreSQL 16，端口是 5433。", 0),
      say("assistant", "好的。", 1),
      ...Array.from({ length: 10 }, (_, i) => say("user", `哈哈，谢谢你${"啊".repeat(i)}。`, 2 + i)),
      say("user", "注意：不要在周五部署，负责人是王小明。", 20),
    ];
    const { text } = summarize(sources, 60);
    expect(text).toContain("我们决定数据库使用 PostgreSQL 16，端口是 5433。");
    expect(text).toContain("不要在周五部署，负责人是王小明");
    expect(text).not.toContain("哈哈");
  });
});

describe("condensing", () => {
  const leaf = (from: number): SourceLine => summary(summarize(workSession(), 240).text, from);

  test("merges what two summaries share and keeps what matters", () => {
    const other = summary(
      "2026-02-15 UTC\n09:10 Mira: We must ship on Monday, 2026-03-02 instead.\n09:12 assistant: Edited `src/upload/queue.ts` (defines drainQueue; uses UploadJob).\nExpand for details about: the queue test.",
      60,
    );
    const { text } = summarize([leaf(0), leaf(1), other], 220, 1);
    expect(text.match(/at most 5 attempts/g)).toHaveLength(1);
    expect(text).toContain("2026-03-02");
    expect(text).toContain("`src/upload/queue.ts` (defines drainQueue");
    expect(text.match(/Expand for details about:/g)).toHaveLength(1);
  });

  test("keeps the day and the speaker of each line", () => {
    const { text } = summarize(
      [leaf(0), summary("2026-02-15 UTC\n09:10 Ana: The budget is limited to 12,000 EUR.", 60)],
      200,
      1,
    );
    expect(text).toMatch(/^2026-02-14 UTC$/m);
    expect(text).toMatch(/^2026-02-15\n09:10 Ana: The budget is limited to 12,000 EUR\.$/m);
  });

  test("condenses a model's prose too", () => {
    const prose =
      "The team settled on SQLite for storage. Tests run with vitest. The old importer in src/import/v1.ts was deleted.\n\nExpand for details about: importer history.";
    const { text } = summarize([summary(prose, 0), summary(prose.replace("SQLite", "PostgreSQL"), 5)], 60, 2);
    expect(text).toContain("settled on");
    expect(text).toContain("src/import/v1.ts");
  });

  test("says less about what the summary before already said", () => {
    const sources = [
      say("user", "The importer reads catalogue_feed.xml at night.", 0),
      say("user", "The exporter writes invoice_batch.csv at noon.", 1),
      ...Array.from({ length: 10 }, (_, i) =>
        say("assistant", "Sounds good to me, thanks a lot, that is fine.", 2 + i),
      ),
    ];
    const given = (previous: string): string =>
      summarizeExtractively({ sources, depth: 0, targetTokens: 34, estimate, timeZone: "UTC", previous })
        .text;
    expect(given("The importer reads catalogue_feed.xml at night.")).toContain("invoice_batch.csv");
    expect(given("The exporter writes invoice_batch.csv at noon.")).toContain("catalogue_feed.xml");
  });
});

describe.skipIf(!hasTranscripts())("real transcripts (skipped when ../shared/data is absent)", () => {
  const folder = path.join(DATA, "transcripts/claude-code");

  test("every run of every session is summarised within its target, the same each time", () => {
    for (const file of readdirSync(folder)) {
      for (const run of cutRuns(path.join(folder, file), 60_000)) {
        const input = {
          sources: run,
          depth: 0,
          targetTokens: 900,
          estimate: estimateTextTokens,
          timeZone: "UTC",
        };
        const first = summarizeExtractively(input);
        expect(first.tokens).toBeLessThanOrEqual(900);
        expect(summarizeExtractively(input).text).toBe(first.text);
        expect(first.text).toMatch(/Expand for details about: /);
      }
    }
  });
});

function hasTranscripts(): boolean {
  try {
    return readdirSync(path.join(DATA, "transcripts/claude-code")).length > 0;
  } catch {
    return false;
  }
}

function cutRuns(file: string, chars: number): SourceLine[][] {
  const runs: SourceLine[][] = [[]];
  let size = 0;
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const view = viewMessage(Buffer.from(line));
    if (!view.isMessage) continue;
    const text = view.parts.map((part) => part.text).join("\n");
    size += text.length;
    if (size > chars) {
      runs.push([]);
      size = 0;
    }
    runs.at(-1)?.push({
      id: String(size),
      kind: "message",
      role: view.role,
      at: view.createdAt ?? null,
      text,
      parts: view.parts,
    });
  }
  return runs.filter((run) => run.length > 0);
}
