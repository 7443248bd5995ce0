/** The differences between the two provider APIs. Everything else (sending, reading, cancelling) is shared. */
import type { CompleteRequest } from "@lossless/core";
import type { Answer } from "./answer.ts";

/** A provider's address and our credentials for it. */
export interface Endpoint {
  readonly provider: string;
  readonly api: "anthropic" | "openai";
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

export type RequestBody = Readonly<Record<string, unknown>>;

export interface Dialect {
  locate(endpoint: Endpoint): string;
  authorize(endpoint: Endpoint): Record<string, string>;
  buildBody(endpoint: Endpoint, model: string, request: CompleteRequest): RequestBody;
  /** One event of a stream, already parsed. */
  takeEvent(answer: Answer, event: Record<string, unknown>): void;
  /** The complete answer of a server that does not stream. */
  takeWhole(answer: Answer, body: Record<string, unknown>): void;
}
