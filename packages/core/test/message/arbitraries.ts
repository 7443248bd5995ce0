/** Values for property tests: any JSON value a host might hand in, and JSON text as other programs write it. */
import { fc } from "@lossless/testkit/properties.ts";

/** Any string of UTF-16 code units, lone surrogates, escapes and control characters included. */
export function anyText(): fc.Arbitrary<string> {
  const unit = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0x20, max: 0x7e }) },
    { weight: 2, arbitrary: fc.constantFrom(0x22, 0x5c, 0x2f, 0x0a, 0x0d, 0x09, 0x00, 0x7f, 0x2028, 0xfeff) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 0xffff }) },
    { weight: 1, arbitrary: fc.integer({ min: 0xd800, max: 0xdfff }) },
  );
  const units = fc.array(unit, { maxLength: 60 }).map((codes) => String.fromCharCode(...codes));
  return fc.oneof(
    units,
    fc.string({ unit: "binary" }),
    fc.constantFrom("", "__proto__", "10", "2", "toJSON"),
  );
}

function anyNumber(): fc.Arbitrary<number> {
  return fc.oneof(
    fc.constantFrom(-0, 0, 1e21, -1e21, 5e-324, Number.MAX_VALUE, 2 ** 53, 0.1),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  );
}

/** Any JSON value. Objects are made by parsing, so that `__proto__` is a key like every other. */
export function jsonValue(): fc.Arbitrary<unknown> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(null, true, false),
      anyNumber(),
      anyText(),
      fc.array(tie("value"), { maxLength: 6 }),
      fc.array(fc.tuple(anyText(), tie("value")), { maxLength: 6 }).map(makeObject),
    ),
  }));
  return value;
}

function makeObject(entries: readonly (readonly [string, unknown])[]): unknown {
  const object: Record<string, unknown> = {};
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

/** A string literal as some program might write it: any escape that JSON allows, chosen by the numbers given. */
export function writeLiteral(text: string, style: (index: number) => number): string {
  let out = '"';
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const isPair = code >= 0xd800 && code < 0xdc00 && text.codePointAt(i) !== code;
    const isLone = !isPair && code >= 0xd800 && code < 0xe000;
    const choice = style(i) % 3;
    if (isPair && choice !== 0) {
      out += text.slice(i, i + 2);
      i++;
    } else if (choice === 0 || isLone) {
      out += `\\u${code.toString(16).padStart(4, "0")}`;
    } else if (choice === 1 && text[i] === "/") {
      out += "\\/";
    } else {
      out += JSON.stringify(text[i]).slice(1, -1);
    }
  }
  return `${out}"`;
}
