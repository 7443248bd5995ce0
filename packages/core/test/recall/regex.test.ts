import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { checkPattern, cutAround } from "../../src/recall/regex.ts";
import { longTalk, main, openArchive, say } from "./archive.ts";

const ids = (hits: readonly { type: string }[]): string[] =>
  hits.flatMap((hit) => ("eventId" in hit ? [hit.eventId as string] : []));

describe("regular expressions", () => {
  test("match what JavaScript matches, newest first, whatever the words of the pattern", async () => {
    await using archive = await openArchive();
    const talk = longTalk("n", 40);
    await archive.engine.ingest({ session: main, messages: talk });
    for (const pattern of [
      "option 1\\d7\\b",
      "about roses, we",
      "Note n-(3|33):",
      "^Note n-1",
      "plan says so\\. $",
      "OPTION",
    ]) {
      const expected = talk
        .filter(({ message }) => new RegExp(pattern).test((message as { content: string }).content))
        .map(({ eventId }) => eventId)
        .toReversed();
      const { hits, total, rule } = await archive.engine.grep({
        session: main,
        pattern,
        scope: "messages",
        limit: 200,
      });
      if (expected.length === 0) expect(rule, pattern).not.toBe("regex");
      else expect([ids(hits), total], pattern).toEqual([expected, expected.length]);
    }
  });

  test("see messages that arrived since the last search", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 10) });
    const find = async (): Promise<number> =>
      (await archive.engine.grep({ session: main, pattern: "zeb[r]a\\d", scope: "messages" })).total;
    expect(await find()).toBe(0);
    await archive.engine.ingest({ session: main, messages: [say("z", "user", "a zebra7 came by")] });
    expect(await find()).toBe(1);
    expect(await find()).toBe(1);
  });

  test("do not find what was revised or forgotten since the last search", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 10) });
    await archive.engine.ingest({
      session: main,
      messages: [say("z", "user", "a zebra7 came by"), say("y", "user", "the zebra8 left")],
    });
    const find = async (): Promise<string[]> =>
      ids((await archive.engine.grep({ session: main, pattern: "zeb[r]a\\d", scope: "messages" })).hits);
    expect(await find()).toEqual(["y", "z"]);
    await archive.engine.ingest({ session: main, messages: [say("z", "user", "a horse came by")] });
    expect(await find()).toEqual(["y"]);
    await archive.engine.forget({ messageIds: [12], reason: "a test" });
    expect(await find()).toEqual([]);
  });

  test("without a hit are looked for as words, and the answer says so", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({
      session: main,
      messages: [say("a", "user", "We retry uploads three times.")],
    });
    const answer = await archive.engine.grep({ session: main, pattern: "how often do we retry uploads?" });
    expect(ids(answer.hits)).toEqual(["a"]);
    expect(answer.mode).toBe("full_text");
    expect(answer.notes[0]?.text).toContain("No text matches");
  });

  test("that explode end at the limit, and the thread of the caller goes on meanwhile", async () => {
    await using archive = await openArchive({ thread: true });
    await archive.engine.ingest({ session: main, messages: [say("a", "user", `${"a".repeat(60)}!`)] });
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 5);
    const answer = await archive.engine.grep({
      session: main,
      pattern: "^(a+)+$",
      scope: "messages",
      timeoutMs: 300,
    });
    clearInterval(timer);
    expect(answer).toMatchObject({ truncated: true, isTotalExact: false });
    expect(answer.notes[0]?.text).toContain("Stopped early");
    expect(ticks).toBeGreaterThan(5);
    const after = await archive.engine.grep({ session: main, pattern: "a!$", scope: "messages" });
    expect(after.total).toBe(1);
  });

  test("that are not valid are refused with the place", () => {
    expect(() => checkPattern("foo(bar")).toThrow(/unterminated group at character 4 [^]*\n {5}\^/);
    expect(() => checkPattern("a**")).toThrow(/nothing to repeat at character 3/);
    expect(() => checkPattern("x".repeat(501))).toThrow(/501 characters/);
    fc.assert(
      fc.property(fc.string({ maxLength: 30 }), (pattern) => {
        try {
          checkPattern(pattern);
        } catch (error) {
          expect((error as { code: string }).code).toBe("usage");
          return;
        }
        void new RegExp(pattern);
      }),
    );
  });

  test("search the lines of large files, with line and byte", async () => {
    await using archive = await openArchive({ settings: { largeFileThresholdTokens: 1_000 } });
    const lines = Array.from({ length: 300 }, (_, i) => `línea ${i}: value=${i * 3}`);
    await archive.engine.ingest({ session: main, messages: [say("f", "user", lines.join("\n"))] });
    const { hits } = await archive.engine.grep({ session: main, pattern: "value=(30|33)$", scope: "files" });
    expect(hits).toHaveLength(2);
    const text = lines.join("\n");
    for (const hit of hits) {
      if (hit.type !== "file") throw new Error("not a file");
      expect(lines[hit.line - 1]).toContain(hit.snippet.trim());
      expect(Buffer.from(text).subarray(hit.byteOffset).toString()).toMatch(/^value=(30|33)\n/);
    }
  });

  test("show the match inside its snippet", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 400 }), fc.nat(300), fc.nat(80), (text, from, length) => {
        const start = Math.min(from, text.length);
        const end = Math.min(text.length, start + length);
        const cut = cutAround(text, start, end);
        const [range] = cut.ranges;
        expect(range ? cut.text.slice(range.start, range.end) : "").toBe(
          text.slice(start, end).replace(/\s+/g, " "),
        );
      }),
    );
  });
});
