/** What importers say of where a session comes from: agent, project, branch, title, model. */
import { appendFileSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { openTestEngine } from "@lossless/testkit/session-archive.ts";
import { expect, test } from "vitest";
import { importTranscript } from "../src/transcript/import.ts";
import { findProject } from "../src/transcript/project.ts";

const makeFolder = (): string => realpathSync(makeTemporaryDirectory());

function writeLines(path: string, lines: readonly object[]): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return path;
}

async function importOrigin(path: string): Promise<object> {
  const engine = await openTestEngine();
  const { conversationId } = await importTranscript({ engine, path });
  const row = await engine.readConversation({ conversationId: conversationId ?? 0 });
  const { agent, project, branch, title, model } = row ?? {};
  return { agent, project, branch, title, model };
}

test("a project is the root of the repository, also from a worktree; otherwise the folder", () => {
  const folder = makeFolder();
  const app = join(folder, "app");
  mkdirSync(join(app, ".git/worktrees/fix"), { recursive: true });
  mkdirSync(join(app, "src/deep"), { recursive: true });
  mkdirSync(join(folder, "fix"));
  writeFileSync(join(folder, "fix/.git"), `gitdir: ${app}/.git/worktrees/fix\n`);
  expect(findProject(join(app, "src/deep"))).toBe(app);
  expect(findProject(join(folder, "fix"))).toBe(app);
  expect(findProject(join(folder, "gone/away"))).toBe(join(folder, "gone/away"));
  const alone = join(folder, "fix2");
  mkdirSync(alone);
  writeFileSync(join(alone, ".git"), "gitdir: elsewhere");
  expect(findProject(alone)).toBe(alone);
});

test("Claude Code: the folder it began in, the last branch, title and model, also when the file grows", async () => {
  const folder = makeFolder();
  mkdirSync(join(folder, "app/.git"), { recursive: true });
  const row = (uuid: string, more: object) => ({
    uuid,
    parentUuid: null,
    isSidechain: false,
    sessionId: "s1",
    cwd: join(folder, "app/src"),
    type: "user",
    message: { role: "user", content: uuid },
    ...more,
  });
  mkdirSync(join(folder, "app/src"));
  const answer = (model: string) => ({
    type: "assistant",
    message: { role: "assistant", model, content: [] },
  });
  const path = writeLines(join(folder, "s1.jsonl"), [
    row("a", { gitBranch: "main" }),
    row("b", { gitBranch: "main", ...answer("large") }),
    row("c", { cwd: folder, ...answer("<synthetic>") }),
  ]);
  const engine = await openTestEngine();
  const { conversationId } = await importTranscript({ engine, path });
  const read = () => engine.readConversation({ conversationId: conversationId ?? 0 });
  const first = { agent: "claude-code", project: join(folder, "app"), branch: "main", model: "large" };
  expect(await read()).toMatchObject({ ...first, title: null });
  const grow = async (...lines: readonly object[]): Promise<void> => {
    appendFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    await importTranscript({ engine, path });
  };
  await grow(row("d", { cwd: folder, gitBranch: "fix" }));
  expect(await read()).toMatchObject({ ...first, branch: "fix", title: null });
  await grow({ type: "summary", summary: "Talk of water", leafUuid: "d" });
  expect(await read()).toMatchObject({ title: "Talk of water" });
  await grow({ type: "ai-title", sessionId: "s1", aiTitle: "Birds" });
  expect(await read()).toMatchObject({ title: "Birds" });
  const titles = [
    { type: "custom-title", sessionId: "s1", customTitle: "Herons" },
    { type: "ai-title", sessionId: "s1", aiTitle: "Birds again" },
    { type: "summary", summary: "Talk of birds", leafUuid: "d" },
  ];
  for (const lines of [titles, titles.slice(2), titles.slice(1, 2)]) {
    await grow(...lines);
    expect(await read()).toMatchObject({ title: "Herons" });
  }
  expect((await engine.verify()).problems).toEqual([]);
});

test("Codex, pi, OpenClaw and Copilot say it in their own words", async () => {
  const folder = makeFolder();
  const project = join(folder, "nowhere");
  const codex = writeLines(join(folder, "rollout.jsonl"), [
    {
      timestamp: "2026-01-01T00:00:00Z",
      type: "session_meta",
      payload: { id: "c1", cwd: project, git: { branch: "b" } },
    },
    { timestamp: "2026-01-01T00:00:01Z", type: "turn_context", payload: { cwd: folder, model: "m1" } },
  ]);
  expect(await importOrigin(codex)).toEqual({
    agent: "codex",
    project,
    branch: "b",
    title: null,
    model: "m1",
  });
  const session = [
    { type: "session", version: 3, id: "p1", timestamp: "2026-01-01T00:00:00Z", cwd: project },
    { type: "model_change", id: "e1", parentId: null, provider: "x", modelId: "m2" },
    { type: "session_info", id: "e2", parentId: "e1", name: "Named" },
  ];
  const told = { project, branch: null, title: "Named", model: "m2" };
  expect(await importOrigin(writeLines(join(folder, "p1.jsonl"), session))).toEqual({ agent: "pi", ...told });
  const ours = writeLines(join(folder, ".openclaw/agents/main/sessions/p1.jsonl"), session);
  expect(await importOrigin(ours)).toEqual({ agent: "openclaw", ...told });
  const copilot = writeLines(join(folder, "events.jsonl"), [
    { type: "session.start", id: "e", data: { sessionId: "k", context: { cwd: project, branch: "dev" } } },
  ]);
  expect(await importOrigin(copilot)).toMatchObject({ agent: "copilot", project, branch: "dev" });
});

test("a folder that is no absolute path, or no text, says nothing", async () => {
  const lines = [
    { type: "session", version: 3, id: "p2", cwd: "[cut]" },
    { type: "session_info", name: { a: 1 } },
  ];
  const path = writeLines(join(makeFolder(), "p2.jsonl"), lines);
  expect(await importOrigin(path)).toMatchObject({ agent: "pi", project: null, title: null });
});
