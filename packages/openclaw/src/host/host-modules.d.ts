/** The host's modules that we import at run time. The host resolves them; they stay outside the bundle. */

declare module "openclaw/plugin-sdk/plugin-entry" {
  import type { PluginEntry } from "./host.ts";
  export function definePluginEntry(entry: PluginEntry): unknown;
}

declare module "openclaw/plugin-sdk/core" {
  import type { CompactParams, CompactResult } from "./host.ts";
  export function delegateCompactionToRuntime(params: CompactParams): Promise<CompactResult>;
  export function buildMemorySystemPromptAddition(params: {
    availableTools: Set<string>;
    citationsMode?: unknown;
    agentSessionKey?: string;
  }): string | undefined;
}

declare module "openclaw/plugin-sdk/session-transcript-runtime" {
  export function readSessionTranscriptVisibleMessageDelta(params: Record<string, unknown>): Promise<unknown>;
  export function readSessionTranscriptRawDelta(params: Record<string, unknown>): Promise<unknown>;
}
