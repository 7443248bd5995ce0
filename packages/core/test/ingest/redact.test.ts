import { readFileSync } from "node:fs";
import { openEngine, resolveSettings } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileRedaction, restoreArrival } from "../../src/ingest/redact.ts";

const redact = (patterns: readonly string[], text: string): string =>
  Buffer.from(compileRedaction(patterns)?.(Buffer.from(text)).bytes ?? text).toString("utf8");

describe("redaction", () => {
  test.each([
    ["@keys", "use sk-abcdefghijklmnopqrstuvwx now", "use [redacted:keys] now"],
    ["@tokens", "ghp_0123456789abcdefghijklmnopqrstuvwxyz", "[redacted:tokens]"],
    [
      "@cards",
      "card 4111 1111 1111 1111, order 4111111111111112",
      "card [redacted:cards], order 4111111111111112",
    ],
    ["secret-\\d+", "the secret-42 and secret-43", "the [redacted:pattern-1] and [redacted:pattern-1]"],
  ])("with %s", (pattern, text, wanted) => {
    expect(redact([pattern], text)).toBe(wanted);
    expect(JSON.parse(redact([pattern], JSON.stringify({ a: text })))).toEqual({ a: wanted });
  });

  test("sees through escapes and never breaks JSON, however greedy the pattern", () => {
    expect(JSON.parse(redact(["p\u00e4ss"], '{"a":"p\\u00e4ss"}'))).toEqual({ a: "[redacted:pattern-1]" });
    fc.assert(
      fc.property(fc.json(), (json) => {
        expect(() => JSON.parse(redact([".+"], json)) as unknown).not.toThrow();
        expect(redact(["never to be found"], json)).toBe(json);
      }),
    );
  });

  test("takes overlapping matches out as one, and cards out of numbers", () => {
    expect(redact(["b+c", "abb"], "x abbc y")).toBe("x [redacted:pattern-1] y");
    expect(redact(["@cards"], '{"card":4111111111111111,"time":1785613801102}')).toBe(
      '{"card":"[redacted:cards]","time":1785613801102}',
    );
  });

  test("gives back what arrived when the values are put back, whatever the bytes", () => {
    const arrival = fc.oneof(
      fc.json().map((json) => Buffer.from(json)),
      fc.string({ unit: "grapheme" }).map((text) => Buffer.from(text)),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      fc.string({ unit: "binary" }).map((text) => Buffer.from(`{"a":"${text}"}`, "latin1")),
    );
    fc.assert(
      fc.property(arrival, (bytes) => {
        const redacted = compileRedaction(["[aeiou]+", "\\d", "\u00e9|\\p{Emoji}"])?.(bytes);
        expect(restoreArrival(redacted?.bytes ?? bytes, redacted?.values ?? []).equals(bytes)).toBe(true);
      }),
    );
  });

  test("is nothing when nothing is asked for, and refuses what is no expression", () => {
    expect(compileRedaction([])).toBeNull();
    expect(() => compileRedaction(["("])).toThrow(/redaction pattern 1/);
  });

  test("keeps the value out of the archive, and a repeated event stays one event", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    const session = { key: "agent:main:test", id: "s", owner: "main" };
    const open = (redactPatterns: readonly string[]) =>
      openEngine({
        database,
        thread: false,
        settings: resolveSettings({ env: {}, config: { databasePath: database, redactPatterns } }).settings,
      });
    const say = (eventId: string, content: string) => ({ eventId, message: { role: "user", content } });
    const before = await open([]);
    await before.ingest({ session, messages: [say("e0", "an old hunter0")] });
    await before.close();
    const engine = await open(["hunter\\d"]);
    const messages = [say("e0", "an old hunter0"), say("e1", "the password is hunter2")];
    const outcomes = async (): Promise<string[]> =>
      (await engine.ingest({ session, messages })).results.map((result) => result.outcome);
    expect(await outcomes()).toEqual(["known", "stored"]);
    expect(await outcomes()).toEqual(["known", "known"]);
    const stored = await engine.readMessage({ messageId: 2 });
    expect(Buffer.from(stored?.bytes ?? []).toString("utf8")).toContain(
      "the password is [redacted:pattern-1]",
    );
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
    expect(readFileSync(database).includes("hunter2")).toBe(false);
  });
});
