/** `lcm export` and `lcm import` of what it wrote. */
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope } from "./support.ts";

const home = makeFolder();
const run = createRunner(home.path);
afterAll(home.remove);

function prepare(): { at: (name: string) => string } {
  const folder = makeFolder();
  onTestFinished(folder.remove);
  const at = (name: string): string => join(folder.path, name);
  writeFileSync(
    at("chat.jsonl"),
    '{"role":"user","content":"hello"}\n{"role":"assistant","content":"good day"}\n',
  );
  return { at };
}

test("an archive moves to another database and back, byte for byte", async () => {
  const { at } = prepare();
  const imported = await run(["import", at("chat.jsonl"), "--db", at("a.db"), "--json"]);
  expect(parseEnvelope(imported)).toMatchObject({ ok: true, data: { imported: 2, problems: [] } });
  const exported = await run(["export", "--out", at("a.lcmx"), "--db", at("a.db"), "--json"]);
  expect(parseEnvelope(exported)).toMatchObject({ ok: true, data: { conversations: 1, messages: 2 } });
  const dry = await run(["import", at("a.lcmx"), "--db", at("b.db"), "--dry-run", "--json"]);
  expect(parseEnvelope(dry)).toMatchObject({ data: { imported: 2, dryRun: true } });
  expect(existsSync(at("b.db"))).toBe(false);
  const moved = await run(["import", at("a.lcmx"), "--db", at("b.db"), "--json"]);
  expect(parseEnvelope(moved)).toMatchObject({ data: { imported: 2, skipped: 0, problems: [] } });
  const stored = readFileSync(at("b.db"));
  const known = await run(["import", at("a.lcmx"), "--db", at("b.db"), "--dry-run", "--json"]);
  expect(parseEnvelope(known)).toMatchObject({ data: { imported: 0, skipped: 2, dryRun: true } });
  expect(readFileSync(at("b.db")).equals(stored)).toBe(true);
  await run(["export", "--out", at("b.lcmx"), "--db", at("b.db")]);
  expect(readFileSync(at("b.lcmx"), "utf8")).toBe(readFileSync(at("a.lcmx"), "utf8"));
  const refused = await run(["export", "--out", at("b.lcmx"), "--db", at("b.db")]);
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain("it exists");
});

test("an export to - is written to standard output, and its report elsewhere", async () => {
  const { at } = prepare();
  await run(["import", at("chat.jsonl"), "--db", at("a.db")]);
  for (const format of [["archive"], ["markdown"], ["openai"], ["html", "--apply"]]) {
    const one = ["export", "--db", at("a.db"), "--format", ...format, "--out"];
    await run([...one, at(`a.${format[0]}`)]);
    const piped = await run([...one, "-"]);
    expect(piped.stdout.toString(), format[0]).toBe(readFileSync(at(`a.${format[0]}`), "utf8"));
    expect(piped.stderr).toContain("ok  standard output: 1 conversation, 2 messages");
  }
  const support = await run(["support", "--db", at("a.db"), "--out", "-"]);
  expect(JSON.parse(support.stdout.toString())).toMatchObject({ kind: "lcm-support" });
  for (const refused of [["export", "--format", "remnic"], ["export", "--json"], ["backup"]]) {
    const { status, stdout } = await run([...refused, "--out", "-", "--db", at("a.db")]);
    expect([status, stdout.toString()], refused.join(" ")).toEqual([2, ""]);
  }
  expect(existsSync(join(home.path, "-"))).toBe(false);
});

test("an export to a program that stops reading leaves no copy behind", async () => {
  const { at } = prepare();
  writeFileSync(at("long.jsonl"), `{"role":"user","content":"${"a long story ".repeat(100_000)}"}\n`);
  await run(["import", at("long.jsonl"), "--db", at("a.db")]);
  mkdirSync(at("tmp"));
  const piped = await run(["export", "--db", at("a.db"), "--format", "markdown", "--out", "-"], {
    env: { TMPDIR: at("tmp") },
    onStart: ({ stdout }) => stdout?.once("data", () => stdout.destroy()),
  });
  expect(piped.status).toBe(0);
  expect(readdirSync(at("tmp")).filter((name) => name.startsWith("lcm-"))).toEqual([]);
});

test("an export never replaces the archive it reads, finds every conversation it is asked for, and takes no option in vain", async () => {
  const { at } = prepare();
  await run(["import", at("chat.jsonl"), "--db", at("a.db")]);
  linkSync(at("a.db"), at("second-name.html"));
  const before = readFileSync(at("a.db"));
  const page = ["--db", at("a.db"), "--format", "html", "--apply", "--force", "--out"];
  for (const out of ["a.db", "a.db-wal", "second-name.html"]) {
    const refused = await run(["export", ...page, at(out)]);
    expect([refused.status, refused.stderr.includes("belongs to the archive")]).toEqual([2, true]);
  }
  const archive = await run(["export", "--db", at("a.db"), "--force", "--out", at("a.db")]);
  expect(archive.status).toBe(2);
  expect(readFileSync(at("a.db")).equals(before)).toBe(true);
  const absent = await run(["export", ...page, at("none.html"), "--conversation", "99"]);
  expect([absent.status, existsSync(at("none.html"))]).toEqual([3, false]);
  const vain = await run([
    "export",
    "--db",
    at("a.db"),
    "--format",
    "markdown",
    "--apply",
    "--out",
    at("a.md"),
  ]);
  expect([vain.status, existsSync(at("a.md"))]).toEqual([2, false]);
});

test("every other format is written, and the documented database is read back", async () => {
  const { at } = prepare();
  await run(["import", at("chat.jsonl"), "--db", at("a.db")]);
  for (const format of ["markdown", "html", "openai", "lossless-claw", "remnic"]) {
    const result = await run([
      "export",
      "--format",
      format,
      "--out",
      at(`out.${format}`),
      "--db",
      at("a.db"),
      ...(format === "html" ? ["--apply"] : []),
    ]);
    expect([format, result.status]).toEqual([format, 0]);
    expect(existsSync(at(`out.${format}`))).toBe(true);
  }
  const back = await run(["import", at("out.lossless-claw"), "--db", at("c.db"), "--json"]);
  expect(parseEnvelope(back)).toMatchObject({ data: { conversations: 1, problems: [] } });
  const again = await run(["import", at("out.lossless-claw"), "--db", at("c.db"), "--json"]);
  expect(parseEnvelope(again)).toMatchObject({ data: { imported: 0 } });
});

test("a documented database with a large table in it is proven when it was read back", async () => {
  const { at } = prepare();
  const table = Array.from({ length: 9000 }, (_, row) => `row ${row},"Value ${row * 7}",${row % 13}`).join(
    "\n",
  );
  const content = `Look:\n<file name="stock.csv" mime="text/csv">\n${table}\n</file>`;
  writeFileSync(at("table.jsonl"), `${JSON.stringify({ role: "user", content })}\n`);
  await run(["import", at("table.jsonl"), "--db", at("a.db")]);
  await run(["export", "--format", "lossless-claw", "--out", at("out.db"), "--db", at("a.db")]);
  expect((await run(["import", at("out.db"), "--db", at("b.db")])).status).toBe(0);
  const proof = await run(["verify", "--db", at("b.db"), "--json"]);
  expect(parseEnvelope(proof).data["problems"]).toEqual([]);
});

test("a compressed archive that was cut off is refused in one line", async () => {
  const { at } = prepare();
  await run(["import", at("chat.jsonl"), "--db", at("a.db")]);
  await run(["export", "--out", at("a.lcmx.zst"), "--db", at("a.db")]);
  const whole = readFileSync(at("a.lcmx.zst"));
  writeFileSync(at("cut.lcmx.zst"), whole.subarray(0, whole.length - 20));
  const result = await run(["import", at("cut.lcmx.zst"), "--db", at("b.db")]);
  expect(result.status).toBe(2);
  expect(result.stderr).toMatch(/^lcm: cannot import \S+cut\.lcmx\.zst: it cannot be decompressed[^\n]+\n$/);
});
