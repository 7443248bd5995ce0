import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  commandsFor,
  createRunner,
  makeFolder,
  parseEnvelope,
  parseError,
  readSampleLines,
} from "./support.ts";
import type { Envelope } from "./support.ts";

const LINES = 60;
const folder = makeFolder();
const run = createRunner(folder.path);
const database = join(folder.path, "archive.db");
const transcript = join(folder.path, "session.jsonl");
const escape = String.fromCodePoint(27);

const { lcm, text, json } = commandsFor(run, database);

beforeAll(async () => {
  writeFileSync(transcript, readSampleLines(LINES));
  const imported = await lcm("import", transcript, "--json");
  expect(parseEnvelope(imported).data).toMatchObject({
    imported: LINES,
    skipped: 0,
    conversations: 1,
    problems: [],
  });
});
afterAll(folder.remove);

describe("status", () => {
  test("says what is stored", async () => {
    const shown = await text("status");
    expect(shown).toContain(database);
    expect(shown).toMatch(/Messages\s+60/);
    const { ok, command, data, meta } = await json("status");
    expect({ ok, command }).toEqual({ ok: true, command: "status" });
    expect(data).toMatchObject({ messages: LINES, conversations: 1, largeFiles: 0, enabled: true });
    expect(data["lastMessageAt"]).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(meta.database).toBe(database);
  });
});

describe("conversations", () => {
  test("lists them with keyset paging", async () => {
    const list = await text("conversations", "list");
    expect(list).toMatch(/^TITLE .* ID\n/);
    // All have the same owner and state.
    expect(list).not.toMatch(/OWNER|STATE|active/);
    const { data, pagination } = await json("conversations", "list", "--limit", "1");
    expect(data.items).toHaveLength(1);
    expect(data.items[0]).toMatchObject({ id: 1, owner: "main", messages: LINES });
    expect(pagination).toEqual({ next: null, limit: 1 });
  });

  test("shows one, and nothing of another owner", async () => {
    expect(await text("conversations", "show", "1")).toMatch(/Messages\s+60/);
    expect((await json("conversations", "show", "1")).data).toMatchObject({ id: 1, messages: LINES });
    expect((await lcm("conversations", "show", "1", "--owner", "somebody")).status).toBe(3);
    expect((await json("conversations", "list", "--owner", "somebody")).data.items).toEqual([]);
  });
});

describe("messages", () => {
  test("paging through all of them gives each once, in both orders", async () => {
    for (const order of ["position", "arrival"]) {
      const seen: unknown[] = [];
      let after: string | null = null;
      do {
        const page: Envelope = await json(
          "messages",
          "list",
          "--limit",
          "17",
          "--order",
          order,
          ...(after === null ? [] : ["--after", after]),
        );
        seen.push(...page.data.items.map((item) => item["id"]));
        after = page.pagination?.next ?? null;
      } while (after !== null);
      expect(seen).toEqual(Array.from({ length: LINES }, (_, index) => `msg_${index + 1}`));
    }
  });

  test("lists rows for people with what hides them, and nothing is cut in a pipe", async () => {
    const shown = await text("messages", "list", "--session", "pi:3f6c1d52-8a0e-4b7d-9e41-c2a5d7b80f16");
    expect(shown).toMatch(/msg_1 .*meta/);
    expect(shown).toContain("More: --after");
    expect(Math.max(...shown.split("\n").map((line) => line.length))).toBeGreaterThan(150);
  });

  test("finds a conversation by the session's own id too", async () => {
    const { data } = await json(
      "messages",
      "list",
      "--session",
      "3f6c1d52-8a0e-4b7d-9e41-c2a5d7b80f16",
      "--limit",
      "1",
    );
    expect(data.items).toHaveLength(1);
  });

  test("tail shows the newest, oldest first", async () => {
    const { data, pagination } = await json("messages", "tail", "--limit", "3");
    expect(data.items.map((item) => item["id"])).toEqual(["msg_58", "msg_59", "msg_60"]);
    expect(pagination?.next).not.toBeNull();
    expect(await text("messages", "tail", "--limit", "2", "--conversation", "1")).toMatch(
      /^msg_59 [\s\S]*\nmsg_60 /m,
    );
  });

  test("show tells parts, ids and a digest of the bytes", async () => {
    const shown = await text("messages", "show", "msg_5");
    expect(shown).toContain("Good morning! You are Clawdia");
    expect(shown).toMatch(/SHA-256\s+[0-9a-f]{64}/);
    const { data } = await json("messages", "show", "5");
    expect(data).toMatchObject({ id: "msg_5", role: "user", hidden: [] });
    expect(data["parts"]).toMatchObject([{ ordinal: 0, type: "text" }]);
    expect(data["revisions"]).toHaveLength(1);
  });

  test("raw output equals the lines that went in, byte for byte", async () => {
    const all = await lcm("messages", "list", "--raw");
    expect(all.stdout.equals(readFileSync(transcript))).toBe(true);
    const lines = readFileSync(transcript, "utf8").split("\n");
    expect((await lcm("messages", "show", "msg_5", "--raw")).stdout.toString("utf8")).toBe(lines[4]);
    const page = await lcm("messages", "list", "--raw", "--limit", "2");
    expect(page.stdout.toString("utf8")).toBe(`${lines[0]}\n${lines[1]}\n`);
  });

  test("a changed message is listed once, as its newest revision, and every revision on request", async () => {
    const other = join(folder.path, "revised.db");
    const copy = join(folder.path, "revised.jsonl");
    const before = readSampleLines(8);
    writeFileSync(copy, before);
    await run(["import", copy, "--db", other]);
    const after = before.replace("Good morning! You are Clawdia", "Good evening! You are Clawdia");
    writeFileSync(copy, after);
    await run(["import", copy, "--db", other]);
    const raw = await run(["messages", "list", "--raw", "--db", other]);
    expect(raw.stdout.toString("utf8")).toBe(after);
    const listed = parseEnvelope(await run(["messages", "list", "--json", "--limit", "8", "--db", other]));
    expect(listed.data.items).toHaveLength(8);
    expect(listed.data.items[4]).toMatchObject({ id: "msg_9", revises: "msg_5" });
    const every = parseEnvelope(await run(["messages", "list", "--revisions", "--json", "--db", other]));
    expect(every.data.items).toHaveLength(9);
    const shown = await run(["messages", "show", "msg_5", "--db", other]);
    expect(shown.stdout.toString("utf8")).toMatch(/Revisions\s+msg_5, msg_9/);
  });
});

describe("search", () => {
  test("says the rule, the total and how to see more", async () => {
    const shown = await text("search", "label", "printer", "--limit", "1");
    expect(shown).toMatch(/1 of \d+ messages and summaries with every term/);
    expect(shown).toMatch(/More: lcm search --after 1 --limit 1 --db \S+ 'label printer'/);
    expect(shown).toMatch(/Read: lcm show msg_\d+ --db /);
    const { data, pagination } = await json("search", "label printer", "--limit", "1");
    expect(data).toMatchObject({ rule: "strict" });
    expect(data.items[0]?.["id"]).toMatch(/^msg_\d+$/);
    expect(data.items[0]?.["createdAt"]).toMatch(/Z$/);
    expect(pagination).toMatchObject({ next: "1", limit: 1 });
  });

  test("pages give every hit once", async () => {
    const { data, pagination } = await json("search", "printer", "--limit", "200");
    const total = pagination?.total ?? 0;
    expect(data.items).toHaveLength(total);
    const second = await json("search", "printer", "--limit", "200", "--offset", "1");
    expect(second.data.items).toEqual(data.items.slice(1));
  });

  test("an empty question, and one without an answer, are answers", async () => {
    expect(await text("search", "???")).toContain("nothing to look for");
    expect(await text("search", "zyxwvutsrq")).toContain("Nothing found");
  });

  test("marks matches in colour when asked to, and never in a pipe", async () => {
    const plain = await run(["search", "printer", "--db", database]);
    expect(plain.stdout.toString("utf8")).not.toContain(escape);
    const coloured = await run(["search", "printer", "--db", database], { env: { FORCE_COLOR: "1" } });
    expect(coloured.stdout.toString("utf8")).toContain(escape);
    const refused = await run(["search", "printer", "--db", database], { env: { NO_COLOR: "1" } });
    expect(refused.stdout.toString("utf8")).not.toContain(escape);
  });
});

describe("import", () => {
  test("adds only what is new when a file has grown, and names each file in a pipe", async () => {
    const grown = join(folder.path, "grown.jsonl");
    const other = join(folder.path, "grown.db");
    writeFileSync(grown, readSampleLines(10));
    await run(["import", grown, "--db", other]);
    writeFileSync(grown, readSampleLines(15));
    const again = await run(["import", grown, "--db", other]);
    expect(again.stdout.toString("utf8")).toContain("5 messages stored, 10 known before");
    expect(again.stderr).toContain(`${grown}: 5 stored`);
  });

  test("stores under the session and the owner that were named", async () => {
    const other = join(folder.path, "named.db");
    await run(["import", transcript, "--db", other, "--session", "agent:alice:main", "--owner", "alice"]);
    const { data } = parseEnvelope(await run(["conversations", "list", "--json", "--db", other]));
    expect(data.items[0]).toMatchObject({ owner: "alice", sessionKey: "agent:alice:main" });
  });

  test("goes on with the other files when one is bad, and ends with status 2", async () => {
    const other = join(folder.path, "mixed.db");
    const rubbish = join(folder.path, "rubbish.txt");
    writeFileSync(rubbish, "this is no transcript\n");
    const mixed = await run([
      "import",
      rubbish,
      transcript,
      join(folder.path, "absent.jsonl"),
      "--json",
      "--db",
      other,
    ]);
    expect(mixed.status).toBe(2);
    const { data } = parseEnvelope(mixed);
    expect(data).toMatchObject({ imported: LINES, conversations: 1 });
    expect(data["problems"]).toMatchObject([{ code: "refused_file" }, { code: "refused_file" }]);
  });

  test("keeps lines it cannot read, lists them, and ends with status 0", async () => {
    const other = join(folder.path, "broken.db");
    const broken = join(folder.path, "broken.jsonl");
    writeFileSync(broken, `${readSampleLines(6)}{"type": "message", cut off\n`);
    const result = await run(["import", broken, "--json", "--db", other]);
    expect(result.status).toBe(0);
    expect(parseEnvelope(result).data["problems"]).toMatchObject([
      { code: "unreadable_line", line: 7, path: broken },
    ]);
    const raw = await run(["messages", "list", "--raw", "--db", other]);
    expect(raw.stdout.equals(readFileSync(broken))).toBe(true);
  });

  test("a dry run says what would be stored, and leaves no trace", async () => {
    const other = join(folder.path, "dry.db");
    const grown = join(folder.path, "dry.jsonl");
    writeFileSync(grown, readSampleLines(10));
    const dry = await run(["import", grown, "--dry-run", "--db", other]);
    expect(dry.stdout.toString("utf8")).toContain("10 messages would be stored, 0 known before");
    expect(existsSync(other)).toBe(false);
    await run(["import", grown, "--db", other]);
    const before = readFileSync(other);
    writeFileSync(grown, `${readSampleLines(15)}{"type": "message", cut off\n`);
    const again = await run(["import", grown, "--dry-run", "--json", "--db", other]);
    expect(parseEnvelope(again).data).toMatchObject({
      imported: 6,
      skipped: 10,
      conversations: 1,
      problems: [{ code: "unreadable_line", line: 16 }],
      dryRun: true,
    });
    expect(readFileSync(other).equals(before)).toBe(true);
    const ignored = await run(["import", grown, "--dry-run", "--json", "--db", other], {
      env: { LCM_IGNORE_SESSION_PATTERNS: "pi:*" },
    });
    expect(parseEnvelope(ignored).data).toMatchObject({ imported: 0, problems: [{ code: "not_stored" }] });
  });

  test("stores nothing when the settings switch storing off", async () => {
    const other = join(folder.path, "off.db");
    const result = await run(["import", transcript, "--db", other, "--json"], {
      env: { LCM_ENABLED: "false" },
    });
    expect(result.status).toBe(4);
    expect((await run(["status", "--db", other])).status).toBe(5);
  });
});

describe("verify and reindex", () => {
  test("prove and rebuild", async () => {
    expect(await text("verify")).toContain("everything is whole");
    expect((await json("verify")).data).toEqual({
      ok: true,
      conversations: 1,
      messages: LINES,
      summaries: 0,
      files: 0,
      problems: [],
    });
    expect(await text("reindex")).toContain(`${LINES} messages indexed`);
    expect((await json("reindex")).data).toEqual({ messages: LINES });
    expect(await text("verify")).toContain("everything is whole");
  });
});

describe("config", () => {
  const home = makeFolder();
  const own = createRunner(home.path);
  afterAll(home.remove);

  test("sets, shows, explains and unsets a setting", async () => {
    const set = parseEnvelope(await own(["config", "set", "freshTailCount", "48", "--json"]));
    expect(set.data).toMatchObject({ key: "freshTailCount", value: 48, changed: true });
    expect((await own(["config", "get", "freshTailCount"])).stdout.toString("utf8")).toBe("48\n");
    expect(parseEnvelope(await own(["config", "get", "freshTailCount", "--json"])).data).toEqual({
      key: "freshTailCount",
      value: 48,
    });
    const changed = parseEnvelope(await own(["config", "show", "--changed", "--json"]));
    expect(changed.data.items.map((item) => item["key"])).toContain("freshTailCount");
    expect((await own(["config", "show"])).stdout.toString("utf8")).toContain("lcm.json");
    const explained = await own(["config", "explain", "freshTailCount"]);
    expect(explained.stdout.toString("utf8")).toMatch(/Default\s+64/);
    expect(parseEnvelope(await own(["config", "explain", "freshTailCount", "--json"])).data).toMatchObject({
      default: 64,
      value: 48,
    });
    await own(["config", "unset", "freshTailCount"]);
    expect((await own(["config", "get", "freshTailCount"])).stdout.toString("utf8")).toBe("64\n");
    expect((await own(["config", "path"])).stdout.toString("utf8")).toContain("lcm.json");
    expect(parseEnvelope(await own(["config", "path", "--json"])).data).toHaveProperty("ownFile");
  });

  test("says when the environment overrules what was set", async () => {
    const set = await own(["config", "set", "freshTailCount", "40"], { env: { LCM_FRESH_TAIL_COUNT: "20" } });
    expect(set.stdout.toString("utf8")).toContain("no effect while environment LCM_FRESH_TAIL_COUNT");
  });

  test("an unknown setting is named with the nearest one", async () => {
    const unknown = await own(["config", "get", "freshTailCont", "--json"]);
    expect(unknown.status).toBe(4);
    expect(parseError(unknown)).toEqual({
      code: "config",
      message: "cannot read setting freshTailCont: there is no such setting",
      hint: "Did you mean freshTailCount?",
    });
  });

  test("settings that belong together are set in the order that works, and taken out so", async () => {
    const status = async (...args: string[]) => (await own(["config", ...args])).status;
    expect(await status("set", "leafTargetTokens", "300")).toBe(0);
    expect(await status("set", "leafChunkTokens", "1000")).toBe(0);
    const unset = await own(["config", "unset", "leafTargetTokens"]);
    expect(unset.status).toBe(4);
    expect(unset.stderr).toContain(
      "leafTargetTokens = 2400 (its default): must be less than leafChunkTokens, 1000",
    );
    expect(await status("unset", "leafChunkTokens")).toBe(0);
    expect(await status("unset", "leafTargetTokens")).toBe(0);
  });

  test("what the host's file holds and the plugin cannot use is replaced here too, and doctor says so", async () => {
    const config = { freshTailMaxTokens: 0, leafChunkTokens: 1000 };
    const host = { plugins: { entries: { "lossless-claw": { config } } } };
    writeFileSync(join(home.path, "state", "openclaw.json"), JSON.stringify(host));
    writeFileSync(join(home.path, "session.jsonl"), readSampleLines(3));
    expect((await own(["import", join(home.path, "session.jsonl")])).status).toBe(0);
    const status = await own(["status"]);
    expect(status.status).toBe(0);
    expect(status.stderr).toContain("freshTailMaxTokens = 0");
    const doctor = parseEnvelope(await own(["doctor", "--json"]));
    const findings = doctor.data["findings"] as { code: string; id: string }[];
    expect(findings.filter(({ code }) => code === "setting_impossible").map(({ id }) => id)).toEqual([
      "freshTailMaxTokens",
      "leafChunkTokens",
    ]);
    config.freshTailMaxTokens = 1;
    Object.assign(config, { redactPatterns: ["@key"] });
    writeFileSync(join(home.path, "state", "openclaw.json"), JSON.stringify(host));
    expect((await own(["status"])).status).toBe(4);
    writeFileSync(join(home.path, "state", "openclaw.json"), "{}");
  });

  test("can take out a key that stops every other command", async () => {
    writeFileSync(join(home.path, "state", "lcm.json"), '{"nonsense": 1}');
    expect((await own(["config", "show"])).status).toBe(4);
    expect((await own(["config", "unset", "nonsense"])).status).toBe(0);
    expect((await own(["config", "show"])).status).toBe(0);
  });
});

describe("help and version", () => {
  test("the program alone welcomes a newcomer", async () => {
    const welcome = await run([]);
    expect(welcome.status).toBe(0);
    expect(welcome.stdout.toString("utf8")).toContain("lcm import");
    expect(welcome.stdout.toString("utf8")).not.toContain(escape);
  });

  test("every command has help with examples, by option and by command", async () => {
    const { buildProgram, listCommands } = await import("../src/program.ts");
    const { helpOf } = await import("../src/commands/config/help.ts");
    const { commandPath } = await import("../src/invocation.ts");
    for (const command of listCommands(buildProgram())) {
      if (command.commands.length > 0) continue;
      expect(helpOf(command), commandPath(command)).toContain("Examples:");
    }
    const byCommand = await run(["help", "messages", "list"]);
    const byOption = await run(["messages", "list", "--help"]);
    expect(byCommand.stdout.toString("utf8")).toContain("--raw");
    expect(byOption.stdout.equals(byCommand.stdout)).toBe(true);
  });

  test("the version is the package's", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    expect((await run(["--version"])).stdout.toString("utf8")).toBe(`${version}\n`);
    expect((await run(["-V"])).stdout.toString("utf8")).toBe(`${version}\n`);
    expect((await run(["version"])).stdout.toString("utf8")).toContain(version);
    expect(parseEnvelope(await run(["version", "--json"])).data).toMatchObject({
      lcm: version,
      node: process.versions.node,
    });
  });
});

test("a reader that stops early is no error", async () => {
  const big = join(folder.path, "big.db");
  const file = join(folder.path, "big.jsonl");
  // More than a pipe takes before its reader stops.
  writeFileSync(file, readSampleLines(500));
  await run(["import", file, "--db", big]);
  const result = await run(["messages", "list", "--raw", "--db", big], {
    onStart: (child) => child.stdout?.once("data", () => child.stdout?.destroy()),
  });
  expect(result.status).toBe(0);
  expect(result.stderr).toBe("");
});

test("control characters of stored text never reach the terminal", async () => {
  const other = join(folder.path, "escape.db");
  const file = join(folder.path, "escape.jsonl");
  const line = JSON.stringify({
    type: "user",
    uuid: "u1",
    sessionId: "s1",
    message: { role: "user", content: "red \u001b[31m and \u202E back" },
  });
  writeFileSync(file, `${line}\n`);
  await run(["import", file, "--format", "claude-code", "--db", other]);
  for (const args of [
    ["messages", "list"],
    ["messages", "tail"],
    ["messages", "show", "msg_1"],
    ["search", "red"],
    ["assemble", "--budget", "8k"],
  ]) {
    const shown = await run([...args, "--db", other]);
    expect(shown.stdout.toString("utf8"), args.join(" ")).toContain("red");
    for (const unsafe of [escape, "\u202E"]) {
      expect(shown.stdout.toString("utf8"), args.join(" ")).not.toContain(unsafe);
    }
  }
});

describe("labels", () => {
  test("a name, tags, a pin and hiding are kept, shown and taken away", async () => {
    expect(await text("name", "1", "A", "plan")).toMatch(/^1 {2}A plan/);
    await text("tag", "1", "Work", "later");
    await text("pin", "1");
    expect((await json("conversations", "list", "--tag", "work")).data.items).toMatchObject([
      { heading: "A plan", name: "A plan", tags: ["later", "work"], pinned: true },
    ]);
    await text("hide", "1");
    expect((await json("conversations", "list")).data.items).toEqual([]);
    expect((await json("conversations", "list", "--hidden")).data.items).toHaveLength(1);
    for (const words of [["name"], ["pin"], ["hide"]]) await text(...words, "1", "--remove");
    await text("tag", "1", "work", "later", "--remove");
    expect((await json("conversations", "list")).data.items).toMatchObject([
      { name: null, tags: [], pinned: false, hidden: false },
    ]);
    expect((await lcm("name", "99", "x")).status).toBe(3);
    expect((await lcm("name", "1")).status).toBe(2);
    expect((await json("verify")).data).toMatchObject({ ok: true });
  });
});
