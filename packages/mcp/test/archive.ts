/** A small archive of two owners, one of them with summaries, and a client of the server over it. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { makeFactory, startHttp } from "../src/index.ts";
import type { ArchiveReader } from "../src/index.ts";

export const TOKEN = "a-token-for-the-tests";
const START = Date.UTC(2026, 2, 1, 9);
const MINUTE = 60_000;

export async function openTwoOwners(): Promise<{ engine: Engine; [Symbol.asyncDispose](): Promise<void> }> {
  const folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const { settings } = resolveSettings({ env: {}, config: { databasePath: database } });
  const engine = await openEngine({ database, settings });
  for (const [at, owner] of ["ann", "ben"].entries()) {
    const session = { key: `agent:${owner}:garden`, id: `garden-${owner}`, owner };
    const messages = Array.from({ length: 60 }, (_, i) => ({
      eventId: `${owner}-${i}`,
      createdAt: START + (at * 100 + i) * MINUTE,
      message: {
        role: i % 2 === 0 ? "user" : "assistant",
        content:
          `${owner} says: row ${i} of the plan is about tulips, and secret-of-${owner} stays here. `.repeat(
            4,
          ),
      },
    }));
    await engine.ingest({ session, messages });
    await engine.compact({ sessionKey: session.key, owner, budgetTokens: 2_000, force: true });
  }
  return {
    engine,
    async [Symbol.asyncDispose]() {
      await engine.close();
      folder[Symbol.dispose]();
    },
  };
}

export function readAs(owner: string | undefined, engine: Engine): ArchiveReader {
  return { engine: () => Promise.resolve(engine), owner, timeZone: "UTC" };
}

/** A client of today's protocol over HTTP, which makes a server for every request. */
export async function connect(
  reader: ArchiveReader,
): Promise<{ client: Client; url: string; [Symbol.asyncDispose](): Promise<void> }> {
  const server = await startHttp(makeFactory(reader, "0.0.0"), {
    port: 0,
    token: TOKEN,
    onProblem: () => undefined,
  });
  const client = new Client({ name: "test", version: "0" }, { versionNegotiation: { mode: "auto" } });
  const headers = { authorization: `Bearer ${TOKEN}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } }));
  return {
    client,
    url: server.url,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server.close();
    },
  };
}

export async function callText(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
): Promise<{ text: string; isError: boolean; structured: Record<string, unknown> }> {
  const result = await client.callTool({ name, arguments: args });
  const [first] = result.content;
  return {
    text: first?.type === "text" ? first.text : "",
    isError: result.isError === true,
    structured: (result.structuredContent ?? {}) as Record<string, unknown>,
  };
}
