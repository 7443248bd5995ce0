/** Makes a new input from existing ones by changing a few bytes, lines or JSON values at a time. The same random source gives the same input. */
import type { Random } from "@lossless/testkit/random.ts";

const MAX_INPUT_BYTES = 32 * 1024;

/** Values that are hard for parsers. */
const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 31,
  2 ** 53,
  -(2 ** 63),
  1e308,
  "",
  "x",
  "0",
  "__proto__",
  "\u0000",
  "\ud800",
  "é😀漢",
  "../../x",
  "a".repeat(5_000),
  "1970-01-01T00:00:00Z",
  [],
  {},
  [[]],
  [null],
  { type: "text" },
  { toString: 1 },
];
const ODD_TEXTS = [
  '"__proto__":{"polluted":1},',
  '"constructor":{"prototype":{"polluted":1}},',
  "\n",
  "\r\n",
  "\u0000",
  "\ufeff",
  "\u2028",
  "\\u0000",
  "\\ud800",
  "[".repeat(400),
  '{"a":'.repeat(200),
  "9".repeat(40),
  "-0",
  "1e999",
  '"',
  "\\",
  "}",
  "]",
];
const KEYS = ["__proto__", "constructor", "toString", "id", "type", "role", "content", "", "length"];

interface Material {
  readonly random: Random;
  readonly others: readonly Buffer[];
  readonly words: readonly string[];
}

export function mutate(input: Buffer, material: Material): Buffer {
  const { random } = material;
  let made = input;
  for (let times = 1 + random.below(4); times > 0; times--) made = random.pick(MUTATIONS)(made, material);
  return made.subarray(0, MAX_INPUT_BYTES);
}

type Mutation = (input: Buffer, material: Material) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  flipByte,
  removePiece,
  repeatPiece,
  insertText,
  insertText,
  mixWithOther,
  changeNumber,
  renameKey,
  changeLines,
  changeLines,
  changeJson,
  changeJson,
  changeJson,
];

function flipByte(input: Buffer, { random }: Material): Buffer {
  const copy = Buffer.from(input);
  if (copy.length > 0) copy[random.below(copy.length)] = random.below(256);
  return copy;
}

function removePiece(input: Buffer, { random }: Material): Buffer {
  const [from, to] = pickPiece(input, random);
  return Buffer.concat([input.subarray(0, from), input.subarray(to)]);
}

function repeatPiece(input: Buffer, { random }: Material): Buffer {
  const [from, to] = pickPiece(input, random);
  const piece = input.subarray(from, to);
  const times = random.pick([1, 1, 2, 30]);
  const copies = Array.from({ length: times }, () => piece);
  return Buffer.concat([input.subarray(0, to), ...copies, input.subarray(to)]);
}

function insertText(input: Buffer, { random, words }: Material): Buffer {
  const text = random.pick(words.length > 0 && random.below(3) > 0 ? words : ODD_TEXTS);
  const at = random.below(input.length + 1);
  const upTo = Math.min(input.length, at + random.pick([0, 0, text.length]));
  return Buffer.concat([input.subarray(0, at), Buffer.from(text), input.subarray(upTo)]);
}

function mixWithOther(input: Buffer, { random, others }: Material): Buffer {
  const other = others.length > 0 ? random.pick(others) : input;
  const [from, to] = pickPiece(other, random);
  const at = random.below(input.length + 1);
  return Buffer.concat([input.subarray(0, at), other.subarray(from, to), input.subarray(at)]);
}

function changeNumber(input: Buffer, { random }: Material): Buffer {
  return replaceOne(input, /-?\d+(?:\.\d+)?/g, random, (text) =>
    random.pick([
      "0",
      "-1",
      "1e9",
      String(Number(text) + 1),
      String(Number(text) * 2),
      "9007199254740993",
      "null",
    ]),
  );
}

function renameKey(input: Buffer, { random, words }: Material): Buffer {
  return replaceOne(
    input,
    /"[^"\\\n]*"(?=\s*:)/g,
    random,
    () => `"${random.pick(random.below(2) ? KEYS : words)}"`,
  );
}

/** Lines are removed, duplicated, moved, or inserted from another input. */
function changeLines(input: Buffer, { random, others }: Material): Buffer {
  const lines = input.toString("latin1").split("\n");
  const at = random.below(lines.length);
  const kind = random.below(4);
  const [taken = ""] = kind === 1 ? [lines[at]] : lines.splice(at, kind === 3 ? 0 : 1);
  const other = others.length > 0 ? random.pick(others).toString("latin1").split("\n") : lines;
  if (kind !== 0)
    lines.splice(random.below(lines.length + 1), 0, kind === 3 ? random.pick(["", ...other]) : taken);
  return Buffer.from(lines.join("\n"), "latin1");
}

/** Changes one JSON value of one line or of the whole input. */
function changeJson(input: Buffer, material: Material): Buffer {
  const { random } = material;
  const text = input.toString("utf8");
  const lines = isJson(text) ? [text] : text.split("\n");
  const at = random.below(lines.length);
  const line = lines[at] ?? "";
  if (!isJson(line)) return input;
  lines[at] = JSON.stringify(changeValue(JSON.parse(line), material)) ?? "null";
  return Buffer.from(lines.join("\n"));
}

function changeValue(value: unknown, material: Material): unknown {
  const { random, words } = material;
  const odd = (): unknown => (random.below(3) > 0 ? random.pick(ODD_VALUES) : random.pick(["", ...words]));
  if (value === null || typeof value !== "object") return random.below(4) > 0 ? odd() : [value];
  if (random.below(6) === 0) return odd();
  const entries: [string, unknown][] = Object.entries(value);
  if (entries.length === 0) return Array.isArray(value) ? [odd()] : { [random.pick(["", ...words])]: odd() };
  const at = random.below(entries.length);
  const [key, child] = entries[at] ?? ["", null];
  const kind = random.below(8);
  if (kind === 0) entries.splice(at, 1);
  else if (kind === 1) entries.push([Array.isArray(value) ? "" : random.pick(["", ...words]), child]);
  else if (kind === 2) entries.splice(at, 1, [key, random.pick(entries)[1]]);
  else entries[at] = [key, changeValue(child, material)];
  return Array.isArray(value) ? entries.map(([, element]) => element) : Object.fromEntries(entries);
}

function replaceOne(
  input: Buffer,
  pattern: RegExp,
  random: Random,
  render: (found: string) => string,
): Buffer {
  const text = input.toString("latin1");
  const found = [...text.matchAll(pattern)];
  if (found.length === 0) return input;
  const match = random.pick(found);
  const end = match.index + match[0].length;
  return Buffer.from(text.slice(0, match.index) + render(match[0]) + text.slice(end), "latin1");
}

function pickPiece(input: Buffer, random: Random): [from: number, to: number] {
  const from = random.below(input.length + 1);
  const length = random.below(Math.min(input.length - from, random.pick([4, 64, 1024])) + 1);
  return [from, from + length];
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    // "Not JSON" is a valid result.
    return false;
  }
}
