/** The part of the engine that an import needs; tests and dry runs replace it. */
import type { Arrival, IngestedMessage, OriginUpdate, SessionRef } from "@lossless/core";
import type { ImportMark, PackedPrepared } from "@lossless/core/formats";

export interface ImportTarget {
  /**
   * Stores the messages and the cursor in one transaction. Without messages only the cursor is saved. `skipped` is the reason if the settings
   * prevent storing. Batches of one `sequence` are stored in the order of the calls, and none after one that failed.
   */
  ingest(request: {
    session: SessionRef;
    messages: readonly Arrival[];
    cursor?: { value: string };
    prepared?: PackedPrepared;
    sequence?: string;
    import?: ImportMark | undefined;
    /** The origin of the session, as far as these messages name it. */
    origin?: OriginUpdate | undefined;
  }): Promise<{ conversationId: number; results: readonly IngestedMessage[]; skipped?: string | null }>;
  readSession(request: {
    sessionId: string;
    owner: string;
  }): Promise<{ cursor: string | null; conversationId: number | null } | null>;
  /** Those of the given ids that the session has ever stored, forgotten ones included. */
  knownEvents(request: {
    sessionId: string;
    owner: string;
    eventIds: readonly string[];
  }): Promise<readonly string[]>;
  /** The sessions of an owner that have stored this event. */
  findSessions(request: { owner: string; eventId: string }): Promise<readonly string[]>;
  /**
   * Makes everything stored under the stand-in `from` known to the session, which must be new, with its cursor. The stand-in gets `cursor`.
   * False if the session is known or the stand-in is not.
   */
  relabelSession(request: { from: string; session: SessionRef; cursor: string }): Promise<boolean>;
  /** Hides exactly these events of the session as off-branch, and shows those that were hidden only for that reason. */
  setBranch(request: { session: SessionRef; offBranch: readonly string[] }): Promise<{ changed: number }>;
}
