/**
 * A small client of the OpenClaw gateway's WebSocket protocol (version 4), for tests that drive a real host on loopback with a shared token. It
 * supports requests, agent turns, and chat messages (the only way to send slash commands).
 */

import { randomUUID } from "node:crypto";

export interface GatewayClient {
  request(method: string, params?: Record<string, unknown>, deadlineMs?: number): Promise<Payload>;
  /** Runs one agent turn and resolves when it ends. A failed turn resolves too: check `status`. */
  runTurn(sessionKey: string, message: string, deadlineMs?: number): Promise<TurnResult>;
  /** Sends a chat message, which is where slash commands work, and resolves with the final reply. */
  sendChat(sessionKey: string, message: string, deadlineMs?: number): Promise<ChatResult>;
  close(): void;
}

export interface TurnResult {
  readonly status: string;
  readonly text: string;
  readonly payload: Payload;
}

export interface ChatResult {
  /** `final`, `error` or `aborted`. */
  readonly state: string;
  readonly text: string;
}

export type Payload = Record<string, unknown>;

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly event?: string;
  readonly ok?: boolean;
  readonly payload?: Payload;
  readonly error?: { readonly message?: string };
}

interface Pending {
  readonly method: string;
  readonly resolve: (payload: Payload) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

const PROTOCOL_VERSION = 4;
const SCOPES = [
  "operator.admin",
  "operator.read",
  "operator.write",
  "operator.approvals",
  "operator.pairing",
];
const FINAL_CHAT_STATES = new Set(["final", "error", "aborted"]);
/** Ends a call that hangs; the slowest machine stays far below it. */
const DEADLINE_MS = 900_000;

export async function connectGateway(options: { port: number; token: string }): Promise<GatewayClient> {
  const socket = new WebSocket(`ws://127.0.0.1:${options.port}`);
  const pending = new Map<string, Pending>();
  const chatWatchers = new Set<(payload: Payload) => void>();

  function request(
    method: string,
    params: Record<string, unknown> = {},
    deadlineMs = DEADLINE_MS,
  ): Promise<Payload> {
    return new Promise((resolve, reject) => {
      const id = randomUUID();
      const timer = setTimeout(() => {
        pending.delete(id);
        reject(new Error(`the gateway did not answer ${method} within ${deadlineMs} ms`));
      }, deadlineMs);
      pending.set(id, { method, resolve, reject, timer });
      socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  function settle(frame: Frame): void {
    const waiting = pending.get(frame.id ?? "");
    if (waiting === undefined) return;
    // A turn answers twice on one id: once when it is accepted, once when it has ended.
    if (frame.ok === true && waiting.method === "agent" && frame.payload?.status === "accepted") return;
    pending.delete(frame.id!);
    clearTimeout(waiting.timer);
    if (frame.ok === true) waiting.resolve(frame.payload ?? {});
    else waiting.reject(new Error(frame.error?.message ?? `the gateway refused ${waiting.method}`));
  }

  function failPending(cause: string): void {
    for (const waiting of pending.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(new Error(cause));
    }
    pending.clear();
  }

  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("error", () =>
      reject(new Error(`cannot connect to the gateway on port ${options.port}`)),
    );
    socket.addEventListener("close", () => {
      failPending("the gateway closed the connection");
      reject(new Error("the gateway closed the connection"));
    });
    socket.addEventListener("message", (event) => {
      const frame = JSON.parse(String(event.data)) as Frame;
      if (frame.type === "res") settle(frame);
      else if (frame.event === "connect.challenge")
        request("connect", connectParams(options.token)).then(() => resolve(), reject);
      else if (frame.event === "chat") for (const watcher of chatWatchers) watcher(frame.payload ?? {});
    });
  });

  function waitForChat(runId: string, deadlineMs: number): Promise<ChatResult> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        chatWatchers.delete(watcher);
        reject(new Error(`no final chat event within ${deadlineMs} ms`));
      }, deadlineMs);
      const watcher = (payload: Payload): void => {
        if (payload.runId !== runId || !FINAL_CHAT_STATES.has(String(payload.state))) return;
        clearTimeout(timer);
        chatWatchers.delete(watcher);
        resolve({ state: String(payload.state), text: readMessageText(payload.message) });
      };
      chatWatchers.add(watcher);
    });
  }

  return {
    request,
    async runTurn(sessionKey, message, deadlineMs = DEADLINE_MS) {
      const payload = await request(
        "agent",
        { sessionKey, message, idempotencyKey: randomUUID() },
        deadlineMs,
      );
      return { status: String(payload.status ?? ""), text: readTurnText(payload), payload };
    },
    async sendChat(sessionKey, message, deadlineMs = DEADLINE_MS) {
      const runId = randomUUID();
      const answered = waitForChat(runId, deadlineMs);
      // The wait would be unobserved if the request itself is refused.
      answered.catch(() => undefined);
      await request("chat.send", { sessionKey, message, idempotencyKey: runId }, deadlineMs);
      return await answered;
    },
    close() {
      failPending("the client was closed");
      socket.close();
    },
  };
}

/** This client id and mode keep the requested scopes on loopback without a device key. */
function connectParams(token: string): Record<string, unknown> {
  return {
    minProtocol: PROTOCOL_VERSION,
    maxProtocol: PROTOCOL_VERSION,
    client: { id: "gateway-client", mode: "backend", platform: process.platform, version: "0.0.0" },
    role: "operator",
    scopes: SCOPES,
    caps: [],
    commands: [],
    permissions: {},
    auth: { token },
  };
}

function readTurnText(payload: Payload): string {
  const result = payload.result as { payloads?: { text?: string }[] } | undefined;
  return result?.payloads?.map((part) => part.text ?? "").join("\n") ?? "";
}

function readMessageText(message: unknown): string {
  const content = (message as { content?: unknown } | undefined)?.content;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block: { text?: string }) => block.text ?? "").join("\n");
}
