/** Commands of care, run as a person runs them: each says what it would do before it does it. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { writeOlderArchive } from "@lossless/testkit/older-archive.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, parseError, readSampleLines } from "./support.ts";
import type { Envelope, Run } from "./support.ts";

const LINES = 40;
const folder = makeFolder();
const run = createRunner(folder.path);
const database = join(folder.path, "archive.db");

const lcm = (...args: string[]): Promise<Run> => run([...args, "--db", database]);
const json = async (...args: string[]): Promise<Envelope> => {
  const result = await lcm(...args, "--json");
  expect(result.stderr).toBe("");
  expect(result.status).toBe(0);
  return parseEnvelope(result);
};
const text = async (...args: string[]): Promise<string> => {
  const result = await lcm(...args);
  expect(result.stderr).toBe("");
  expect(result.status).toBe(0);
  return result.stdout.toString("utf8");
};
const verify = async (): Promise<void> => expect((await json("verify")).data).toMatchObject({ ok: true });

beforeAll(async () => {
  const transcript = join(folder.path, "session.jsonl");
  writeFileSync(transcript, readSampleLines(LINES));
  expect((await lcm("import", transcript)).status).toBe(0);
});
afterAll(folder.remove);

test("an archive of an earlier version is read once the command of the hint has brought it up to date", async () => {
  const older = join(folder.path, "older.db");
  writeOlderArchive(21, older);
  const refused = await run(["search", "crane", "--db", older, "--json"]);
  expect(refused.status).not.toBe(0);
  const [, hinted = ""] = /^(lcm .+?) brings it up to date/.exec(parseError(refused).hint ?? "") ?? [];
  expect((await run([...hinted.split(" ").slice(1), "--db", older])).status).toBe(0);
  const found = await run(["search", "crane", "--db", older]);
  expect([found.status, found.stdout.toString()]).toEqual([0, expect.stringContaining("crane")]);
});

describe("backup and restore", () => {
  test("a backup is listed, can be kept to a number, and goes where it is asked to", async () => {
    expect(await text("backup", "list")).toContain("No backups");
    const { data } = await json("backup");
    expect(data).toMatchObject({ messages: LINES, removed: [] });
    const path = data["path"] as string;
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(statSync(join(path, "lcm.db")).mode & 0o777).toBe(0o600);
    expect((await json("backup", "list")).data.items.map((item) => item["path"])).toEqual([path]);
    const elsewhere = join(folder.path, "elsewhere");
    expect(await text("backup", "--out", elsewhere)).toContain("copied and verified");
    expect(parseError(await lcm("backup", "--out", elsewhere, "--json"))).toMatchObject({ code: "usage" });
    expect((await lcm("backup", "--keep", "0")).status).toBe(2);
  });

  test("restore only tells until it is told, then keeps what was there", async () => {
    const backup = (await json("backup", "list")).data.items[0]?.["path"] as string;
    expect(await text("restore", backup)).toContain("Nothing was done");
    expect((await json("restore", backup)).data).toMatchObject({ applied: false });
    const { data } = await json("restore", backup, "--yes");
    expect(data).toMatchObject({ applied: true, messages: LINES });
    expect(existsSync(data["keptAt"] as string)).toBe(true);
    expect(readdirSync(folder.path).filter((name) => name.includes("restoring"))).toEqual([]);
    await verify();
    expect((await lcm("restore", join(folder.path, "nowhere"))).status).toBe(3);
  });
});

describe("doctor", () => {
  test("says what is wrong and what to do, and mends what is safe", async () => {
    expect(await text("doctor")).toMatch(/0 errors/);
    chmodSync(database, 0o644);
    const { data } = await json("doctor");
    expect(data["ok"]).toBe(true);
    const findings = data["findings"] as readonly Record<string, unknown>[];
    expect(findings.find((finding) => finding["code"] === "permissions_wide")).toMatchObject({
      severity: "warning",
      id: database,
      mend: `chmod 600 ${database}`,
      isSafeToFix: true,
    });
    expect(await text("doctor", "--fix")).toContain("fixed");
    expect(statSync(database).mode & 0o777).toBe(0o600);
    await verify();
  });
});

describe("summaries", () => {
  test("are listed for repair and rewriting, shown as a diff, and replaced only when told to", async () => {
    expect((await lcm("compact", "--budget", "2k", "--target", "1500", "--no-model")).status).toBe(0);
    expect(await text("repair", "--all")).toContain("nothing to regenerate");
    expect((await lcm("rewrite", "--conversation", "1")).status).toBe(2);
    const { data } = await json("rewrite", "--all");
    expect(data.items.length).toBeGreaterThan(0);
    const id = data.items[0]?.["summaryId"] as string;
    expect((await run(["rewrite", "--summary", id, "--no-model", "--diff", "--db", database])).status).toBe(
      0,
    );
    const done = await json("rewrite", "--summary", id, "--no-model", "--apply");
    expect(done.data["rewritten"]).toMatchObject([{ oldId: id }]);
    await verify();
  });

  test("stay as they are when no model writes a text, and the command says so", async () => {
    const dead = ["--all", "--model", "nowhere/model", "--base-url", "http://127.0.0.1:9"];
    const before = await text("summaries", "list");
    const applied = await lcm("rewrite", ...dead, "--apply");
    expect(applied.status).toBe(1);
    expect(applied.stdout.toString()).toMatch(
      /stay as they are: no model wrote[^]*partly {2}0 summaries of \d+ regenerated/,
    );
    const shown = await lcm("rewrite", ...dead, "--diff", "--json");
    expect(shown.status).toBe(1);
    expect(parseEnvelope(shown).data["rewritten"]).toContainEqual(
      expect.objectContaining({ newId: null, isStandIn: true }),
    );
    expect(await text("summaries", "list")).toBe(before);
    expect(await text("repair", "--all")).toContain("nothing to regenerate");
  });

  test("are not written with our prompts when a folder of others is named that is not there", async () => {
    for (const command of [["rewrite", "--all"], ["repair"], ["prompts", "show", "leaf"]]) {
      const result = await lcm(...command, "--prompt-dir", "/no/such/folder");
      expect(result.status).toBe(3);
      expect(result.stderr).toContain("there is no such folder");
    }
  });

  test("are dissolved only when told to", async () => {
    const { data } = await json("summaries", "list", "--limit", "100");
    let isDone = false;
    for (const item of data.items) {
      const preview = await lcm("dissolve", item["id"] as string);
      if (preview.status !== 0 || isDone) continue;
      expect(preview.stdout.toString()).toContain("Nothing was done");
      expect(await text("dissolve", item["id"] as string, "--apply")).toContain("dissolved");
      isDone = true;
    }
    expect(isDone).toBe(true);
    await verify();
    expect((await lcm("dissolve", "sum_0000000000000000")).status).toBe(3);
  });

  test("have prompts that can be seen and exported", async () => {
    const prompts = join(folder.path, "prompts");
    expect((await json("prompts", "export", "--prompt-dir", prompts)).data["written"]).toHaveLength(4);
    expect(await text("prompts", "list", "--prompt-dir", prompts)).toContain("condensed-d3");
    writeFileSync(join(prompts, "leaf.md"), "Only the weather.\n");
    expect(await text("prompts", "diff", "leaf", "--prompt-dir", prompts)).toContain("+ Only the weather.");
    expect(await text("prompts", "render", "leaf", "--prompt-dir", prompts)).toContain("Only the weather.");
    expect((await lcm("prompts", "show", "leaves")).status).toBe(2);
  });
});

describe("the rest", () => {
  test("clean, support, rotate and transplant tell before they act", async () => {
    expect(await text("clean")).toContain("nothing to clean");
    const bundle = await json("support");
    expect(bundle.data).toMatchObject({ kind: "lcm-support", archive: { messages: LINES } });
    expect(JSON.stringify(bundle.data)).not.toContain("Clawdia");
    const transcript = join(folder.path, "session.jsonl");
    const before = readFileSync(transcript);
    expect(await text("rotate", transcript)).toContain("Nothing was done");
    const env = { LCM_AUTO_ROTATE_SESSION_FILES_SIZE_BYTES: "1000" };
    const swept = await run(["rotate", "--auto", folder.path, "--db", database, "--json"], { env });
    expect(parseEnvelope(swept).data).toMatchObject({
      mode: "warn",
      scanned: 1,
      eligible: 1,
      rotated: 0,
      warned: 1,
    });
    expect(swept.stderr).toMatch(/^\[lcm\] auto-rotate: phase=startup .*action=warn/m);
    expect(swept.stderr).toMatch(/action=summary scanned=1 eligible=1 rotated=0 warned=1/);
    expect((await lcm("rotate", "--auto", "--apply")).status).toBe(2);
    expect(parseEnvelope(await lcm("rotate", "--auto", "--json")).data).toMatchObject({ scanned: 0 });
    expect(readFileSync(transcript).equals(before)).toBe(true);
    expect((await lcm("transplant", "--from", "1", "--to", "2")).status).toBe(3);
  });
});

describe("doctor imports", () => {
  test("lists imports, tells what would go, and removes it only when told to", async () => {
    const transcript = join(folder.path, "mistake.jsonl");
    writeFileSync(transcript, `${JSON.stringify({ role: "user", content: "not meant for this archive" })}\n`);
    expect((await lcm("import", transcript)).status).toBe(0);
    const [latest] = (await json("doctor", "imports")).data.items;
    expect(latest).toMatchObject({ sources: [transcript], messages: 1 });
    const id = latest?.["importId"] as string;
    expect(await text("doctor", "imports")).toContain(id);
    expect(await text("doctor", "imports", id)).toContain("Nothing was removed");
    expect((await json("doctor", "imports", id)).data).toMatchObject({ applied: false, keep: [] });
    const { data } = await json("doctor", "imports", id, "--apply");
    expect(data).toMatchObject({ applied: true, removed: { conversations: 1, messages: 1 } });
    expect(existsSync(join(data["copyPath"] as string, "lcm.db"))).toBe(true);
    expect((await json("doctor", "imports")).data.items.map((item) => item["importId"])).not.toContain(id);
    expect((await json("search", "meant")).data.items).toEqual([]);
    expect(parseError(await lcm("doctor", "imports", id, "--json"))).toMatchObject({ code: "not_found" });
    await verify();
  });
});

describe("forget", () => {
  test("needs a choice, tells first, then removes and leaves a receipt", async () => {
    expect((await lcm("forget")).status).toBe(2);
    expect((await lcm("forget", "--older-than", "soon")).status).toBe(2);
    const { data } = await json("forget", "--message", "msg_5");
    expect(data).toMatchObject({ applied: false, messages: ["msg_5"] });
    expect(await text("forget", "--pattern", "no message holds this")).toContain("Nothing matches");
    mkdirSync(join(folder.path, "lcm-spool"));
    writeFileSync(join(folder.path, "lcm-spool", "a.json"), '{"turn":{"messages":["a waiting word"]}}');
    expect(await text("forget", "--pattern", "a waiting word")).toContain("1 that were never stored");
    expect(await text("forget", "--pattern", "a waiting word", "--apply")).toMatch(
      /1 waiting turn removed, never stored: .* forget them again then/,
    );
    expect(readdirSync(join(folder.path, "lcm-spool"))).toEqual([]);
    expect(await text("forget", "--message", "msg_5,msg_6")).toContain("Nothing was done");
    const done = await json("forget", "--message", "msg_5", "--reason", "a test", "--apply");
    const receipt = done.data["receipt"] as Record<string, unknown>;
    expect(receipt).toMatchObject({ messages: ["msg_5"], isWiped: true, reason: "a test" });
    expect((receipt["olderCopies"] as unknown[]).length).toBeGreaterThan(0);
    expect(existsSync(done.data["receiptPath"] as string)).toBe(true);
    await verify();
    expect(await text("forget", "--older-than", "1h", "--apply")).toContain("forgotten");
    await verify();
    expect((await json("messages", "list", "--limit", "5")).data.items[4]?.["forgottenAt"]).not.toBeNull();
  });
});
