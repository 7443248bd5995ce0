/**
 * The server over HTTP, for hosts that connect to an address. Only this machine can reach it, and only with the token: anyone who has it can
 * read the archive. Host and Origin are checked, so that no page of another site gets an answer.
 */
import { isSameSecret, listenOnLoopback, LOOPBACK } from "@lossless/core/doors";
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";
import type { McpServerFactory } from "@modelcontextprotocol/server";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describeProblem } from "./problem.ts";

const PATH = "/mcp";
/** The hint for a port that is in use. */
const PORT_HINT = "choose another with --http, or 0 for any that is free";
/** Far above any request of ours: the longest part of one is a search pattern. */
const MAX_BODY_BYTES = 1024 * 1024;

export interface HttpOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly token: string;
  /** Called for requests that cannot be answered. */
  readonly onProblem: (message: string) => void;
}

export interface HttpServer {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

export async function startHttp(factory: McpServerFactory, options: HttpOptions): Promise<HttpServer> {
  const handler = createMcpHandler(factory, {
    maxRequestBodySize: MAX_BODY_BYTES,
    onerror: (error) => options.onProblem(describeProblem(error)),
  });
  const answer = toNodeHandler(handler);
  const mayPass = makeGate(options.token);
  const server = createServer((request, response) => {
    if (mayPass(request, response)) void answer(request, response);
  });
  const port = await listenOnLoopback(server, options.port, PORT_HINT);
  return {
    url: `http://${LOOPBACK}:${port}${PATH}`,
    port,
    close: async () => {
      await handler.close();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** Answers a request that is not allowed, and returns whether it is. */
function makeGate(token: string): (request: IncomingMessage, response: ServerResponse) => boolean {
  const isOurHost = localhostHostValidation();
  const isOurOrigin = localhostOriginValidation();
  return (request, response) => {
    if (!isOurHost(request, response) || !isOurOrigin(request, response)) return false;
    // A path may not be parseable as an address: `//`.
    if (URL.parse(request.url ?? "/", `http://${LOOPBACK}`)?.pathname !== PATH)
      return refuse(response, 404, `Nothing is here; the server answers on ${PATH}.`);
    const [, given = ""] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "") ?? [];
    if (isSameSecret(given, token)) return true;
    response.setHeader("www-authenticate", "Bearer");
    return refuse(response, 401, "Send the token that lcm mcp has printed: Authorization: Bearer …");
  };
}

function refuse(response: ServerResponse, status: number, message: string): false {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32_600, message }, id: null }));
  return false;
}
