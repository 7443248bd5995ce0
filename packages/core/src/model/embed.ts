/**
 * The port to an embedding model. Like the port for completions, it never throws: errors are failures with a kind. Vectors of different
 * models cannot be compared, so every request names its model.
 */
import type { CompleteFailureKind } from "./complete.ts";

export interface EmbedRequest {
  readonly model: string;
  /** Some models need to know which side of a search a text is on. */
  readonly purpose: "message" | "question";
  readonly texts: readonly string[];
}

export type EmbedResult =
  | {
      readonly kind: "vectors";
      /** One for each text, in order. The caller checks number, length and values. */
      readonly vectors: readonly Float32Array[];
      readonly usage: { readonly inputTokens: number | null };
    }
  | {
      readonly kind: "failure";
      readonly failure: CompleteFailureKind;
      readonly message: string;
      readonly retryAfterMs?: number;
    };

/** Ends promptly when the signal aborts; the call it made is cancelled, not abandoned. */
export type Embed = (request: EmbedRequest, signal: AbortSignal) => Promise<EmbedResult>;
