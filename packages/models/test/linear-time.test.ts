/** Time grows with what a provider sends, not with its square, however it is cut into pieces. */
import { listSlow } from "@lossless/testkit/linear-time.ts";
import { expect, test } from "vitest";
import { cleanMessage } from "../src/failures.ts";
import { learnQuirk } from "../src/quirks.ts";
import { EventParser } from "../src/server-sent-events.ts";

/** As short as pieces of a slow connection are. */
const PIECE = 40;

function parse(text: string): void {
  const parser = new EventParser();
  for (let at = 0; at < text.length; at += PIECE) parser.push(text.slice(at, at + PIECE));
  parser.end();
}

test.each(
  Object.entries({
    events: parse,
    "one long event": (text: string) => parse(`data: ${text}`),
    "a refusal": (text: string) => learnQuirk({ model: "m", temperature: 1 } as never, text),
    "an error": (text: string) => cleanMessage(text, ["secret"]),
  }),
)("eight times the text of %s takes about eight times as long", async (_name, read) => {
  expect(await listSlow(read, { size: 20_000, motifs: 4 })).toEqual([]);
});
