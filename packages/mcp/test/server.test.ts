import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EngineError, must } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { openOnDemand } from "../src/index.ts";
import { MCP_TOOLS } from "../src/tools.ts";
import { callText, connect, openTwoOwners, readAs } from "./archive.ts";

const IDS = /\b(?:msg_\d+|sum_[0-9a-f]{16})\b/g;

let archive: Awaited<ReturnType<typeof openTwoOwners>>;
beforeAll(async () => {
  archive = await openTwoOwners();
});
afterAll(() => archive[Symbol.asyncDispose]());

describe("the tools", () => {
  test("lead from what happened lately to the words", async () => {
    await using served = await connect(readAs("ann", archive.engine));
    const { client } = served;
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "lcm_grep",
      "lcm_describe",
      "lcm_expand",
      "lcm_expand_query",
      "lcm_recent",
      "lcm_status",
    ]);
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);

    const recent = await callText(client, "lcm_recent");
    expect(recent.text).toContain("1 sessions, 1 shown");
    expect(recent.text).toContain("asked last [msg_59]");
    const found = await callText(client, "lcm_grep", { pattern: "row 7 of the plan", mode: "full_text" });
    const asked = await callText(client, "lcm_expand_query", { prompt: "what is row 7 about?" });
    const ids = new Set([recent, found, asked].flatMap(({ text }) => text.match(IDS) ?? []));
    expect(ids.size).toBeGreaterThan(3);
    for (const id of ids) expect((await callText(client, "lcm_describe", { id })).text).toContain(id);
    expect((await callText(client, "lcm_status")).structured).toMatchObject({
      conversations: 1,
      messages: 60,
    });
  });

  test("open summaries down to their messages for every caller", async () => {
    await using served = await connect(readAs("ann", archive.engine));
    const summary = await firstSummary(archive.engine, 1);
    const opened = await callText(served.client, "lcm_expand", { summaryIds: [summary] });
    expect(opened.isError).toBe(false);
    expect(opened.text).toMatch(/\[msg_\d+\] user/);
  });

  test("page by the cursor that they give", async () => {
    await using served = await connect(readAs(undefined, archive.engine));
    const first = await callText(served.client, "lcm_recent", { limit: 1 });
    const { next } = first.structured;
    const second = await callText(served.client, "lcm_recent", { limit: 1, after: next });
    expect(first.text).toContain("ben says");
    expect(second.text).toContain("ann says");
    expect(second.structured["next"]).toBeNull();
    const later = await callText(served.client, "lcm_recent", { since: "2026-03-01T10:30:00Z" });
    expect(later.text).toContain("1 sessions");
  });

  test("tell what happened lately in the project that the server was started in", async () => {
    const { engine } = archive;
    const session = { key: "codex:one", id: "one", owner: "cy" };
    const messages = [{ eventId: "1", message: { role: "user", content: "The heron." } }];
    await engine.ingest({
      session,
      messages,
      origin: { agent: "codex", project: "/srv/app", title: "Birds" },
    });
    await engine.ingest({ session: { ...session, key: "codex:two", id: "two" }, messages });
    const recent = async (project: string | undefined, params = {}): Promise<string> => {
      await using served = await connect({ ...readAs("cy", engine), project });
      return (await callText(served.client, "lcm_recent", params)).text;
    };
    const here = await recent("/srv/app");
    expect(here).toContain("1 sessions in /srv/app, 1 shown");
    expect(here).toContain("Birds (codex session=one, 1 messages");
    expect(await recent("/srv/app", { allProjects: true })).toContain("2 sessions, 2 shown");
    expect(await recent("/srv/other")).toContain("2 sessions, 2 shown");
    expect(await recent("/srv/other", { project: "/srv/app" })).toContain("1 sessions in /srv/app");
    expect(await recent("/srv/app", { exceptSession: "one" })).toContain("[conv=4] The heron.");
  });

  test("teach when the arguments are wrong", async () => {
    await using served = await connect(readAs("ann", archive.engine));
    const wrong = async (name: string, args: Record<string, unknown>): Promise<string> => {
      const { isError, text } = await callText(served.client, name, args);
      expect(isError).toBe(true);
      return text;
    };
    expect(await wrong("lcm_grep", { patern: "x" })).toMatch(
      /no parameter patern \(parameters: pattern, mode/,
    );
    expect(await wrong("lcm_grep", { pattern: "x", allConversations: true })).toContain("no parameter");
    expect(await wrong("lcm_recent", { since: "once" })).toContain("pass an ISO time");
    expect(await wrong("lcm_recent", { after: "x" })).toContain("is not a cursor");
    expect(await wrong("lcm_describe", { id: "sum_0000000000000000" })).toContain("nothing with this id");
    await expect(callText(served.client, "lcm_nothing")).rejects.toMatchObject({ code: -32_602 });
  });

  test("say that they go on, to a client that asked for it", async () => {
    const heard = Promise.withResolvers<void>();
    const engine = {
      grep: () => heard.promise.then(() => Promise.reject(new EngineError("usage", "cannot search: enough"))),
    };
    await using served = await connect(readAs("ann", engine as unknown as Engine));
    const steps: number[] = [];
    const onprogress = ({ progress }: { progress: number }): void => {
      steps.push(progress);
      if (steps.length === 2) heard.resolve();
    };
    const result = await served.client.callTool(
      { name: "lcm_grep", arguments: { pattern: "x" } },
      { onprogress },
    );
    expect(result.isError).toBe(true);
    expect(steps.slice(0, 2)).toEqual([1, 2]);
  });

  test("three of them are in every request of Claude Code, the others behind its search", async () => {
    await using served = await connect(readAs("ann", archive.engine));
    const { tools } = await served.client.listTools();
    const loaded = tools.filter(({ _meta }) => _meta?.["anthropic/alwaysLoad"] === true);
    expect(loaded.map(({ name }) => name)).toEqual(["lcm_grep", "lcm_describe", "lcm_recent"]);
    expect(tools.every(({ _meta }) => typeof _meta?.["anthropic/alwaysLoad"] === "boolean")).toBe(true);
  });

  test("are cancelled when the client gives up", async () => {
    const asked = Promise.withResolvers<void>();
    const cancelled = Promise.withResolvers<void>();
    const engine = {
      grep: ({ signal }: { signal: AbortSignal }) =>
        new Promise((_, reject) => {
          asked.resolve();
          signal.addEventListener("abort", () => {
            cancelled.resolve();
            reject(new EngineError("aborted", "cannot search: cancelled"));
          });
        }),
    };
    await using served = await connect(readAs("ann", engine as unknown as Engine));
    const control = new AbortController();
    const call = served.client.callTool(
      { name: "lcm_grep", arguments: { pattern: "x" } },
      { signal: control.signal },
    );
    const refused = expect(call).rejects.toThrow();
    await asked.promise;
    control.abort();
    await refused;
    await cancelled.promise;
  });
});

describe("what belongs to another owner", () => {
  test("is not reached by any tool, resource or completion", async () => {
    const { engine } = archive;
    const summary = await firstSummary(engine, 2);
    await using served = await connect(readAs("ann", engine));
    const { client } = served;
    const attempts: [string, Record<string, unknown>][] = [
      ["lcm_grep", { pattern: "secret-of-ben" }],
      ["lcm_grep", { pattern: "secret-of-ben", mode: "full_text" }],
      ["lcm_grep", { pattern: "ben", conversationId: 2 }],
      ["lcm_describe", { id: "msg_61" }],
      ["lcm_describe", { id: "msg_1..msg_120" }],
      ["lcm_describe", { id: summary }],
      ["lcm_expand", { summaryIds: [summary] }],
      ["lcm_expand", { query: "ben tulips" }],
      ["lcm_expand", { query: "tulips", conversationId: 2 }],
      ["lcm_expand_query", { prompt: "what does ben say?" }],
      ["lcm_expand_query", { prompt: "tulips", summaryIds: [summary] }],
      ["lcm_recent", { limit: 50 }],
      ["lcm_status", {}],
    ];
    expect(new Set(attempts.map(([name]) => name))).toEqual(new Set(MCP_TOOLS.map(({ name }) => name)));
    for (const [name, args] of attempts) {
      const { text, structured } = await callText(client, name, args);
      expect(text + JSON.stringify(structured), `${name} ${JSON.stringify(args)}`).not.toContain("ben says");
    }
    for (const uri of ["conversation/2", "message/msg_61", `summary/${summary}`]) {
      await expect(client.readResource({ uri: `lcm://${uri}` })).rejects.toMatchObject({ code: -32_602 });
    }
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["lcm://conversation/1"]);
    expect(await complete(client, "summary", "sum_")).not.toContain(summary);
    expect(await complete(client, "conversation", "2")).toEqual([]);
  });
});

async function firstSummary(engine: Engine, conversationId: number): Promise<string> {
  const { items } = await engine.listSummaries({ conversationId, limit: 1 });
  return must(items[0], "a summary").summaryId;
}

async function complete(
  client: Awaited<ReturnType<typeof connect>>["client"],
  kind: string,
  value: string,
): Promise<string[]> {
  const ref = { type: "ref/resource" as const, uri: `lcm://${kind}/{id}{?after}` };
  return (await client.complete({ ref, argument: { name: "id", value } })).completion.values;
}

describe("resources and prompts", () => {
  test("a conversation is read page by page, each message once", async () => {
    await using served = await connect(readAs("ann", archive.engine));
    const { client } = served;
    const seen: string[] = [];
    let uri: string | undefined = "lcm://conversation/1";
    while (uri !== undefined) {
      const [content] = (await client.readResource({ uri })).contents;
      const text: string = content !== undefined && "text" in content ? content.text : "";
      seen.push(...[...text.matchAll(/^\[(msg_\d+)\]/gm)].map(([, id]) => id as string));
      uri = /^More: (\S+)$/m.exec(text)?.[1];
    }
    expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => `msg_${i + 1}`));
  });

  test("ids are completed, addresses that name nothing are not found", async () => {
    await using served = await connect(readAs("ann", archive.engine));
    const { client } = served;
    expect(await complete(client, "conversation", "")).toEqual(["1"]);
    expect((await complete(client, "summary", "sum_")).length).toBeGreaterThan(0);
    for (const uri of [
      "lcm://message/1",
      "lcm://conversation/0",
      "lcm://other/1",
      "http://a/",
      "lcm://conversation/9",
    ])
      await expect(client.readResource({ uri }), uri).rejects.toMatchObject({ code: -32_602 });
    await expect(client.listResources({ cursor: "x" })).rejects.toMatchObject({ code: -32_602 });
  });

  test("prompts send the agent to the tools", async () => {
    await using served = await connect(readAs("ann", archive.engine));
    const { client } = served;
    const { prompts } = await client.listPrompts();
    expect(prompts.every(({ description }) => (description ?? "") !== "")).toBe(true);
    const written = await client.getPrompt({ name: "what-did-we-decide", arguments: { topic: "tulips" } });
    expect(JSON.stringify(written.messages)).toContain("tulips");
    expect(JSON.stringify((await client.getPrompt({ name: "catch-me-up" })).messages)).toContain(
      "lcm_recent",
    );
    await expect(client.getPrompt({ name: "what-did-we-decide", arguments: {} })).rejects.toThrow(/topic/);
  });
});

test("a server that is started before there is an archive finds it when it is made", async () => {
  let isThere = false;
  const onDemand = openOnDemand(() =>
    isThere
      ? Promise.resolve(archive.engine)
      : Promise.reject(new EngineError("not_found", "cannot open the archive: there is none yet")),
  );
  await using served = await connect({ engine: onDemand.engine, owner: "ann", timeZone: "UTC" });
  expect(await callText(served.client, "lcm_status")).toMatchObject({ isError: true });
  isThere = true;
  expect(await callText(served.client, "lcm_status")).toMatchObject({ isError: false });
});
