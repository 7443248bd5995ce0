/** Costs on the page: only by the prices of the user's file, as it is when they are asked for. */
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import type { StatsReply } from "../src/api-types.ts";
import { openCoding } from "./archive.ts";

const price = (input: number): object => ({
  input,
  output: 10,
  source: "https://example.com",
  date: "2026-11-16",
});

test("costs follow the file of prices, and a file that cannot be used is named beside the figures", async () => {
  using folder = makeTemporaryFolder();
  const prices = `${folder.path}/prices.json`;
  const site = await openCoding(folder.path, { prices, thread: false });
  try {
    const message = {
      role: "assistant",
      model: "large",
      content: "done",
      usage: { input_tokens: 1_000_000, output_tokens: 0 },
    };
    const session = { key: "agent:priced", id: "priced", owner: "main" };
    await site.writer.ingest({ session, messages: [{ eventId: "p1", message: { message } }] });
    const { origin, searchParams } = new URL(site.inspector.url);
    const headers = { "x-lcm-token": searchParams.get("token") ?? "" };
    const read = async (): Promise<StatsReply["cost"]> =>
      ((await (await fetch(`${origin}/api/stats?by=model`, { headers })).json()) as StatsReply).cost;
    expect(await read()).toMatchObject({ agents: null, problem: expect.stringContaining("cannot read") });
    writeFileSync(prices, JSON.stringify({ currency: "EUR", models: { large: price(2) } }));
    expect(await read()).toMatchObject({
      agents: { total: 2, currency: "EUR", sources: ["https://example.com (2026-11-16)"] },
      own: { total: 0, currency: "EUR" },
      problem: null,
    });
    writeFileSync(prices, JSON.stringify({ models: { large: price(4) } }));
    expect(await read()).toMatchObject({ agents: { total: 4, byModel: { large: 4 } } });
  } finally {
    await site.close();
  }
});
