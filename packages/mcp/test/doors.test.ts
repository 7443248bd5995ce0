/** Whoever knocks, and whatever is sent: the server answers those it may answer, and lives. */
import { once } from "node:events";
import { request } from "node:http";
import { PassThrough } from "node:stream";
import { fc } from "@lossless/testkit/properties.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeFactory, runStdio } from "../src/index.ts";
import { DropLongLines, MAX_LINE_BYTES } from "../src/stdio.ts";
import { connect, openTwoOwners, readAs, TOKEN } from "./archive.ts";

let archive: Awaited<ReturnType<typeof openTwoOwners>>;
beforeAll(async () => {
  archive = await openTwoOwners();
});
afterAll(() => archive[Symbol.asyncDispose]());

const OPENING = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "0" },
  },
};

test("over HTTP, only this machine's own clients with the token are answered", async () => {
  await using served = await connect(readAs("ann", archive.engine));
  const post = (headers: Record<string, string>, body: string, path = "/mcp"): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(served.url, {
        method: "POST",
        path,
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          authorization: `Bearer ${TOKEN}`,
          ...headers,
        },
      });
      sent.on("error", reject);
      sent.on("response", (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.end(body);
    });
  const opening = JSON.stringify(OPENING);
  expect(await post({}, opening)).toBe(200);
  expect(await post({ authorization: "" }, opening)).toBe(401);
  expect(await post({ authorization: `Bearer ${TOKEN}x` }, opening)).toBe(401);
  expect(await post({ host: "elsewhere.example" }, opening)).toBe(403);
  expect(await post({ origin: "https://elsewhere.example" }, opening)).toBe(403);
  for (const path of ["/other", "//", "http://[", "*"]) expect(await post({}, opening, path), path).toBe(404);
  expect(await post({}, `{"long":"${"x".repeat(2 * 1024 * 1024)}"}`)).toBe(413);
  for (const rubbish of ["", "{", "[]", "null", '{"id":3}', '{"jsonrpc":"2.0","method":7}', "\u0000"])
    expect(await post({}, rubbish), rubbish).toBeGreaterThanOrEqual(400);
  expect(await post({}, opening)).toBe(200);
});

test("on stdin, no line ends the server", async () => {
  const input = new PassThrough();
  const output = new PassThrough();
  const problems: string[] = [];
  const ended = runStdio(makeFactory(readAs("ann", archive.engine), "0.0.0"), {
    input,
    output,
    onProblem: (message) => problems.push(message),
  });
  const ask = async (message: object): Promise<Record<string, unknown>> => {
    input.write(`${JSON.stringify(message)}\n`);
    const [line] = (await once(output, "data")) as [Buffer];
    return JSON.parse(line.toString("utf8").split("\n")[0] ?? "") as Record<string, unknown>;
  };
  input.write('rubbish\n[]\n{"id":3}\n');
  expect(await ask(OPENING)).toMatchObject({ id: 1, result: { serverInfo: { name: "lossless" } } });
  input.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  input.write(`${"x".repeat(MAX_LINE_BYTES + 1)}\n\u0000\u0001\n{"jsonrpc":"2.0"}\n`);
  input.write(`${"[".repeat(100_000)}\n`);
  const call = { name: "lcm_status", arguments: {} };
  expect(await ask({ jsonrpc: "2.0", id: 2, method: "tools/call", params: call })).toMatchObject({ id: 2 });
  expect(problems.some((problem) => problem.includes("was dropped"))).toBe(true);
  expect(problems).toContain("input that is not a JSON-RPC message was ignored");
  expect(problems.filter((problem) => problem.includes("\n"))).toEqual([]);
  input.end();
  await ended;
});

test("lines pass as they are, however they are cut, and only the long ones are missing", async () => {
  const LIMIT = 20;
  const lines = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "ü"), maxLength: 30 }), {
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(lines, fc.array(fc.nat(400), { maxLength: 8 }), async (texts, cuts) => {
      const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
      const filter = new DropLongLines(LIMIT, () => undefined);
      const out: Buffer[] = [];
      filter.on("data", (chunk: Buffer) => out.push(chunk));
      const ends = [...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].toSorted(
        (a, b) => a - b,
      );
      ends.reduce((from, end) => {
        if (end > from) filter.write(bytes.subarray(from, end));
        return Math.max(from, end);
      }, 0);
      filter.end();
      await once(filter, "close");
      const short = texts.filter((text) => Buffer.byteLength(text) + 1 <= LIMIT);
      expect(Buffer.concat(out).toString("utf8")).toBe(short.map((text) => `${text}\n`).join(""));
    }),
  );
});
