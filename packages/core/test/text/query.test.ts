import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { analyzeQuery } from "../../src/text/index.ts";

const wordsOf = (text: string): string[] => analyzeQuery(text).terms.map(({ words }) => words.join(" "));

describe("reading a question", () => {
  test.each([
    ["where did we put fooBar?", ["put", "foo bar"]],
    ["What does Melanie's son do?", ["melani", "son"]],
    ["Quel est le nom de son fils ?", ["nom", "fil"]],
    ["Wann hat die Firma den Vertrag unterschrieben?", ["firma", "vertrag", "unterschrieben"]],
    ["где мы хранили ключи", ["хранили", "ключи"]],
    ["show the todo list", ["show", "todo", "list"]],
    ["retry retries retried", ["retri"]],
  ])("keeps the content of %j", (text, words) => {
    expect(wordsOf(text).slice(0, words.length)).toEqual(words);
  });

  test("knows words that only ask, in questions and in the language of the question", () => {
    const asking = (text: string): string[] =>
      analyzeQuery(text)
        .terms.filter(({ isAsking }) => isAsking)
        .map(({ text: typed }) => typed);
    expect(asking("In what order did I mention different kinds of cheese?")).toEqual([
      "order",
      "mention",
      "different",
      "kinds",
    ]);
    expect(asking("In welcher Reihenfolge habe ich die Orte erwähnt?")).toEqual(["Reihenfolge", "erwähnt"]);
    expect(asking("list order items")).toEqual([]);
  });

  test.each([
    ["Which book did I mention?", true],
    ["Can you list my appointments?", true],
    ["What did you recommend for my trip?", false],
    ["Wann habe ich meinen Termin?", true],
    ["Which book is best?", false],
    ["notes on my trip", false],
  ])("sees whether %j is about its asker", (text, isAboutAsker) => {
    expect(analyzeQuery(text)).toMatchObject({ isAboutAsker });
  });

  test("keeps empty words when there is nothing else", () => {
    expect(wordsOf("to be or not to be")).toEqual(["to", "be", "or", "not"]);
  });

  test("takes quotes of several kinds as phrases", () => {
    expect(analyzeQuery('"support group" and “four seasons” 「重跑」').phrases).toEqual([
      ["support", "group"],
      ["four", "season"],
      ["重", "跑"],
    ]);
  });

  test("leaves an unclosed quote alone", () => {
    expect(analyzeQuery('size 5" disk').phrases).toEqual([]);
    expect(wordsOf('size 5" disk')).toEqual(["size", "5", "disk"]);
  });

  test.each([
    ["did it work", true],
    ["How many tests fail", true],
    ["deploy log?", true],
    ["会议的地点是什么", true],
    ["failed to parse metadata.json", false],
    ["gitstore listcommitted reading", false],
    ["TestResetCmd_NothingToReset", false],
  ])("tells a question from a search: %j", (text, isQuestion) => {
    expect(analyzeQuery(text).isQuestion).toBe(isQuestion);
  });

  test("takes several questions apart and leaves out what is told before them", () => {
    const { parts } = analyzeQuery("The build broke. Who fixed it? And when was the release?");
    expect(parts.map(({ text }) => text)).toEqual(["Who fixed it?", "And when was the release?"]);
    expect(analyzeQuery("金融论坛的地点是什么？另外，上司是做什么的？").parts).toHaveLength(2);
    expect(analyzeQuery("Who fixed it?").parts).toEqual([]);
  });

  test("tries an identifier without the letter of an escape it was copied with", () => {
    expect(analyzeQuery("tonThemeChange").terms[0]?.unescaped).toEqual({
      words: ["on", "theme", "change".slice(0, 5)],
      ident: "onthemechange",
    });
    expect(analyzeQuery("fooBar").terms[0]?.unescaped).toBeUndefined();
  });

  test("reads any text, however long, without failing", () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => void analyzeQuery(text)));
    for (const piece of ["t", "?", '"', "a.b", "重", "x? ", ". "]) {
      expect(analyzeQuery(piece.repeat(100_000)).terms.length).toBeLessThanOrEqual(64);
    }
  });
});
