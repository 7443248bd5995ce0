import { expect, test } from "vitest";
import { NO_LABELS, updateLabels } from "../../src/model/labels.ts";

test("names and tags are one line that cannot steer a terminal", () => {
  const update = { name: "a\u001B[31m\nred\0 ", addTags: ["X\u0007y", "\t", "x y"] };
  expect(updateLabels(NO_LABELS, update, 5)).toMatchObject({ name: "a [31m red", tags: ["x y"] });
});
