/** Configurations as people and programs write them: with comments, commas at the end, odd spaces, and numbers of any size. */
import { fc } from "@lossless/testkit/properties.ts";
import type { Arbitrary } from "fast-check";

interface Style {
  readonly indent: string;
  readonly lineEnd: string;
  readonly lastComma: boolean;
  readonly comments: readonly string[];
}

type Piece = string | readonly Piece[] | { readonly [key: string]: Piece };

const scalar: Arbitrary<string> = fc.oneof(
  fc.json({ maxDepth: 0 }).filter((text) => !/^[[{]/u.test(text)),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }).map(String),
  fc.constantFrom("1.0", "1e400", "-0", '"// not a comment"', '"a, } ] b"', String.raw`"\" \\"`),
);

const piece: Arbitrary<Piece> = fc.letrec<{ piece: Piece }>((tie) => ({
  piece: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie("piece"), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 6 }).filter(isPlainKey), tie("piece"), { maxKeys: 3 }),
  ),
})).piece;

/** Keys that objects order or hide by themselves would say nothing about ours. */
function isPlainKey(key: string): boolean {
  return !/^\d+$/u.test(key) && key !== "__proto__" && key !== "ours";
}

const style: Arbitrary<Style> = fc.record({
  indent: fc.constantFrom("", "  ", "    ", "\t"),
  lineEnd: fc.constantFrom("\n", "\r\n"),
  lastComma: fc.boolean(),
  comments: fc.array(fc.constantFrom("", "", "// a note, with { and ,", "/* a } note */"), { maxLength: 6 }),
});

/** An object; in it `list` is a list now and then. */
export const configText = (): Arbitrary<string> =>
  fc
    .tuple(
      fc.dictionary(fc.string({ maxLength: 6 }).filter(isPlainKey), piece, { maxKeys: 4 }),
      fc.option(fc.array(piece, { maxLength: 3 })),
      style,
      fc.constantFrom("", "\n", "\r\n"),
    )
    .map(([members, list, how, end]) => {
      const root = list === null ? members : { ...members, list };
      let next = 0;
      const comment = (): string => how.comments[(next += 1) % Math.max(1, how.comments.length)] ?? "";
      return write(root, how, "", comment) + end;
    });

function write(value: Piece, style: Style, outer: string, comment: () => string): string {
  if (typeof value === "string") return value;
  const isList = Array.isArray(value);
  const entries: (readonly [string | null, Piece])[] = isList
    ? (value as readonly Piece[]).map((item) => [null, item] as const)
    : Object.entries(value as Readonly<Record<string, Piece>>);
  const [open, close] = isList ? "[]" : "{}";
  if (style.indent === "") {
    const inside = entries.map(([key, inner]) => name(key, ":") + write(inner, style, "", () => ""));
    return `${open}${inside.join(",")}${close}`;
  }
  const inner = outer + style.indent;
  const lines = entries.map(([key, child], index) => {
    const comma = index < entries.length - 1 || style.lastComma ? "," : "";
    const note = comment();
    const text = name(key, ": ") + write(child, style, inner, comment);
    return `${inner}${text}${comma}${note === "" ? "" : ` ${note}`}`;
  });
  if (lines.length === 0) return `${open}${close}`;
  return [open, ...lines, `${outer}${close}`].join(style.lineEnd);
}

const name = (key: string | null, colon: string): string => (key === null ? "" : JSON.stringify(key) + colon);
