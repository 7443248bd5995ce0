/**
 * What a provider's refusal means for the caller. Providers agree only partly on status codes, so the error text decides where a code has two
 * meanings. Keys never leak: a provider's text about a wrong key is dropped, the rest is cleaned.
 */
import type { CompleteResult } from "@lossless/core";
import { isObject } from "@lossless/core/doors";
import type { CompleteFailureKind } from "@lossless/core/ports";

export type Failure = Extract<CompleteResult, { kind: "failure" }>;

export function makeFailure(failure: CompleteFailureKind, message: string, retryAfterMs?: number): Failure {
  return { kind: "failure", failure, message, retryAfterMs };
}

/** The content of an error body, in either dialect. */
export interface ProviderError {
  readonly type: string;
  readonly message: string;
}

export function readProviderError(body: unknown): ProviderError {
  const error = isObject(body) ? body["error"] : undefined;
  if (typeof error === "string") return { type: "", message: error };
  if (!isObject(error)) return { type: "", message: "" };
  const words = [error["code"], error["type"]].filter((word) => typeof word === "string");
  return { type: words.join(" "), message: typeof error["message"] === "string" ? error["message"] : "" };
}

const OVERFLOW =
  /context[_ ]?(?:length|window|size)|prompt is too long|input is too long|too many (?:input )?tokens|maximum (?:context|input|prompt)|request too large|request_too_large/i;
/** A quota is not restored within minutes. */
const NO_MONEY = /insufficient_quota|billing|credit balance/i;

export function classifyStatus(status: number, error: ProviderError): CompleteFailureKind {
  const words = `${error.type} ${error.message}`;
  if (status === 401) return "auth";
  if (status === 402 || status === 403 || status === 404) return "denied";
  if (status === 408 || status === 504) return "timeout";
  if (status === 413) return "overflow";
  if (status === 429) return NO_MONEY.test(words) ? "denied" : "rate_limited";
  if (status >= 500) return "unavailable";
  if (OVERFLOW.test(words)) return "overflow";
  return NO_MONEY.test(words) ? "denied" : "invalid_response";
}

/** An error that arrives inside a stream has a type and no status. */
export function classifyStreamError(error: ProviderError): CompleteFailureKind {
  const { type } = error;
  if (/authentication/.test(type)) return "auth";
  if (/permission|not_found/.test(type)) return "denied";
  if (/rate_limit/.test(type)) return "rate_limited";
  if (/invalid_request|request_too_large/.test(type)) return classifyStatus(400, error);
  return "unavailable";
}

const MAX_MESSAGE_CHARS = 300;
/** Shorter header values are words, not secrets. */
const MIN_SECRET_CHARS = 6;
/** Text that looks like a key of any provider. */
const KEY_SHAPES = /\b(?:sk|pk|key|api|bearer|token)[-_ ][\w.*-]{8,}/gi;

/** One short line without secrets. */
export function cleanMessage(message: string, secrets: readonly string[]): string {
  let clean = message;
  for (const secret of secrets) {
    if (secret.length >= MIN_SECRET_CHARS) clean = clean.replaceAll(secret, "(hidden)");
  }
  clean = clean.replace(KEY_SHAPES, "(hidden)").replace(/\s+/g, " ").trim();
  return clean.length > MAX_MESSAGE_CHARS ? `${clean.slice(0, MAX_MESSAGE_CHARS)}…` : clean;
}

/** `Retry-After` in seconds or as a date, or the more exact header in milliseconds. */
export function readRetryAfter(headers: Headers, now: number): number | undefined {
  const exact = readNumber(headers.get("retry-after-ms"));
  if (exact !== undefined) return exact;
  const value = headers.get("retry-after");
  const seconds = readNumber(value);
  if (seconds !== undefined) return Math.round(seconds * 1000);
  const date = value === null ? Number.NaN : Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function readNumber(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}
