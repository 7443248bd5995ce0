/**
 * Commands that open their archive behind threads, each as a process of its own: what they hand to the engine and get from it can be
 * copied between threads, and nothing keeps the process alive afterwards. Other tests run them in one thread (`warm-program.ts`).
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, readSampleLines, ROOT } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
afterAll(folder.remove);
const at = (name: string): string => join(folder.path, name);
const LINES = 40;

/** By the file that defines the command, with a part of its answer. */
const COMMANDS: readonly (readonly [file: string, args: readonly string[], data: object])[] = [
  ["rewrite", ["rewrite", "--depth", "0", "--diff", "--no-model"], { rewritten: [{ level: "extractive" }] }],
  ["backup", ["backup", "--out", at("copy")], { messages: LINES }],
  ["rotate", ["rotate", at("session.jsonl")], { applied: false }],
  ["forget", ["forget", "--message", "msg_1", "--apply"], { receipt: { messages: ["msg_1"] } }],
  ["reindex", ["reindex"], { messages: LINES - 1 }],
  ["doctor", ["doctor"], { ok: true }],
  ["doctor-imports", ["doctor", "imports"], { items: [{ messages: LINES }] }],
  ["clean", ["clean"], { items: [] }],
];
/** Run with threads elsewhere: by the commands of the README (`test/docs.test.ts`), and by tests of the programs that stay open. */
const ELSEWHERE = ["import", "compact", "verify", "mcp", "tui", "watch", "web"];

test("every command behind threads is tested with them", () => {
  const files = globSync(join(ROOT, "packages/cli/src/**/*.ts")).filter((file) =>
    readFileSync(file, "utf8").includes("thread: true"),
  );
  const names = files.map((file) => basename(file, ".ts")).filter((name) => !ELSEWHERE.includes(name));
  expect(names.toSorted()).toEqual(COMMANDS.map(([file]) => file).toSorted());
});

test("they do their work and end by themselves", async () => {
  writeFileSync(at("session.jsonl"), readSampleLines(LINES));
  const database = ["--json", "--db", at("lcm.db")];
  await run(["import", at("session.jsonl"), ...database]);
  await run(["compact", "--budget", "8k", "--target", "3k", "--no-model", ...database]);
  for (const [, args, data] of COMMANDS) {
    const result = await run([...args, ...database], { ownProcess: true });
    expect({ args, status: result.status, stderr: result.stderr }).toEqual({ args, status: 0, stderr: "" });
    expect(parseEnvelope(result).data).toMatchObject(data);
  }
});
