/** Transcripts of agents, listed and imported in the terminal UI. */
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit";
import { afterEach, expect, test } from "vitest";
import { findSessionFolders, listTranscriptFiles } from "../src/transcripts.ts";
import { openStage, type Stage } from "./stage.ts";

let stage: Stage;
afterEach(() => stage?.close());

const line = (session: string, n: number): string =>
  JSON.stringify({
    type: n % 2 === 0 ? "user" : "assistant",
    uuid: `${session}-${n}`,
    parentUuid: n === 0 ? null : `${session}-${n - 1}`,
    sessionId: session,
    timestamp: `2026-03-01T10:${String(n).padStart(2, "0")}:00.000Z`,
    message: { role: n % 2 === 0 ? "user" : "assistant", content: `${session} says the word number ${n}` },
  });

/** A folder as Claude Code leaves it: two sessions of different age, and something that is none. */
function fillSessions(folder: string): void {
  mkdirSync(join(folder, "project"), { recursive: true });
  const write = (name: string, content: string, at: number): void => {
    writeFileSync(join(folder, "project", name), content);
    utimesSync(join(folder, "project", name), at, at);
  };
  const say = (session: string, count: number): string =>
    Array.from({ length: count }, (_, n) => `${line(session, n)}\n`).join("");
  write("old.jsonl", say("old", 4), 1_700_000_000);
  write("young.jsonl", say("young", 6), 1_700_100_000);
  write("settings.json", '{"theme":"dark"}', 1_600_000_000);
}

test("lists what lies in a folder, the newest first, and says what of it is new", async () => {
  using folder = makeTemporaryFolder();
  fillSessions(folder.path);
  stage = await openStage({ sessionFolders: [folder.path] });
  await stage.press("i");
  const list = await stage.see("no transcript");
  expect(list).toContain("3 transcripts in ");
  expect(list).toMatch(/6 new +project\/young\.jsonl\n.*4 new +project\/old\.jsonl/);
  expect((await stage.writer.listConversations({ limit: 10 })).items).toHaveLength(1);
});

test("imports one after a look, or all of them; what was stored is then called so", async () => {
  using folder = makeTemporaryFolder();
  fillSessions(folder.path);
  stage = await openStage({ sessionFolders: [folder.path] });
  await stage.press("i");
  expect(await stage.press("enter")).toMatch(/Nothing has been changed yet[^]*New +6 messages/);
  await stage.press("n");
  await stage.press("enter", "y");
  expect(await stage.see("6 messages stored, 0 known before")).toContain("transcripts");
  expect(await stage.see(/stored +project\/young\.jsonl/)).toContain("4 new");
  expect(await stage.press("enter")).toContain("All of it is stored already.");
  await stage.press("escape", "a", "y");
  const done = await stage.see("4 messages stored, 6 known before");
  expect(done).toContain("1 file could not be read");
  await stage.press("escape");
  expect(await stage.see("young says the word number 0")).toContain("old says the word number 0");
  expect((await stage.writer.verify()).problems).toEqual([]);
});

test("says where there is nothing, and what to do next", async () => {
  stage = await openStage();
  const none = await stage.press("i");
  expect(none).toContain("No transcripts found: no agent keeps sessions in its usual folder here.");
  expect(none).toContain("Next: quit and start lcm tui --sessions DIR");
  expect(none).not.toMatch(/0 transcripts|FILE/);
  expect(await stage.press("u")).toContain("still no transcripts");
});

test("says which folder holds none, in a narrow terminal too", async () => {
  using folder = makeTemporaryFolder();
  stage = await openStage({ sessionFolders: [folder.path], columns: 40, rows: 16 });
  const none = (await stage.press("i")).replaceAll(/\s+/g, " ");
  expect(none.replaceAll(" ", "")).toContain(`Notranscriptsfoundin${folder.path}.`);
  expect(none).toContain("press u, or start lcm tui --sessions DIR with another folder.");
});

test("finds the folders where agents keep their sessions", async () => {
  using home = makeTemporaryFolder();
  const claude = join(home.path, ".claude", "projects");
  const state = join(home.path, ".openclaw");
  fillSessions(claude);
  mkdirSync(join(state, "agents", "main", "sessions"), { recursive: true });
  expect(await findSessionFolders(home.path, state)).toEqual([join(state, "agents"), claude]);
  expect((await listTranscriptFiles([claude, claude])).map(({ path }) => path)).toEqual(
    ["young.jsonl", "old.jsonl", "settings.json"].map((name) => join(claude, "project", name)),
  );
});
