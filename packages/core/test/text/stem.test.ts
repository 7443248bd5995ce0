import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { IRREGULAR_FORMS } from "../../src/text/vocabulary.ts";
import { stem } from "../../src/text/stem.ts";

describe("stemming", () => {
  test.each([
    "decide decided deciding decides",
    "run runs running ran",
    "try tries tried trying",
    "retry retries retried retrying",
    "make makes making made",
    "hope hopes hoped hoping",
    "hop hops hopped hopping",
    "family families",
    "happy happily happiness",
    "child children",
    "configure configured configuration configuring",
    "create creates created creating creation creator",
    "organise organised organising organisation organize organization",
    "compress compressed compression",
    "write wrote written writing",
    "index indexes indices indexing",
    "dependency dependencies dependent",
    "travel travelled traveling",
    "add adds added adding",
    "go goes went gone going",
  ])("gives one stem to %s", (family) => {
    expect(new Set(family.split(" ").map(stem)).size).toBe(1);
  });

  test.each(["hope hop", "news new", "station state", "need ned", "thing th", "user us", "test tes"])(
    "keeps apart %s",
    (pair) => {
      expect(new Set(pair.split(" ").map(stem)).size).toBe(2);
    },
  );

  test.each(["v2", "größe", "схема", "a262de1", "日本"])("leaves %s as it is", (word) => {
    expect(stem(word)).toBe(word);
  });

  test("no rule empties a word or makes it longer by more than one letter", () => {
    const letters = fc.string({ unit: fc.constantFrom(..."abcdegilnorstuyz"), minLength: 1, maxLength: 14 });
    fc.assert(
      fc.property(letters, (word) => {
        fc.pre(!IRREGULAR_FORMS.has(word));
        const stemmed = stem(word);
        expect(stemmed.length).toBeGreaterThan(0);
        expect(stemmed.length).toBeLessThanOrEqual(word.length + 1);
      }),
    );
  });
});
