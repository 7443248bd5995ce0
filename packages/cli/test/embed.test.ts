/** `lcm embed`, and what search and ask get from it: the program as it is run, against a server on loopback with known vectors. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeEmbedder, makeTopicVectors, startFakeEmbedder } from "@lossless/testkit/fake-embedder.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, parseError } from "./support.ts";
import type { Run } from "./support.ts";

const folder = makeFolder();
const lcm = createRunner(folder.path);
const TALK = [
  "My kitten sleeps on the keyboard all day.",
  "The printer needs a new cartridge.",
  "We got the bill from the plumber, it is far too high.",
  ...Array.from({ length: 70 }, (_, i) => `Note ${i} about the fence.`),
];
let server: FakeEmbedder;

beforeAll(async () => {
  server = await startFakeEmbedder(
    makeTopicVectors([["cat", "kitten", "feline"], ["invoice", "payment", "bill"], ["fence"]]),
  );
  const lines = TALK.map((content, i) => JSON.stringify({ id: `e${i}`, role: "user", content }));
  writeFileSync(join(folder.path, "talk.jsonl"), `${lines.join("\n")}\n`);
  expect((await lcm(["import", "talk.jsonl"])).status).toBe(0);
});
afterAll(async () => {
  await server.close();
  folder.remove();
});
beforeEach(() => server.script());

const withModel = (args: readonly string[], model = "tiny", path = "/v1"): Promise<Run> =>
  lcm(args, { env: { LCM_EMBEDDING_BASE_URL: `${server.url}${path}`, LCM_EMBEDDING_MODEL: model } });

describe("lcm embed", () => {
  test("is off, and says how to switch it on", async () => {
    expect((await lcm(["embed", "status"])).stdout.toString()).toContain("Search by meaning is off");
    const run = await lcm(["embed", "run", "--json"]);
    expect(run.status).toBe(4);
    expect(parseError(run)).toMatchObject({
      code: "config",
      message: "cannot embed messages: embedding.baseUrl and embedding.model are not set",
    });
    expect((await lcm(["search", "what", "does", "the", "feline", "do?", "--json"])).status).toBe(0);
    expect(server.requests).toEqual([]);
  });

  test("stops where the server fails, keeps what it has, and goes on from there", async () => {
    server.script({ kind: "vectors" }, { kind: "status", status: 401, message: "wrong key" });
    const failed = await withModel(["embed", "run", "--json"]);
    expect(failed.status).toBe(1);
    expect(parseError(failed)).toMatchObject({ code: "model_failed" });
    expect(parseError(failed).hint).toContain("32 messages got a vector");
    const status = parseEnvelope(await withModel(["embed", "status", "--json"]));
    expect(status.data).toMatchObject({ model: "tiny", messages: 73, left: 41 });
    const before = server.requests.length;
    const run = await withModel(["embed", "run"], "tiny", "/api");
    expect(run.stdout.toString()).toContain("41 messages embedded (2 calls");
    expect(server.requests.slice(before).map(({ path }) => path)).toEqual(["/api/embed", "/api/embed"]);
    expect((await withModel(["embed", "status"])).stdout.toString()).toContain(
      "all of 73 messages have a vector of tiny",
    );
    expect((await lcm(["verify"])).status).toBe(0);
  });

  test("finds by meaning what shares no word, says so, and writes down the cost", async () => {
    const question = ["what", "does", "the", "feline", "do?"];
    const run = await withModel(["search", ...question]);
    expect(run.stdout.toString()).toContain("by their words and their meaning, the best first");
    expect(run.stdout.toString()).toContain("found by its meaning");
    const found = parseEnvelope(await withModel(["search", ...question, "--json"]));
    expect(found.data).toMatchObject({ rule: "fused" });
    expect(found.data.items[0]).toMatchObject({ id: "msg_1", foundBy: ["vector"] });
    const asked = parseEnvelope(await withModel(["ask", ...question, "--json"]));
    expect(asked.data["passages"]).toContainEqual(expect.objectContaining({ id: "msg_1" }));
    const spend = parseEnvelope(await lcm(["spend", "--by", "purpose", "--json"]));
    expect(spend.data.items).toMatchObject([{ key: "embed" }]);
  });

  test("a server that is down leaves the search by words, and the answer says so", async () => {
    server.script({ kind: "status", status: 503 });
    const run = await withModel(["search", "which", "printer", "cartridge?"]);
    expect(run.status).toBe(0);
    expect(run.stdout.toString()).toContain(
      "Only words were searched, not meaning: 127.0.0.1 answered with HTTP 503",
    );
    expect(run.stdout.toString()).toContain("printer");
  });

  test("Ctrl-C ends it cleanly; what is done stays done", async () => {
    server.script({ kind: "vectors" }, { kind: "silence" });
    const before = server.requests.length;
    const run = await lcm(["embed", "run", "--json"], {
      env: { LCM_EMBEDDING_BASE_URL: `${server.url}/v1`, LCM_EMBEDDING_MODEL: "other" },
      onStart: (child) => {
        void expect
          .poll(() => server.requests.length)
          .toBe(before + 2)
          .then(() => child.kill("SIGINT"));
      },
    });
    expect(run.status).toBe(130);
    expect(parseEnvelope(run).data).toMatchObject({ kind: "stopped", embedded: 32, failure: null });
    const status = parseEnvelope(await withModel(["embed", "status", "--json"], "other"));
    expect(status.data.items).toMatchObject([
      { model: "tiny", isFilled: true, serves: true },
      { model: "other", vectors: 32, isFilled: false, serves: false },
    ]);
    const done = parseEnvelope(await withModel(["embed", "run", "--json"], "other"));
    expect(done.data).toMatchObject({ kind: "filled", embedded: 41 });
  });

  test("killed in the middle, it goes on when its claim has run out", async () => {
    server.script({ kind: "vectors" }, { kind: "silence" });
    const before = server.requests.length;
    await lcm(["embed", "run"], {
      env: { LCM_EMBEDDING_BASE_URL: `${server.url}/v1`, LCM_EMBEDDING_MODEL: "third" },
      onStart: (child) => {
        void expect
          .poll(() => server.requests.length)
          .toBe(before + 2)
          .then(() => child.kill("SIGKILL"));
      },
    });
    const busy = parseEnvelope(await withModel(["embed", "run", "--json"], "third"));
    expect(busy.data).toMatchObject({ kind: "busy", calls: 0 });
    const status = parseEnvelope(await withModel(["embed", "status", "--json"], "third"));
    expect(status.data).toMatchObject({ left: 41 });
    expect((await lcm(["verify"])).status).toBe(0);
  });

  test("removes all vectors", async () => {
    expect(parseEnvelope(await lcm(["embed", "drop", "--json"])).data).toEqual({ spaces: 2 });
    expect((await lcm(["embed", "drop"])).stdout.toString()).toContain("There are no vectors.");
  });
});
