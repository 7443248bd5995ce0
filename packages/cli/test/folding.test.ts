import { copyFileSync, cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filesDirBeside } from "@lossless/core/ports";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseSince } from "../src/commands/fold/spend.ts";
import { parseTokens } from "../src/commands/shared.ts";
import {
  commandsFor,
  createRunner,
  makeFolder,
  parseEnvelope,
  parseError,
  readSampleLines,
  SAMPLE,
} from "./support.ts";
import type { Envelope, Run } from "./support.ts";

const SESSION = "pi:3f6c1d52-8a0e-4b7d-9e41-c2a5d7b80f16";
const folder = makeFolder();
const run = createRunner(folder.path);
const database = join(folder.path, "folded.db");
const raw = join(folder.path, "raw.db");
const aimed = join(folder.path, "aimed.db");

const { lcm, text, json } = commandsFor(run, database);

interface Item {
  readonly kind: string;
  readonly ids: readonly string[];
  readonly tokens: number;
  readonly messages: number;
  readonly depth: number;
  readonly reason: string;
}

let compacted: Run;
let before: Envelope;

beforeAll(async () => {
  await run(["import", SAMPLE, "--db", database]);
  for (const copy of [raw, aimed]) {
    copyFileSync(database, copy);
    cpSync(filesDirBeside(database), filesDirBeside(copy), { recursive: true });
  }
  before = await json("status");
  compacted = await lcm("compact", "--session", SESSION, "--budget", "32k");
});
afterAll(folder.remove);

describe("compact", () => {
  test("tells each pass on stderr, and what was saved and what it cost on stdout", async () => {
    expect(compacted.status).toBe(0);
    const passes = compacted.stderr.match(/^pass \d+: [\d,]+ tokens$/gm) ?? [];
    expect(passes.length).toBeGreaterThan(3);
    const shown = compacted.stdout.toString("utf8");
    expect(shown).toMatch(/Before\s+█+ {2}[\d,]+ tokens/);
    expect(shown).toMatch(/After\s+█+░+ +[\d,]+ tokens, \d+ % of the budget/);
    expect(shown).toMatch(/Passes\s+\d+: everything outside the tail is folded/);
    expect(shown).toMatch(/Stand-ins\s+\d+ for tighter budgets/);
    expect(shown).toMatch(/Cost\s+nothing: no model was used/);
    expect(await text("verify")).toContain("everything is whole");
  });

  test("says why it folds nothing below the threshold", async () => {
    expect(await text("compact", "--budget", "32k")).toContain(
      "nothing was folded in conversation 1: below threshold",
    );
    const { data, command } = await json("compact", "--budget", "32000", "--conversation", "1");
    expect(command).toBe("compact");
    expect(data).toMatchObject({
      conversationId: 1,
      compacted: false,
      reason: "below threshold",
      passes: 0,
      summaryIds: [],
      cost: { calls: 0, inputTokens: 0, outputTokens: 0 },
    });
    expect(data["tokensAfter"]).toBe(data["tokensBefore"]);
  });

  test("folds down to a target, without stand-ins when they are not wanted", async () => {
    const result = await run(
      [
        "compact",
        "--budget",
        "64k",
        "--target",
        "40k",
        "--no-reserve",
        "--no-model",
        "--json",
        "--db",
        aimed,
      ],
      {},
    );
    expect(result.stderr).toBe("");
    const { data } = parseEnvelope(result);
    expect(data).toMatchObject({ compacted: true, reason: "under the target", standIns: 0 });
    expect(data["tokensAfter"]).toBeLessThanOrEqual(40_000);
    expect(data["passes"]).toBe((data["summaryIds"] as string[]).length);
    const reserve = await run(["summaries", "list", "--state", "reserve", "--json", "--db", aimed]);
    expect(parseEnvelope(reserve).data.items).toEqual([]);
  });

  test("says when the target is not reached, with a status, and prints what is in the archive", async () => {
    const missed = await run(["compact", "--budget", "64k", "--target", "100", "--no-model", "--db", aimed]);
    expect(missed.status).toBe(1);
    const shown = missed.stdout.toString("utf8");
    expect(shown).toContain(
      "target not reached  conversation 1 is folded; it was to have at most 100 tokens",
    );
    const list = parseEnvelope(await run(["conversations", "list", "--json", "--db", aimed]));
    const { shownTokens } = list.data.items[0] as unknown as { shownTokens: number };
    expect(shown).toContain(`${shownTokens.toLocaleString("en")} tokens`);
    const again = await run(["compact", "--budget", "64k", "--target", "100", "--json", "--db", aimed]);
    expect([again.status, parseEnvelope(again).ok]).toEqual([1, false]);
    expect(again.status).toBe(1);
    expect(parseEnvelope(again).data).toMatchObject({
      compacted: false,
      reason: "nothing to fold",
      targetTokens: 100,
      targetReached: false,
      tokensAfter: shownTokens,
    });
  });

  test("folds every conversation with --all, and reports each", async () => {
    const all = join(folder.path, "all.db");
    const [one, other] = [join(folder.path, "one.jsonl"), join(folder.path, "other.jsonl")];
    // More than two budgets.
    const lines = readSampleLines(500);
    writeFileSync(one, lines);
    writeFileSync(other, lines.replaceAll("3f6c1d52", "4f6c1d52"));
    await run(["import", one, other, "--db", all]);
    // One pass per sweep: a fold that stopped after one sweep would leave far too much.
    const env = { LCM_MAX_SWEEP_ITERATIONS: "1" };
    const args = [
      "compact",
      "--all",
      "--force",
      "--budget",
      "32k",
      "--no-reserve",
      "--no-model",
      "--db",
      all,
    ];
    const folded = await run([...args, "--json"], { env });
    expect(folded.status).toBe(0);
    const { data } = parseEnvelope(folded);
    expect(data).toMatchObject({ conversations: 2, folded: 2, targetNotReached: 0, failures: [] });
    const stored = parseEnvelope(await run(["conversations", "list", "--json", "--db", all])).data
      .items as unknown as { id: number; shownTokens: number }[];
    const items = data.items as unknown as { conversationId: number; tokensAfter: number }[];
    expect(items.map(({ conversationId, tokensAfter }) => [conversationId, tokensAfter])).toEqual(
      stored.map(({ id, shownTokens }) => [id, shownTokens]),
    );
    for (const { tokensAfter } of items) expect(tokensAfter).toBeLessThan(24_000);
    const missed = await run([...args, "--target", "100"]);
    expect(missed.status).toBe(1);
    expect(missed.stdout.toString("utf8")).toContain("target not reached  2 of 2 conversations folded");
    expect(missed.stderr).toMatch(/^2 of 2 conversations, number 1, pass 1: [\d,]+ tokens$/m);
    expect((await run(["verify", "--db", all])).status).toBe(0);
    const idle = await run(["compact", "--all", "--budget", "200k", "--db", all]);
    expect(idle.stdout.toString("utf8")).toBe("ok  0 of 2 conversations folded\n");
    expect((await run([...args, "--conversation", "1"])).status).toBe(2);
  });

  test("refuses a missing or impossible budget and an unknown conversation", async () => {
    expect((await lcm("compact")).status).toBe(2);
    const bad = await lcm("compact", "--budget", "much");
    expect(bad.status).toBe(2);
    expect(bad.stderr).toContain("32k");
    expect((await lcm("compact", "--budget", "32k", "--conversation", "99")).status).toBe(3);
    expect((await lcm("compact", "--budget", "32k", "--session", "nobody")).status).toBe(3);
    expect((await lcm("compact", "--budget", "32k", "--owner", "somebody")).status).toBe(3);
  });
});

describe("assemble", () => {
  test.each([2000, 8000, 32_000, 200_000])(
    "for %i tokens stands for every message and fits",
    async (budget) => {
      for (const database of ["folded.db", "raw.db"]) {
        const args = ["assemble", "--budget", String(budget), "--json", "--db", join(folder.path, database)];
        const { data } = parseEnvelope(await run(args));
        const items = data.items as unknown as readonly Item[];
        expect(data["estimatedTokens"]).toBeLessThanOrEqual(budget);
        expect(data["budgetTokens"]).toBe(budget);
        expect(items.reduce((sum, item) => sum + item.messages, 0)).toBe(data["shownMessages"]);
        expect(items.filter((item) => item.reason === "")).toEqual([]);
        expect(data["grammars"]).toHaveLength(5);
        expect(data["grammars"]).not.toContainEqual(expect.objectContaining({ accepts: false }));
      }
    },
  );

  test("gives the same bytes for the same question, by conversation and by session", async () => {
    const one = await json("assemble", "--conversation", "1", "--budget", "8k");
    const two = await json("assemble", "--session", SESSION, "--budget", "8000");
    expect(two.data).toEqual(one.data);
    expect(Object.keys(one.data)).toEqual(
      expect.arrayContaining(["messages", "estimatedTokens", "epoch", "fingerprint", "mode", "items"]),
    );
    expect(one.data.items[0]).toMatchObject({ kind: "summary", role: null });
  });

  test("prints what the model reads", async () => {
    const shown = await text("assemble", "--budget", "32k");
    expect(shown).toMatch(/^user$/m);
    expect(shown).toContain('<summary id="sum_');
    expect(shown).toMatch(/\[tool call: \w+\]/);
    expect(shown).toMatch(/[\d,]+ of 32,000 tokens; \d+ items for 1,2\d\d messages/);
  });

  test("explains each item with a bar, and the whole", async () => {
    const shown = await text("assemble", "--budget", "32k", "--explain");
    expect(shown).toMatch(/^KIND\s+ID\s+DEPTH\s+FOR\s+TOKENS\s+WHY$/m);
    expect(shown).toMatch(/^summary\s+sum_[0-9a-f]{16}\s+1\s+[\d,]+\s+[\d,]+\s+█+░*\s+\S/m);
    expect(shown).toMatch(/^user\s+msg_\d+\s+1\s+\d+\s+[█░]+\s+\S/m);
    expect(shown).toMatch(/Covers\s+1,265 of 1,265 messages: \d+ as they are, [\d,]+ under \d+ summaries/);
    expect(shown).toMatch(/Accepted by\s+anthropic, openai-chat, openai-responses, gemini, bedrock/);
  });

  test("explains how long the tail is that folds leave alone, and why it is not longer", async () => {
    const explain = async (env: Record<string, string>): Promise<string> => {
      const args = ["assemble", "--budget", "32k", "--explain", "--db", raw];
      return (await run(args, { env })).stdout.toString("utf8");
    };
    expect(await explain({ LCM_FRESH_TAIL_COUNT: "100000" })).toMatch(
      /Tail\s+folds leave the newest \d+ messages alone \([\d,]+ tokens\); fewer than the 100,000 of freshTailCount: more would exceed 9,600 tokens, 30 % of the budget/,
    );
    expect(await explain({ LCM_FRESH_TAIL_MAX_TOKENS: "2000" })).toContain(
      "more would exceed 2,000 tokens, 6 %",
    );
    expect(await explain({ LCM_FRESH_TAIL_MAX_TOKENS: "2" })).toContain(
      "the newest turn or tool group alone exceeds 2 tokens",
    );
    expect(await explain({ LCM_FRESH_TAIL_COUNT: "4" })).toMatch(
      /newest 4 messages alone \([\d,]+ tokens\)$/m,
    );
  });

  test("adds what the prompt is about at the end", async () => {
    const cued = await json(
      "assemble",
      "--budget",
      "32k",
      "--prompt",
      "which back-off cap did we decide for the carrier?",
    );
    const plain = await json("assemble", "--budget", "32k");
    const [last] = (cued.data["messages"] as { content: { text?: string }[] }[]).slice(-1);
    expect(JSON.stringify(last)).toContain("45 s");
    expect(cued.data["fingerprint"]).toBe(plain.data["fingerprint"]);
  });

  test("takes a model and one provider's grammar, and refuses an unknown one", async () => {
    const { data } = await json(
      "assemble",
      "--budget",
      "8k",
      "--model",
      "anthropic/claude",
      "--provider",
      "anthropic",
    );
    expect(data["grammars"]).toContainEqual({ provider: "anthropic", accepts: true, problem: null });
    const tiny = await lcm("assemble", "--budget", "1");
    expect(tiny.status).toBe(0);
    expect(tiny.stderr).toMatch(
      /^warning: no context is so small: the least takes [\d,]+ tokens, the budget is 1\n$/,
    );
    expect((await lcm("assemble", "--budget", "8k", "--provider", "nobody")).status).toBe(2);
  });
});

describe("summaries", () => {
  test("paging gives each summary once", async () => {
    const all = await json("summaries", "list", "--limit", "500");
    const seen: unknown[] = [];
    let after: string | null = null;
    do {
      const page: Envelope = await json(
        "summaries",
        "list",
        "--limit",
        "5",
        ...(after === null ? [] : ["--after", after]),
      );
      seen.push(...page.data.items.map((item) => item["id"]));
      after = page.pagination?.next ?? null;
    } while (after !== null);
    expect(seen).toEqual(all.data.items.map((item) => item["id"]));
    expect(new Set(seen).size).toBe(seen.length);
    expect(all.data.items[0]).toMatchObject({ level: "extractive", isStale: false });
    expect(await text("summaries", "list", "--limit", "2")).toContain("More: --after");
    expect((await json("summaries", "list", "--state", "prepared")).data.items).toEqual([]);
  });

  test("show goes both ways: down to the messages, and up to what was made from it", async () => {
    const { data } = await json("summaries", "list", "--limit", "500");
    const condensed = data.items.find((item) => item["depth"] === 1);
    const up = await json("summaries", "show", String(condensed?.["id"]));
    const sourceIds = up.data["sourceIds"] as string[];
    expect(sourceIds.length).toBeGreaterThan(1);
    const leaf = await json("summaries", "show", String(sourceIds[0]));
    expect(leaf.data["derivedIds"]).toContain(condensed?.["id"]);
    const messageIds = leaf.data["messageIds"] as string[];
    expect(messageIds.length).toBeGreaterThanOrEqual(Number(leaf.data["messages"]));
    expect((await json("messages", "show", String(messageIds[0]))).data).toMatchObject({ id: messageIds[0] });
    const shown = await text("summaries", "show", String(sourceIds[0]));
    expect(shown).toMatch(/Covers\s+\d+ messages, msg_\d+ to msg_\d+/);
    expect(shown).toContain("Made into");
    expect(shown).toContain(String(leaf.data["content"]).split("\n")[0]);
    const words = await text("summaries", "show", String(condensed?.["id"]));
    expect(words).toContain("Made from");
    // Every face of the archive means the same by the tokens a summary was made from.
    const described = (await json("show", String(condensed?.["id"]))).data.items[0];
    expect(described?.["sourceTokens"]).toBe(up.data["sourceTokens"]);
    expect(Number(described?.["messageTokens"])).toBeGreaterThan(Number(described?.["sourceTokens"]));
    const line = /Tokens +[\d,]+ from [\d,]+ /.exec(words)?.[0];
    expect(await text("show", String(condensed?.["id"]))).toMatch(
      new RegExp(line?.replace(/ +/, " +") ?? "never"),
    );
  });

  test("tree draws every summary above its sources", async () => {
    const shown = await text("summaries", "tree");
    expect(shown).toMatch(/^sum_[0-9a-f]{16}\s+1\s.*cover/m);
    expect(shown).toMatch(/^├─ sum_[0-9a-f]{16}\s+0\s.*cover, extractive$/m);
    expect(shown).toMatch(/^└─ sum_[0-9a-f]{16}\s+0\s.*cover/m);
    expect(shown).toMatch(/^sum_[0-9a-f]{16}(?: ↑\d+)?\s+2\s.*reserve, extractive, root$/m);
    const { data } = await json("summaries", "tree");
    const ids = new Set(data.items.map((item) => item["id"]));
    const listed = await json("summaries", "list", "--limit", "500");
    expect(ids).toEqual(new Set(listed.data.items.map((item) => item["id"])));
    const top = data.items[0] ?? {};
    const below = await json("summaries", "tree", String(top["id"]));
    expect(below.data.items).toHaveLength(1 + (top["sourceIds"] as string[]).length);
  });

  test("an unknown id, a wrong one and another owner's are refused", async () => {
    expect((await lcm("summaries", "show", "sum_0000000000000000")).status).toBe(3);
    expect((await lcm("summaries", "show", "msg_1")).status).toBe(2);
    const { data } = await json("summaries", "list", "--limit", "1");
    expect(
      (await lcm("summaries", "show", String(data.items[0]?.["id"]), "--owner", "somebody")).status,
    ).toBe(3);
  });

  test("a conversation without summaries is no error", async () => {
    const other = join(folder.path, "empty.db");
    const short = join(folder.path, "short.jsonl");
    writeFileSync(short, readSampleLines(12));
    await run(["import", short, "--db", other]);
    expect((await run(["summaries", "list", "--db", other])).stdout.toString("utf8")).toBe("No summaries.\n");
    expect((await run(["summaries", "tree", "--db", other])).stdout.toString("utf8")).toBe("No summaries.\n");
  });
});

describe("status", () => {
  test("tells the folding of the only conversation, and of a session", async () => {
    const shown = await text("status");
    expect(shown).toMatch(/Context\s+[\d,]+ tokens for 1,265 messages/);
    // The same messages as the context stands for, and a name for each of the others.
    const counted = /Messages +([\d,]+): 1,265 in the context, ([\d,]+) hidden \(.+\)/.exec(shown);
    const [messages, hidden] = counted?.slice(1).map((digits) => Number(digits.replaceAll(",", ""))) ?? [];
    expect(messages).toBe(1_265 + (hidden ?? 0));
    const assembled = (await json("assemble", "--session", SESSION, "--budget", "32k")).data;
    expect(assembled).toMatchObject({
      shownMessages: 1_265,
      counts: { messages, shownMessages: 1_265, hiddenMessages: hidden, beforeBoundary: 0 },
    });
    expect(await text("assemble", "--session", SESSION, "--budget", "32k")).toContain(
      `for 1,265 messages, ${hidden} hidden (`,
    );
    expect(await text("conversations", "show", "1")).toMatch(/Messages +[\d,]+: 1,265 in the context, /);
    expect(shown).toMatch(/Compression\s+\d+\.\d : 1/);
    expect(shown).toMatch(/Summaries\s+\d+ \(\d+ extractive, 0 stale\), 1 stand-in, 0 prepared/);
    expect(shown).toMatch(/Owed\s+nothing/);
    const { data } = await json("status", "--session", SESSION);
    expect(data["conversation"]).toMatchObject({ id: 1, sessionKey: SESSION });
    expect(data["folding"]).toMatchObject({
      debt: null,
      // What the answers of the sample say about the provider's prompt cache.
      cache: { requests: 571, promptTokens: 94_576_474, cachedTokens: 94_260_186 },
    });
    expect(data["guards"]).toEqual([]);
    const storage = data["storage"] as Record<string, { bytes: number; share: number }>;
    for (const name of ["messages", "leaves", "condensed", "indexes", "other", "all"])
      expect([name, (storage[name]?.share ?? 0) > 0]).toEqual([name, true]);
    expect((await lcm("status", "--session", "nobody")).status).toBe(3);
  });

  test("the tokens as they are do not change by folding", async () => {
    const after = await json("status");
    const folding = (envelope: Envelope): Record<string, number> =>
      envelope.data["folding"] as Record<string, number>;
    expect(folding(after)["rawTokens"]).toBe(folding(before)["contextTokens"]);
    expect(folding(after)["compression"]).toBeGreaterThan(5);
    expect(folding(before)["compression"]).toBe(1);
  });

  test("says nothing about folding when there are several conversations", async () => {
    const several = join(folder.path, "several.db");
    const short = join(folder.path, "twice.jsonl");
    writeFileSync(short, readSampleLines(12));
    await run(["import", short, "--db", several]);
    await run(["import", short, "--session", "agent:other:main", "--owner", "other", "--db", several]);
    const { data } = parseEnvelope(await run(["status", "--json", "--db", several]));
    expect(data["folding"]).toBeNull();
    expect((await run(["compact", "--budget", "32k", "--db", several])).status).toBe(2);
  });
});

describe("spend", () => {
  test("without any call says so, and where the caps are", async () => {
    const shown = await text("spend");
    expect(shown).toContain("No model was called");
    expect(shown).toMatch(/Today\s+0 tokens, no cap/);
    const { data } = await json("spend", "--since", "7d", "--by", "model");
    expect(data).toMatchObject({
      by: "model",
      items: [],
      total: { calls: 0, inputTokens: 0, outputTokens: 0 },
    });
    expect(data["caps"]).toMatchObject({ tokensPerDay: null, callsInWindow: 0 });
  });

  test("refuses a time it cannot read, and a share of one owner", async () => {
    const bad = await lcm("spend", "--since", "someday", "--json");
    expect(parseError(bad)).toMatchObject({ code: "usage" });
    expect((await lcm("spend", "--owner", "main")).status).toBe(2);
  });

  test("a date is the begin of that day where the person lives", () => {
    const now = Date.UTC(2026, 1, 20, 12);
    expect(parseSince("7d", now, "UTC")).toBe(Date.UTC(2026, 1, 13, 12));
    expect(parseSince("12h", now, "UTC")).toBe(Date.UTC(2026, 1, 20, 0));
    expect(parseSince("2026-02-01", now, "UTC")).toBe(Date.UTC(2026, 1, 1));
    expect(parseSince("2026-02-01", now, "Pacific/Auckland")).toBe(Date.UTC(2026, 0, 31, 11));
    expect(parseSince("2026-02-01", now, "America/Los_Angeles")).toBe(Date.UTC(2026, 1, 1, 8));
    expect(parseSince("2026-02-01T10:00:00Z", now, "UTC")).toBe(Date.UTC(2026, 1, 1, 10));
    for (const bad of ["", "7", "7x", "2026-02-31", "2026-13-01", "soon"]) {
      expect(() => parseSince(bad, now, "UTC"), bad).toThrow("cannot read --since");
    }
  });
});

describe("options", () => {
  test.each([
    ["32000", 32_000],
    ["32_000", 32_000],
    ["32k", 32_000],
    ["1.5k", 1500],
    ["1M", 1_000_000],
  ])("%s are %i tokens", (typed, tokens) => {
    expect(parseTokens(typed)).toBe(tokens);
  });

  test.each(["", "0", "-1", "k", "1e3", "32kb", "1,000"])("%j are no tokens", (typed) => {
    expect(() => parseTokens(typed)).toThrow("number of tokens");
  });
});
