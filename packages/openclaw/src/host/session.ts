/** The session of a call of the host, and whether its messages are stored. Reads only the call and the settings. */

import type { SessionRef, Settings } from "@lossless/core";
import { given } from "@lossless/core/doors";
import { compileSessionPatterns } from "@lossless/core/settings";
import type { SessionParams } from "./host.ts";
import type { TranscriptTarget } from "../capture/transcript.ts";

export interface SessionAddress {
  readonly session: SessionRef;
  readonly target: TranscriptTarget;
}

const DEFAULT_AGENT = "main";

export function readAddress(params: SessionParams): SessionAddress {
  const sessionId = params.sessionTarget?.sessionId ?? params.sessionId;
  const sessionKey = params.sessionTarget?.sessionKey ?? params.sessionKey ?? sessionId;
  const agentId = params.sessionTarget?.agentId ?? readAgentId(sessionKey);
  const storePath = params.sessionTarget?.storePath;
  return {
    session: { key: sessionKey, id: sessionId, owner: agentId },
    target: { agentId, sessionKey, sessionId, ...given({ storePath }) },
  };
}

/** Session keys begin with `agent:<id>:`, except for the few global ones, which belong to the default agent. */
export function readAgentId(sessionKey: string): string {
  return /^agent:([^:]+):/.exec(sessionKey)?.[1] ?? DEFAULT_AGENT;
}

/** Decides which sessions are stored: none when the engine is off, none that a pattern excludes. */
export function compileCapturePolicy(settings: Settings): (sessionKey: string) => boolean {
  const ignored = compileSessionPatterns(settings.ignoreSessionPatterns);
  const stateless = compileSessionPatterns(settings.statelessSessionPatterns);
  const isStateless = (sessionKey: string): boolean =>
    settings.skipStatelessSessions && stateless.matches(sessionKey);
  return (sessionKey) => settings.enabled && !ignored.matches(sessionKey) && !isStateless(sessionKey);
}

/** Decides which sessions may read history: all but ignored ones; a stateless one writes nothing and may read. */
export function compileReadPolicy(settings: Settings): (sessionKey: string) => boolean {
  const ignored = compileSessionPatterns(settings.ignoreSessionPatterns);
  return (sessionKey) => settings.enabled && !ignored.matches(sessionKey);
}
