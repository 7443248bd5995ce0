/** What the engine reports to its host while it works. Core never prints; a host passes one sink and decides. */

type EnginePart = "index" | "files" | "spool" | "summariser" | "vectors" | "vault" | "redaction";

export type EngineEvent =
  | { kind: "stored"; conversationId: number; messages: number; revisions: number }
  | {
      kind: "degraded";
      part: EnginePart;
      message: string;
    }
  | { kind: "recovered"; part: EnginePart }
  /** Another process has held the database lock for so long that a person should know. */
  | { kind: "waiting"; message: string }
  /** The upgrade of an older archive takes so long that a person should know; nothing can be stored meanwhile. */
  | { kind: "progress"; operation: "upgrade"; done: number; total: number }
  | { kind: "compacted"; conversationId: number; tokensBefore: number; tokensAfter: number }
  | { kind: "spend"; purpose: string; model: string; inputTokens: number; outputTokens: number };

export type EventSink = (event: EngineEvent) => void;

/** Time and randomness are parameters, so that a seed replays a whole session. */
export interface Clock {
  now(): number;
  random(size: number): Uint8Array;
}
