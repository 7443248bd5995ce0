/** `lcm mcp` as agents use it: started by an old and a new client, on stdin and over HTTP, in both eras of the protocol. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRunner, LCM, makeFolder, readSampleLines } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const DATABASE = `${folder.path}/lcm.db`;
const TOKEN = "a-token-for-the-tests";
const { PATH = "", NODE_COMPILE_CACHE = "" } = process.env;
const ENV = { PATH, NODE_COMPILE_CACHE, HOME: folder.path, TZ: "UTC", LCM_MCP_TOKEN: TOKEN };
const ARGUMENTS = [LCM, "--db", DATABASE, "mcp"];
const INFO = { name: "test", version: "0" };
/** Calls that are sent before the first answer is awaited. */
const AT_ONCE = rounds({ test: 20, soak: 1000 });
/** Messages in the archive, each of which is asked for when the calls are that many. */
const MESSAGES = 50;

const program = spawn(process.execPath, [...ARGUMENTS, "--http", "0", "--json"], {
  env: ENV,
  stdio: ["ignore", "pipe", "inherit"],
});
let url: URL;

beforeAll(async () => {
  const [line] = (await once(program.stdout, "data")) as [Buffer];
  const answer = JSON.parse(line.toString("utf8")) as { data: { url: string; token: string } };
  expect(answer.data.token).toBe(TOKEN);
  url = new URL(answer.data.url);
  const transcript = `${folder.path}/session.jsonl`;
  writeFileSync(transcript, readSampleLines(MESSAGES));
  expect((await run(["--db", DATABASE, "import", transcript])).status).toBe(0);
});

afterAll(async () => {
  const ended = once(program, "exit");
  program.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
  folder.remove();
});

const stdio = { command: process.execPath, args: ARGUMENTS, env: ENV };
const requestInit = { headers: { authorization: `Bearer ${TOKEN}` } };

/** As much of a client as both generations have. */
interface AnyClient {
  callTool(request: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}

const SETUPS: Readonly<Record<string, () => Promise<AnyClient>>> = {
  "the old client on stdin": async () => {
    const client = new OldClient(INFO);
    await client.connect(new OldStdio(stdio));
    return client;
  },
  "the old client over HTTP": async () => {
    const client = new OldClient(INFO);
    await client.connect(new OldHttp(url, { requestInit }));
    return client;
  },
  "the new client on stdin, as it comes": async () => {
    const client = new Client(INFO);
    await client.connect(new StdioClientTransport(stdio));
    return client;
  },
  "the new client on stdin, asking for the newest protocol": async () => {
    const client = new Client(INFO, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StdioClientTransport(stdio));
    expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
    return client;
  },
  "the new client over HTTP, asking for the newest protocol": async () => {
    const client = new Client(INFO, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
    return client;
  },
};

/** It speaks the old protocol to a program of its own, as the old client does. */
const IN_SOAK = ["the new client on stdin, as it comes"];
const setups = Object.entries(SETUPS).filter(([name]) => isSoak || !IN_SOAK.includes(name));

describe.each(setups)("%s", (_name, connect) => {
  test("finds words of the archive, and every call in flight gets its own answer", async () => {
    const client = await connect();
    const numbers = Array.from({ length: AT_ONCE }, (_, i) => (i % MESSAGES) + 1);
    const answers = await Promise.all(
      numbers.map((n) => client.callTool({ name: "lcm_describe", arguments: { id: `msg_${n}` } })),
    );
    for (const [at, n] of numbers.entries()) expect(JSON.stringify(answers[at])).toContain(`[msg_${n}] `);
    await expect(client.callTool({ name: "no_such_tool", arguments: {} })).rejects.toMatchObject({
      code: -32602,
    });
    const wrong = await client.callTool({ name: "lcm_describe", arguments: { id: ["msg_1"], more: 1 } });
    expect(wrong).toMatchObject({ isError: true });
    const status = JSON.stringify(await client.callTool({ name: "lcm_status", arguments: {} }));
    expect(status).toMatch(/"conversations":1\b/);
    await client.close();
  });
});

test("a token that can be guessed is refused", async () => {
  const refused = await run(["--db", DATABASE, "mcp", "--http", "0"], { env: { LCM_MCP_TOKEN: "short" } });
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain("at least 16");
});
