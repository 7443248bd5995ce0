/** `lcm export --format html`: a preview that writes nothing, and a page without secrets. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KEY, makeTalk } from "./export-talk.ts";
import { commandsFor, createRunner, makeFolder } from "./support.ts";

const home = makeFolder();
const at = (name: string): string => join(home.path, name);
const { lcm, text, json } = commandsFor(createRunner(home.path), at("a.db"));
const PAGE = ["export", "--format", "html", "--out"];

beforeAll(async () => {
  writeFileSync(at("talk.jsonl"), makeTalk());
  expect((await lcm("import", at("talk.jsonl"))).status).toBe(0);
});
afterAll(home.remove);

test("without --apply it names kinds and places, never a value, and writes nothing", async () => {
  const preview = await text(...PAGE, at("preview.html"));
  expect(preview).toMatch(/1 conversation, 8 messages, .* would be written/);
  expect(preview).toMatch(
    /3 values would be redacted:\n {4}keys {2}2 {2}msg_\d+ \(text\), msg_\d+ \(tool result\)\n {4}tokens {2}1 {2}msg_\d+ \(tool result\)/,
  );
  expect(preview).toContain("Add --apply");
  expect(preview).not.toContain("a1B2");
  expect(existsSync(at("preview.html"))).toBe(false);
  expect(await json(...PAGE, at("preview.html"))).toMatchObject({
    data: { dryRun: true, redacted: [{ kind: "keys", count: 1 }, { kind: "tokens" }, { kind: "keys" }] },
  });
});

test("the page holds no secret, not even half of one, and no path of the machine", async () => {
  await text(...PAGE, at("page.html"), "--apply");
  const page = readFileSync(at("page.html"), "utf8");
  for (const absent of ["sk-a1B2", "x9Y8", "/home/me"]) expect(page).not.toContain(absent);
  expect(page).toContain("[redacted:keys]");
  expect(page).toContain("default-src 'none'");
});

test("the turns of the page have as many messages as the export reports", async () => {
  const report = await text(...PAGE, at("turns.html"), "--apply");
  const heads = readFileSync(at("turns.html"), "utf8").matchAll(/class="turn-head">[^<]*?(\d+) messages? /g);
  const said = [...heads].reduce((sum, [, count]) => sum + Number(count), 0);
  expect(report).toContain(`1 conversation, ${said} messages`);
});

test("nor is there one in the line below the title", async () => {
  const odd = commandsFor(createRunner(home.path), at("odd.db"));
  writeFileSync(at("odd.jsonl"), makeTalk().replaceAll('"model-x"', `"${KEY}"`));
  expect((await odd.lcm("import", at("odd.jsonl"))).status).toBe(0);
  await odd.text(...PAGE, at("odd.html"), "--apply");
  expect(readFileSync(at("odd.html"), "utf8")).not.toContain("sk-a1B2");
});

test("a file in the way is kept; --no-redact and --no-housekeeping do what they say", async () => {
  writeFileSync(at("kept.html"), "mine");
  const refused = await lcm(...PAGE, at("kept.html"), "--apply");
  expect([refused.status, refused.stderr.includes("it exists")]).toEqual([2, true]);
  const whole = await text(...PAGE, at("kept.html"), "--apply", "--force", "--no-redact");
  expect(whole).toContain("nothing redacted");
  expect(readFileSync(at("kept.html"), "utf8")).toContain(KEY);
  expect(readFileSync(at("kept.html"), "utf8")).toContain("housekeeping-word");
  await text(...PAGE, at("lean.html"), "--apply", "--no-housekeeping");
  expect(readFileSync(at("lean.html"), "utf8")).not.toContain("housekeeping-word");
});
