import { request } from "node:http";
import type { OutgoingHttpHeaders } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { HOSTILE, HOSTILE_TEXT, MAIN, openSite } from "./archive.ts";
import type { Site } from "./archive.ts";

const folder = makeTemporaryFolder();
let site: Site;
let origin = "";
let token = "";
let pass: { readonly "x-lcm-token": string };

beforeAll(async () => {
  site = await openSite(folder.path);
  const url = new URL(site.inspector.url);
  origin = url.origin;
  token = url.searchParams.get("token") ?? "";
  pass = { "x-lcm-token": token };
});
afterAll(async () => {
  await site.close();
  folder[Symbol.dispose]();
});

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function get(path: string, headers: Record<string, string> = pass): Promise<Reply> {
  const response = await fetch(origin + path, { headers, redirect: "manual" });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const getJson = async <T>(path: string): Promise<T> => JSON.parse((await get(path)).text) as T;

interface Messages {
  readonly total: number;
  readonly at: number;
  readonly next: string;
  readonly items: { readonly id: number; readonly parts: Part[] }[];
}

interface Part {
  readonly type: string;
  readonly text: string;
  readonly chars: number;
}

/** fetch does not let a program choose its Host. */
function getRaw(path: string, headers: OutgoingHttpHeaders, method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(origin);
    const asked = request({ host: "127.0.0.1", port, path, headers, method }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asked.on("error", reject);
    asked.end();
  });
}

describe("who may read", () => {
  test("the page's files are for whoever finds the port, and say nothing of the archive", async () => {
    for (const path of ["/", "/?token=wrong", "/app.js", "/app.css", "/icon.svg"]) {
      const reply = await get(path, {});
      expect(reply.status).toBe(200);
      expect(reply.text).not.toContain("parcel");
      expect(reply.headers.get("set-cookie")).toBeNull();
    }
  });

  test.each(["/api/overview", "/api/messages/1", "/api/messages/122/image/0", "/api/events", "/nothing"])(
    "%s is refused without the token in the header",
    async (path) => {
      const attempts: Record<string, string>[] = [
        {},
        { "x-lcm-token": "" },
        { "x-lcm-token": "wrong" },
        { cookie: `token=${token}` },
      ];
      for (const headers of attempts) expect((await get(path, headers)).status).toBe(403);
      expect((await get(`${path}?token=${token}`, {})).status).toBe(403);
    },
  );

  test("a foreign Host is refused, also with the token", async () => {
    for (const host of [
      "evil.example",
      "evil.example:80",
      `localhost.evil.example:${site.inspector.port}`,
      `127.0.0.1:1`,
    ]) {
      expect(await getRaw("/api/overview", { ...pass, host })).toBe(421);
      expect(await getRaw("/", { host })).toBe(421);
    }
    expect(await getRaw("/api/overview", { ...pass, host: `localhost:${site.inspector.port}` })).toBe(200);
  });

  test("a foreign Origin is refused, also with the token", async () => {
    for (const foreign of ["https://evil.example", "null", `https://127.0.0.1:${site.inspector.port}`]) {
      expect(await getRaw("/api/overview", { ...pass, origin: foreign })).toBe(403);
    }
    expect(await getRaw("/api/overview", { ...pass, "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await getRaw("/api/overview", { ...pass, origin })).toBe(200);
  });

  test("nothing can be written", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      expect(await getRaw("/api/overview", pass, method)).toBe(405);
    }
  });

  test("addresses that are none are answered with an error, not with a crash", async () => {
    for (const path of [
      "/nothing",
      "/../package.json",
      "/%2e%2e/x",
      "//evil.example/",
      "/api/messages/99999999",
      "/api/summaries/sum_0",
    ]) {
      expect((await getRaw(path, pass)) >= 400).toBe(true);
    }
    expect((await get("/api/overview")).status).toBe(200);
  });
});

const NAMES = new Set(["http://www.w3.org", "https://github.com"]);

describe("what the browser is told", () => {
  test("every answer forbids everything but the page's own files", async () => {
    for (const path of ["/", "/app.js", "/app.css", "/icon.svg", "/api/overview", "/nothing"]) {
      const { headers } = await get(path);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'/);
      expect(policy).not.toMatch(/unsafe|\*|http/);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      // Only the icon has nothing to hide, and every click would load it again.
      expect(headers.get("cache-control")).toBe(path === "/icon.svg" ? "max-age=3600" : "no-store");
    }
  });

  test("the page names no other server", async () => {
    for (const path of ["/", "/app.js", "/app.css"]) {
      const addresses = (await get(path)).text.match(/https?:\/\/[\w.-]+/g) ?? [];
      // Names that nobody asks for: the name space of SVG, and where an error of the Markdown parser wants to be reported.
      expect(addresses.filter((address) => !NAMES.has(address))).toEqual([]);
    }
  });
});

describe("what is stored", () => {
  test("overview: the archive and its conversations", async () => {
    const { status, conversations } = await getJson<{
      status: object;
      conversations: {
        items: { sessionKey: string; conversationId: number; counts: { shownMessages: number } }[];
      };
    }>("/api/overview");
    expect(status).toMatchObject({ conversations: 2, messages: 123, enabled: true });
    expect(conversations.items.map((row) => row.sessionKey)).toEqual([HOSTILE.key, MAIN.key]);
    const conversationIds = conversations.items.map(({ conversationId }) => conversationId);
    expect(conversations.items.map(({ counts }) => counts)).toEqual(
      await site.writer.countMessages({ conversationIds }),
    );
    for (const { conversationId, counts } of conversations.items) {
      const context = await getJson<{ shownMessages: number }>(
        `/api/conversations/${conversationId}/context?budget=8000`,
      );
      expect(context.shownMessages).toBe(counts.shownMessages);
    }
  });

  test("messages by number, by key, around one and at the end are the same messages", async () => {
    const byNumber = await getJson<Messages>("/api/conversations/1/messages?at=40&limit=20");
    expect(byNumber).toMatchObject({ total: 120, at: 40 });
    expect(byNumber.items).toHaveLength(20);
    const ids = byNumber.items.map((item) => item.id);
    const start = await getJson<Messages>("/api/conversations/1/messages?from=start&limit=40");
    const next = await getJson<Messages>(`/api/conversations/1/messages?after=${start.next}&limit=20`);
    expect(next.items.map((item) => item.id)).toEqual(ids);
    const around = await getJson<Messages>(`/api/conversations/1/messages?around=${ids[10]}&limit=20`);
    expect(around).toMatchObject({ at: 40 });
    expect((await getJson<Messages>("/api/conversations/1/messages?from=end&limit=20")).at).toBe(100);
    expect((await get("/api/conversations/2/messages?around=1")).status).toBe(404);
  });

  test("a message has its parts, its tools and the way to the root", async () => {
    const { message, path } = await getJson<{ message: { parts: Part[] }; path: object[] }>(
      "/api/messages/2",
    );
    expect(message.parts.map((part) => part.type)).toEqual(["text", "tool_call"]);
    expect(message.parts[1]).toMatchObject({ toolName: "read_file", toolCallId: "call_1" });
    expect(path[0]).toMatchObject({ state: "cover", depth: 0 });
    expect(await getJson("/api/messages/2?path=none")).toMatchObject({ message, path: [] });
  });

  test("the plot of the whole archive ends with what is stored and what is in the context", async () => {
    const { points } = await getJson<{ points: { rawTokens: number; contextTokens: number }[] }>(
      "/api/growth",
    );
    const { conversations } = await getJson<{ conversations: { items: { shownTokens: number }[] } }>(
      "/api/overview",
    );
    const shownTokens = conversations.items.reduce((sum, row) => sum + row.shownTokens, 0);
    expect(points.at(-1)?.contextTokens).toBe(shownTokens);
    expect(points.at(-1)?.rawTokens).toBeGreaterThan(shownTokens);
  });

  test("the messages under a summary are numbered and come by the page", async () => {
    const { nodes } = await getJson<{
      nodes: { summaryId: string; startPosition: number; endPosition: number; depth: number }[];
    }>("/api/conversations/1/graph");
    const leaf = nodes.find(({ depth }) => depth === 0);
    type Under = { total: number; items: { messageId: number; position: number }[] };
    const readUnder = (query: string): Promise<Under> =>
      getJson<Under>(`/api/summaries/${leaf?.summaryId}/messages?${query}`);
    const all = await readUnder("limit=1000");
    expect(all.items.length).toBe(all.total);
    expect(all.items[0]?.position).toBe(leaf?.startPosition);
    expect(all.items.at(-1)?.position).toBe(leaf?.endPosition);
    expect((await readUnder("at=1&limit=2")).items).toEqual(all.items.slice(1, 3));
    expect((await readUnder(`at=${all.total}`)).items).toEqual([]);
  });

  test("the graph has every summary of the fold, and an edge to each source", async () => {
    const { nodes, edges } = await getJson<{ nodes: { summaryId: string }[]; edges: [string, string][] }>(
      "/api/conversations/1/graph",
    );
    expect(nodes.length).toBeGreaterThan(0);
    expect(JSON.stringify(nodes)).not.toContain("parcel");
    const known = new Set(nodes.map((node) => node.summaryId));
    for (const [summary, source] of edges) expect(known.has(summary) && known.has(source)).toBe(true);
    const summary = await getJson<{ messageIds: number[]; content: string }>(
      `/api/summaries/${nodes[0]?.summaryId}`,
    );
    for (const { summaryId } of nodes) {
      const described = await site.writer.describe({ id: summaryId, allConversations: true });
      const { sourceTokens } = await getJson<{ sourceTokens: number }>(`/api/summaries/${summaryId}`);
      expect(described).toMatchObject({ type: "summary", sourceTokens });
    }
    expect(summary.messageIds).toContain(1);
    expect(summary.content).toContain("parcel");
  });

  test("the context for a budget stands for every message and says why", async () => {
    for (const budget of [2_000, 8_000, 1_000_000]) {
      const context = await getJson<{
        estimatedTokens: number;
        shownMessages: number;
        items: { messages: number; reason: string }[];
      }>(`/api/conversations/1/context?budget=${budget}`);
      expect(context.estimatedTokens).toBeLessThanOrEqual(budget);
      const sum = context.items.reduce((total, item) => total + item.messages, 0);
      expect(sum).toBe(context.shownMessages);
      for (const item of context.items) expect(item.reason).not.toBe("");
    }
    expect((await get("/api/conversations/1/context?budget=5")).status).toBe(400);
  });

  test("the timeline ends with what was said and what is in the context", async () => {
    const { points, conversation, days } = await getJson<{
      points: { rawTokens: number; contextTokens: number }[];
      conversation: { shownTokens: number };
      days: { messages: number }[];
    }>("/api/conversations/1/timeline");
    const last = points.at(-1) ?? { rawTokens: 0, contextTokens: 0 };
    expect(last.rawTokens).toBeGreaterThan(last.contextTokens);
    expect(Math.abs(last.contextTokens - conversation.shownTokens)).toBeLessThan(20);
    expect(days.reduce((sum, day) => sum + day.messages, 0)).toBe(120);
  });

  test("search says which rule found what; a regular expression and a question work too", async () => {
    const words = await getJson<{ hits: object[]; rule: string }>(
      "/api/search?q=parcel+label&scope=messages",
    );
    expect(words.hits[0]).toMatchObject({ type: "message", conversationId: 1 });
    expect(words.rule).toBe("strict");
    expect((await getJson<{ hits: object[] }>("/api/search?mode=regex&q=number+7%5C.")).hits).not.toEqual([]);
    expect(
      (await getJson<{ passages: { text: string }[] }>("/api/ask?q=what+is+step+17+about")).passages[0]?.text,
    ).toContain("Step 17:");
    expect((await get("/api/search?q=")).status).toBe(400);
  });

  test("spend and doctor answer", async () => {
    expect(await getJson("/api/spend?by=day")).toEqual({ by: "day", items: [] });
    expect(await getJson("/api/doctor")).toMatchObject({ counts: { error: 0 } });
  });
});

describe("what tries to be more than text", () => {
  test("comes as JSON with its type, cut when it is long, whole when one is asked for", async () => {
    const reply = await get("/api/conversations/2/messages?from=start");
    expect(reply.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const [first] = (JSON.parse(reply.text) as Messages).items;
    expect(first?.parts[0]?.text).toBe(HOSTILE_TEXT.slice(0, 6_000));
    expect(first?.parts[0]?.chars).toBe(HOSTILE_TEXT.length);
    expect(
      (await getJson<{ message: { parts: Part[] } }>(`/api/messages/${first?.id}`)).message.parts[0]?.text,
    ).toBe(HOSTILE_TEXT);
  });

  test("a picture is given by what it is, not by what it says it is", async () => {
    const png = await fetch(`${origin}/api/messages/122/image/0`, { headers: pass });
    expect(png.headers.get("content-type")).toBe("image/png");
    expect(
      Buffer.from(await png.arrayBuffer())
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
    expect((await get("/api/messages/123/image/0")).status).toBe(404);
    expect((await get("/api/messages/1/image/0")).status).toBe(404);
  });
});

test("pages that listen are told when an agent has stored something", async () => {
  const leave = new AbortController();
  const response = await fetch(`${origin}/api/events`, { headers: pass, signal: leave.signal });
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  const states: { messages: number }[] = [];
  let text = "";
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    states.splice(
      0,
      states.length,
      ...[...text.matchAll(/^data: (.*)$/gm)].map(
        (match) => JSON.parse(match[1] ?? "") as { messages: number },
      ),
    );
    if (states.length === 1)
      await site.writer.ingest({
        session: MAIN,
        messages: [{ eventId: "new", message: { role: "user", content: "one more" } }],
      });
    if (states.length === 2) break;
  }
  leave.abort();
  expect(states.map(({ messages }) => messages)).toEqual([123, 124]);
  expect(
    (await getJson<Messages>("/api/conversations/1/messages?from=end&limit=1")).items[0]?.parts[0]?.text,
  ).toBe("one more");
});
