/** Exploration summaries by a model: what it is shown, what becomes of its answer, and that nothing it does keeps a message out. */
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Complete, CompleteRequest, CompleteResult, Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";

const session = { key: "agent:main:chat", id: "s1", owner: "main" };
const orders = JSON.stringify(
  Array.from({ length: 900 }, (_, at) => ({ order: at, customer: `Customer ${at}`, token: `secret-${at}` })),
);
const asJson = {
  role: "toolResult",
  toolCallId: "c1",
  toolName: "read",
  content: [{ type: "text", text: orders }],
};
const asImage = {
  role: "user",
  content: [
    {
      type: "image",
      mimeType: "image/png",
      data: Buffer.concat([
        Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"),
        Buffer.alloc(90_000, 7),
      ]).toString("base64"),
    },
  ],
};

interface Scene {
  readonly engine: Engine;
  readonly asked: CompleteRequest[];
}

async function withModel(
  answer: () => CompleteResult | Promise<CompleteResult>,
  work: (scene: Scene) => Promise<void>,
  config: object = {},
): Promise<void> {
  using folder = makeTemporaryFolder();
  const asked: CompleteRequest[] = [];
  const complete: Complete = async (request) => {
    asked.push(request);
    return answer();
  };
  const { settings } = resolveSettings({
    config: {
      databasePath: folder.file("lcm.db"),
      largeFileThresholdTokens: 1000,
      largeFileSummaryModel: "small",
      largeFileSummaryProvider: "acme",
      ...config,
    },
  });
  const engine = await openEngine({ database: folder.file("lcm.db"), settings, complete, thread: false });
  try {
    await work({ engine, asked });
    expect((await engine.verify()).problems).toEqual([]);
  } finally {
    await engine.close();
  }
}

const says = (text: string): CompleteResult => ({
  kind: "text",
  text,
  model: { provider: "acme", model: "small" },
  inputTokens: 500,
  outputTokens: 50,
});

async function readDescription(engine: Engine): Promise<string> {
  const [conversation] = (await engine.listConversations({ limit: 1 })).items;
  const files = await engine.listFiles({ conversationId: conversation!.conversationId });
  return files[0]!.explorationSummary;
}

test("a model describes a large file, JSON included, once, and the ledger says so", async () => {
  await withModel(
    () => says("Orders of customers, by number, each with a token."),
    async ({ engine, asked }) => {
      const messages = [{ eventId: "e1", message: asJson }];
      await engine.ingest({ session, messages });
      await engine.ingest({ session, messages });
      expect(asked).toHaveLength(1);
      expect(asked[0]).toMatchObject({ model: { provider: "acme", model: "small" }, purpose: "explore" });
      expect(asked[0]?.user).toContain("Customer 0");
      expect(asked[0]?.user).toContain("Customer 899");
      const text = await readDescription(engine);
      expect(text).toMatch(/^JSON.*\nOrders of customers/);
      expect(await engine.spend({ since: 0, by: "purpose" })).toMatchObject([
        { key: "explore", calls: 1, inputTokens: 500 },
      ]);
    },
  );
});

test("a long answer is cut to about 200 tokens", async () => {
  await withModel(
    () => says("Orders of customers. ".repeat(500)),
    async ({ engine }) => {
      await engine.ingest({ session, messages: [{ message: asJson }] });
      expect((await readDescription(engine)).length).toBeLessThanOrEqual(901);
    },
  );
});

test.each([
  ["fails", () => ({ kind: "failure", failure: "unavailable", message: "down" }) as const],
  ["throws", () => Promise.reject(new Error("down"))],
  ["answers nothing", () => says("<think>what is this")],
])("a model that %s leaves the description by type", async (_what, answer) => {
  await withModel(answer, async ({ engine }) => {
    const { results } = await engine.ingest({ session, messages: [{ message: asJson }] });
    expect(results[0]?.outcome).toBe("stored");
    expect(await readDescription(engine)).toMatch(/^JSON/);
  });
});

test("no model is asked for images, for small messages, or without a name for it; redacted text is not shown to it", async () => {
  const answer = (): CompleteResult => says("Something.");
  await withModel(answer, async ({ engine, asked }) => {
    await engine.ingest({
      session,
      messages: [{ message: asImage }, { message: { role: "user", content: "hi" } }],
    });
    expect(asked).toEqual([]);
    expect(await readDescription(engine)).toContain("PNG");
  });
  await withModel(
    answer,
    async ({ engine, asked }) => {
      await engine.ingest({ session, messages: [{ message: asJson }] });
      expect(asked).toEqual([]);
    },
    { largeFileSummaryModel: "" },
  );
  await withModel(
    answer,
    async ({ engine, asked }) => {
      await engine.ingest({ session, messages: [{ message: asJson }] });
      expect(asked[0]?.user).toContain("[redacted:");
      expect(asked[0]?.user).not.toMatch(/secret-\d/);
    },
    { redactPatterns: ["secret-\\d+"] },
  );
});
