import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { compileSessionPatterns, matchesSessionPattern } from "../../src/settings/session-patterns.ts";

test.each([
  ["agent:main:main", "agent:main:main", true],
  ["agent:main:main", "agent:main:main:x", false],
  ["agent:main:main", "x:agent:main:main", false],
  ["agent:*:cron:*", "agent:main:cron:42", true],
  ["agent:*:cron:*", "agent:main:cron:42:run:7", false],
  ["agent:*:cron:**", "agent:main:cron:42:run:7", true],
  ["agent:*:cron:**", "agent:a:b:cron:1", false],
  ["agent:**:active-memory:**", "agent:a:b:active-memory:x:y", true],
  ["agent:*:dreaming-**", "agent:main:dreaming-narrative:3", true],
  ["agent:*:dreaming-*", "agent:main:dreaming-narrative:3", false],
  ["agent:*", "agent:", true],
  ["agent:*", "agent", false],
  ["**", "", true],
  ["*", "a:b", false],
  ["a.c", "abc", false],
  ["a(b|c)+", "a(b|c)+", true],
  ["***", "a:b\nc", true],
])("the pattern %j covers %j: %j", (pattern, sessionKey, expected) => {
  expect(matchesSessionPattern(pattern, sessionKey)).toBe(expected);
});

test("a key without stars covers itself and nothing longer", () => {
  fc.assert(
    fc.property(
      fc.string().filter((text) => !text.includes("*")),
      (key) => {
        expect(matchesSessionPattern(key, key)).toBe(true);
        expect(matchesSessionPattern(key, `${key}!`)).toBe(false);
      },
    ),
  );
});

test("replacing any segment by one star still covers the key", () => {
  const segment = fc.string({ maxLength: 8 }).filter((text) => !/[*:]/.test(text));
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 6 }), fc.nat(), (segments, choice) => {
      const starred = segments.with(choice % segments.length, "*");
      expect(matchesSessionPattern(starred.join(":"), segments.join(":"))).toBe(true);
      expect(matchesSessionPattern(starred.join(":"), [...segments, "more"].join(":"))).toBe(false);
    }),
  );
});

test("compiled patterns match when one of them does, and no pattern matches nothing", () => {
  const patterns = compileSessionPatterns(["agent:*:cron:**", "probe"]);
  expect(patterns.matches("agent:main:cron:1")).toBe(true);
  expect(patterns.matches("probe")).toBe(true);
  expect(patterns.matches("agent:main:main")).toBe(false);
  expect(compileSessionPatterns([]).matches("")).toBe(false);
});
