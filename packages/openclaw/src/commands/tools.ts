/**
 * The engine's tools as the host's agents see them. The caller is identified by what the host says about the run (its session, its agent,
 * whether it is a sub-agent), never by the model's arguments. The host creates the tools in another instance of the plugin than the engine; both
 * use the same archive.
 */

import { EngineError, hintFor, TOOL_WORDS, toolsFor } from "@lossless/core";
import type { Settings, ToolDefinition } from "@lossless/core";
import { AsyncLocalStorage } from "node:async_hooks";
import type { AgentTool, HostSubagents, ToolFactoryContext } from "../host/host.ts";
import type { InScope } from "../host/model-access.ts";
import { readAgentId } from "../host/session.ts";
import type { EngineLease } from "../host/shared-engine.ts";

export interface ToolParts {
  readonly settings: Settings;
  readonly lease: Pick<EngineLease, "open" | "models">;
  /** The host's sub-agents, if it has any. */
  readonly subagents?: HostSubagents | undefined;
  /** Sessions whose history may be read. */
  readonly isReadable: (sessionKey: string) => boolean;
}

export function createTools(parts: ToolParts, context: ToolFactoryContext): AgentTool[] {
  const { sessionKey } = context;
  if (sessionKey === undefined || !parts.isReadable(sessionKey)) return [];
  return toolsFor(sessionKey).map((tool) => createTool(parts, context, sessionKey, tool));
}

function createTool(
  { lease, settings, subagents }: ToolParts,
  { agentId, sessionId }: ToolFactoryContext,
  sessionKey: string,
  { name, description, parameters, run }: ToolDefinition,
): AgentTool {
  const session = {
    key: sessionKey,
    owner: agentId ?? readAgentId(sessionKey),
    id: sessionId,
  };
  return {
    name,
    label: LABELS[name],
    description,
    parameters,
    // Without this the host's tool search hides it, and an agent does not look for a tool it does not know.
    catalogMode: "direct-only",
    async execute(_callId, params, signal) {
      try {
        const engine = await lease.open();
        const context = {
          engine,
          session,
          timeZone: settings.timezone,
          signal,
        };
        // The host allows sub-agent calls only from inside the tool call that needs them.
        const inCall = AsyncLocalStorage.snapshot() as InScope;
        const delegate =
          name === "lcm_expand_query" && subagents !== undefined
            ? { subagents, run: inCall, timeoutMs: settings.delegationTimeoutMs }
            : undefined;
        const result = await lease.models.lendDelegate(delegate, () => run(context, params));
        return { content: [{ type: "text", text: result.text }], details: result.details };
      } catch (error) {
        throw explain(error);
      }
    },
  };
}

const LABELS: Readonly<Record<ToolDefinition["name"], string>> = {
  lcm_grep: "Search earlier messages",
  lcm_describe: "Open an earlier message or summary",
  lcm_expand_query: "Ask the folded history",
  lcm_expand: "Read granted history",
};

/** The host shows the model an error's message; the hint says what to do instead. */
function explain(error: unknown): unknown {
  const hint = error instanceof EngineError ? hintFor(error, TOOL_WORDS) : undefined;
  if (!(error instanceof EngineError) || hint === undefined) return error;
  return new EngineError(error.code, `${error.message} (${hint})`, { cause: error });
}
