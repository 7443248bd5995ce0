/**
 * The port to a language model. An implementation never throws: errors are failures with a kind, because each kind is handled differently
 * (a wrong key opens a breaker, a full window asks for less, a timeout tries the next candidate).
 */

export interface ModelRef {
  readonly provider: string;
  readonly model: string;
}

/** A model as people name it; null if unknown. */
export function nameModel(named: Pick<ModelRef, "model"> & Partial<ModelRef>): string;
export function nameModel(named: Partial<ModelRef> | undefined): string | null;
export function nameModel({ provider, model }: Partial<ModelRef> = {}): string | null {
  if (model === undefined) return null;
  return provider === undefined || provider === "" ? model : `${provider}/${model}`;
}

export interface CompleteRequest {
  /** Null: the host uses its default model. */
  readonly model: ModelRef | null;
  readonly system: string;
  readonly user: string;
  readonly maxTokens: number;
  readonly temperature?: number;
  /** What the call is for; recorded in the ledger. */
  readonly purpose: string;
  readonly allowReasoning?: boolean;
  /** The agent that asks, if the call is made for one. */
  readonly owner?: string;
}

export type CompleteFailureKind =
  | "auth"
  | "denied"
  | "rate_limited"
  | "overflow"
  | "timeout"
  | "aborted"
  | "unavailable"
  | "invalid_response";

export type CompleteResult =
  | {
      readonly kind: "text";
      readonly text: string;
      /** The model that actually answered. */
      readonly model: ModelRef;
      readonly inputTokens: number | null;
      readonly outputTokens: number | null;
    }
  | {
      readonly kind: "failure";
      readonly failure: CompleteFailureKind;
      readonly message: string;
      readonly retryAfterMs?: number;
    };

/** Ends promptly when the signal aborts; the call it made is cancelled, not abandoned. */
export type Complete = (request: CompleteRequest, signal: AbortSignal) => Promise<CompleteResult>;
