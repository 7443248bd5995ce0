import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@lossless/testkit/fake-provider.ts";
import type { FakeProvider } from "@lossless/testkit/fake-provider.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandsFor, createRunner, makeFolder, parseEnvelope, readSampleLines, SAMPLE } from "./support.ts";
import type { Envelope } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const database = join(folder.path, "archive.db");
const SESSION = "3f6c1d52-8a0e-4b7d-9e41-c2a5d7b80f16";

const { lcm, text, json } = commandsFor(run, database);
const idsOf = ({ data }: Envelope): unknown[] => data.items.map((item) => item["id"]);

beforeAll(async () => {
  expect((await lcm("import", SAMPLE)).status).toBe(0);
  expect((await lcm("compact", "--budget", "32k", "--no-model")).status).toBe(0);
});
afterAll(folder.remove);

describe("search", () => {
  test("finds summaries, messages or both", async () => {
    const types = async (scope: string): Promise<unknown[]> => {
      const { data } = await json("search", "printer", "--scope", scope, "--limit", "200");
      return [...new Set(data.items.map((item) => item["type"]))].toSorted();
    };
    expect(await types("messages")).toEqual(["message"]);
    expect(await types("summaries")).toEqual(["summary"]);
    expect(await types("both")).toEqual(["message", "summary"]);
  });

  test("a regular expression finds what it matches, and pages give every hit once", async () => {
    const all = await json("search", "--regex", String.raw`ORD-2\d{4}`, "--limit", "200");
    expect(all.data).toMatchObject({ rule: "regex", mode: "regex", isTotalExact: true, truncated: false });
    expect(all.data.items.every((item) => /ORD-2\d{4}/.test(String(item["snippet"])))).toBe(true);
    const first = await json("search", "--regex", String.raw`ORD-2\d{4}`, "--limit", "20");
    const second = await json(
      "search",
      "--regex",
      String.raw`ORD-2\d{4}`,
      "--limit",
      "20",
      "--offset",
      first.pagination?.next ?? "",
    );
    expect([...idsOf(first), ...idsOf(second)]).toEqual(idsOf(all).slice(0, 40));
    expect(await text("search", "--regex", "carrier API bans?")).toContain("matching the expression");
  });

  test("a regular expression without a hit is retried as full text, and says so", async () => {
    expect(await text("search", "--regex", "qqzz(printer)")).toContain(
      "No text matches the regular expression; this is what full text finds for its words.",
    );
    const { data } = await json("search", "--regex", "qqzz(printer)");
    expect(data).toMatchObject({ mode: "full_text" });
  });

  test("regex syntax in full text is pointed out in the words of the shell", async () => {
    expect(await text("search", String.raw`(label|printer)\s+queue`)).toContain("Use --regex to match it");
  });

  test("an invalid expression is refused with the place", async () => {
    const refused = await lcm("search", "--regex", "a(b[c");
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain("at character 4 of the expression\n  a(b[c\n     ^\n");
    expect(refused.stderr).toContain("leave out --regex");
  });

  test("finds lines of files, and names the lines to open", async () => {
    const shown = await text("search", "--files", "ERROR [0]", "--limit", "1");
    expect(shown).toContain("1 of 2 lines of files with it as written");
    const [, id = "", lines = ""] = /Read: lcm show (file_\w+) --lines (\S+)/.exec(shown) ?? [];
    expect(await text("show", id, "--lines", lines)).toMatch(/ERROR \[0\] stock +pool exhausted/);
    const { data } = await json("search", "--files", "--regex", "^.*ERROR");
    expect(data.items[0]).toMatchObject({ type: "file", fileId: id });
  });

  test("keeps to a project and an agent, and names where hits come from", async () => {
    const project = join(folder.path, "app");
    mkdirSync(join(project, ".git"), { recursive: true });
    mkdirSync(join(project, "src"));
    const row = {
      parentUuid: null,
      isSidechain: false,
      sessionId: "cc-1",
      cwd: join(project, "src"),
      type: "user",
    };
    const line = { ...row, uuid: "u1", message: { role: "user", content: "The heron stands in the reeds." } };
    const transcript = join(folder.path, "cc-1.jsonl");
    writeFileSync(transcript, `${JSON.stringify(line)}\n`);
    const other = join(folder.path, "other.jsonl");
    writeFileSync(other, readSampleLines(12));
    const own = join(folder.path, "project.db");
    expect((await run(["import", other, transcript, "--db", own])).status).toBe(0);
    const search = async (...args: string[]): Promise<Envelope> =>
      parseEnvelope(await run(["search", "heron", "--db", own, "--json", ...args]));
    const { data } = await search("--project", join(project, "src"), "--agent", "claude-code");
    expect(data.items).toHaveLength(1);
    expect(data).toMatchObject({ conversations: [{ sessionId: "cc-1", agent: "claude-code", project }] });
    expect((await search("--project", folder.path)).data.items).toEqual([]);
    expect((await search("--except-session", "cc-1")).data.items).toEqual([]);
    const shown = (await run(["search", "heron", "--db", own, "--agent", "claude-code"])).stdout.toString();
    expect(shown).toContain("claude-code, session cc-1");
    const list = await run(["conversations", "list", "--db", own, "--project", project, "--json"]);
    expect(parseEnvelope(list).data.items).toMatchObject([{ agent: "claude-code", project }]);
  });

  test("keeps to times, roles, conversations and sessions", async () => {
    const period = ["--since", "2026-02-10", "--before", "2026-02-20"];
    const { data } = await json("search", "order", ...period, "--role", "user");
    expect(data.items.length).toBeGreaterThan(0);
    for (const item of data.items) {
      expect(item["role"]).toBe("user");
      expect(String(item["createdAt"]) >= "2026-02-10" && String(item["createdAt"]) < "2026-02-20").toBe(
        true,
      );
    }
    expect((await json("search", "printer", "--since", "yesterday")).data["total"]).toBe(0);
    const everywhere = await json("search", "printer", "--all");
    for (const where of [
      ["--conversation", "1"],
      ["--session", SESSION],
      ["--session", `pi:${SESSION}`],
    ]) {
      expect(idsOf(await json("search", "printer", ...where))).toEqual(idsOf(everywhere));
    }
    expect((await json("search", "printer", "--owner", "somebody")).data["total"]).toBe(0);
  });

  test("sorts by time when asked to", async () => {
    const { data } = await json("search", "why was the carrier slow", "--sort", "recency", "--limit", "50");
    const times = data.items.map((item) => String(item["latestAt"] ?? item["createdAt"]));
    expect(times).toEqual(times.toSorted().toReversed());
  });

  test("the command for the next page says everything again", async () => {
    const shown = await text(
      "search",
      "printer",
      "--scope",
      "messages",
      "--since",
      "2026-02-02",
      "--limit",
      "2",
    );
    expect(shown).toMatch(
      /More: lcm search --scope messages --since 2026-02-02 --after 2 --limit 2 --db \S+ printer$/m,
    );
  });
});

describe("show", () => {
  test("opens several ids, and a run as one thing", async () => {
    const shown = await text("show", "msg_5", "msg_8..msg_10");
    expect(shown).toContain("Good morning! You are Clawdia");
    expect(shown.match(/^msg_\d+/gm)).toEqual(["msg_5", "msg_8", "msg_9", "msg_10"]);
    const { data } = await json("show", "msg_10");
    expect(data.items[0]).toMatchObject({
      type: "messages",
      next: null,
      messages: [{ id: "msg_10", role: "user" }],
    });
  });

  test("pages put together give the whole, word for word", async () => {
    const whole = (await json("show", "msg_5..msg_30", "--max-tokens", "100k")).data.items[0];
    const pieces = new Map<string, string>();
    let after: string | null = null;
    do {
      const goOn: string[] = after === null ? [] : ["--after", after];
      const page = await json("show", "msg_5..msg_30", "--max-tokens", "2k", ...goOn);
      const item = page.data.items[0] as { messages: { id: string; text: string }[]; next: string | null };
      for (const { id, text: said } of item.messages) pieces.set(id, (pieces.get(id) ?? "") + said);
      after = item.next;
    } while (after !== null);
    const messages = whole?.["messages"] as { id: string; text: string }[];
    expect([...pieces]).toEqual(messages.map(({ id, text: said }) => [id, said]));
    expect(await text("show", "msg_5..msg_30", "--max-tokens", "200")).toMatch(
      /\d+ messages left\. More: lcm show msg_5\.\.msg_30 --after msg_\d+@\d+ --max-tokens 200 --db /,
    );
  });

  test("shows a summary with what lies below it", async () => {
    const id = await findCondensed();
    const shown = await text("show", id);
    expect(shown).toMatch(/Kind\s+condensed, depth \d/);
    expect(shown).toMatch(/Below it\nID[^\n]+\nsum_/);
    const { data } = await json("show", id);
    expect(data.items[0]).toMatchObject({ type: "summary", id, kind: "condensed" });
  });

  test("shows parts of a file by lines and by bytes", async () => {
    const { data } = await json("search", "--files", "ERROR [0]");
    const id = String(data.items[0]?.["id"]);
    const content = async (...range: string[]): Promise<unknown> =>
      (await json("show", id, ...range)).data.items[0]?.["content"];
    const three = String(await content("--lines", "1-3"));
    expect(three.split("\n")).toHaveLength(4);
    expect(await content("--bytes", "0-9")).toBe(three.slice(0, 10));
    expect(await content("--lines", "2")).toBe(`${three.split("\n")[1]}\n`);
    expect(await text("show", id)).toMatch(/Size\s+113 kB, 1,246 lines/);
  });

  test("says nothing about what belongs to another owner", async () => {
    const refused = await lcm("show", "msg_5", "--owner", "somebody");
    expect(refused.status).toBe(3);
    expect(refused.stderr).toContain("cannot open msg_5");
  });
});

describe("expand", () => {
  test("goes down to the messages, and names what is left", async () => {
    const id = await findCondensed();
    const { data } = await json("expand", id, "--max-tokens", "10k");
    const left = data["left"] as { messageIds: string[]; hint: string };
    expect((data["summaries"] as { id: string }[])[0]?.id).toBe(id);
    expect(data["messages"]).not.toEqual([]);
    expect(data).toMatchObject({ truncated: true });
    expect(left.hint).toMatch(/lcm (?:show|expand)|go on from sum_/);
    const shown = await text("expand", id, "--max-tokens", "10k");
    const [, next = ""] = /More: lcm show (\S+)/.exec(shown) ?? [];
    expect((await lcm("show", next)).status).toBe(0);
  });

  test("shows only summaries when asked to", async () => {
    const id = await findCondensed();
    const { data } = await json("expand", id, "--no-messages", "--depth", "1", "--max-tokens", "100k");
    expect(data["messages"]).toEqual([]);
    expect((data["summaries"] as object[]).length).toBeGreaterThan(1);
  });
});

describe("ask", () => {
  let provider: FakeProvider;
  let env: Record<string, string>;

  beforeAll(async () => {
    provider = await startFakeProvider();
    env = {
      LCM_EXPANSION_MODEL: "openai/tiny",
      OPENAI_API_KEY: "not-a-secret",
      OPENAI_BASE_URL: `${provider.url}/v1`,
    };
  });
  afterAll(() => provider.close());

  const QUESTION = ["ask", "what is the cap of the back-off"];

  test("gives passages with ids when there is no model", async () => {
    const shown = await text(...QUESTION);
    expect(shown).toContain("exponential back-off with a cap of 45 s");
    const { data } = await json(...QUESTION);
    expect(data).toMatchObject({ answeredBy: "passages", failure: null });
    const cited = data["citedIds"] as string[];
    expect(cited).toContain("msg_93");
    expect((await lcm("show", ...cited)).status).toBe(0);
  });

  test("looks for other words, and below a summary, when told to", async () => {
    const id = await findCondensed();
    const { data } = await json("ask", "what holds?", "--query", "back-off cap", "--below", id);
    expect(data["citedIds"]).toContain("msg_93");
    expect(await text("ask", "zyxwvutsrq")).toContain("Nothing in the archive speaks of this.");
  });

  test("a model writes the answer from the passages, and what it cost is kept", async () => {
    provider.script({
      kind: "whole",
      text: "The cap is 45 s [msg_93].",
      usage: { inputTokens: 900, outputTokens: 30 },
    });
    const answered = await run([...QUESTION, "--db", database], { env });
    expect(answered.stderr).toBe("");
    const shown = answered.stdout.toString("utf8");
    expect(shown).toMatch(/^The cap is 45 s \[msg_93\]\.\n\nBased on:\n\nmsg_93 {2}user/);
    const spend = parseEnvelope(await lcm("spend", "--by", "purpose", "--json"));
    expect(spend.data.items).toEqual([{ key: "ask", calls: 1, inputTokens: 900, outputTokens: 30 }]);
    const without = parseEnvelope(
      await run([...QUESTION, "--no-model", "--json", "--db", database], { env }),
    );
    expect(without.data).toMatchObject({ answeredBy: "passages", failure: null });
  });

  test("the passages are the answer when the model fails", async () => {
    provider.script({ kind: "status", status: 401 });
    const answered = await run([...QUESTION, "--db", database], { env });
    expect(answered.status).toBe(0);
    expect(answered.stdout.toString("utf8")).toContain(
      "No answer was written: openai answered with HTTP 401",
    );
    expect(answered.stdout.toString("utf8")).toContain("exponential back-off with a cap of 45 s");
  });
});

async function findCondensed(): Promise<string> {
  const { data } = await json("summaries", "list", "--limit", "500");
  const condensed = data.items
    .filter((item) => item["kind"] === "condensed")
    .toSorted((left, right) => Number(right["depth"]) - Number(left["depth"]));
  return String(condensed[0]?.["id"]);
}
