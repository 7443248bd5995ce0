/** A session file is shortened only when all of it can be read back from the archive, and never half. */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { rotateSessionFile, sweepSessionFiles } from "lossless-claw/interchange";
import { importTranscript } from "../src/transcript/import.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import type { TemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";

const HEADER = {
  type: "session",
  version: 3,
  id: "s-1",
  timestamp: "2026-02-02T07:05:09.949Z",
  cwd: "/home/x",
};
const message = (i: number) => ({
  type: "message",
  id: `m${i}`,
  parentId: i === 0 ? "c2" : `m${i - 1}`,
  timestamp: "2026-02-02T07:06:17.596Z",
  message: {
    role: i % 4 === 0 ? "user" : "assistant",
    content: [{ type: "text", text: `line number ${i} of the talk` }],
  },
});
const ENTRIES = [
  HEADER,
  { type: "model_change", id: "c1", parentId: null, timestamp: "2026-02-02T07:05:09.949Z", modelId: "old" },
  { type: "model_change", id: "c2", parentId: "c1", timestamp: "2026-02-02T07:05:09.949Z", modelId: "new" },
  ...Array.from({ length: 40 }, (_, i) => message(i)),
];
const text = ENTRIES.map((entry) => `${JSON.stringify(entry)}\n`).join("");

async function prepare(folder: TemporaryFolder, content = text): Promise<{ engine: Engine; path: string }> {
  const path = folder.file("session.jsonl");
  writeFileSync(path, content, { mode: 0o640 });
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  await importTranscript({ engine, path });
  return { engine, path };
}

test("keeps header, newest state and the tail back to a user message, links and original", async () => {
  using folder = makeTemporaryFolder();
  const { engine, path } = await prepare(folder);
  const preview = await rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: true });
  expect(readFileSync(path, "utf8")).toBe(text);
  const report = await rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: false });
  expect({ ...report, originalPath: null }).toEqual(preview);
  const lines = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map((line) => line["id"])).toEqual([
    "s-1",
    "c2",
    ...Array.from({ length: 8 }, (_, i) => `m${32 + i}`),
  ]);
  expect(lines.map((line) => line["parentId"])).toEqual([
    undefined,
    null,
    "c2",
    ...Array.from({ length: 7 }, (_, i) => `m${32 + i}`),
  ]);
  expect(readFileSync(report.originalPath ?? "", "utf8")).toBe(text);
  expect(readdirSync(folder.path).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  await importTranscript({ engine, path });
  expect((await engine.verify()).problems).toEqual([]);
  expect((await engine.readConversation({ conversationId: 1 }))?.shownMessages).toBe(40);
  await engine.close();
});

test("the rotated file is imported without a revision, and what it gains comes after what was removed", async () => {
  using folder = makeTemporaryFolder();
  const { engine, path } = await prepare(folder);
  for (const from of [40, 44]) {
    await rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: false, now: from * 60_000 });
    expect(await importTranscript({ engine, path })).toMatchObject({ imported: 0, revisions: 0 });
    const added = Array.from({ length: 4 }, (_, i) => message(from + i));
    appendFileSync(path, added.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    expect(await importTranscript({ engine, path })).toMatchObject({ imported: 4, revisions: 0 });
  }
  // Also where another file of the session was imported in between, and this one is read from its start.
  const original = readdirSync(folder.path).find((name) => name.includes(".rotated-")) ?? "";
  expect(await importTranscript({ engine, path: folder.file(original) })).toMatchObject({ imported: 0 });
  expect(await importTranscript({ engine, path })).toMatchObject({ imported: 0, revisions: 0 });
  const { items } = await engine.listMessages({ conversationId: 1, limit: 100 });
  const ids = items.map((row) => row.eventId).filter((id) => id.startsWith("m"));
  expect(ids).toEqual(Array.from({ length: 48 }, (_, i) => `m${i}`));
  expect(await engine.verify()).toMatchObject({ ok: true, messages: 51 });
  await engine.close();
});

test("two rotations within a second keep both originals", async () => {
  using folder = makeTemporaryFolder();
  const { engine, path } = await prepare(folder);
  const rotate = (freshTailCount: number) =>
    rotateSessionFile({ engine, path, freshTailCount, dryRun: false, now: 0 });
  const originals = [(await rotate(9)).originalPath, (await rotate(5)).originalPath];
  expect(new Set(originals).size).toBe(2);
  for (const original of originals) expect(existsSync(original ?? "")).toBe(true);
  await engine.close();
});

test("the tail is that of the active branch", async () => {
  using folder = makeTemporaryFolder();
  const path = folder.file("session.jsonl");
  const branch = Array.from({ length: 3 }, (_, i) => ({
    ...message(8 + i),
    id: `b${i}`,
    parentId: i === 0 ? "m7" : `b${i - 1}`,
  }));
  writeFileSync(path, [...ENTRIES, ...branch].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  await importTranscript({ engine, path });
  const report = await rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: false });
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual([
    "s-1",
    "c2",
    "m4",
    "m5",
    "m6",
    "m7",
    "b0",
    "b1",
    "b2",
  ]);
  expect(report.preservedTailMessageCount).toBe(7);
  const shown = (await engine.readConversation({ conversationId: 1 }))?.shownMessages;
  expect(await importTranscript({ engine, path })).toMatchObject({ imported: 0, revisions: 0 });
  expect((await engine.readConversation({ conversationId: 1 }))?.shownMessages).toBe(shown);
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
});

test("refuses with the first line that is not archived, and changes nothing", async () => {
  using folder = makeTemporaryFolder();
  const { engine, path } = await prepare(folder);
  const added = `${JSON.stringify({ ...message(40), parentId: "m39" })}\n`;
  appendFileSync(path, added);
  await expect(rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: false })).rejects.toThrow(
    /line 44 /,
  );
  expect(readFileSync(path, "utf8")).toBe(text + added);
  writeFileSync(path, text.replace("line number 7 of", "line number 9 of"));
  await expect(rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: false })).rejects.toThrow(
    /line 11 /,
  );
  writeFileSync(path, text.slice(0, -5));
  await expect(rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: false })).rejects.toMatchObject({
    code: "verification_failed",
    hint: expect.stringContaining("only session files of OpenClaw and pi") as string,
  });
  await engine.close();
});

test("files that have grown too large are only told of, unless the settings ask for more", async () => {
  using folder = makeTemporaryFolder();
  const { engine, path } = await prepare(folder);
  const loop = folder.file("loop.jsonl");
  symlinkSync(loop, loop);
  const lines: string[] = [];
  const sweep = (startup: string): Promise<unknown> => {
    const config = {
      databasePath: folder.file("lcm.db"),
      freshTailCount: 6,
      autoRotateSessionFiles: { sizeBytes: 100, startup },
    };
    const { settings } = resolveSettings({ env: {}, config });
    const places = { databasePath: folder.file("lcm.db"), filesDir: folder.file("lcm-files") };
    return sweepSessionFiles({
      engine,
      files: [loop, path],
      phase: "startup",
      settings,
      ...places,
      log: (line) => lines.push(line),
    });
  };
  await sweep("warn");
  expect(readFileSync(path, "utf8")).toBe(text);
  expect(lines[0]).toMatch(/loop.jsonl error="ELOOP.*action=warn/);
  expect(lines[1]).toMatch(/^\[lcm\] auto-rotate: phase=startup .*action=warn/);
  expect(lines[2]).toMatch(/action=summary scanned=2 eligible=1 rotated=0 warned=2/);
  await sweep("rotate");
  expect(lines[4]).toMatch(/action=rotate sessionId=s-1 .*bytesRemoved=\d+/);
  expect(readFileSync(path, "utf8").length).toBeLessThan(text.length);
  expect(existsSync(path)).toBe(true);
  await engine.close();
});

/** Rotates in a process whose files may have only so many blocks of 512 bytes: the write that crosses the limit is cut short. */
const LIMITED_PROGRAM = `
  const [packages, folder] = process.argv.slice(1);
  const { openEngine } = await import(new URL("lossless-claw/src/index.ts", packages));
  const { rotateSessionFile } = await import(new URL("lossless-claw/src/interchange.ts", packages));
  const engine = await openEngine({ database: folder + "/lcm.db", thread: false });
  const path = folder + "/session.jsonl";
  await rotateSessionFile({ engine, path, freshTailCount: 6, dryRun: false, keepsOriginal: false }).catch((error) => console.log(error.code));`;

test.skipIf(process.platform === "win32")(
  "a write that the disk cuts short leaves the session file as it was",
  async () => {
    using folder = makeTemporaryFolder();
    // What stays is longer than the limit, which is above what reading a database needs.
    const long = text.replaceAll("of the talk", "of the talk ".repeat(800));
    const { engine, path } = await prepare(folder, long);
    await engine.close();
    const packages = new URL("../../", import.meta.url).href;
    const { stdout } = spawnSync(
      "sh",
      [
        "-c",
        'ulimit -f 96; exec "$@"',
        "sh",
        process.execPath,
        "--input-type=module",
        "-e",
        LIMITED_PROGRAM,
        packages,
        folder.path,
      ],
      { encoding: "utf8", env: { ...process.env, NODE_COMPILE_CACHE: undefined } },
    );
    expect(stdout).toBe("usage\n");
    expect(readFileSync(path, "utf8")).toBe(long);
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  },
);
