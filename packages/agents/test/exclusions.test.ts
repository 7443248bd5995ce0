/** What must not be stored, by folder: hidden folders, links, worktrees and odd names are no way around it. */
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { importTranscript } from "@lossless/interchange";
import type { ImportTarget } from "@lossless/interchange";
import { makeTemporaryFolder } from "@lossless/testkit";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeExclusion, openIgnoredFolders } from "../src/index.ts";

function makeRoom(): string {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

function write(path: string, text = ""): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const isLeftOut = (patterns: readonly string[], folder: string): boolean =>
  makeExclusion(patterns)({ path: "/sessions/s.jsonl", sessionId: "s", folder }) !== null;

describe("a pattern", () => {
  test.each([
    ["/srv/private", "/srv/private/.notes/deep"],
    ["/srv/private/", "/srv/private"],
    ["/srv/private/**", "/srv/private"],
    ["/srv/private/**", "/srv/private/app/.cache/x"],
    ["/srv/*/secret", "/srv/.work/secret/x"],
    ["/srv/**/secret", "/srv/a/.b/secret/x"],
    ["/srv/[old] (1)", "/srv/[old] (1)/x"],
  ])("%s covers %s", (glob, folder) => expect(isLeftOut([glob], folder)).toBe(true));

  test.each([
    ["/srv/private", "/srv/privately"],
    ["/srv/private", "/srv"],
    ["/srv/*/secret", "/srv/a/b/secret"],
  ])("%s does not cover %s", (glob, folder) => expect(isLeftOut([glob], folder)).toBe(false));

  test("that names a link covers the folder behind it", () => {
    const room = makeRoom();
    mkdirSync(join(room, "disk/private"), { recursive: true });
    symlinkSync(join(room, "disk"), join(room, "home"));
    expect(isLeftOut([join(room, "home/private")], join(room, "disk/private/x"))).toBe(true);
    expect(isLeftOut([join(room, "home/priv*")], join(room, "disk/private/x"))).toBe(true);
  });
});

test("a file that names no folder waits while it is written, and not for ever where its time is ahead", () => {
  const path = join(makeRoom(), "s.jsonl");
  write(path);
  const why = (): string | null => makeExclusion([])({ path, sessionId: "s", folder: undefined });
  expect(why()).toMatch(/^waits/);
  const ahead = Date.now() / 1000 + 1e9;
  utimesSync(path, ahead, ahead);
  expect(why()).toBe(null);
});

describe(".lcmignore", () => {
  test("still applies when its project was deleted, and no longer when the project is there without it", () => {
    const room = makeRoom();
    const project = join(room, "app");
    write(join(project, ".lcmignore"));
    const why = (): string | null =>
      makeExclusion(
        [],
        Date.now,
        openIgnoredFolders(join(room, "lcm.db")),
      )({ path: "/sessions/s.jsonl", sessionId: "s", folder: project });
    expect(why()).toBe(`excluded by ${join(project, ".lcmignore")}`);
    rmSync(project, { recursive: true });
    expect(why()).toBe(`excluded by ${join(project, ".lcmignore")}, which was removed with its folder`);
    mkdirSync(project);
    expect(why()).toBe(null);
    rmSync(project, { recursive: true });
    expect(why()).toBe(null);
  });

  test("of a repository counts for its worktrees, and for patterns as people write them", () => {
    const room = makeRoom();
    mkdirSync(join(room, "app/.git/worktrees/tree"), { recursive: true });
    write(join(room, "tree/.git"), `gitdir: ${join(room, "app/.git/worktrees/tree")}\n`);
    mkdirSync(join(room, "tree/.drafts/x"), { recursive: true });
    mkdirSync(join(room, "tree/open"), { recursive: true });
    write(join(room, "app/.lcmignore"), "/.drafts/\n");
    expect(isLeftOut([], join(room, "tree/.drafts/x"))).toBe(true);
    expect(isLeftOut([], join(room, "tree/open"))).toBe(false);
  });
});

const refuse = (): never => {
  throw new Error("something was stored");
};
const refusing: ImportTarget = {
  ingest: refuse,
  readSession: () => Promise.resolve(null),
  knownEvents: () => Promise.resolve([]),
  findSessions: () => Promise.resolve([]),
  relabelSession: refuse,
  setBranch: refuse,
};

describe("the Gemini CLI", () => {
  const head = { sessionId: "g1", projectHash: "h", startTime: "2026-01-01T00:00:00Z" };
  const message = { id: "m1", timestamp: "2026-01-01T00:00:01Z", type: "user", content: "hello" };
  const lines = [{ ...head, kind: "main" }, message].map((line) => `${JSON.stringify(line)}\n`).join("");
  const document = JSON.stringify({ ...head, messages: [message] });

  test.each([
    ["session-1.jsonl", lines],
    ["session-1.json", document],
  ])("is excluded by the folder it runs in, also inside a repository: %s", async (name, text) => {
    const room = makeRoom();
    const folder = join(room, "repo/private");
    mkdirSync(join(room, "repo/.git"), { recursive: true });
    mkdirSync(folder);
    const path = join(room, "tmp/h/chats", name);
    write(path, text);
    const run = (): ReturnType<typeof importTranscript> =>
      importTranscript({ engine: refusing, path, exclude: makeExclusion([folder]) });
    // The folder is not known yet.
    expect((await run()).problems).toMatchObject([
      { code: "left_out", message: expect.stringMatching(/^waits/) },
    ]);
    write(join(room, "tmp/h/.project_root"), folder);
    utimesSync(path, 1, 1);
    expect((await run()).problems).toMatchObject([
      { code: "left_out", message: expect.stringContaining(folder) },
    ]);
  });
});
