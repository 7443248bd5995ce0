/**
 * The extension that gives pi the tools: pi has no MCP of its own. It is plain JavaScript that pi loads from its folder. It registers the tools
 * with their schemas as of the time it was written, and starts the MCP server at the first tool call; the server ends with the session.
 */

export interface ToolDescription {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: object;
}

export const renderPiExtension = (
  command: readonly string[],
  tools: readonly ToolDescription[],
): string => `// The tools of lossless-claw for pi. Written by lcm setup pi, which also removes it.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const COMMAND = ${JSON.stringify(command)};
const TOOLS = ${JSON.stringify(
  tools.map(({ name, title, description, parameters }) => ({ name, label: title, description, parameters })),
  null,
  2,
)};
${CLIENT}`;

const CLIENT = `
export default function (pi) {
  let server = null;
  for (const tool of TOOLS)
    pi.registerTool({
      ...tool,
      promptSnippet: tool.description,
      async execute(_id, params, signal) {
        server ??= start(() => (server = null));
        const result = await server.call(tool.name, params, signal);
        const text = (result.content ?? []).map((part) => part.text ?? "").join("\\n");
        if (result.isError) throw new Error(text);
        return { content: [{ type: "text", text }], details: undefined };
      },
    });
  pi.on("session_shutdown", () => server?.end());
}

function start(onEnd) {
  const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map();
  let last = 0;
  const fail = (error) => {
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
    onEnd();
  };
  child.on("error", fail);
  child.stdin.on("error", fail);
  child.on("exit", () => fail(new Error("the MCP server of lossless-claw ended")));
  createInterface({ input: child.stdout }).on("line", (line) => {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return; // Not a message of the protocol.
    }
    const call = waiting.get(message.id);
    if (call === undefined) return;
    waiting.delete(message.id);
    if (message.error) call.reject(new Error(message.error.message));
    else call.resolve(message.result);
  });
  const send = (message) => child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  const ask = (method, params, signal) =>
    new Promise((resolve, reject) => {
      const id = (last += 1);
      waiting.set(id, { resolve, reject });
      signal?.addEventListener("abort", () => {
        if (!waiting.delete(id)) return;
        send({ method: "notifications/cancelled", params: { requestId: id } });
        reject(new Error("cancelled"));
      });
      send({ id, method, params });
    });
  const ready = ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "pi", version: "0" },
  }).then(() => send({ method: "notifications/initialized" }));
  return {
    call: async (name, args, signal) => {
      await ready;
      return ask("tools/call", { name, arguments: args }, signal);
    },
    end: () => child.stdin.end(),
  };
}
`;
