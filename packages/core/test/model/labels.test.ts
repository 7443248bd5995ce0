import { expect, test } from "vitest";
import { NO_LABELS, updateLabels } from "../../src/model/labels.ts";

test("names and tags are one line that cannot steer a terminal", () => {
  const update = { name: "a\u001B[31m\nred\0 ", addTags: ["X\u0007y", "\t", "x y"] };
  expect(updateLabels(NO_LABELS, update, 5)).toMatchObject({ name: "a [31m red", tags: ["x y"] });
});

test("more tags than fit are refused, not dropped", () => {
  const addTags = Array.from({ length: 51 }, (_, index) => `t${index}`);
  expect(() => updateLabels(NO_LABELS, { addTags }, 5)).toThrow("at most 50");
  expect(updateLabels(NO_LABELS, { addTags: addTags.slice(1) }, 5).tags).toHaveLength(50);
});

test("a conversation that came with too many tags can be named, and gets fewer of them, not more", () => {
  const known = { ...NO_LABELS, tags: Array.from({ length: 60 }, (_, at) => `t${at}`) };
  expect(updateLabels(known, { name: "Birds" }, 1)).toMatchObject({ name: "Birds", tags: { length: 60 } });
  expect(updateLabels(known, { removeTags: ["t1"] }, 1).tags).toHaveLength(59);
  expect(() => updateLabels(known, { addTags: ["one more"] }, 1)).toThrow("at most 50");
});
