/** Time grows with the files of agents that setup changes, not with its square. */
import { attempt, listSlow } from "@lossless/testkit/linear-time.ts";
import { expect, test } from "vitest";
import { parseJsonc } from "../src/setup/json-edit.ts";
import { removeBlock } from "../src/setup/toml-block.ts";

test.each(Object.entries({ "JSON with comments": parseJsonc, "a block of TOML": removeBlock }))(
  "eight times the text of %s takes about eight times as long",
  async (_name, read) => {
    expect(await listSlow((text) => attempt(() => read(text)))).toEqual([]);
    expect(
      await listSlow((text) => attempt(() => read(`{"a": ${JSON.stringify(text)}, // ${text}`))),
    ).toEqual([]);
  },
);
