import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { findSharedData, listTranscripts, makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import type { Random, TemporaryFolder } from "@lossless/testkit";
import { isSoak, someOf } from "@lossless/testkit/rounds.ts";
import { SAMPLE } from "@lossless/testkit/sample.ts";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, test } from "vitest";

import { openEngine } from "lossless-claw";
import { importTranscript } from "@lossless/interchange";
import type { Engine } from "../../src/index.ts";

import { ArchiveView, findFaults } from "./context-checks.ts";
import { makeTurns, SESSION } from "./conversation.ts";

const BUDGETS = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 200_000];
const RANDOM_BUDGETS = 4;
/** Larger transcripts are cut here, so that the suite stays quick; all of them, whole, with LCM_ALL_TRANSCRIPTS=1. */
const TAKES_ALL = process.env.LCM_ALL_TRANSCRIPTS !== undefined;
const MAX_BYTES = TAKES_ALL ? Number.POSITIVE_INFINITY : 300_000;

const SHARED = findSharedData();
const TRANSCRIPTS = [
  SAMPLE,
  ...(SHARED === null
    ? []
    : ["claude-code", "pi", "pi-v3-derived", "other-agents"].flatMap((kind) =>
        listTranscripts(SHARED, kind),
      )),
].filter((path) => !path.includes("other-agents") || /(?:claude|pi|openclaw)__[^/]*\.jsonl$/.test(path));

const nameOf = (path: string): string => `${basename(dirname(path))}/${basename(path)}`;

/** The beginning of a transcript, up to a whole line. */
function cutLines(path: string, share: number): string {
  const text = readFileSync(path, "utf8");
  const end = text.lastIndexOf("\n", Math.min(text.length, MAX_BYTES) * share);
  return text.slice(0, end + 1);
}

function drawBudgets(random: Random): number[] {
  const drawn = Array.from({ length: RANDOM_BUDGETS }, () => Math.floor(2_000 * 100 ** random.next()));
  return isSoak ? [...BUDGETS, ...drawn] : [...BUDGETS.filter((_, at) => at % 2 === 0), ...drawn.slice(0, 2)];
}

/** Everything in the database that assembling could change. */
function fingerprint(database: string): string {
  const connection = new DatabaseSync(database, { readOnly: true });
  const version = JSON.stringify(connection.prepare("PRAGMA data_version").get());
  connection.close();
  const digest = createHash("sha256");
  for (const file of [database, `${database}-wal`])
    if (statSync(file, { throwIfNoEntry: false })) digest.update(readFileSync(file));
  return `${version} ${digest.digest("hex")}`;
}

/** Assembles for each budget, twice, and says what is wrong. */
async function findFaultsAt(
  engine: Engine,
  database: string,
  conversationId: number,
  budgets: readonly number[],
): Promise<string[]> {
  const archive = new ArchiveView(database, conversationId);
  const before = fingerprint(database);
  const faults: string[] = [];
  for (const budgetTokens of budgets) {
    const context = await engine.assemble({ conversationId, budgetTokens, checkGrammars: true });
    const again = await engine.assemble({ conversationId, budgetTokens, checkGrammars: true });
    if (!context) return ["there is no context"];
    const found = findFaults(context, archive);
    if (JSON.stringify(context) !== JSON.stringify(again)) found.push("the same input gave other bytes");
    faults.push(...found.map((fault) => `${budgetTokens}: ${fault}`));
  }
  if (fingerprint(database) !== before) faults.push("assembling wrote to the database");
  return faults;
}

async function importPart(
  folder: TemporaryFolder,
  path: string,
  share: number,
): Promise<{ engine: Engine; database: string; conversationId: number | null }> {
  const part = folder.file(`part-${share}.jsonl`);
  const database = folder.file(`lcm-${share}.db`);
  writeFileSync(part, cutLines(path, share));
  const engine = await openEngine({ database, thread: false });
  const { conversationId } = await importTranscript({ engine, path: part });
  return { engine, database, conversationId };
}

describe.skipIf(TRANSCRIPTS.length === 0)(
  "a context of a real conversation fits, stands for all of it once, and is accepted by every provider",
  () => {
    test.each(someOf(TRANSCRIPTS, 3).map((path) => [nameOf(path), path]))("%s", async (_, path) => {
      using folder = makeTemporaryFolder();
      const random = makeRandom(statSync(path).size);
      // The derived ones tell the same conversations in another format: one cut of each is enough.
      const shares = [0.1 + 0.9 * random.next(), ...(TAKES_ALL || !path.includes("derived") ? [1] : [])];
      for (const share of shares) {
        const { engine, database, conversationId } = await importPart(folder, path, share);
        if (conversationId === null) {
          await engine.close();
          continue;
        }
        const check = async (state: string) => {
          const faults = await findFaultsAt(engine, database, conversationId, drawBudgets(random));
          expect({ state, share, faults }).toEqual({ state, share, faults: [] });
        };
        await check("as imported");
        const budgetTokens = random.pick([16_000, 32_000, 64_000]);
        await engine.compact({ conversationId, budgetTokens });
        await check("folded");
        await engine.maintain({ conversationId, budgetTokens });
        await engine.compact({ conversationId, budgetTokens: 16_000, targetTokens: 5_000 });
        await engine.maintain({ conversationId, budgetTokens: 8_000 });
        await check("folded hard, with stand-ins");
        expect((await engine.verify()).problems).toEqual([]);
        await engine.close();
      }
    });
  },
);

describe("a context", () => {
  test("counts the arguments of tool calls, as stored and as sent", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
    const file = Array.from(
      { length: 400 },
      (_, line) => `const value${line} = compute(${line}, "row ${line}");`,
    ).join("\n");
    const call = {
      type: "toolCall",
      id: "call_1",
      name: "write",
      arguments: { path: "src/rows.ts", content: file },
    };
    const messages = [
      { eventId: "u", message: { role: "user", content: "write it" } },
      { eventId: "a", message: { role: "assistant", content: [call] } },
      {
        eventId: "r",
        message: {
          role: "toolResult",
          toolCallId: "call_1",
          toolName: "write",
          content: [{ type: "text", text: "ok" }],
        },
      },
    ];
    const { conversationId } = await engine.ingest({ session: SESSION, messages });
    const whole = await engine.assemble({ conversationId, budgetTokens: 200_000 });
    expect(whole?.estimatedTokens).toBeGreaterThan(4_000);
    expect(whole?.messages[1]?.content).toEqual([call]);
    await engine.close();
  });

  test("gives base64 in a text and images back as they arrived", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
    const secret = `the token is ${Buffer.from(makeRandom(4).bytes(900)).toString("base64")} and no other`;
    const image = {
      type: "image",
      data: Buffer.from(makeRandom(5).bytes(600)).toString("base64"),
      mimeType: "image/png",
    };
    const messages = [
      { eventId: "1", message: { role: "user", content: secret } },
      {
        eventId: "2",
        message: { role: "assistant", content: [{ type: "toolCall", id: "c", name: "read", arguments: {} }] },
      },
      {
        eventId: "3",
        message: {
          role: "toolResult",
          toolCallId: "c",
          toolName: "read",
          content: [{ type: "text", text: secret }],
        },
      },
      { eventId: "4", message: { role: "user", content: [{ type: "text", text: secret }, image] } },
    ];
    const { conversationId } = await engine.ingest({ session: SESSION, messages });
    const context = await engine.assemble({ conversationId, budgetTokens: 100_000 });
    expect(context?.messages.map(({ content }) => content)).toEqual([
      [{ type: "text", text: secret }],
      [{ type: "toolCall", id: "c", name: "read", arguments: {} }],
      [{ type: "text", text: secret }],
      [{ type: "text", text: secret }, image],
    ]);
    await engine.close();
  });

  test("shows the newest user message of a turn that is longer than the budget can read", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    const engine = await openEngine({ database, thread: false });
    const { conversationId } = await engine.ingest({
      session: SESSION,
      messages: [...makeTurns(0, 30), ...makeTurns(30, 31, { calls: 300, resultWords: 200 })],
    });
    for (const folded of [false, true]) {
      if (folded) await engine.compact({ conversationId, budgetTokens: 16_000 });
      expect(await findFaultsAt(engine, database, conversationId, [2_000, 3_000, 16_000])).toEqual([]);
    }
    // Such a turn is folded while it runs, around its user message.
    const after = await engine.assemble({ conversationId, budgetTokens: 16_000 });
    expect(after?.mode).toBe("whole");
    await engine.close();
  });

  test("fits by the tokens of a real tokenizer, whatever characters the messages repeat", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    const engine = await openEngine({ database, thread: false });
    const turns = makeTurns(0, 40).map((arrival, n) => ({
      ...arrival,
      message:
        n % 5 === 0 && (arrival.message as { role: string }).role === "user"
          ? { role: "user", content: `${"[}é\r".charAt(n % 4).repeat(1_000)} what is this?` }
          : arrival.message,
    }));
    const { conversationId } = await engine.ingest({ session: SESSION, messages: turns });
    for (const folded of [false, true]) {
      if (folded) await engine.compact({ conversationId, budgetTokens: 6_000 });
      expect(await findFaultsAt(engine, database, conversationId, [3_000, 4_000, 6_000, 9_000])).toEqual([]);
      for (const budgetTokens of [3_000, 4_000, 6_000, 9_000]) {
        const context = await engine.assemble({ conversationId, budgetTokens });
        const text = (context?.messages ?? [])
          .flatMap(({ content }) => content as readonly { text?: string }[])
          .map((part) => part.text ?? JSON.stringify(part))
          .join("\n");
        // The estimate of ordinary text may be off by a few per cent; without the runs it would be off by far more.
        expect(countTokens(text)).toBeLessThanOrEqual(1.08 * budgetTokens);
        if (context?.mode !== "whole") expect(context?.estimatedTokens).toBeGreaterThan(0.75 * budgetTokens);
      }
    }
    await engine.close();
  });

  test("keeps its beginning between two anchors where messages have rulers in them", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
    const budgetTokens = 6_000;
    const random = makeRandom(1);
    let [before, changes]: [readonly string[], number] = [[], 0];
    for (let n = 0; n < 240; n++) {
      const content = `${"a few words ".repeat(5 + random.below(30))}\n${`${"=".repeat(100)}\n`.repeat(4)}`;
      const messages = [
        { eventId: `e${n}`, createdAt: n, message: { role: n % 2 ? "assistant" : "user", content } },
      ];
      const { conversationId } = await engine.ingest({ session: SESSION, messages });
      const context = await engine.assemble({ conversationId, budgetTokens });
      if (context?.mode !== "tight") continue;
      const now = context.messages.map((message) => JSON.stringify(message));
      if (before.some((text, at) => text !== now[at])) changes += 1;
      before = now;
    }
    // A change for each fifth of the budget by which the conversation grew; rulers that move the anchor would make twice as many.
    expect(changes).toBe(7);
    await engine.close();
  });
});
