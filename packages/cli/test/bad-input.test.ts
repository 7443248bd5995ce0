import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ERROR_CODES } from "@lossless/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, parseError, readSampleLines } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const at = (name: string): string => join(folder.path, name);
const database = at("archive.db");

beforeAll(async () => {
  writeFileSync(at("session.jsonl"), readSampleLines(12));
  expect((await run(["import", at("session.jsonl"), "--db", database])).status).toBe(0);
  writeFileSync(at("text.db"), "hello, this is certainly no database\n");
  mkdirSync(at("directory"));
  const foreign = new DatabaseSync(at("foreign.db"));
  foreign.exec("CREATE TABLE songs (title TEXT); PRAGMA user_version = 7");
  foreign.close();
  const newer = new DatabaseSync(at("newer.db"));
  newer.exec(`PRAGMA application_id = ${0x4c434d58}; PRAGMA user_version = 999`);
  newer.close();
});
afterAll(folder.remove);

const READS = [
  ["status"],
  ["conversations", "list"],
  ["messages", "list"],
  ["search", "x"],
  ["search", "--regex", "x"],
  ["show", "msg_1"],
  ["expand", "sum_0000000000000000"],
  ["ask", "x"],
  ["verify"],
  ["summaries", "list"],
  ["assemble", "--budget", "8k"],
  ["compact", "--budget", "8k"],
  ["spend"],
];

describe.each([
  ["not a database", "text.db", "database_foreign"],
  ["a database of another program", "foreign.db", "database_foreign"],
  ["a database of a newer version", "newer.db", "database_newer"],
  ["a directory", "directory", "database_unreadable"],
  ["a file that is not there", "absent.db", "database_missing"],
] as const)("%s", (_what, name, code) => {
  test("gives one clear line and status 5, and is left as it was", async () => {
    const isFile = name.endsWith(".db") && name !== "absent.db";
    const before = isFile ? readFileSync(at(name)) : null;
    for (const args of READS) {
      const result = await run([...args, "--db", at(name)]);
      expect(result.status).toBe(5);
      expect(result.stdout.toString("utf8")).toBe("");
      expect(result.stderr).toMatch(/^lcm: cannot [^\n]+\n$/);
      expect(result.stderr).toContain(at(name));
    }
    const error = parseError(await run(["status", "--db", at(name), "--json"]));
    expect(error.code).toBe(code);
    if (before !== null) expect(readFileSync(at(name)).equals(before)).toBe(true);
    expect(existsSync(at("absent.db"))).toBe(false);
  });

  test("is refused by import too, unless it can be created", async () => {
    if (name === "absent.db") return;
    const result = await run(["import", at("session.jsonl"), "--db", at(name)]);
    expect(result.status).toBe(5);
    expect(result.stderr).toMatch(/^lcm: cannot [^\n]+\n$/);
  });
});

test("a database that may not be read gives status 5", async ({ skip }) => {
  if (process.getuid?.() === 0) skip("the superuser may read everything");
  writeFileSync(at("locked.db"), readFileSync(database));
  chmodSync(at("locked.db"), 0o000);
  const result = await run(["status", "--db", at("locked.db"), "--json"]);
  expect(result.status).toBe(5);
  expect(parseError(result).code).toBe("database_unreadable");
});

test("what may not be read in a folder is named, and the rest of it is imported", async ({ skip }) => {
  if (process.getuid?.() === 0) skip("the superuser may read everything");
  mkdirSync(at("mixed/closed"), { recursive: true });
  for (const name of ["a.jsonl", "locked.jsonl", "z.jsonl"])
    writeFileSync(at(`mixed/${name}`), readSampleLines(5));
  chmodSync(at("mixed/locked.jsonl"), 0o000);
  chmodSync(at("mixed/closed"), 0o000);
  const result = await run(["import", at("mixed"), "--db", at("mixed.db"), "--json"]);
  chmodSync(at("mixed/closed"), 0o700);
  expect(result.status).toBe(0);
  const { data } = parseEnvelope(result);
  expect(data["imported"]).toBe(5);
  const refused = (data["problems"] as { path: string }[]).map(({ path }) => path).toSorted();
  expect(refused).toEqual([at("mixed/closed"), at("mixed/locked.jsonl")]);
  const named = await run(["import", at("mixed/locked.jsonl"), "--db", at("mixed.db")]);
  expect(named.status).toBe(2);
  expect(named.stderr).toMatch(/^lcm: cannot import \S+locked\.jsonl: permission denied\n$/);
});

test("importing what cannot be imported creates no database", async () => {
  const rubbish = await run(["import", at("text.db"), "--db", at("never.db")]);
  expect(rubbish.status).toBe(2);
  expect(rubbish.stderr).toMatch(/^lcm: cannot import [^\n]+\n$/);
  const absent = await run(["import", at("absent.jsonl"), "--db", at("never.db"), "--json"]);
  expect(absent.status).toBe(3);
  expect(parseError(absent).code).toBe("not_found");
  expect(existsSync(at("never.db"))).toBe(false);
});

test.each([
  ["statsu", 2, "Did you mean lcm stat"],
  ["messages lst", 2, "Did you mean lcm messages list?"],
  ["status --jsn", 2, "Did you mean --json?"],
  ["search", 2, "missing required argument"],
  ["search x --limit 201", 2, "from 1 to 200"],
  ["search x --scope everything", 2, "summaries, both, files"],
  ["search x --files --scope both", 2, "cannot be used with"],
  ["search x --all --conversation 1", 2, "cannot be used with"],
  ["search x --since soon", 2, "cannot read --since soon"],
  ["search x --before soon", 2, "cannot read --before soon"],
  ["search x --since today --before yesterday", 2, "the start of the time range must be before its end"],
  ["search x --files --role user", 2, "only messages have one"],
  ["search --regex a(b[c", 2, "at character 4"],
  ["show hello", 2, "it is not an id"],
  ["show msg_1 --lines 1-2", 2, "only a file has lines"],
  ["show msg_1 --lines 3-2", 2, "10-20"],
  ["show msg_1 msg_2 --after at_0", 2, "Name one id"],
  ["show msg_1 --after nonsense", 2, "not the end of a page"],
  ["expand msg_1", 2, "summary id"],
  ["expand sum_0123456789abcdef --depth 0", 2, "from 1 to 100"],
  ["ask", 2, "missing required argument"],
  ["ask x --below msg_1", 2, "summary id"],
  ["messages show hello", 2, "msg_12"],
  ["messages list --limit 0", 2, "from 1 to 10000"],
  ["messages list --limit ten", 2, "from 1 to 10000"],
  ["messages list --after nonsense", 2, "not a cursor"],
  ["messages list --order size", 2, "position, arrival"],
  ["messages list --conversation 1 --session x", 2, "cannot be used with"],
  ["import x --format word", 2, "claude-code"],
  ["compact --budget 0", 2, "number of tokens"],
  ["assemble", 2, "--budget"],
  ["assemble --budget 8k --provider word", 2, "openai-chat"],
  ["summaries show hello", 2, "sum_"],
  ["summaries list --state done", 2, "cover, reserve"],
  ["summaries list --after nonsense", 2, "not a cursor"],
  ["spend --by colour", 2, "purpose"],
  ["conversations list --after -", 2, "not a cursor"],
  ["conversations list --after=", 2, "not a cursor"],
  ["forget --regex=", 2, "matches every message"],
  ["forget --regex secret|", 2, "matches every message"],
  ["forget --since 2026-02-31", 2, "cannot read --since 2026-02-31"],
  ["forget --before soon", 2, "cannot read --before soon"],
  ["export --out x.lcmx --since 7", 2, "cannot read --since 7"],
  ["import x --since 2026-02-30T10:00Z", 2, "cannot read --since 2026-02-30T10:00Z"],
  ["vault new-key no/such/folder/key", 2, "its folder does not exist"],
  ["help sarch", 2, "Did you mean search?"],
  ["completion tcsh", 2, "bash, zsh, fish"],
  ["messages show msg_999", 3, "cannot find message msg_999"],
  ["conversations show 99", 3, "cannot find conversation 99"],
  ["summaries show sum_0000000000000000", 3, "cannot find summary sum_0000000000000000"],
  ["assemble --budget 8k --conversation 99", 3, "cannot find conversation 99"],
  ["messages list --session nobody", 3, "cannot find a conversation"],
  ["search x --session nobody", 3, "no such session"],
  ["search x --conversation 99", 3, "cannot find conversation 99"],
  ["ask x --session nobody", 3, "no such session"],
  ["show msg_999", 3, "cannot open msg_999"],
  ["show sum_0000000000000000", 3, "cannot open sum_0000000000000000"],
  ["expand sum_0000000000000000", 3, "cannot open sum_0000000000000000"],
  ["config get frshTailCount", 4, "freshTailCount"],
  ["config set freshTailCount many", 4, "whole number"],
  ["config set redactPatterns @key", 4, "one of the sets @keys, @tokens, @cards"],
  ["config set leafChunkTokens 2400", 4, "must be greater than leafTargetTokens, 2400"],
  ["config set leafTargetTokens 20000", 4, "must be less than leafChunkTokens, 20000"],
  ["config set condensedMinFanoutHard 5", 4, "must be at most condensedMinFanout, 4"],
  ["config set freshTailMaxTokens 0", 4, "a whole number, at least 1"],
  ["config set largeFilesDir files", 4, "an absolute path"],
  ["config set redactedValues seal", 4, "there is no redaction key"],
  ["config set databasePath .", 4, "it is a directory"],
  ["config unset nothingLikeIt", 4, "unknown setting"],
])("lcm %s ends with status %i", async (line, status, says) => {
  const args = line.split(" ");
  const result = await run([...args, "--db", database]);
  expect(result.status).toBe(status);
  expect(result.stdout.toString("utf8")).toBe("");
  expect(result.stderr).toContain(says);
  const asJson = await run([...args, "--db", database, "--json"]);
  expect(asJson.status).toBe(status);
  const { code, message } = parseError(asJson);
  expect(ERROR_CODES[code as keyof typeof ERROR_CODES].exit).toBe(status);
  expect(message).not.toBe("");
});

test("raw bytes are never wrapped in JSON", async () => {
  const result = await run(["messages", "list", "--raw", "--json", "--db", database]);
  expect(result.status).toBe(2);
  expect(parseError(result).hint).toContain("--raw");
});

test("a file of prices that cannot be read is named", async () => {
  for (const path of [at("absent.json"), at("directory")]) {
    const result = await run(["stats", "--prices", path, "--json", "--db", database]);
    expect(parseError(result)).toMatchObject({ code: "not_found" });
    expect(parseError(result).message).toContain(path);
    expect(parseError(result).message).not.toMatch(/\bopen '|\bread, /);
  }
});

test("a bad setting stops every command with status 4 before anything is opened", async () => {
  const result = await run(["status", "--db", database, "--json"], { env: { LCM_FRESH_TAIL_COUNT: "-3" } });
  expect(result.status).toBe(4);
  expect(parseError(result)).toMatchObject({ code: "config" });
});

test("verification that fails names the message and ends with status 6", async () => {
  const altered = at("altered.db");
  writeFileSync(altered, readFileSync(database));
  const editor = new DatabaseSync(altered);
  editor.exec("UPDATE messages SET created_at = created_at + 1 WHERE message_id = 5");
  editor.close();
  const shown = await run(["verify", "--db", altered]);
  expect(shown.status).toBe(6);
  expect(shown.stdout.toString("utf8")).toContain("msg_5");
  const asJson = await run(["verify", "--db", altered, "--json"]);
  expect(asJson.status).toBe(6);
  expect(asJson.stderr).toBe("");
  const { ok, data } = parseEnvelope(asJson);
  expect(ok).toBe(false);
  expect(data["ok"]).toBe(false);
  expect((data["problems"] as { id: string }[]).map(({ id }) => id)).toContain("msg_5");
});

test("a damaged database is not sent to the command that just failed on it", async () => {
  const damaged = at("damaged.db");
  const bytes = readFileSync(database);
  bytes.fill(0x5a, 8_192, 40_960);
  writeFileSync(damaged, bytes);
  for (const command of ["verify", "doctor", "status"]) {
    const { status, stderr } = await run([command, "--db", damaged]);
    expect([status, stderr], command).toEqual([
      5,
      expect.stringContaining("Restore a backup (lcm backup list)"),
    ]);
    expect(stderr).not.toContain(`lcm ${command}`);
  }
});

test("Ctrl-C during an import ends with status 130 and one line, and the next import finishes it", async () => {
  const sources = at("many");
  mkdirSync(sources);
  const lines = readSampleLines(400);
  const names = Array.from({ length: 12 }, (_, number) => `3f6c1d${String(number).padStart(2, "0")}`);
  const fileOf = (name: string): string => join(sources, `${name}.jsonl`);
  for (const name of names) writeFileSync(fileOf(name), lines.replace("3f6c1d52", name));
  const target = at("cancelled.db");
  const cancelled = await run(["import", sources, "--db", target], {
    // The first line on stderr says that a file is done and others are under way.
    onStart: (child) => child.stderr?.once("data", () => child.kill("SIGINT")),
  });
  expect(cancelled.status).toBe(130);
  expect(cancelled.stderr.trimEnd().split("\n").at(-1)).toMatch(
    /^lcm: cannot finish the import of .*cancelled/,
  );
  expect(parseEnvelope(await run(["verify", "--db", target, "--json"])).data["ok"]).toBe(true);
  const begun = (await run(["conversations", "list", "--db", target, "--json"])).stdout.toString("utf8");
  expect(begun).toContain(names[0]);
  // So many files are there that the signal comes before the last; to finish, those that were begun and one more are enough.
  const [, ...needless] = names.filter((name) => !begun.includes(name));
  for (const name of needless) rmSync(fileOf(name));
  const left = names.length - needless.length;
  const finished = parseEnvelope(await run(["import", sources, "--db", target, "--json"]));
  expect(finished.data).toMatchObject({ conversations: left, problems: [] });
  expect(parseEnvelope(await run(["status", "--db", target, "--json"])).data["messages"]).toBe(left * 400);
});

test.runIf(process.platform === "linux")(
  "a database that is a pipe or a device is refused at once",
  async () => {
    const pipe = at("pipe.db");
    execFileSync("mkfifo", [pipe]);
    for (const path of [pipe, "/dev/null"])
      for (const command of ["status", "verify", "doctor"]) {
        const { status, stderr } = await run([command, "--db", path]);
        expect([status, stderr], command).toEqual([5, expect.stringContaining("not a regular file")]);
      }
  },
);
