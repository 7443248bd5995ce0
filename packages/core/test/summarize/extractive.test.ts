import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { viewMessage } from "../../src/message/normalize.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";
import { FALLBACK_MARKER, summarizeExtractively } from "../../src/summarize/extractive.ts";
import { rankNames, renderNameList } from "../../src/summarize/name-list.ts";
import { parseSummaryLines } from "../../src/summarize/summary-lines.ts";
import { cutUnits } from "../../src/summarize/summary-units.ts";
import { zoneClock } from "../../src/summarize/time.ts";
import { Vocabulary } from "../../src/summarize/terms.ts";
import type { SourceLine } from "../../src/summarize/source.ts";
import { renderClosingLine, splitClosingLine } from "../../src/summarize/closing-line.ts";
import { act, answer, estimate, say, summary, withParts, workSession } from "./sources.ts";

const DATA = process.env.LCM_SHARED_DATA ?? path.resolve(import.meta.dirname, "../../../../../shared/data");

function summarize(sources: readonly SourceLine[], targetTokens: number, depth = 0) {
  return summarizeExtractively({ sources, depth, targetTokens, estimate, timeZone: "UTC" });
}

/** What no summary keeps: a summary is always shorter than its sources. */
const small = (minute: number): SourceLine[] =>
  Array.from({ length: 40 }, () => say("assistant", "Sounds good to me, thanks a lot!", minute));

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

  test("keeps what an agent measured rather than what it says around it", () => {
    const talk = [..."abcdefghijkl"].map((part, i) =>
      say("assistant", `Part_${part} fails and must never be changed because of its layout.`, i),
    );
    const measured = say("assistant", "The table has 1,184,302 rows and takes 612 MB.", 20);
    const { text: short } = summarize([say("user", "How large is it?", 0), measured, ...talk], 80);
    expect(short).toContain("1,184,302 rows");
  });

  test("keeps the command that failed together with its error", () => {
    expect(text).toMatch(/`npm test -- upload` → Error: expected 5 attempts, received 6/);
  });

  test("says when and who", () => {
    expect(text).toMatch(/^2026-02-14 UTC$/m);
    expect(text).toMatch(/^Goal, 2026-02-14 11:00, Mira: "Please fix the flaky upload /m);
    expect(text).toMatch(
      /^11:03 Mira decided: "We decided to keep at most 5 attempts; never retry on HTTP 409\."$/m,
    );
    expect(text).toMatch(/^11:41 Mira: "Yes, add it /m);
    expect(text).toMatch(/^11:\d\d assistant: /m);
  });

  test("says the time again only after a while, for another speaker, and on another day", () => {
    const said = [
      say("user", "The eel ladder must stay open.", 0, "Ana"),
      say("user", "The heron must never see it.", 3, "Ben"),
      say("user", "The otter must pay at least 5 EUR.", 9, "Ana"),
      say("user", "The weir must be closed by 18:00.", 70, "Ben"),
      say("user", "The mill must stand still on Sundays.", 60 * 14, "Ana"),
    ];
    const thanks = Array.from({ length: 20 }, (_, i) =>
      say("user", "Sounds good to me, thanks.", 900 + i, "Ben"),
    );
    expect(
      summarize([...said, ...thanks], 100)
        .text.split("\n")
        .slice(0, -1),
    ).toEqual([
      "2026-02-14 UTC",
      "11:00 Ana: The eel ladder must stay open.",
      "11:03 Ben: The heron must never see it.",
      "Ana: The otter must pay at least 5 EUR.",
      "12:10 Ben: The weir must be closed by 18:00.",
      "2026-02-15",
      "01:00 Ana: The mill must stand still on Sundays.",
    ]);
  });

  test("prefers what people talk about to how they say it", () => {
    const nods = Array.from({ length: 12 }, (_, i) =>
      say("user", "Agreed, Caroline. We must never forget that, it is so important.", i, "Melanie"),
    );
    const story = say("user", "The kids saw the Perseid shower from the Kettle Ridge camp.", 20, "Caroline");
    expect(summarize([...nods, story], 40).text).toContain("Kettle Ridge");
  });

  test("gives each call its own result, in whatever order they come", () => {
    const call = (toolCallId: string, command: string) => ({
      type: "tool_call" as const,
      toolName: "Bash",
      toolCallId,
      text: `Bash\ncommand: ${command}`,
    });
    const result = (toolCallId: string, text: string, isError: boolean): SourceLine =>
      withParts("tool", [{ type: "tool_result", toolCallId, text, isError }], 1);
    const { text: told } = summarize(
      [
        say("user", "Please test it and push it.", 0),
        withParts("assistant", [call("a", "npm test -- weir"), call("b", "git push origin weir")], 1),
        result("b", "error: failed to push some refs to the weir", true),
        result("a", "Error: expected 5 gates, received 6", true),
        ...small(2),
      ],
      200,
    );
    expect(told).toMatch(/`npm test -- weir` → Error: expected 5 gates, received 6/);
    expect(told).toMatch(/`git push origin weir` → error: failed to push/);
  });

  test("does not say that an edit was made which was refused", () => {
    const edit = (path: string): SourceLine =>
      act(
        "Edit",
        { file_path: path, old_string: "x", new_string: "export function openSluice(level: number) {" },
        1,
      );
    const tell = (isError: boolean): string =>
      summarize(
        [
          say("user", "Please open the sluice.", 0),
          edit("src/sluice.ts"),
          answer(isError ? "The user does not want this change." : "The file has been updated.", 1, isError),
          say("assistant", "The sluice has 12 gates and 340 bolts.", 2),
          ...small(3),
        ],
        200,
      ).text;
    expect(tell(false)).toMatch(/[Ee]dited `src\/sluice\.ts`/);
    expect(tell(false)).toContain("got `export function openSluice");
    expect(tell(true)).toMatch(/[Cc]ould not edit `src\/sluice\.ts`.* → The user does not want this change/);
    expect(tell(true)).not.toContain(" got ");
    expect(tell(true)).not.toContain("now says");
  });

  test("takes the first request that asks for something as the goal", () => {
    const said = [say("user", "/mode", 0), say("user", "hi", 1), say("user", "Please count the gates.", 2)];
    expect(summarize([...said, say("assistant", "There are 12 gates.", 3), ...small(4)], 100).text).toMatch(
      /^Goal, 2026-02-14 11:02, user: "Please count the gates\."$/m,
    );
  });

  test("keeps the first request of a session with tools, however little it says beside all that was done", () => {
    const work = (from: number): SourceLine[] =>
      Array.from({ length: 40 }, (_, i) => from + i).flatMap((i) => [
        say("user", `never call openSluice${i} or closeSluice${i} before weirLevel${i}`, i),
        act("bash", { command: `npm test -- gate${i}` }, i),
        answer("ok", i),
      ]);
    const goal = /^Goal, 2026-02-14 11:00, user: "can you have a look at that"$/m;
    const leaf = summarize([say("user", "can you have a look at that", 0), ...work(0)], 300).text;
    expect(leaf).toMatch(goal);
    const later = [1, 2, 3].map((n) =>
      summary(summarize([summary(leaf, 0), ...work(40 * n)], 300).text.replace(/^Goal.*\n/m, ""), 60 * n),
    );
    expect(summarize([summary(leaf, 0), ...later], 200, 1).text).toMatch(goal);
  });

  test("does not quote a bare command to the host", () => {
    const said = [
      say("user", "The sluice must stay shut.", 0),
      say("assistant", "The sluice stays shut.", 1),
      say("user", "/exit", 2),
    ];
    const filler = Array.from({ length: 12 }, (_, i) =>
      say("assistant", `Gate ${i} has ${i}40 bolts.`, 3 + i),
    );
    const { text: short } = summarize([...said, ...filler], 70);
    expect(short).toContain("The sluice must stay shut.");
    expect(short).not.toContain("/exit");
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
    expect(zoned("Asia/Tokyo")).toMatch(/^Goal, 2026-02-14 20:00, Mira: .*\n2026-02-14 Asia\/Tokyo\n/);
    expect(zoned("Not/AZone")).toMatch(/^Goal, 2026-02-14 11:00, Mira: .*\n2026-02-14 UTC\n/);
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
    expect(text).toMatch(/^Done: Reset backoffMs\.\nOpen: Write the changelog\.$/m);
    expect(text.match(/^Open: /gm)).toHaveLength(1);
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

describe("what people wrote", () => {
  const request =
    "Move the uploader to the new queue. Keep the old endpoint until March, and do not touch the billing code while you are at it; Ana owns that.";
  const noise = Array.from({ length: 30 }, (_, i) =>
    say(
      "assistant",
      `Step ${i}: the queue worker_${i} reads queue/part_${i}.ts and calls drainPart_${i} once more.`,
      i + 5,
    ),
  );
  const sources = [
    say("user", request, 0),
    say("assistant", "The uploader has two entry points.", 1),
    say("user", "no, three: you forgot the CLI", 2),
    say("user", "let's go with a limit of 100", 3),
    ...noise,
  ];

  test("the first request stays whole, through condensing too", () => {
    const leaf = summarize(sources, 400).text;
    expect(leaf).toContain(`user: "${request}"`);
    const condensed = summarize([summary(leaf, 0), summary(summarize(noise, 300).text, 60)], 300, 1).text;
    expect(condensed).toMatch(/^Goal, 2026-02-14 11:00, user: "/);
    expect(condensed).toContain(request);
  });

  test("corrections and short messages are quoted, decisions marked", () => {
    const { text } = summarize(sources, 400);
    expect(text).toMatch(/^11:02 user: "no, three: you forgot the CLI"$/m);
    expect(text).toMatch(/^11:03 user decided: "let's go with a limit of 100"$/m);
  });

  test("a decision keeps the reason that follows it", () => {
    const said =
      "We decided to store the queue in SQLite. Because the host has no Redis. The rest is as before.";
    const { text } = summarize([...noise, say("assistant", said, 40)], 300);
    expect(text).toContain(
      "decided: We decided to store the queue in SQLite. Because the host has no Redis.",
    );
  });

  test("what a host injected is not quoted as the user's words", () => {
    const injected = [
      "Base directory for this skill: /skills/review\n\nAlways write review_notes.md first.",
      "<system-reminder>The file secret_plan.md was changed.</system-reminder>look at the queue",
      "<command-message>review</command-message><command-name>/review</command-name><command-args>42</command-args>",
      "[Request interrupted by user for tool use]",
      "Read HEARTBEAT.md if it exists. Follow it strictly. If nothing needs attention, reply HEARTBEAT_OK.",
      "why did you reply HEARTBEAT_OK to me?",
    ].map((text, i) => say("user", text, i + 1));
    const { text } = summarize([say("user", request, 0), ...injected, ...noise], 400);
    expect(text).not.toMatch(/review_notes|secret_plan|Base directory|interrupted|HEARTBEAT\.md/);
    expect(text).toContain('user: "why did you reply HEARTBEAT_OK to me?"');
    expect(text).toContain('user: "look at the queue"');
    expect(text).toContain('user: "/review 42"');
  });

  test("says what comes next, and forgets it when something newer does", () => {
    const next = say("assistant", "The worker is done. Now let me run the queue tests.", 41);
    const leaf = summarize([...noise, next], 300).text;
    expect(leaf).toMatch(/^Next: Now let me run the queue tests\.$/m);
    const later = summarize(
      [summary(leaf, 41), summary("11:50 assistant: All queue tests pass.", 50)],
      300,
      1,
    );
    expect(later.text).not.toMatch(/^Next: /m);
  });
});

describe("names", () => {
  const names = (text: string): string =>
    text.split("\n").find((line) => /^(?:Files|Functions|Names): /.test(line)) ?? "";
  const session = Array.from({ length: 12 }, (_, i) => [
    act(
      "Edit",
      {
        file_path: `/repo/src/part_${i}.ts`,
        old_string: "a",
        new_string: `drainPart${i}(queueLimit);\nmode = 0o600;`,
      },
      i,
    ),
    answer(
      "The file has been updated successfully. 2026-05-01T09:30:00Z fmt.Errorf example.org/imports/of/others",
      i,
    ),
    act("Bash", { command: `npm test -- part_${i} 2>&1 | tail -5` }, i),
    answer("ok", i),
  ]).flat();

  test("are grouped for a reader, without debris", () => {
    const line = names(summarize(session, 260).text);
    expect(line).toMatch(/unctions: drainPart\d+, drainPart\d+/);
    expect(line).toMatch(/; commands run: npm test -- part_\d+/);
    expect(line).not.toMatch(/0o600|00Z|Errorf|example\.org|2>&1|tail/);
  });

  test("do not take a call of the console, a program or an address for a file, nor an escaped character for a name", () => {
    const vocabulary = new Vocabulary();
    const others = "Node.js shows cursor.com/assets/fix_in_web.png as u003cimg_of";
    vocabulary.observe(`console.log(gate); see logs/console.log; ${others}`, 0, "agent");
    const listed = rankNames(vocabulary, 1).map((id) => vocabulary.terms[id]?.text);
    expect(listed.toSorted()).toEqual(["fix_in_web.png", "logs/console.log"]);
  });

  test("leave out commands of everyday work", () => {
    const push = [act("Bash", { command: "git push" }, 20), answer("ok", 20)];
    const line = names(summarize([...session, ...push], 260).text);
    expect(line).toMatch(/; commands run: npm test -- part_\d+/);
    expect(line).not.toContain("git push");
  });

  test("leave out errors that name nothing", () => {
    const failed = ["FAIL", "Exit code 2", "panic: gate_7 is stuck"].flatMap((result, i) => [
      act("Bash", { command: `make part_${i}` }, i),
      answer(result, i, true),
    ]);
    const { units } = cutUnits(failed, {
      clock: zoneClock("UTC"),
      vocabulary: new Vocabulary(),
      isStart: true,
      isCondensed: false,
      cutVerbatim: (text) => text,
    });
    expect(units.map(({ error }) => error).filter((error) => error !== "")).toEqual([
      "panic: gate_7 is stuck",
    ]);
  });

  test("leave out a command that another one contains", () => {
    const quoted = ["make lint && make test", "make lint", "make every part"].map((text) => ({
      group: "commands run" as const,
      text,
    }));
    const list = (room: number) =>
      renderNameList({ vocabulary: new Vocabulary(), ranked: [], covered: new Set(), quoted, room });
    expect(list(1_000)).toEqual(["Commands run: make lint && make test, make every part"]);
    expect(list(200)).toEqual(["Commands run: make lint && make test"]);
  });

  test("list a file once, with the path by which it is used most", () => {
    const edits = Array.from({ length: 6 }, (_, i) => [
      act("Bash", { command: `make check src/tide/moon.ts # ${i}` }, i),
      answer("ok", i),
      say(
        "assistant",
        `Part ${i} of tide/moon.ts is at least as long as it must be, because of its figures.`,
        i,
      ),
    ]).flat();
    const files = /Files: ([^;\n]*)/.exec(summarize(edits, 400).text)?.[1]?.split(", ") ?? [];
    expect(files.filter((file) => file.endsWith("moon.ts")).length).toBeLessThan(2);
  });

  test("a path that is too long for the list does not hide the name of its file", () => {
    const vocabulary = new Vocabulary();
    const far = `a/${"very/".repeat(15)}far/away/sluice.ts`;
    const ids = [far, "away/sluice.ts"].map((path) => vocabulary.observe(path, 0, "agent")[0] as number);
    vocabulary.weigh(1, { recency: 0, isWork: true });
    const list = (room: number): string[] =>
      renderNameList({ vocabulary, ranked: ids, covered: new Set(), quoted: [], room });
    expect(list(40)).toEqual(["Files: away/sluice.ts"]);
    expect(list(400)).toEqual([`Files: ${far}`]);
  });

  test("count more where an agent works with tools", () => {
    const plain = Array.from({ length: 30 }, (_, i) => [
      say("assistant", `The harbour gets another lantern before winter number ${i} begins.`, 2 * i),
      say("assistant", `Then readQueue${i} feeds drainQueue${i}.`, 2 * i + 1),
    ]).flat();
    const count = (text: string): number => new Set(text.match(/(?:read|drain)Queue\d+/g)).size;
    const call = [act("Bash", { command: "make" }, 60), answer("ok", 60)];
    expect(count(summarize([...plain, ...call], 300).text)).toBeGreaterThan(
      count(summarize(plain, 300).text) + 3,
    );
  });

  test("the newest and most used survive condensing", () => {
    const leaves = [0, 1, 2].map((nth) =>
      summary(summarize(session.slice(nth * 16, nth * 16 + 16), 260).text, nth * 10),
    );
    const { text } = summarize(leaves, 260, 1);
    expect(text).toContain("part_11.ts");
    expect(text).toMatch(/functions: .*drainPart\d+/i);
  });

  test.each([120, 300, 900])("take at most a quarter of a summary of %i tokens", (target) => {
    const { text } = summarize(session, target);
    const listed = [...text.matchAll(/\((?:defines )?[^\s(),;]+(?:(?:, |; uses )[^\s(),;]+)+\)/g)].map(
      ([list]) => list,
    );
    expect([names(text), ...listed].join("").length).toBeLessThanOrEqual(text.length / 4);
  });
});

describe("the closing line", () => {
  test("names the output and the files below, the largest first", () => {
    const run = [
      act("Read", { file_path: "/repo/src/queue.ts" }, 0),
      answer("const depth = 1;\n".repeat(400), 0),
      act("Bash", { command: "npm run report" }, 1),
      answer("line of the report\n".repeat(60), 1),
    ];
    expect(summarize(run, 600).text.split("\n").at(-1)).toBe(
      "Expand for details about: the text of `/repo/src/queue.ts`; the output of `npm run report`.",
    );
  });

  test("names something shorter where the largest output has too long a name", () => {
    const run = [
      act("Read", { file_path: `/repo/packages/harbour/src/${"deep/".repeat(6)}queue.ts` }, 0),
      answer("const depth = 1;\n".repeat(400), 0),
      act("Bash", { command: "make" }, 1),
      answer("line of the report\n".repeat(60), 1),
    ];
    expect(summarize(run, 240).text.split("\n").at(-1)).toBe(
      "Expand for details about: the output of `make`.",
    );
  });

  test("says how many messages it stands for where nothing in particular was left out", () => {
    const line = renderClosingLine([], 6);
    expect(line).toBe("Expand for details about: the exact wording of 6 messages.");
    expect(splitClosingLine(`Said.\n${line}`)).toEqual({ body: "Said.", topics: [] });
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
      "<system-reminder>".repeat(60_000),
      "<env ".repeat(60_000),
      "[Request interrupted by user".repeat(30_000),
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

  test("leaves out short questions that say nothing far from their answers", () => {
    const opening = say("user", "Please look after the harbour.", 0);
    const asked = Array.from("abcdefghijklmnopqrst", (gate, i) => say("user", `and ${gate}?`, i + 1));
    const rule = say("user", "Nothing from the north sluice gets sold in April.", 30);
    const sources = [opening, ...asked, rule, say("assistant", "Written down.", 31)];
    expect(summarize(sources, 40, 0).text).toContain('"and a?"');
    expect(summarize(sources, 40, 1).text).not.toContain('"and');
    expect(summarize(sources, 60, 1).text).toContain("north sluice");
  });

  test("knows who spoke a line that has no time", () => {
    const before =
      "2026-02-15 UTC\n09:10 Ana: The eel ladder stays.\nAna: The weir must close by 18:00.\nNote: see above.";
    const lines = parseSummaryLines(before, { date: "2026-02-16", time: "08:00" });
    expect(lines.map(({ date, time, speaker, text }) => [date, time, speaker, text])).toEqual([
      ["2026-02-15", "09:10", "Ana", "The eel ladder stays."],
      ["2026-02-15", "09:10", "Ana", "The weir must close by 18:00."],
      ["2026-02-15", "", "", "Note: see above."],
    ]);
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
