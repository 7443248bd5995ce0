import { readFileSync } from "node:fs";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { makeTemporaryFolder } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { compileRedaction, restoreArrival } from "../../src/ingest/redact.ts";

const compiled = new Map<string, ReturnType<typeof compileRedaction>>();

/** Compiled once for each list of patterns, as an engine does. */
function compile(patterns: readonly string[]): ReturnType<typeof compileRedaction> {
  const key = JSON.stringify(patterns);
  const run = compiled.get(key) ?? compileRedaction(patterns);
  compiled.set(key, run);
  return run;
}

const redact = (patterns: readonly string[], text: string): string =>
  Buffer.from(compile(patterns)?.(Buffer.from(text)).bytes ?? text).toString("utf8");

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

  test("finds secrets in bytes that are neither JSON nor UTF-8", () => {
    const bytes = Buffer.concat([
      Buffer.from("key sk-abcdefghijklmnopqrstuvwx "),
      Buffer.from([0xff, 0xfe, 0x80]),
    ]);
    const redacted = Buffer.from(compile(["@keys"])?.(bytes).bytes ?? bytes);
    expect(redacted.toString("latin1")).toBe("key [redacted:keys] \u00ff\u00fe\u0080");
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
        const redacted = compile(["[aeiou]+", "\\d", "\u00e9|\\p{Emoji}"])?.(bytes);
        expect(restoreArrival(redacted?.bytes ?? bytes, redacted?.values ?? []).equals(bytes)).toBe(true);
      }),
    );
  });

  // Without linear patterns each of these takes many minutes.
  test.each([
    ["web tokens that never get to their dot", "@tokens", "-eyJaaaa"],
    ["web tokens without a third segment", "@tokens", ".eyJaaaaaaaa"],
    ["web tokens whose head is too short", "@tokens", "-eyJ.eyJaaaaaaaa.b"],
    ["private keys that never end", "@keys", "-----BEGIN PRIVATE KEY-----"],
    ["private keys that end as something else", "@keys", "-----BEGIN PRIVATE KEY----------END PRIVATE"],
    ["private keys that were cut", "@keys", `-----BEGIN PRIVATE KEY-----${"A".repeat(40)}`],
    ["escapes in a row", "@tokens", "%20[1;1m\\nghp\\_"],
    ["prefixes in a row", "@keys", "sk-glpat-AIza"],
    ["digits", "@cards", "2-"],
  ])("takes time linear in the text: %s", (_name, set, piece) => {
    const text = piece.repeat(Math.ceil((2 * 2 ** 20) / piece.length));
    const redacted = redact([set], text);
    expect(redacted.length).toBeLessThanOrEqual(text.length);
  });

  test("finds web tokens as the plain expression does, wherever they begin", () => {
    const plain = /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/gu;
    const piece = fc.constantFrom(
      "eyJ",
      "abcdefgh",
      "12345678-",
      ".",
      ".",
      ".eyJaaaabbbb",
      "-",
      " ",
      "_",
      "\u00e9",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const text = pieces.join("");
        expect(redact(["@tokens"], text)).toBe(text.replaceAll(plain, "[redacted:tokens]"));
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ["JSON in a string of JSON", (value: string) => JSON.stringify({ content: `a\n${value}\tb` })],
    ["an address", (value: string) => `https://x.example/?a%3D${value}%20b`],
    ["the colours of a terminal", (value: string) => `a \u001b[32m${value}\u001b[0m b`],
    ["bytes as Python prints them", (value: string) => `b'\\x00${value}\\n'`],
  ])("finds what begins behind an escape of %s", (_name, wrap) => {
    const values = {
      "@keys": [
        `sk-${"a1B2".repeat(6)}`,
        "AKIA0123456789ABCDEF",
        `AIza${"a1B2c".repeat(7)}`,
        `glpat-${"a1B2".repeat(5)}`,
      ],
      "@tokens": [
        `ghp_${"a1B2".repeat(9)}`,
        `xoxb-${"a1B2".repeat(3)}`,
        `eyJ${"a1B2".repeat(3)}.eyJ${"a1B2".repeat(3)}.${"a1B2".repeat(3)}`,
      ],
      "@cards": ["4111111111111111"],
    };
    for (const [set, some] of Object.entries(values))
      for (const value of some) expect(redact([set], wrap(value))).toBe(wrap(`[redacted:${set.slice(1)}]`));
  });

  test("finds tokens with the backslashes of Markdown, and leaves words that only end like a prefix", () => {
    expect(redact(["@tokens"], `ghp\\_${"a1B2".repeat(9)} github\\_pat\\_${"a1B2\\_".repeat(9)}`)).toBe(
      "[redacted:tokens] [redacted:tokens]",
    );
    expect(redact(["@keys"], `sk\\-${"a1\\_B2".repeat(9)}.`)).toBe("[redacted:keys].");
    const plain = "a desk-with-a-long-name-of-many-words, C:\\task-with-a-long-name-of-many-words";
    expect(redact(["@keys", "@tokens"], plain)).toBe(plain);
  });

  test("a private key that was cut, numbered or encoded goes too; a frame without a key stays", () => {
    const line = "MIIEpAIBAAKCAQEA".repeat(4);
    const begin = "-----BEGIN RSA PRIVATE KEY-----";
    expect(redact(["@keys"], `a\n${begin}\n${line}\n${line}\n... cut`)).toBe("a\n[redacted:keys]\n... cut");
    expect(redact(["@keys"], `1→${begin}\n     2→${line}\n     3→${line}`)).toBe("1→[redacted:keys]");
    const encrypted = `${begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,${"0".repeat(32)}\n\n${line}==`;
    expect(redact(["@keys"], encrypted)).toBe("[redacted:keys]");
    const whole = `${begin}\n${line}\n-----END RSA PRIVATE KEY-----`;
    expect(redact(["@keys"], `k=${encodeURIComponent(whole)}&b`)).toBe("k=[redacted:keys]&b");
    expect(redact(["@keys"], whole.replaceAll("KEY", "KEY BLOCK"))).toBe("[redacted:keys]");
    expect(redact(["@keys"], `It begins with ${begin} and so on.`)).toContain(begin);
  });

  test("a private key goes with its frame, and the text after it stays", () => {
    const key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----";
    expect(redact(["@keys"], `a ${key} b ${key} c`)).toBe("a [redacted:keys] b [redacted:keys] c");
  });

  test("a long text is kept where patterns only take long because of its length", () => {
    const slow: string[][] = [];
    const patterns = ["(?:password|secret)\\s*[:=]\\s*\\S+", "[\\w.+-]+@[\\w-]+\\.\\w+", "Bearer\\s+\\S+"];
    const run = compileRedaction(patterns, (names) => slow.push([...names]));
    const text = Buffer.from(
      "the sensor reported 23 degrees, passwords were not asked for\n".repeat(500_000),
    );
    expect([run?.(text).values.length, slow]).toEqual([0, []]);
  });

  test("a pattern that takes too long is stopped and reported: the text it could not check goes whole, the others stay", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    const events: string[] = [];
    const engine = await openEngine({
      database,
      thread: false,
      settings: resolveSettings({
        env: {},
        config: { databasePath: database, redactPatterns: ["(a+)+$", "secret"] },
      }).settings,
      onEvent: (event) => {
        if (event.kind === "degraded") events.push(`${event.part}: ${event.message}`);
      },
    });
    const session = { key: "agent:main:test", id: "s", owner: "main" };
    const message = { role: "user", content: `${"a".repeat(60)}!`, other: "a secret stays short" };
    await engine.ingest({ session, messages: [{ eventId: "e1", message }] });
    const stored = await engine.readMessage({ messageId: 1 });
    expect(JSON.parse(Buffer.from(stored?.bytes ?? []).toString())).toEqual({
      role: "user",
      content: "[redacted:pattern-1]",
      other: "a [redacted:pattern-2] stays short",
    });
    expect(events).toEqual([
      expect.stringMatching(/^redaction: pattern-1 of redactPatterns reached the time limit/u),
    ]);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
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
    const named = { name: "on hunter2", addTags: ["hunter2"] };
    expect(await engine.labelConversation({ conversationId: 1, ...named })).toMatchObject({
      name: "on [redacted:pattern-1]",
      tags: ["[redacted:pattern-1]"],
    });
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
    expect(readFileSync(database).includes("hunter2")).toBe(false);
  });
});
