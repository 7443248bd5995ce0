import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { EventParser } from "../src/server-sent-events.ts";

test("joins data lines, ignores names and comments, takes both line ends", () => {
  const parser = new EventParser();
  expect(parser.push(": hello\r\nevent: x\r\ndata: 1\r\n\r\ndata:a\ndata: b\n\n\n")).toEqual(["1", "a\nb"]);
});

test("an event without its last empty line comes at the end", () => {
  const parser = new EventParser();
  expect(parser.push("data: last")).toEqual([]);
  expect(parser.end()).toEqual(["last"]);
});

test("gives the same events wherever the text is cut", () => {
  const text = 'event: a\r\ndata: {"n":1}\r\n\r\n: ping\n\ndata: two\ndata: lines\n\ndata: [DONE]\n\n';
  const expected = new EventParser().push(text);
  fc.assert(
    fc.property(fc.array(fc.nat(text.length), { maxLength: 12 }), (cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), text.length];
      const parser = new EventParser();
      const events = edges.slice(1).flatMap((edge, index) => parser.push(text.slice(edges[index], edge)));
      expect([...events, ...parser.end()]).toEqual(expected);
    }),
  );
});

test("refuses an event without end", () => {
  const parser = new EventParser();
  expect(() => parser.push("x".repeat(1_000_001))).toThrow(RangeError);
});
