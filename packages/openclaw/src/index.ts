/**
 * The plugin as OpenClaw loads it. It registers the context engine, the chat commands and a service that closes the archive when the
 * gateway stops. The host loads this module several times (for the gateway and beside it for agent runs), so registering does no work
 * and opens nothing; the archive is opened by the first turn.
 */

import { resolveSettings, type EngineEvent } from "@lossless/core";
import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
import manifest from "../package.json" with { type: "json" };
import { createCommands } from "./command.ts";
import { createContextEngine, ENGINE_ID } from "./context-engine.ts";
import type { PluginApi, PluginLogger } from "./host.ts";
import { leaseEngine } from "./shared-engine.ts";
import { Spool } from "./spool.ts";
import { SubagentGrants } from "./subagents.ts";
import { createHostReader } from "./transcript.ts";

export default definePluginEntry({
  id: ENGINE_ID,
  name: "Lossless Claw",
  description: manifest.description,
  register,
});

/** Modes in which the host only asks what there is; the plugin's runtime must not be touched in them. */
const DESCRIBING_MODES = new Set(["cli-metadata", "setup-only", "setup-runtime"]);

function register(api: PluginApi): void {
  if (DESCRIBING_MODES.has(api.registrationMode)) return;
  const { settings, notices } = resolveSettings({
    env: process.env,
    config: api.pluginConfig ?? {},
    configSource: `plugins.entries.${ENGINE_ID}.config`,
    stateDir: api.runtime.state.resolveStateDir(),
  });
  const isGateway = api.registrationMode === "full";
  if (isGateway) for (const notice of notices) api.logger.warn(notice);

  const lease = leaseEngine({
    settings,
    workerUrl: new URL("./worker.js", import.meta.url),
    onEvent: (event) => reportEvent(api.logger, event),
    llm: api.runtime.llm,
  });
  const spool = new Spool(settings.databasePath);
  const grants = new SubagentGrants({
    open: () => lease.open(),
    onFailure: (error) => api.logger.warn(`a sub-agent's grant: ${String(error)}`),
  });
  const parts = {
    settings,
    lease,
    spool,
    grants,
    reader: createHostReader(),
    delegateCompaction: delegateCompactionToRuntime,
    describeMemory: buildMemorySystemPromptAddition,
    logger: api.logger,
    version: manifest.version,
  };
  api.registerContextEngine(ENGINE_ID, () => createContextEngine(parts));
  for (const command of createCommands({ settings, lease, spool })) api.registerCommand(command);
  if (!isGateway) return;
  api.registerService({ id: ENGINE_ID, start: () => undefined, stop: () => lease.release() });
  api.lifecycle?.onDispose?.(() => lease.release());
}

function reportEvent(logger: PluginLogger, event: EngineEvent): void {
  if (event.kind === "degraded") logger.warn(`${event.part}: ${event.message}`);
  if (event.kind === "recovered") logger.info(`${event.part} works again`);
}
