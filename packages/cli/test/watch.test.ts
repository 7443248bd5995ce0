import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandsFor, createRunner, makeFolder } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const { lcm, text, json } = commandsFor(run, join(folder.path, "archive.db"));
afterAll(folder.remove);

test("stores the sessions of agents once, for the owner of the settings, and status tells of each agent", async () => {
  const path = join(folder.path, ".claude/projects/-app/s1.jsonl");
  mkdirSync(dirname(path), { recursive: true });
  const row = {
    uuid: "a",
    parentUuid: null,
    isSidechain: false,
    sessionId: "s1",
    cwd: "/srv/app",
    type: "user",
  };
  writeFileSync(path, `${JSON.stringify({ ...row, message: { role: "user", content: "The heron." } })}\n`);
  const env = { LCM_CAPTURE_OWNER: "ada" };
  const watch = () => run(["watch", "--once", "--db", join(folder.path, "archive.db")], { env });
  const first = await watch();
  expect(first.stdout.toString()).toMatch(/^claude-code: 1 transcript, last event \d+ s ago, stored \d/u);
  expect(first.stderr).toContain("claude-code: 1 line stored");
  expect((await watch()).stderr).toBe("");
  expect((await json("conversations", "list")).data.items).toMatchObject([
    { owner: "ada", messages: 1, agent: "claude-code", project: "/srv/app" },
  ]);
  expect(await text("status")).toMatch(
    /Watcher +not running; lcm watch starts it\nAgents +claude-code: 1 transcript/u,
  );
  const { data } = await json("status");
  expect(data).toMatchObject({
    watcher: { isRunning: false, agents: [{ agent: "claude-code", waiting: 0 }, {}, {}, {}, {}, {}] },
  });
  expect((await lcm("watch", "--once", "--install")).status).toBe(2);
});
