/**
 * The target of a dry run: it stores nothing and answers as the archive would, reading it when there is one. It recognises new lines by their
 * ids; only a real import notices that a known line has changed.
 */
import type { Engine, ArrivalKind, Settings } from "@lossless/core";
import { compileSessionPatterns } from "@lossless/core/settings";
import type { ImportTarget } from "./import.ts";

/** `engine` is null when there is no archive yet. */
export function createDryTarget(engine: Engine | null, settings: Settings): ImportTarget {
  const { ignoreSessionPatterns, statelessSessionPatterns, skipStatelessSessions } = settings;
  const isIgnored = compileSessionPatterns(ignoreSessionPatterns).matches;
  const isStateless = compileSessionPatterns(statelessSessionPatterns).matches;
  /** Ids of the events of each session that the archive has or would have after the lines so far. */
  const seen = new Map<string, Set<string>>();
  const sessions = new Map<string, number>();

  /** Sessions that a line has only now named, and the stand-ins that have stored their events. */
  const relabelled = new Map<string, string>();

  const listStored: ImportTarget["knownEvents"] = async (request) => {
    const sessionId = relabelled.get(request.sessionId) ?? request.sessionId;
    return (await engine?.knownEvents({ ...request, sessionId })) ?? [];
  };
  const number = (key: string): number => {
    const known = sessions.get(key) ?? sessions.size + 1;
    sessions.set(key, known);
    return known;
  };
  const whySkipped = (key: string): string | null => {
    if (isIgnored(key)) return "ignored";
    return skipStatelessSessions && isStateless(key) ? "stateless" : null;
  };

  return {
    async ingest({ session, messages }) {
      const skipped = whySkipped(session.key);
      if (skipped !== null) return { conversationId: 0, results: [], skipped };
      const { id: sessionId, owner } = session;
      const eventIds = messages.map((message) => message.eventId ?? "");
      const known = seen.get(sessionId) ?? new Set<string>();
      seen.set(sessionId, known);
      for (const id of await listStored({ sessionId, owner, eventIds })) known.add(id);
      const results = eventIds.map((eventId) => {
        const outcome: ArrivalKind = known.has(eventId) ? "known" : "stored";
        known.add(eventId);
        return { messageId: 0, seq: 0, eventId, outcome };
      });
      return { conversationId: number(session.key), results, skipped };
    },
    readSession: async (request) => (await engine?.readSession(request)) ?? null,
    async knownEvents(request) {
      const stored = new Set(await listStored(request));
      const read = seen.get(request.sessionId);
      return request.eventIds.filter((id) => stored.has(id) || read?.has(id));
    },
    findSessions: async (request) => (await engine?.findSessions(request)) ?? [],
    async relabelSession({ from, session }) {
      relabelled.set(session.id, from);
      return true;
    },
    setBranch: () => Promise.resolve({ changed: 0 }),
  };
}
