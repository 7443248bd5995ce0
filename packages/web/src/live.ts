/**
 * News for open pages, as server-sent events: while at least one page listens, the state of the archive is polled every second, and changes are
 * announced. The page requests what changed.
 */
import type { ServerResponse } from "node:http";
import type { Engine, Scope } from "@lossless/core";

export const POLL_MS = 1_000;

export class Live {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #pollMs: number;
  readonly #listeners = new Set<ServerResponse>();
  #timer: NodeJS.Timeout | null = null;
  #last = "";

  constructor(engine: Engine, scope: Scope, pollMs = POLL_MS) {
    this.#engine = engine;
    this.#scope = scope;
    this.#pollMs = pollMs;
  }

  /** Keeps a response open until the page leaves. */
  add(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    response.write("retry: 2000\n\n");
    this.#listeners.add(response);
    response.on("close", () => this.#listeners.delete(response));
    if (this.#last !== "") response.write(renderEvent("status", this.#last));
    if (this.#timer === null) void this.#look();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const response of this.#listeners) response.end();
    this.#listeners.clear();
  }

  async #look(): Promise<void> {
    const news = await this.#readState();
    if (news !== this.#last) {
      this.#last = news;
      for (const response of this.#listeners) response.write(renderEvent("status", news));
    }
    this.#timer = null;
    if (this.#listeners.size === 0) return;
    this.#timer = setTimeout(() => void this.#look(), this.#pollMs);
  }

  async #readState(): Promise<string> {
    try {
      const { conversations, messages, revisions, summaries, tokens, lastStoredAt } =
        await this.#engine.status(this.#scope);
      return JSON.stringify({
        conversations,
        messages,
        revisions,
        summaries,
        tokens,
        lastStoredAt,
        problem: null,
      });
    } catch (error) {
      return JSON.stringify({ problem: error instanceof Error ? error.message : String(error) });
    }
  }
}

/** JSON text has no line feeds of its own, so one line of data is enough. */
const renderEvent = (name: string, json: string): string => `event: ${name}\ndata: ${json}\n\n`;
