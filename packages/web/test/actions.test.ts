/** Changing the archive from the page: only with --write, only by the page itself, and only what was shown and confirmed. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { request } from "node:http";
import type { OutgoingHttpHeaders } from "node:http";
import type { Complete } from "@lossless/core";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type {
  ActionPreview,
  ActionResult,
  Graph,
  HeadedConversation,
  Overview,
  Page,
} from "../src/api-types.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import { MAIN, openSite } from "./archive.ts";
import type { Site } from "./archive.ts";

const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

let site: Site;
let origin = "";
let headers: { readonly "x-lcm-token": string };
let token = "";
let number = 0;

async function open(write: boolean, complete?: Complete): Promise<void> {
  const options = { write, complete, thread: false };
  site = await openSite(`${folder.path}/${++number}`, options);
  origin = new URL(site.inspector.url).origin;
  headers = { "x-lcm-token": new URL(site.inspector.url).searchParams.get("token") ?? "" };
  token = (await get<Overview>("/api/overview")).write?.token ?? "";
}

interface Reply<T> {
  readonly status: number;
  readonly body: T;
}

const get = async <T>(path: string): Promise<T> =>
  (await (await fetch(origin + path, { headers })).json()) as T;

/** fetch does not let a program choose its Origin. */
function post<T>(path: string, body: unknown, others: OutgoingHttpHeaders = {}): Promise<Reply<T>> {
  const all = { ...headers, origin, "content-type": "application/json", "x-lcm-write": token, ...others };
  const chosen = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    const { port } = new URL(origin);
    const asked = request({ host: "127.0.0.1", port, path, headers: chosen, method: "POST" }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        const isJson = response.headers["content-type"]?.startsWith("application/json") ?? false;
        resolve({ status: response.statusCode ?? 0, body: (isJson ? JSON.parse(text) : text) as T });
      });
    });
    asked.on("error", reject);
    asked.end(typeof body === "string" ? body : JSON.stringify(body));
  });
}

const preview = (request: object): Promise<Reply<ActionPreview>> => post("/api/actions/preview", request);
const apply = (confirmation: string | null): Promise<Reply<ActionResult>> =>
  post("/api/actions/apply", { confirmation });

async function confirm(request: object): Promise<ActionResult> {
  const shown = await preview(request);
  expect(shown.status).toBe(200);
  const done = await apply(shown.body.confirmation);
  expect(done.status).toBe(200);
  return done.body;
}

/** A summary that stands in the context by itself. */
async function findTop(): Promise<string> {
  const { nodes, edges } = await get<Graph>("/api/conversations/1/graph");
  const below = new Set(edges.map(([, source]) => source));
  const top = nodes.find(({ summaryId, state }) => state === "cover" && !below.has(summaryId));
  return top?.summaryId ?? "";
}

afterEach(() => site.close());

describe("an inspector that only reads", () => {
  beforeEach(() => open(false));

  test("says so, and refuses previews and actions", async () => {
    expect((await get<Overview>("/api/overview")).write).toBeNull();
    expect((await preview({ action: "backup" })).status).toBe(405);
    expect((await apply("x")).status).toBe(405);
    expect((await post("/api/conversations/1/labels", { name: "x" })).status).toBe(405);
  });
});

describe("who may change something", () => {
  beforeEach(() => open(true));

  test.each([
    ["/api/actions/preview", { action: "backup" }],
    ["/api/conversations/1/labels", { pinned: true }],
  ])(
    "%s: not without the token, the page's own Origin, the token for changes and JSON",
    async (path, request) => {
      expect((await post(path, request)).status).toBe(200);
      expect((await post(path, request, { "x-lcm-token": undefined })).status).toBe(403);
      expect((await post(path, request, { origin: undefined })).status).toBe(403);
      expect((await post(path, request, { origin: "https://evil.example" })).status).toBe(403);
      expect((await post(path, request, { "x-lcm-write": undefined })).status).toBe(403);
      expect((await post(path, request, { "x-lcm-write": "wrong" })).status).toBe(403);
      expect((await post(path, request, { host: "evil.example" })).status).toBe(421);
      expect((await post(path, request, { "content-type": "text/plain" })).status).toBe(415);
      expect((await post("/api/overview", request)).status).toBe(405);
    },
  );

  test("wishes that are none are refused with what is allowed", async () => {
    for (const request of [
      {},
      { action: "drop" },
      { action: "dissolve", summaryId: "sum_1" },
      { action: "rewrite" },
      { action: "forget" },
      { action: "forget", pattern: "  " },
      { action: "forget", messageIds: [] },
      { action: "forget", messageIds: ["1"] },
      { action: "repair", conversationId: -1 },
    ]) {
      const { status, body } = await preview(request);
      expect({ request, status, body }).toMatchObject({ status: 400, body: { error: { code: "usage" } } });
    }
    expect((await post("/api/actions/preview", "{")).status).toBe(400);
    expect((await post("/api/actions/preview", `"${"x".repeat(70_000)}"`)).status).toBe(400);
  });
});

describe("labels", () => {
  beforeEach(() => open(true));
  const label = (body: unknown): Promise<Reply<HeadedConversation>> =>
    post("/api/conversations/1/labels", body);

  test("change what is named and nothing else, and narrow the list", async () => {
    expect((await label({ name: "Parcels", addTags: ["Depot", "old"] })).body).toMatchObject({
      heading: "Parcels",
      tags: ["depot", "old"],
      pinnedAt: null,
    });
    const { body } = await label({ removeTags: ["old"], pinned: true, unlisted: true });
    expect(body).toMatchObject({ heading: "Parcels", tags: ["depot"] });
    expect([body.pinnedAt, body.unlistedAt]).not.toContain(null);
    const list = async (query: string): Promise<number[]> =>
      (await get<Page<HeadedConversation>>(`/api/conversations?${query}`)).items.map(
        ({ conversationId }) => conversationId,
      );
    expect(await list("sort=newest")).toEqual([2]);
    expect(await list("sort=newest&hidden=true")).toEqual([1, 2]);
    expect(await list("tag=depot&hidden=true&since=2026-03-01&before=2026-04-01")).toEqual([1]);
    expect(await list("tag=depot&hidden=true&before=2026-03-01")).toEqual([]);
    expect(await get("/api/conversation-choices")).toMatchObject({ tag: ["depot"] });
    expect((await label({ name: null })).body.heading).not.toBe("Parcels");
  });

  test("what is no label is refused", async () => {
    for (const body of [[], "x", { name: 1 }, { addTags: "x" }, { removeTags: [1] }, { pinned: "yes" }])
      expect((await label(body)).status).toBe(400);
    expect((await post("/api/conversations/99/labels", { pinned: true })).status).toBe(404);
    expect((await fetch(`${origin}/api/conversations?since=soon`, { headers })).status).toBe(400);
    const put = await fetch(`${origin}/api/conversations/1/labels`, { method: "PUT", headers });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "POST"]);
    expect(await put.text()).not.toContain("only reads");
  });
});

describe("a confirmation", () => {
  beforeEach(() => open(true));

  test("is good once", async () => {
    const { body } = await preview({ action: "dissolve", summaryId: await findTop() });
    expect((await apply(body.confirmation)).status).toBe(200);
    expect((await apply(body.confirmation)).status).toBe(409);
    expect((await apply("made up")).status).toBe(409);
    expect((await apply(null)).status).toBe(409);
  });

  test("is for what was shown: when something else would be done, nothing is", async () => {
    const request = { action: "forget", pattern: "carrier, number 7.", conversationId: null, reason: "" };
    const { body } = await preview(request);
    const message = { role: "user", content: "again: the carrier, number 7." };
    await site.writer.ingest({ session: MAIN, messages: [{ eventId: "late", message }] });
    const { status, body: answer } = await apply(body.confirmation);
    expect(status).toBe(409);
    expect(JSON.stringify(answer)).toContain("changed since the preview");
    expect((await get<{ hits: object[] }>("/api/search?q=carrier")).hits).not.toEqual([]);
    const again = await preview(request);
    expect((await apply(again.body.confirmation)).status).toBe(200);
  });
});

describe("each action does what its command does", () => {
  beforeEach(() => open(true));

  test("backup: a proven copy", async () => {
    const { title, facts } = await confirm({ action: "backup" });
    expect(title).toBe("Backed up and verified");
    const path = facts.find(([name]) => name === "Path")?.[1] ?? "";
    expect(existsSync(`${path}/lcm.db`)).toBe(true);
  });

  test("dissolve: the sources stand in the context again", async () => {
    const summaryId = await findTop();
    const { body } = await preview({ action: "dissolve", summaryId });
    expect(body.command).toBe(`lcm dissolve ${summaryId} --apply`);
    expect(body.lines.length).toBeGreaterThan(1);
    expect(await get(`/api/summaries/${summaryId}`)).toMatchObject({ state: "cover" });
    await apply(body.confirmation);
    expect(await get(`/api/summaries/${summaryId}`)).toMatchObject({ state: "retired" });
    expect((await preview({ action: "dissolve", summaryId })).status).toBe(400);
  });

  test("rewrite: a new text in the old one's place, the old one kept", async () => {
    const summaryId = await findTop();
    const shown = await preview({ action: "rewrite", summaryId, isSubtree: true });
    expect(shown.body.facts).toContainEqual(["Costs", "nothing"]);
    const { lines } = (await apply(shown.body.confirmation)).body;
    expect(lines.some((line) => line.startsWith(summaryId))).toBe(true);
  });

  test("repair: nothing to do where nothing is damaged, and no way to confirm it", async () => {
    const { body } = await preview({ action: "repair", conversationId: null });
    expect(body).toMatchObject({ confirmation: null, command: "lcm repair --all --apply" });
  });

  test("mend: what the doctor can mend safely", async () => {
    const { chmodSync } = await import("node:fs");
    chmodSync(site.database, 0o644);
    const shown = await preview({ action: "mend" });
    expect(shown.body.lines.join("\n")).toContain(site.database);
    expect((await apply(shown.body.confirmation)).body.title).toBe("1 finding mended");
    expect(statSync(site.database).mode & 0o777).toBe(0o600);
  });

  test("forget: gone for ever, with a receipt, after a word was typed", async () => {
    const shown = await preview({ action: "forget", messageIds: [3], reason: "a test" });
    expect(shown.body).toMatchObject({ mustType: "forget", verb: "Forget" });
    expect(shown.body.lines).toContain("msg_3");
    const { facts } = (await apply(shown.body.confirmation)).body;
    const path = facts.find(([name]) => name === "Receipt")?.[1] ?? "";
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ messages: ["msg_3"], reason: "a test" });
    const { items } = await get<{ items: { row: { forgottenAt: number | null } | null }[] }>(
      "/api/conversations/1/messages?at=2&limit=1",
    );
    expect(items[0]?.row?.forgottenAt).not.toBeNull();
    expect(await get("/api/doctor")).toMatchObject({ ok: true });
  });
});

/** A summary good enough for the gate: the words that the sources repeat. */
const summarize: Complete = async ({ user }) => {
  const counts = new Map<string, number>();
  for (const word of user.match(/[\w./-]{4,}/g) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  const words = [...counts].filter(([, count]) => count > 1).map(([word]) => word);
  const text = `The model says: ${words.slice(0, 250).join(" ")}.\nExpand for details about: parcels`;
  return {
    kind: "text",
    text,
    model: { provider: "test", model: "tiny" },
    inputTokens: 1000,
    outputTokens: 100,
  };
};

test("rewrite with a model: says what is sent where, and shows what changed", async () => {
  await open(true, summarize);
  const shown = await preview({ action: "rewrite", summaryId: await findTop(), isSubtree: false });
  expect(shown.body.warning).toBe("The sources of these summaries are sent to test/tiny.");
  const { title, changes } = (await apply(shown.body.confirmation)).body;
  expect(title).toBe("1 summary of 1 regenerated");
  const added = changes[0]?.lines.filter(({ kind }) => kind === "new").map(({ text }) => text) ?? [];
  expect(added.join("\n")).toContain("The model says:");
  expect(await get("/api/spend?by=model")).toMatchObject({ items: [{ calls: 1 }] });
});
