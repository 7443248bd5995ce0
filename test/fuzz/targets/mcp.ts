/**
 * Messages to the MCP server, one per line. Every line it writes is a protocol message; no tool fails because of a bug; it still answers at the
 * end.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { makeFactory, runStdio } from "../../../packages/mcp/src/index.ts";
import { openTwoOwners, readAs } from "../../../packages/mcp/test/archive.ts";
import { hold } from "../target.ts";
import type { Target } from "../target.ts";

const HELLO = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"fuzz","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`;
const BYE = '\n{"jsonrpc":"2.0","id":"bye","method":"ping"}\n';
const INTERNAL_ERROR = -32_603;
const LONGEST_MS = 20_000;

export const mcpTarget: Target = {
  name: "mcp",
  words: [
    "jsonrpc",
    "2.0",
    "id",
    "method",
    "params",
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "prompts/get",
    "completion/complete",
    "name",
    "arguments",
    "lcm_grep",
    "lcm_describe",
    "lcm_expand",
    "lcm_expand_query",
    "lcm_recent",
    "lcm_status",
    "pattern",
    "mode",
    "regex",
    "limit",
    "after",
    "since",
    "msg_3..msg_9",
    "sum_",
    "lcm://conversation/1",
    "cursor",
    "_meta",
    "progressToken",
    "notifications/cancelled",
  ],
  open: async () => {
    const archive = await openTwoOwners();
    const factory = makeFactory(readAs("ann", archive.engine), "0.0.0");
    return {
      run: (input) => talk(factory, input),
      close: () => archive[Symbol.asyncDispose](),
    };
  },
};

async function talk(factory: Parameters<typeof runStdio>[0], input: Buffer): Promise<void> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const done = runStdio(factory, { input: stdin, output: stdout, onProblem: () => undefined });
  let text = "";
  stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const limit = AbortSignal.timeout(LONGEST_MS);
  stdin.write(HELLO);
  stdin.write(input);
  stdin.write(BYE);
  try {
    while (!text.includes('"id":"bye"')) await once(stdout, "data", { signal: limit });
  } catch (error) {
    hold(!limit.aborted, "the server does not answer any more", text.slice(-500));
    throw error;
  }
  // Earlier requests may be answered later.
  await new Promise((resolve) => setImmediate(resolve));
  stdin.end();
  await done;
  for (const line of text.split("\n").filter((each) => each !== "")) check(line);
}

function check(line: string): void {
  const answer = JSON.parse(line) as { jsonrpc?: unknown; error?: { code?: unknown; message?: string } };
  hold(answer.jsonrpc === "2.0", "a line is not a message", line);
  hold(!/"text":"cannot answer: /.test(line), "a tool fails by a bug", line);
  // Requests that the SDK rejects by schema also have this code, and a list of issues.
  const isIssues = answer.error?.message?.startsWith("[") === true;
  hold(answer.error?.code !== INTERNAL_ERROR || isIssues, "a request fails by a bug", line);
}
