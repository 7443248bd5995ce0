/** The program where its surroundings are odd: no time zone, an output that cannot be written, a folder that is not there. */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRunner, LCM, makeFolder, parseError, readSampleLines } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const at = (name: string): string => join(folder.path, name);
const database = at("archive.db");
const FULL = "/dev/full";

beforeAll(async () => {
  writeFileSync(at("session.jsonl"), readSampleLines(40));
  expect((await run(["import", at("session.jsonl"), "--db", database])).status).toBe(0);
});
afterAll(folder.remove);

const { PATH, NODE_COMPILE_CACHE } = process.env;

/** One of the two streams goes to a device that is always full. */
async function runIntoFull(
  stream: "stdout" | "stderr",
  args: readonly string[],
): Promise<[number | null, string]> {
  const full = openSync(FULL, "w");
  const child = spawn(process.execPath, [LCM, ...args], {
    cwd: folder.path,
    env: { PATH, NODE_COMPILE_CACHE, HOME: folder.path, OPENCLAW_STATE_DIR: at("state"), TZ: "UTC" },
    stdio: ["ignore", stream === "stdout" ? full : "pipe", stream === "stderr" ? full : "pipe"],
  });
  closeSync(full);
  let text = "";
  (stream === "stdout" ? child.stderr : child.stdout)?.on("data", (chunk: Buffer) => (text += String(chunk)));
  const status = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return [status, text];
}

test("an empty TZ is UTC, as POSIX has it", async () => {
  const result = await run(["messages", "list", "--limit", "1", "--db", database], { env: { TZ: "" } });
  expect(result.stderr).toBe("");
  expect(result.status).toBe(0);
  const search = await run(["search", "x", "--since", "2026-02-01", "--db", database], { env: { TZ: "" } });
  expect(search.status).toBe(0);
});

test.skipIf(!existsSync(FULL))("an output that cannot be written is one clear line", async () => {
  for (const args of [["status"], ["messages", "list", "--raw"], ["messages", "list", "--json"]]) {
    const [status, stderr] = await runIntoFull("stdout", [...args, "--db", database]);
    expect(status).toBe(5);
    expect(stderr).toMatch(/cannot write the output: no space left[^\n]*\n$/);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  }
});

test.skipIf(!existsSync(FULL))("notes that nobody can read stop no work", async () => {
  const [status, stdout] = await runIntoFull("stderr", [
    "import",
    at("session.jsonl"),
    "--db",
    at("other.db"),
  ]);
  expect(status).toBe(0);
  expect(stdout).toContain("40 messages stored");
  const [failed] = await runIntoFull("stderr", ["status", "--db", at("absent.db")]);
  expect(failed).toBe(5);
});

test("a path that is set means the place where it was typed, wherever the program runs later", async () => {
  const set = (key: string, value: string) => run(["config", "set", key, value]);
  const get = async (key: string) => (await run(["config", "get", key])).stdout.toString("utf8").trim();
  expect((await set("databasePath", "near.db")).status).toBe(0);
  expect(await get("databasePath")).toBe(join(realpathSync(folder.path), "near.db"));
  await set("databasePath", "~/home.db");
  expect(await get("databasePath")).toBe(at("home.db"));
  expect((await run(["vault", "new-key", "vault.key"])).status).toBe(0);
  await set("redactionKeyFile", "vault.key");
  expect(await get("redactionKeyFile")).toBe(join(realpathSync(folder.path), "vault.key"));
  for (const key of ["databasePath", "redactionKeyFile"]) await run(["config", "unset", key]);
});

test("a file that cannot be written is named, and nothing is left of it", async () => {
  const bundle = await run(["support", "--out", at("no/x.json"), "--db", database]);
  expect(bundle.status).toBe(2);
  expect(bundle.stderr).toMatch(/^lcm: cannot write \S+x\.json: its folder does not exist\.[^\n]+\n$/);
  const prompts = await run(["prompts", "export", "--prompt-dir", at("session.jsonl"), "--json"]);
  expect(prompts.status).toBe(2);
  expect(parseError(prompts).message).toContain("something else is there already");
  mkdirSync(at("prompts"));
  mkdirSync(at("prompts/leaf.md"));
  const kept = await run(["prompts", "export", "--prompt-dir", at("prompts")]);
  expect(kept.stdout.toString("utf8")).toMatch(/kept\s+\S+leaf\.md/);
  expect(readdirSync(at("prompts"))).toHaveLength(4);
});

test("while another program holds the database, the command says that it waits, and goes on afterwards", async () => {
  writeFileSync(at("longer.jsonl"), readSampleLines(50));
  const other = new DatabaseSync(database);
  other.exec("BEGIN IMMEDIATE");
  const child = spawn(process.execPath, [LCM, "import", at("longer.jsonl"), "--db", database], {
    cwd: folder.path,
    env: { PATH, NODE_COMPILE_CACHE, HOME: folder.path, OPENCLAW_STATE_DIR: at("state"), TZ: "UTC" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let told = "";
  const status = new Promise<number | null>((resolve) => child.on("close", resolve));
  for await (const chunk of child.stderr) {
    told += String(chunk);
    if (!told.includes("another program is using the database")) continue;
    if (other.isTransaction) other.exec("COMMIT");
  }
  other.close();
  expect([await status, told]).toEqual([0, expect.stringContaining(`using the database ${database}`)]);
});
