/** Every setting marked as active is read by some code; one that nothing reads must say that it has no effect. */
import { expect, test } from "vitest";
import { getSetting, SETTING_KEYS } from "@lossless/core/settings";
import { readSources } from "./source-files.ts";

/** Where settings are described, not used. */
const DESCRIBING = [
  /^packages\/core\/src\/model\/setting/,
  /^packages\/cli\/src\/models\/open-complete\.ts$/,
];

/** Code without comments, strings and type declarations, where a name is mentioned, not read. */
function findNames(text: string): Set<string> {
  const code = text
    .replaceAll(/\/\*[\s\S]*?\*\//g, " ")
    .replaceAll(/(?<!:)\/\/.*$/gm, " ")
    .replaceAll(/"(?:[^"\\\n]|\\.)*"/g, " ")
    .replaceAll(/\breadonly\s+\w+\??:/g, " ");
  return new Set(code.match(/\b[A-Za-z]\w*\b/g));
}

test("names in comments, texts and types are not taken for code that reads a setting", () => {
  const text =
    '/* aa */ const x = settings.bb; // cc\ntype T = Pick<S, "dd">; interface I { readonly ee: number }';
  const names = findNames(text);
  expect(names.has("bb")).toBe(true);
  for (const name of ["aa", "cc", "dd", "ee"]) expect(names.has(name)).toBe(false);
});

test("every active setting is read by code", () => {
  const files = readSources()
    .filter(({ path }) => !DESCRIBING.some((place) => place.test(path)))
    .map(({ text }) => findNames(text));
  const isRead = (key: string): boolean => {
    const [section = "", rest] = key.split(".");
    // The parts of a section may be read one by one or by a computed name (`startup`, `runtime`); the section is always named.
    return (
      files.some((names) => names.has(section)) &&
      (rest === undefined || files.some((names) => names.has(rest)))
    );
  };
  const unread = SETTING_KEYS.filter((key) => getSetting(key).status === "active" && !isRead(key));
  expect(unread).toEqual([]);
});
