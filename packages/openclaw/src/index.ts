/**
 * The plugin as OpenClaw loads it. It registers the context engine, the tools, the chat commands and a service that closes the archive when
 * the gateway stops. The host loads this module several times (for the gateway and beside it for agent runs), so registering does no work
 * and opens nothing; the archive is opened by the first turn.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  EngineError,
  resolveSettings,
  type EngineEvent,
  type SessionRef,
  type Settings,
} from "@lossless/core";
import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
import manifest from "../package.json" with { type: "json" };
import { createCommands } from "./command.ts";
import { createContextEngine, ENGINE_ID } from "./context-engine.ts";
import { findRefusedModels } from "./doctor-contract.ts";
import type { PluginApi, PluginLogger } from "./host.ts";
import { explainOverride } from "./model-access.ts";
import { compileCapturePolicy, compileReadPolicy } from "./session.ts";
import { importSessions, listHostSessions, noteSessionEnd, type SessionHookParts } from "./session-hooks.ts";
import { leaseEngine, type EngineLease } from "./shared-engine.ts";
import { Spool } from "./spool.ts";
import { SubagentGrants } from "./subagents.ts";
import { TOOL_NAMES } from "./tool-names.ts";
import { createTools } from "./tools.ts";
import { createHostReader, type TranscriptReader } from "./transcript.ts";

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
  const stateDir = api.runtime.state.resolveStateDir();
  const { settings, notices } = resolveSettings({
    env: process.env,
    config: api.pluginConfig ?? {},
    configSource: `plugins.entries.${ENGINE_ID}.config`,
    stateDir,
  });
  const isGateway = api.registrationMode === "full";
  const lease = leaseEngine({
    settings,
    workerUrl: new URL("./worker.js", import.meta.url),
    onEvent: (event) => reportEvent(api.logger, event),
    llm: api.runtime.llm,
    isGateway,
  });
  const spool = new Spool(placeSpool(settings.databasePath, stateDir));
  const plugin: Plugin = {
    api,
    settings,
    lease,
    spool,
    reader: createHostReader(),
    refusals: settings.enabled ? findRefusedModels(api.config ?? {}).map(describeRefusal) : [],
  };
  registerForAgents(plugin);
  if (isGateway) registerForGateway(plugin, notices);
}

/** What one instance of the plugin is made of. */
interface Plugin {
  readonly api: PluginApi;
  readonly settings: Settings;
  readonly lease: EngineLease;
  readonly spool: Spool;
  readonly reader: TranscriptReader;
  /** Why configured models cannot be used. */
  readonly refusals: readonly string[];
}

/** What agents and their chats need; the host asks for it in every mode. */
function registerForAgents({ api, settings, lease, spool, reader, refusals }: Plugin): void {
  const { logger, runtime } = api;
  const grants = new SubagentGrants({
    open: () => lease.open(),
    onFailure: (error) => logger.warn(`a sub-agent's grant: ${String(error)}`),
  });
  const parts = {
    settings,
    lease,
    spool,
    grants,
    reader,
    delegateCompaction: delegateCompactionToRuntime,
    describeMemory: buildMemorySystemPromptAddition,
    tell: ({ key, owner }: SessionRef, text: string) => {
      runtime.system?.enqueueSystemEvent?.(text, { sessionKey: key, agentId: owner });
    },
    logger,
    version: manifest.version,
  };
  api.registerContextEngine(ENGINE_ID, () => createContextEngine(parts));
  const toolParts = { settings, lease, isReadable: compileReadPolicy(settings) };
  if (settings.enabled)
    api.registerTool((context) => createTools(toolParts, context), { names: [...TOOL_NAMES] });
  for (const command of createCommands({ settings, lease, spool, preflight: () => refusals }))
    api.registerCommand(command);
}

/** What lives as long as the gateway. */
function registerForGateway(
  { api, settings, lease, reader, refusals }: Plugin,
  notices: readonly string[],
): void {
  const { logger } = api;
  const parts = { lease, reader, isCaptured: compileCapturePolicy(settings), logger };
  const stopping = new AbortController();
  for (const notice of [...notices, ...refusals]) logger.warn(notice);
  if (settings.enabled && !existsSync(settings.databasePath)) introduceOnce(api, settings);
  api.on("session_end", (event) => noteSessionEnd(parts, event));
  api.registerService({
    id: ENGINE_ID,
    start: () => startArchive(api, parts, settings, stopping.signal),
    stop: async () => {
      stopping.abort();
      await lease.release();
    },
  });
  api.lifecycle?.onDispose?.(() => lease.release());
}

/** Beside the database; for one that is no file, in the host's folder. */
function placeSpool(databasePath: string, stateDir: string): string {
  return databasePath.includes("://") ? join(stateDir, "lcm.db") : databasePath;
}

function describeRefusal(model: string): string {
  return `the host does not let this plugin use ${model}. ${explainOverride(model)} openclaw doctor --fix adds it.`;
}

/**
 * Looks at the archive when the gateway starts, so that trouble shows before the first turn. Where there is none yet, the sessions that the
 * host has are read into a new one; afterwards every session is read by its own turns. Nobody waits for this.
 */
function startArchive(
  api: PluginApi,
  parts: SessionHookParts,
  settings: Settings,
  signal: AbortSignal,
): void {
  if (!settings.enabled) return;
  if (existsSync(settings.databasePath)) {
    parts.lease.open().catch((error: unknown) => {
      if (parts.lease.notes.fail("archive", error)) api.logger.warn(`archive: ${describeError(error)}`);
    });
    return;
  }
  const sessions = listHostSessions(api);
  api.logger.info(describeFirstStart(settings, sessions.length));
  if (sessions.length === 0) return;
  importSessions(parts, sessions, signal).then(
    (messages) => api.logger.info(`${messages} earlier messages of ${sessions.length} sessions are stored`),
    (error: unknown) => api.logger.warn(`earlier sessions could not be read: ${describeError(error)}`),
  );
}

function describeError(error: unknown): string {
  const hint = error instanceof EngineError && error.hint !== undefined ? `; ${error.hint}` : "";
  return `${error instanceof Error ? error.message : String(error)}${hint}`;
}

/**
 * The first answer after the plugin was installed says what it does. The host streams less while anybody listens to answers, so this
 * listens only until the archive exists.
 */
function introduceOnce(api: PluginApi, settings: Settings): void {
  const sessions = listHostSessions(api).length;
  let isTold = false;
  api.on("reply_payload_sending", ({ payload, kind }) => {
    if (isTold || kind !== "final" || !payload.text) return undefined;
    isTold = true;
    return {
      payload: {
        ...payload,
        text: `${payload.text}\n\nLossless Claw: ${describeFirstStart(settings, sessions)}`,
      },
    };
  });
}

function describeFirstStart({ databasePath }: Settings, sessions: number): string {
  const earlier =
    sessions === 0 ? "" : ` The history of ${sessions} sessions is being read; no model is called for that.`;
  return `every message is kept from now on in ${databasePath}.${earlier} Summaries are written only when a conversation outgrows its model; /lcm spend says what they cost.`;
}

function reportEvent(logger: PluginLogger, event: EngineEvent): void {
  if (event.kind === "degraded") logger.warn(`${event.part}: ${event.message}`);
  if (event.kind === "recovered") logger.info(`${event.part} works again`);
}
