/**
 * The inspector's server: the page's files, questions about the archive, and news of it, on the loopback address and for the holder of the
 * token. It reads; nothing that is sent to it changes the archive.
 */
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { EngineError } from "@lossless/core/model/errors.ts";
import { Gate, SECURITY_HEADERS } from "./access.ts";
import { Api } from "./api.ts";
import type { ApiOptions } from "./api.ts";
import { Live, POLL_MS } from "./live.ts";
import { loadPage } from "./page.ts";
import type { PageFiles } from "./page.ts";

const LOOPBACK = "127.0.0.1";

export interface InspectorOptions extends ApiOptions {
  /** 0 takes any that is free. */
  readonly port: number;
  /** How often the archive is looked at for news. */
  readonly pollMs?: number;
}

export interface Inspector {
  /** With the token: whoever has it may read the archive. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

export async function startInspector(options: InspectorOptions): Promise<Inspector> {
  const page = await loadPage();
  const server = createServer();
  const port = await listen(server, options.port);
  const gate = new Gate(port);
  const desk = new Desk(gate, page, new Api(options));
  const live = new Live(options.engine, options.scope, options.pollMs ?? POLL_MS);
  server.on("request", (request, response) => void desk.receive(request, response, live));
  return {
    url: `http://${LOOPBACK}:${port}/?token=${gate.token}`,
    port,
    close: () => close(server, live),
  };
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const cause = error.code === "EADDRINUSE" ? "something else listens there" : error.message;
      const hint = "choose another with --port, or leave it out";
      reject(new EngineError("usage", `cannot listen on port ${port}: ${cause}`, { hint, cause: error }));
    });
    server.listen(port, LOOPBACK, () => resolve((server.address() as AddressInfo).port));
  });
}

function close(server: Server, live: Live): Promise<void> {
  live.close();
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** Where requests arrive: checked, answered, and nothing of an error shown but its message. */
class Desk {
  readonly #gate: Gate;
  readonly #page: PageFiles;
  readonly #api: Api;

  constructor(gate: Gate, page: PageFiles, api: Api) {
    this.#gate = gate;
    this.#page = page;
    this.#api = api;
  }

  async receive(request: IncomingMessage, response: ServerResponse, live: Live): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const url = parseAddress(request.url ?? "/");
    if (url === null) return sendText(response, 400, "This is not an address of the inspector.");
    const visit = { headers: request.headers, url };
    const refusal = this.#gate.refuse(visit);
    if (refusal !== null) return sendText(response, refusal.status, refusal.message);
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return sendText(response, 405, "The inspector only reads.");
    }
    // The token leaves the address bar, and the history, at once.
    if (this.#gate.hasToken(visit)) return sendOn(response, this.#gate.renderCookie());
    if (url.pathname === "/api/events") return live.add(response);
    const file = this.#page.get(url.pathname);
    if (file !== undefined) return send(response, 200, file.type, file.content);
    await this.#answer(url, response);
  }

  async #answer(url: URL, response: ServerResponse): Promise<void> {
    try {
      const answer = await this.#api.answer(url);
      if (answer === null)
        return sendJson(response, 404, failure("not_found", "There is nothing at this address."));
      if ("json" in answer) return sendJson(response, 200, answer.json);
      send(response, 200, answer.picture.mimeType, answer.picture.bytes);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else sendJson(response, statusOf(error), describe(error));
    }
  }
}

function parseAddress(target: string): URL | null {
  return /^\/(?!\/)/.test(target) ? URL.parse(target, "http://inspector.invalid") : null;
}

const STATUS: Readonly<Record<string, number>> = {
  usage: 400,
  invalid_input: 400,
  not_found: 404,
  denied: 403,
};

const statusOf = (error: unknown): number =>
  error instanceof EngineError ? (STATUS[error.code] ?? 500) : 500;

function describe(error: unknown): object {
  if (error instanceof EngineError) return failure(error.code, error.message, error.hint);
  return failure("internal", error instanceof Error ? error.message : String(error));
}

const failure = (code: string, message: string, hint?: string): object => ({
  error: { code, message, ...(hint === undefined ? {} : { hint }) },
});

function sendOn(response: ServerResponse, cookie: string): void {
  response.writeHead(303, { location: "/", "set-cookie": cookie });
  response.end();
}

const sendText = (response: ServerResponse, status: number, text: string): void =>
  send(response, status, "text/plain; charset=utf-8", Buffer.from(`${text}\n`));

const sendJson = (response: ServerResponse, status: number, value: unknown): void =>
  send(response, status, "application/json; charset=utf-8", Buffer.from(JSON.stringify(value)));

function send(response: ServerResponse, status: number, type: string, content: Buffer): void {
  response.writeHead(status, { "content-type": type, "content-length": content.byteLength });
  response.end(response.req.method === "HEAD" ? undefined : content);
}
