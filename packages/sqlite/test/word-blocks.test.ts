/**
 * Blocks of words only ever save time: with all of them, with some, with none or with damaged ones a regular expression finds the same
 * messages; and none keeps a forgotten word.
 */
import { DatabaseSync } from "node:sqlite";
import { zstdDecompressSync } from "node:zlib";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { someOf } from "@lossless/testkit/rounds.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:main", id: "s1", owner: "main" };
const WORDS = ["ledger", "Harbour", "lanterns", "quarrelled", "mapName", "src/tide.ts", "didn't"];

/** Every message has its number spelled into a word of its own, and one word of the list. */
const textOf = (n: number): string => `note${n.toString(36)}q about ${WORDS[n % WORDS.length]} at dusk`;

const talk = (from: number, to: number, key = session) => ({
  session: key,
  messages: Array.from({ length: to - from }, (_, i) => ({
    eventId: `e${from + i}`,
    message: { role: "user", content: textOf(from + i) },
  })),
});

const find = async (engine: Engine, pattern: string): Promise<string[]> => {
  const answer = await engine.grep({ pattern, mode: "regex", scope: "messages", limit: 200 });
  return answer.rule === "regex"
    ? answer.hits.map((hit) => ("eventId" in hit ? hit.eventId : "")).toSorted()
    : [];
};

function readBlocks(path: string): Map<number, string> {
  using database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare("SELECT block, words FROM word_blocks").all() as {
    block: number;
    words: Uint8Array;
  }[];
  return new Map(rows.map(({ block, words }) => [block, zstdDecompressSync(words).toString()]));
}

function change(path: string, sql: string, ...values: (number | Uint8Array)[]): void {
  using database = new DatabaseSync(path);
  database.prepare(sql).run(...values);
}

/** An engine that has read nothing yet, so that no search can answer from memory. */
async function search(path: string, pattern: string): Promise<string[]> {
  const engine = await openEngine({ database: path, thread: false, readOnly: true });
  try {
    return await find(engine, pattern);
  } finally {
    await engine.close();
  }
}

const PATTERNS = [
  "note\\w+q about Harbour",
  "note4[0-9a-z]q",
  "noterzq\\b",
  "quarrel+ed at",
  "ide\\.ts at",
  "dn't at dusk$",
  "apNam",
  "harbour",
  "nowhere\\d",
];
const expected = (pattern: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => n)
    .filter((n) => new RegExp(pattern).test(textOf(n)))
    .map((n) => `e${n}`)
    .toSorted();

async function fill(path: string, count: number, step: number): Promise<void> {
  const engine = await openEngine({ database: path, thread: false });
  for (let at = 0; at < count; at += step) await engine.ingest(talk(at, Math.min(count, at + step)));
  await engine.close();
}

describe("blocks of words", () => {
  test("are made as messages come, in whatever steps, and hold their words", async () => {
    for (const step of [97, 512, 1_500]) {
      using folder = makeTemporaryFolder();
      const path = folder.file("lcm.db");
      await fill(path, 1_500, step);
      const blocks = readBlocks(path);
      expect([...blocks.keys()]).toEqual([0, 1]);
      for (const [block, words] of blocks) {
        const missing: string[] = [];
        const spelled = new Set(words.split("\n"));
        for (let n = block * 512; n < (block + 1) * 512; n++)
          for (const [run] of textOf(n)
            .toLowerCase()
            .matchAll(/[a-z0-9]{3,}/g))
            if (!spelled.has(run)) missing.push(run);
        expect(missing).toEqual([]);
      }
    }
  });

  test("change nothing about what is found", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    await fill(path, 1_300, 300);
    const check = async (patterns: readonly string[]): Promise<void> => {
      for (const pattern of patterns) {
        const all = expected(pattern, 1_300);
        const found = await search(path, pattern);
        expect(found.length, pattern).toBe(Math.min(200, all.length));
        if (all.length <= 200) expect(found, pattern).toEqual(all);
      }
    };
    await check(PATTERNS);
    const some = someOf(PATTERNS, 4);
    change(path, "DELETE FROM word_blocks WHERE block = ?", 0);
    await check(some);
    change(path, "UPDATE word_blocks SET words = ? WHERE block = ?", Buffer.from("no block"), 1);
    await check(some);
    change(path, "DELETE FROM word_blocks");
    await check(some);
  });

  test("keep the texts of other conversations and owners out of sight", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const engine = await openEngine({ database: path, thread: false });
    const stranger = { key: "agent:other:main", id: "s2", owner: "other" };
    await engine.ingest(talk(0, 700));
    await engine.ingest(talk(0, 1_100, stranger));
    const ask = async (caller: typeof session): Promise<number> => {
      const request = { session: caller, pattern: "note[0-9a-z]+q", scope: "messages", limit: 200 } as const;
      for (let after = "at_0"; ;) {
        const { next, total } = await engine.grep({ ...request, after });
        if (next === null) return total;
        after = next;
      }
    };
    expect([await ask(session), await ask(stranger)]).toEqual([700, 1_100]);
    await engine.close();
  });

  test("that are damaged or do not spell a word are named by verify, and mended by a rebuild", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    await fill(path, 1_100, 550);
    const [good] = [...readBlocks(path).keys()];
    expect(good).toBe(0);
    const engine = await openEngine({ database: path, thread: false });
    expect((await engine.verify()).problems).toEqual([]);
    using database = new DatabaseSync(path);
    const { words } = database.prepare("SELECT words FROM word_blocks WHERE block = 1").get() as {
      words: Uint8Array;
    };
    change(path, "UPDATE word_blocks SET words = ? WHERE block = ?", words, 0);
    expect((await engine.verify()).problems).toMatchObject([
      {
        code: "index",
        message: expect.stringContaining("block 0 of words does not spell all words of msg_1;"),
      },
    ]);
    const damaged = Uint8Array.from(words);
    damaged[damaged.length - 3] = (damaged.at(-3) as number) ^ 0xff;
    change(path, "UPDATE word_blocks SET words = ? WHERE block = ?", damaged, 1);
    expect((await engine.verify()).problems.map(({ message }) => message)).toEqual([
      expect.stringContaining("block 0 of words does not spell"),
      expect.stringContaining("block 1 of words cannot be read"),
    ]);
    await engine.reindex();
    expect((await engine.verify()).problems).toEqual([]);
    expect([...readBlocks(path).keys()]).toEqual([0, 1]);
    await engine.close();
  });

  test("that are missing are made from the archive by whoever writes next", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    await fill(path, 1_100, 550);
    const before = readBlocks(path);
    change(path, "DELETE FROM word_blocks");
    const engine = await openEngine({ database: path, thread: false });
    await engine.ingest(talk(1_100, 1_101));
    await engine.close();
    const after = readBlocks(path);
    expect([...after.keys()]).toEqual([0, 1]);
    for (const [block, words] of after)
      expect(new Set(words.split("\n"))).toEqual(new Set(before.get(block)?.split("\n")));
  });

  test("lose the words of a forgotten message, also where another process is collecting them", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const writer = await openEngine({ database: path, thread: false });
    await writer.ingest(talk(0, 1_000));
    const forgetter = await openEngine({ database: path, thread: false });
    // One in a block that is stored, one in the block the first engine is still filling.
    await forgetter.forget({ messageIds: [10, 900], reason: "a test" });
    const secrets = [textOf(9), textOf(899)].map((text) => text.split(" ")[0] as string);
    const spells = (secret: string): boolean =>
      [...readBlocks(path).values()].some((words) => words.split("\n").includes(secret));
    expect(secrets.map(spells)).toEqual([false, false]);
    await writer.ingest(talk(1_000, 1_600));
    expect(await find(writer, "note\\w+q about ledger at dusk")).toHaveLength(200);
    await writer.ingest(talk(1_600, 1_601));
    await writer.close();
    expect(secrets.map(spells)).toEqual([false, false]);
    expect([...readBlocks(path).keys()]).toEqual([0, 1, 2]);
    for (const secret of secrets) expect(await find(forgetter, `${secret}\\b`)).toEqual([]);
    expect((await forgetter.verify()).problems).toEqual([]);
    await forgetter.close();
  });
});
