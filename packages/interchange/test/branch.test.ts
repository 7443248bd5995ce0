import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { EntryTree, type TreeEntry } from "../src/transcript/branch.ts";
import type { BranchRule } from "../src/formats/format.ts";

interface Sketch {
  id?: string;
  parent?: string | null;
  prompt?: boolean;
  header?: boolean;
  side?: boolean;
  event?: string;
}

function toEntry(sketch: Sketch): TreeEntry {
  return {
    id: sketch.id,
    parentId: sketch.parent,
    isPrompt: sketch.prompt ?? false,
    isHeader: sketch.header ?? false,
    isSidechain: sketch.side ?? false,
  };
}

function growTree(rule: BranchRule, sketches: readonly Sketch[]): EntryTree {
  const tree = new EntryTree(rule);
  for (const sketch of sketches) tree.add(toEntry(sketch));
  return tree;
}

/** Names of the entries off the branch. */
function listOff(rule: BranchRule, sketches: readonly Sketch[]): string[] {
  const { isOff } = growTree(rule, sketches).decide();
  const named = sketches.map(({ event, id }, index) => event ?? id ?? `line${index}`);
  return named.filter((_name, index) => isOff(index));
}

const PATH_CASES: { name: string; entries: Sketch[]; off: string[] }[] = [
  {
    name: "leaves nothing out of a single line of entries",
    entries: [
      { id: "h", header: true },
      { id: "a", parent: null },
      { id: "b", parent: "a" },
    ],
    off: [],
  },
  {
    name: "keeps the path from the last entry and leaves out the branch before",
    entries: [
      { id: "a", parent: null },
      { id: "b", parent: "a" },
      { id: "c", parent: "b" },
      { id: "d", parent: "a" },
    ],
    off: ["b", "c"],
  },
  {
    name: "takes an unknown parent for the entry before",
    entries: [
      { id: "a", parent: null },
      { id: "b", parent: "call-7" },
      { id: "c", parent: "b" },
    ],
    off: [],
  },
  {
    name: "takes entries without ids as one line",
    entries: [{ id: "h", header: true }, {}, {}, {}],
    off: [],
  },
  {
    name: "starts afresh at an entry that says it has no parent, and keeps the header",
    entries: [
      { id: "h", header: true },
      { id: "a", parent: "h" },
      { id: "b", parent: "a" },
      { id: "c", parent: null },
    ],
    off: ["a", "b"],
  },
  {
    name: "reads a parent that occurs twice as the nearer one",
    entries: [
      { id: "a", parent: null },
      { id: "a", parent: "a", event: "a#2" },
      { id: "b", parent: "a" },
    ],
    off: [],
  },
];

describe("the path rule", () => {
  test.each(PATH_CASES)("$name", ({ entries, off }) => {
    expect(listOff("path", entries)).toEqual(off);
  });
});

const PROMPT_CASES: { name: string; entries: Sketch[]; off: string[] }[] = [
  {
    name: "keeps parallel tool calls and their results",
    entries: [
      { id: "p", parent: null, prompt: true },
      { id: "a1", parent: "p" },
      { id: "a2", parent: "a1" },
      { id: "r1", parent: "a1" },
      { id: "r2", parent: "a2" },
      { id: "a3", parent: "r1" },
    ],
    off: [],
  },
  {
    name: "leaves out the whole subtree of a prompt that was replaced",
    entries: [
      { id: "a", parent: null },
      { id: "p1", parent: "a", prompt: true },
      { id: "b1", parent: "p1" },
      { id: "p2", parent: "a", prompt: true },
      { id: "b2", parent: "p2" },
      { id: "late", parent: "b1" },
    ],
    off: ["p1", "b1", "late"],
  },
  {
    name: "does not take entries without a parent for each other's replacement",
    entries: [
      { id: "p1", parent: null, prompt: true },
      { id: "p2", parent: null, prompt: true },
    ],
    off: [],
  },
  {
    name: "leaves out sidechains and nothing else below them",
    entries: [
      { id: "s", parent: null, side: true },
      { id: "p", parent: "s", prompt: true },
    ],
    off: ["s"],
  },
  {
    name: "takes prompts below the same missing entry for replacements",
    entries: [
      { id: "p1", parent: "gone", prompt: true },
      { id: "p2", parent: "gone", prompt: true },
    ],
    off: ["p1"],
  },
  {
    name: "survives entries that are their own parent",
    entries: [
      { id: "x", parent: "x", prompt: true },
      { id: "x", parent: "x", prompt: true, event: "x#2" },
    ],
    off: [],
  },
];

describe("the prompts rule", () => {
  test.each(PROMPT_CASES)("$name", ({ entries, off }) => {
    expect(listOff("prompts", entries)).toEqual(off);
  });
});

describe("a tree that starts in the middle", () => {
  const sketch = fc.record(
    {
      id: fc.constantFrom("a", "b", "c", "d", "e", "f"),
      parent: fc.constantFrom("a", "b", "c", "d", "e", "f", null),
      prompt: fc.boolean(),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<Sketch>;

  test("says that it extends the branch only when the whole file agrees that nothing before it changes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<BranchRule>("path", "prompts"),
        fc.array(sketch, { minLength: 1, maxLength: 8 }),
        fc.array(sketch, { maxLength: 6 }),
        (rule, before, after) => {
          const numbered = [...before, ...after].map((entry, index) => ({ ...entry, event: `e${index}` }));
          const decided = growTree(rule, numbered.slice(0, before.length)).decide();
          const partial = new EntryTree(rule, decided.end);
          for (const entry of numbered.slice(before.length)) partial.add(toEntry(entry));
          if (!partial.extendsBranch) return;
          expect(listOff(rule, numbered)).toEqual(listOff(rule, numbered.slice(0, before.length)));
        },
      ),
      { numRuns: 3000 },
    );
  });

  test("refuses to list what it cannot know", () => {
    const tree = new EntryTree("path", { id: "a", isActive: true });
    expect(() => tree.decide()).toThrow(/whole file/u);
  });
});

test("a tree of many thousand entries with many branches keeps the path to its last entry, and nothing else", () => {
  let state = 7;
  const below = (limit: number): number => (state = (state * 48_271) % 2_147_483_647) % limit;
  const parents = Array.from({ length: 9_000 }, (_, at) =>
    at === 0 ? -1 : below(3) === 0 ? below(at) : at - 1,
  );
  const sketches = parents.map((parent, at) => ({ id: `n${at}`, parent: parent < 0 ? null : `n${parent}` }));
  const path = new Set<number>();
  for (let at = parents.length - 1; at >= 0; at = parents[at] as number) path.add(at);
  const { isOff } = growTree("path", sketches).decide();
  expect(parents.flatMap((_, at) => (isOff(at) ? [] : [at]))).toEqual([...path].toReversed());
});
