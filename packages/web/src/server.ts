/**
 * The inspector's server: the page's files, read requests, and change events, on the loopback address and for the holder of the token. It is
 * read-only unless it was started for writing: then it accepts POSTs of previews, confirmed actions and labels, and nothing else.
 */
import { listenOnLoopback, LOOPBACK, SHELL_WORDS } from "@lossless/core/doors";
import { EngineError, hintFor } from "@lossless/core";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Gate, SECURITY_HEADERS } from "./access.ts";
import type { Visit } from "./access.ts";
import { Actions } from "./actions.ts";
import type { ActionOptions } from "./action-kinds.ts";
import { Api } from "./api.ts";
import type { ApiOptions } from "./api.ts";
import { changeLabels } from "./labels.ts";
import { Live, POLL_MS } from "./live.ts";
import { loadPage } from "./page.ts";
import type { PageFiles } from "./page.ts";

/** The hint for a port that is in use. */
const ICON_TYPE = "image/svg+xml";
const PORT_HINT = "choose another with --port, or leave it out";

export interface InspectorOptions extends ApiOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Null: read-only. */
  readonly write?: Pick<ActionOptions, "settings" | "model"> | null;
  /** How often the archive is polled for changes. */
  readonly pollMs?: number;
}

export interface Inspector {
  /** With the token, which the page removes from its address: anyone who has it can read the archive. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

export async function startInspector(options: InspectorOptions): Promise<Inspector> {
  // The first request opens a second thread, which takes as long as loading the page.
  options.engine.status(options.scope).catch(() => undefined);
  const page = await loadPage();
  const server = createServer();
  const port = await listenOnLoopback(server, options.port, PORT_HINT);
  const gate = new Gate(port);
  const { engine, scope, write = null } = options;
  const access = write && { token: gate.writeToken, model: write.model };
  const actions = write && new Actions({ engine, scope, ...write });
  const api = new Api(options, access);
  const desk = new Desk(gate, page, api, actions, (id, body) => changeLabels(engine, scope, id, body));
  const live = new Live(options.engine, options.scope, options.pollMs ?? POLL_MS);
  server.on("request", (request, response) => void desk.receive(request, response, live));
  void api.warmUp();
  return {
    url: `http://${LOOPBACK}:${port}/?token=${gate.token}`,
    port,
    close: () => close(server, live),
  };
}

function close(server: Server, live: Live): Promise<void> {
  live.close();
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** Handles a POST; the signal aborts when the client disconnects. */
type Change = (body: unknown, signal: AbortSignal) => Promise<unknown>;

/** The handler of a POST address, or null. */
function findChange(
  path: string,
  actions: Actions,
  label: (conversationId: number, body: unknown) => Promise<unknown>,
): Change | null {
  if (path === "/api/actions/preview") return (body) => actions.preview(body);
  if (path === "/api/actions/apply") return (body, signal) => actions.apply(body, signal);
  const conversation = /^\/api\/conversations\/(\d{1,15})\/labels$/.exec(path)?.[1];
  return conversation === undefined ? null : (body) => label(Number(conversation), body);
}

/** Request handling: checks access, answers, and shows only the message of an error. */
class Desk {
  readonly #gate: Gate;
  readonly #page: PageFiles;
  readonly #api: Api;
  readonly #actions: Actions | null;
  readonly #label: (conversationId: number, body: unknown) => Promise<unknown>;

  constructor(
    gate: Gate,
    page: PageFiles,
    api: Api,
    actions: Actions | null,
    label: (conversationId: number, body: unknown) => Promise<unknown>,
  ) {
    this.#gate = gate;
    this.#page = page;
    this.#api = api;
    this.#actions = actions;
    this.#label = label;
  }

  async receive(request: IncomingMessage, response: ServerResponse, live: Live): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const url = parseAddress(request.url ?? "/");
    if (url === null) return sendText(response, 400, "This is not an address of the inspector.");
    const visit = { headers: request.headers, url };
    const isReading = request.method === "GET" || request.method === "HEAD";
    const file = isReading ? this.#page.get(url.pathname) : undefined;
    const refusal = this.#gate.refuse(visit) ?? (file === undefined ? this.#gate.refuseRead(visit) : null);
    if (refusal !== null) return sendText(response, refusal.status, refusal.message);
    if (!isReading) return this.#change(request, response, visit);
    if (url.pathname === "/api/events") return live.add(response);
    this.#api.noteVisit();
    if (file !== undefined) {
      // Browsers load the icon again whenever the address changes, which every click does.
      if (file.type === ICON_TYPE) response.setHeader("cache-control", "max-age=3600");
      return send(response, 200, file.type, file.content);
    }
    await this.#answer(url, response);
  }

  async #answer(url: URL, response: ServerResponse): Promise<void> {
    await answerSafely(response, async () => {
      const answer = await this.#api.answer(url);
      if (answer === null)
        return sendJson(response, 404, failure("not_found", "There is nothing at this address."));
      if ("json" in answer) return sendJson(response, 200, answer.json);
      send(response, 200, answer.picture.mimeType, answer.picture.bytes);
    });
  }

  /** A preview, a confirmed action, or labels. */
  async #change(request: IncomingMessage, response: ServerResponse, visit: Visit): Promise<void> {
    const change = this.#actions && findChange(visit.url.pathname, this.#actions, this.#label);
    if (change === null || request.method !== "POST") {
      response.setHeader("allow", change === null ? "GET, HEAD" : "POST");
      return sendText(
        response,
        405,
        this.#actions === null
          ? "The inspector is read-only. Start it with lcm web --write to make changes."
          : "Nothing at this address can be changed in this way.",
      );
    }
    const refusal = this.#gate.refuseWrite(visit);
    if (refusal !== null) return sendText(response, refusal.status, refusal.message);
    await answerSafely(response, async () => {
      const body = await readJson(request);
      // Closing the page stops work that can be stopped between two steps.
      const left = new AbortController();
      response.on("close", () => left.abort());
      sendJson(response, 200, await change(body, left.signal));
    });
  }
}

async function answerSafely(response: ServerResponse, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (response.headersSent) response.destroy();
    else sendJson(response, statusOf(error), describe(error));
  }
}

const MAX_BODY_BYTES = 64 * 1024;

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES)
      throw new EngineError(
        "invalid_input",
        `cannot read the request: it is longer than ${MAX_BODY_BYTES} bytes`,
      );
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
  } catch (error) {
    throw new EngineError("invalid_input", "cannot read the request: it is not JSON", { cause: error });
  }
}

function parseAddress(target: string): URL | null {
  return /^\/(?!\/)/.test(target) ? URL.parse(target, "http://inspector.invalid") : null;
}

const STATUS: Readonly<Record<string, number>> = {
  usage: 400,
  invalid_input: 400,
  not_found: 404,
  denied: 409,
  database_busy: 409,
};

const statusOf = (error: unknown): number =>
  error instanceof EngineError ? (STATUS[error.code] ?? 500) : 500;

function describe(error: unknown): object {
  if (error instanceof EngineError) return failure(error.code, error.message, hintFor(error, SHELL_WORDS));
  return failure("internal", error instanceof Error ? error.message : String(error));
}

const failure = (code: string, message: string, hint?: string): object => ({
  error: { code, message, hint },
});

const sendText = (response: ServerResponse, status: number, text: string): void =>
  send(response, status, "text/plain; charset=utf-8", Buffer.from(`${text}\n`));

const sendJson = (response: ServerResponse, status: number, value: unknown): void =>
  send(response, status, "application/json; charset=utf-8", Buffer.from(JSON.stringify(value)));

function send(response: ServerResponse, status: number, type: string, content: Buffer): void {
  response.writeHead(status, { "content-type": type, "content-length": content.byteLength });
  response.end(response.req.method === "HEAD" ? undefined : content);
}
