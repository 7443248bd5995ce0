import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEngine, resolveSettings, type Engine } from "@lossless/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createCommands } from "../src/command.ts";

const session = { key: "agent:main:chat", id: "s1", owner: "main" };

let folder: string;
let archive: Engine;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-command-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
});

afterEach(async () => {
  await archive.close();
  await rm(folder, { recursive: true, force: true });
});

async function ask(
  args: string,
  config: Record<string, unknown> = {},
  open = async () => archive,
): Promise<string> {
  const { settings } = resolveSettings({ config, configSource: "test", stateDir: folder });
  const [command] = createCommands({ settings, lease: { open } });
  return (await command!.handler({ args, agentId: "main", sessionKey: session.key })).text;
}

test("both names are registered", () => {
  const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
  const commands = createCommands({ settings, lease: { open: async () => archive } });
  expect(commands.map((command) => command.name)).toEqual(["lcm", "lossless"]);
});

test("status is the default, and says what is stored and where", async () => {
  expect(await ask("")).toContain("This chat: nothing stored yet");
  await archive.ingest({
    session,
    messages: [{ eventId: "e1", message: { role: "user", content: "hello" } }],
  });
  const text = await ask("status");
  expect(text).toContain("This chat: 1 message,");
  expect(text).toContain("Archive: 1 message in 1 conversation");
  expect(text).toContain(join(folder, "lcm.db"));
});

test("status says when nothing is kept, and why", async () => {
  expect(await ask("status", { enabled: false })).toContain("switched off");
  expect(await ask("status", { ignoreSessionPatterns: ["agent:**"] })).toContain("This chat is not kept");
});

test("status tells a failure instead of failing", async () => {
  const text = await ask("status", {}, async () => Promise.reject(new Error("the disk is gone")));
  expect(text).toBe("Lossless Claw cannot read its archive: the disk is gone");
});

test("what does not exist is answered with what does", async () => {
  expect(await ask("frobnicate now")).toMatch(/There is no "frobnicate".*\/lcm status/s);
  expect(await ask("help")).toContain("/lcm status");
});
