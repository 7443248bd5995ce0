import { copyFileSync, cpSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { filesDirBeside } from "@lossless/core/ports";
import { readBody, startLoopback } from "@lossless/testkit/loopback.ts";
import type { LoopbackServer } from "@lossless/testkit/loopback.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, readSampleLines } from "./support.ts";
import type { RunOptions } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const imported = join(folder.path, "imported.db");
/** Some 60,000 tokens: enough for several calls. */
const LINES = 500;
/** What the server does with the next call; by default it answers. */
let behave: (response: ServerResponse, prompt: string) => void = answer;
let calls = 0;
let server: LoopbackServer;
let env: Record<string, string>;

beforeAll(async () => {
  server = await startLoopback((request, response) => {
    void readBody(request).then((body) => {
      calls += 1;
      const { messages } = JSON.parse(body) as { messages: { content: string }[] };
      behave(response, messages.at(-1)?.content ?? "");
      return undefined;
    });
  });
  env = {
    LCM_SUMMARY_MODEL: "openai/tiny",
    OPENAI_API_KEY: "not-a-secret",
    OPENAI_BASE_URL: `${server.url}/v1`,
  };
  const transcript = join(folder.path, "session.jsonl");
  writeFileSync(transcript, readSampleLines(LINES));
  expect((await run(["import", transcript, "--db", imported])).status).toBe(0);
});
afterAll(async () => {
  await server.close();
  folder.remove();
});

/** A summary good enough for the gate: the identifiers that the sources repeat. */
function answer(response: ServerResponse, prompt: string): void {
  const counts = new Map<string, number>();
  for (const word of prompt.match(/[\w./-]{4,}/g) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  const repeated = [...counts].filter(([, count]) => count > 1).sort((left, right) => right[1] - left[1]);
  const words = repeated.slice(0, 250).map(([word]) => word);
  const content = `The team worked on this in that time: ${words.join(" ")}.\nExpand for details about: orders`;
  response.setHeader("content-type", "application/json");
  response.end(
    JSON.stringify({
      model: "tiny",
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1000, completion_tokens: 100 },
    }),
  );
}

/** A copy of the one that was imported: importing is most of what a test here would cost. */
function makeArchive(name: string): string {
  const database = join(folder.path, name);
  copyFileSync(imported, database);
  cpSync(filesDirBeside(imported), filesDirBeside(database), { recursive: true });
  return database;
}

test("folds with the model of the settings, and the ledger says what it cost", async () => {
  const database = makeArchive("model.db");
  calls = 0;
  const folded = await run(["compact", "--budget", "32k", "--target", "50k", "--json", "--db", database], {
    env,
  });
  expect(folded.stderr).toBe("");
  const { data } = parseEnvelope(folded);
  expect(data).toMatchObject({ compacted: true, cost: { calls } });
  expect(calls).toBeGreaterThan(0);
  const [summaryId] = data["summaryIds"] as string[];
  const shown = await run(["summaries", "show", String(summaryId), "--db", database]);
  expect(shown.stdout.toString("utf8")).toContain("openai/tiny");

  const spend = parseEnvelope(await run(["spend", "--by", "model", "--json", "--db", database], { env }));
  expect(spend.data.items).toEqual([
    { key: "openai/tiny", calls, inputTokens: calls * 1000, outputTokens: calls * 100 },
  ]);
  expect(spend.data["caps"]).toMatchObject({ callsInWindow: calls, tokensToday: calls * 1100 });
  const byPurpose = await run(["spend", "--by", "purpose", "--db", database], { env });
  expect(byPurpose.stdout.toString("utf8")).toMatch(/leaf\s+\d+/);
});

test("uses no model when none is wanted", async () => {
  const database = makeArchive("own.db");
  calls = 0;
  const folded = await run(["compact", "--budget", "32k", "--no-model", "--db", database], { env });
  expect(folded.status).toBe(0);
  expect(folded.stdout.toString("utf8")).toContain("no model was used");
  expect(calls).toBe(0);
});

test("goes on by itself when the model refuses its key, and says that it waits", async () => {
  const database = makeArchive("refused.db");
  behave = (response) => {
    response.statusCode = 401;
    response.end("{}");
  };
  // Small folds: the model is left alone only after it has refused several.
  const folded = await run(["compact", "--budget", "32k", "--db", database], {
    env: { ...env, LCM_LEAF_CHUNK_TOKENS: "6000" },
  });
  behave = answer;
  expect(folded.status).toBe(0);
  expect(folded.stdout.toString("utf8")).toMatch(/extractive/);
  const status = await run(["status", "--db", database]);
  expect(status.stdout.toString("utf8")).toMatch(/Paused\s+breaker:openai\/tiny until/);
  const { data } = parseEnvelope(await run(["status", "--json", "--db", database]));
  expect(data["guards"]).toMatchObject([{ name: "breaker:openai/tiny" }]);
});

test.each([
  ["one", []],
  ["all", ["--all"]],
])("Ctrl-C ends it between two steps, and what was folded stays (%s)", async (name, scope) => {
  const database = makeArchive(`cancelled-${name}.db`);
  let interrupt: () => void = () => undefined;
  calls = 0;
  behave = (response, prompt) => {
    if (calls <= 2) return answer(response, prompt);
    // The third call never answers: it must be cancelled, not waited for.
    interrupt();
  };
  const onStart: RunOptions["onStart"] = (child) => {
    interrupt = () => child.kill("SIGINT");
  };
  const args = ["compact", ...scope, "--budget", "32k", "--json", "--db", database];
  const cancelled = await run(args, { env, onStart });
  behave = answer;
  expect(cancelled.status).toBe(130);
  const { data: whole } = parseEnvelope(cancelled);
  const data = (name === "all" ? whole.items[0] : whole) as typeof whole;
  expect(data).toMatchObject({ compacted: true, reason: "cancelled", standIns: 0 });
  expect((data["summaryIds"] as string[]).length).toBeGreaterThan(0);
  expect((await run(["verify", "--db", database])).status).toBe(0);
  const status = await run(["status", "--db", database]);
  expect(status.stdout.toString("utf8")).toMatch(/Owed\s+compaction for 32,000 tokens/);
});
