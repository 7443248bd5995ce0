/** `lcm export` and `lcm import` of what it wrote. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { runCli } from "./support.ts";

test("an archive moves to another database and back, byte for byte", async () => {
  using folder = makeTemporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  writeFileSync(at("chat.jsonl"), '{"role":"user","content":"hello"}\n{"role":"assistant","content":"good day"}\n');
  const imported = await runCli(["import", at("chat.jsonl"), "--db", at("a.db"), "--json"]);
  expect(JSON.parse(imported.stdout)).toMatchObject({ ok: true, data: { imported: 2, problems: [] } });
  const exported = await runCli(["export", "--out", at("a.lcmx"), "--db", at("a.db"), "--json"]);
  expect(JSON.parse(exported.stdout)).toMatchObject({ ok: true, data: { conversations: 1, messages: 2 } });
  const dry = await runCli(["import", at("a.lcmx"), "--db", at("b.db"), "--dry-run", "--json"]);
  expect(JSON.parse(dry.stdout)).toMatchObject({ data: { imported: 2, dryRun: true } });
  expect(existsSync(at("b.db"))).toBe(false);
  const moved = await runCli(["import", at("a.lcmx"), "--db", at("b.db"), "--json"]);
  expect(JSON.parse(moved.stdout)).toMatchObject({ data: { imported: 2, skipped: 0, problems: [] } });
  await runCli(["export", "--out", at("b.lcmx"), "--db", at("b.db")]);
  expect(readFileSync(at("b.lcmx"), "utf8")).toBe(readFileSync(at("a.lcmx"), "utf8"));
  const refused = await runCli(["export", "--out", at("b.lcmx"), "--db", at("b.db")]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("it exists");
});

test("every other format is written, and the documented database is read back", async () => {
  using folder = makeTemporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  writeFileSync(at("chat.jsonl"), '{"role":"user","content":"hello"}\n{"role":"assistant","content":"good day"}\n');
  await runCli(["import", at("chat.jsonl"), "--db", at("a.db")]);
  for (const format of ["markdown", "html", "openai", "lossless-claw", "remnic"]) {
    const result = await runCli(["export", "--format", format, "--out", at(`out.${format}`), "--db", at("a.db")]);
    expect([format, result.code]).toEqual([format, 0]);
    expect(existsSync(at(`out.${format}`))).toBe(true);
  }
  const back = await runCli(["import", at("out.lossless-claw"), "--db", at("c.db"), "--json"]);
  expect(JSON.parse(back.stdout)).toMatchObject({ data: { conversations: 1, problems: [] } });
  const again = await runCli(["import", at("out.lossless-claw"), "--db", at("c.db"), "--json"]);
  expect(JSON.parse(again.stdout)).toMatchObject({ data: { imported: 0 } });
});
