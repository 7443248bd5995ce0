import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compileReadPolicy } from "../src/host/session.ts";
import { SubagentGrants } from "../src/host/subagents.ts";
import { ModelAccess } from "../src/host/model-access.ts";
import { createTools } from "../src/commands/tools.ts";

const session = { key: "agent:main:chat", id: "s1", owner: "main" };
const child = "agent:main:subagent:1234";

let folder: string;
let archive: Engine;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-tools-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  const messages = [
    { eventId: "e1", message: { role: "user", content: "the locker opens with code 4711" } },
    { eventId: "e2", message: { role: "assistant", content: "noted" } },
  ];
  await archive.ingest({ session, messages });
  const secret = { eventId: "x1", message: { role: "user", content: "the safe opens with code 9999" } };
  await archive.ingest({
    session: { key: "agent:other:chat", id: "s2", owner: "other" },
    messages: [secret],
  });
});

afterEach(async () => {
  await archive.close();
  await rm(folder, { recursive: true, force: true });
});

function toolsOf(sessionKey: string, config: Record<string, unknown> = {}) {
  const { settings } = resolveSettings({ config, configSource: "test", stateDir: folder });
  const parts = {
    settings,
    lease: { open: async () => archive, models: new ModelAccess() },
    isReadable: compileReadPolicy(settings),
  };
  return createTools(parts, { sessionKey, agentId: "main", sessionId: "s1" });
}

async function call(sessionKey: string, name: string, params: Record<string, unknown>): Promise<string> {
  const tool = toolsOf(sessionKey).find((candidate) => candidate.name === name);
  const { content } = await tool!.execute("call-1", params);
  return content[0]!.text;
}

test("an agent gets the three tools, in sight of the host's tool search; a sub-agent only its own", () => {
  expect(toolsOf(session.key).map((tool) => tool.name)).toEqual([
    "lcm_grep",
    "lcm_describe",
    "lcm_expand_query",
  ]);
  expect(toolsOf(session.key).every((tool) => tool.catalogMode === "direct-only")).toBe(true);
  expect(toolsOf(child).map((tool) => tool.name)).toEqual(["lcm_expand"]);
});

test("an ignored session gets none, a stateless one may read", () => {
  expect(toolsOf(session.key, { ignoreSessionPatterns: ["agent:**"] })).toEqual([]);
  expect(toolsOf(session.key, { statelessSessionPatterns: ["agent:**"] })).toHaveLength(3);
});

test("finds what this agent may see, whatever the arguments ask for", async () => {
  expect(await call(session.key, "lcm_grep", { pattern: "locker code", mode: "full_text" })).toContain(
    "4711",
  );
  const everywhere = { pattern: "safe opens", mode: "full_text", allConversations: true };
  expect(await call(session.key, "lcm_grep", everywhere)).not.toContain("9999");
});

test("an error says what to do instead", async () => {
  await expect(call(session.key, "lcm_grep", { words: "x" })).rejects.toThrow(/parameters: pattern/);
});

test("a question is read on through the host's sub-agents, round by round", async () => {
  const models = new ModelAccess();
  const { settings } = resolveSettings({
    config: { expansionModel: "acme/reader-1" },
    configSource: "test",
    stateDir: folder,
  });
  const asking = await openEngine({
    database: join(folder, "lcm.db"),
    settings,
    thread: false,
    complete: models.complete,
  });
  const asked: { model?: string; message: string }[] = [];
  const subagents = {
    async complete(params: { model?: string; message: string }) {
      asked.push(params);
      return { text: asked.length === 1 ? "OPEN msg_2" : "The code is 4711 [msg_1], as was noted [msg_2]." };
    },
  };
  const parts = {
    settings,
    lease: { open: async () => asking, models },
    subagents,
    isReadable: compileReadPolicy(settings),
  };
  const tools = createTools(parts, { sessionKey: session.key, agentId: "main", sessionId: "s1" });
  const tool = tools.find(({ name }) => name === "lcm_expand_query");
  try {
    const { content, details } = await tool!.execute("call-1", { prompt: "What opens the locker?" });
    expect(content[0]!.text).toContain("4711 [msg_1]");
    expect(details).toMatchObject({ answeredBy: "model", citedIds: ["msg_1", "msg_2"] });
    expect(asked.map(({ model }) => model)).toEqual(["acme/reader-1", "acme/reader-1"]);
    expect(asked[1]!.message).toContain("OPEN msg_2:");
  } finally {
    await asking.close();
  }
});

test("a grant covers all conversations of the parent's session", async () => {
  const notes = Array.from({ length: 60 }, (_, i) => ({
    eventId: `n${i}`,
    message: {
      role: i % 2 ? "assistant" : "user",
      content: `Note ${i}: the walnut shelf holds box ${i}. `.repeat(5),
    },
  }));
  await archive.ingest({ session, messages: notes });
  await archive.compact({ sessionKey: session.key, owner: session.owner, budgetTokens: 2_000, force: true });
  await archive.recordBoundary({ session, eventId: "reset-1", reason: "reset" });
  await archive.ingest({
    session,
    messages: [{ eventId: "later", message: { role: "user", content: "after the reset" } }],
  });
  const { items } = await archive.listConversations({ owner: "main", limit: 10 });
  expect(items).toHaveLength(2);
  const grants = new SubagentGrants({
    open: async () => archive,
    onFailure: (error) => expect(error).toBeNull(),
  });
  await grants.prepare({ parentSessionKey: session.key, childSessionKey: child });
  expect(await call(child, "lcm_expand", { query: "walnut shelf" })).toContain("Note ");
});

test("a sub-agent reads under its grant, and not before or after", async () => {
  const grants = new SubagentGrants({
    open: async () => archive,
    onFailure: (error) => expect(error).toBeNull(),
  });
  await expect(call(child, "lcm_expand", { query: "locker" })).rejects.toThrow(/grant/);
  await grants.prepare({ parentSessionKey: session.key, childSessionKey: child });
  await expect(call(child, "lcm_expand", { query: "locker" })).resolves.toBeTypeOf("string");
  await grants.end(child);
  await expect(call(child, "lcm_expand", { query: "locker" })).rejects.toThrow(/grant/);
});
