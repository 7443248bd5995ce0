/**
 * The plugin as OpenClaw loads it. It registers the context engine, the tools, the chat commands and a service that closes the archive when the
 * gateway stops. The host loads this module several times (for the gateway and beside it for agent runs), so registering does no work and opens
 * nothing; the first turn opens the archive.
 */

import { CHAT_WORDS } from "./commands/chat-words.ts";
import { EngineError, hintFor, isServerAddress } from "@lossless/core";
import type { Engine, EngineEvent, SessionRef, Settings } from "@lossless/core";
import { needsAdoption } from "@lossless/interchange/need";
import type { Adoption } from "@lossless/interchange";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
import manifest from "../package.json" with { type: "json" };
import { createCommands } from "./commands/command.ts";
import { createContextEngine, ENGINE_ID } from "./context-engine.ts";
import { findRefusedModels, readHostModels } from "./doctor-contract.ts";
import { describeFirstStart } from "./host/first-start.ts";
import type { PluginApi, PluginLogger } from "./host/host.ts";
import { LogFile, logTo } from "./host/log-file.ts";
import { openMediaFolder, type MediaSource } from "./capture/media.ts";
import { explainOverride } from "./host/model-access.ts";
import { findShortfalls, resolveForHost, type HostSettings } from "./host/host-settings.ts";
import { compileCapturePolicy, compileReadPolicy } from "./host/session.ts";
import {
  importSessions,
  listHostSessions,
  noteSessionEnd,
  type SessionHookParts,
} from "./capture/session-hooks.ts";
import { sweepHostFiles } from "./host/session-files.ts";
import { leaseEngine, type EngineLease } from "./host/shared-engine.ts";
import { Spool } from "./capture/spool.ts";
import { SubagentGrants } from "./host/subagents.ts";
import { TOOL_NAMES } from "./commands/tool-names.ts";
import { createTools } from "./commands/tools.ts";
import { createHostReader, type TranscriptReader } from "./capture/transcript.ts";

export default definePluginEntry({
  id: ENGINE_ID,
  name: "Lossless Claw",
  description: manifest.description,
  register,
});

/** Modes in which the host only queries metadata; the plugin's runtime must not be touched in them. */
const DESCRIBING_MODES = new Set(["cli-metadata", "setup-only", "setup-runtime"]);

function register(api: PluginApi): void {
  if (DESCRIBING_MODES.has(api.registrationMode)) return;
  const stateDir = api.runtime.state.resolveStateDir();
  const resolved = resolveForHost({
    env: process.env,
    config: api.pluginConfig ?? {},
    configSource: `plugins.entries.${ENGINE_ID}.config`,
    stateDir,
  });
  const { settings } = resolved;
  const { independentLogFile } = settings;
  const log = new LogFile(
    { ...independentLogFile, enabled: independentLogFile.enabled && settings.enabled },
    (error) => api.logger.warn(`log file: ${describeError(error)}`),
  );
  const logger = logTo(api.logger, log);
  const shortfalls = findShortfalls(api, settings);
  const isGateway = api.registrationMode === "full";
  const lease = leaseEngine({
    settings,
    workerUrl: new URL("./worker.js", import.meta.url),
    onEvent: (event) => {
      reportEvent(logger, event);
      log.writeEvent(event);
    },
    llm: api.runtime.llm,
    hostModels: readHostModels(api.config ?? {}),
    onAdoption: (adoption) => {
      const text = describeAdoption(adoption);
      if (text !== null) logger.info(text);
    },
    isGateway,
  });
  const spool = new Spool(locateSpool(settings.databasePath, stateDir), (name, cause) =>
    logger.warn(
      `a file of the spool cannot be read and was moved aside: lcm-spool/${name} (${describeError(cause)})`,
    ),
  );
  const plugin: Plugin = {
    api,
    logger,
    stateDir,
    settings,
    lease,
    spool,
    reader: createHostReader(),
    media: openMediaFolder(stateDir, (error) =>
      logger.warn(`a file that a message names: ${describeError(error)}`),
    ),
    resolved,
    refusals: settings.enabled
      ? [...shortfalls, ...findRefusedModels(api.config ?? {}).map(describeRefusal)]
      : [],
  };
  registerForAgents(plugin);
  if (isGateway) registerForGateway(plugin);
}

/** The parts of one instance of the plugin. */
interface Plugin {
  readonly api: PluginApi;
  /** The host's log and our own. */
  readonly logger: PluginLogger;
  readonly stateDir: string;
  readonly settings: Settings;
  readonly resolved: HostSettings;
  readonly lease: EngineLease;
  readonly spool: Spool;
  readonly reader: TranscriptReader;
  readonly media: MediaSource;
  /** What the host does not permit the plugin. */
  readonly refusals: readonly string[];
}

/** Registers what agents and their chats need; the host requires it in every mode. */
function registerForAgents(plugin: Plugin): void {
  const { api, logger, settings, resolved, lease, spool, reader, media, refusals } = plugin;
  const { runtime } = api;
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
    media,
    delegateCompaction: delegateCompactionToRuntime,
    describeMemory: buildMemorySystemPromptAddition,
    tell: ({ key, owner }: SessionRef, text: string) => {
      runtime.system?.enqueueSystemEvent?.(text, { sessionKey: key, agentId: owner });
    },
    logger,
    version: manifest.version,
  };
  api.registerContextEngine?.(ENGINE_ID, () => createContextEngine(parts));
  const toolParts = {
    settings,
    lease,
    isReadable: compileReadPolicy(settings),
    subagents: runtime.subagent,
  };
  if (settings.enabled)
    api.registerTool((context) => createTools(toolParts, context), { names: [...TOOL_NAMES] });
  const preflight = (): string[] => [...resolved.replaced.map(({ message }) => message), ...refusals];
  for (const command of createCommands({ settings, resolved, lease, spool, preflight }))
    api.registerCommand(command);
}

/** Registers what lives as long as the gateway. */
function registerForGateway(plugin: Plugin): void {
  const { api, logger, stateDir, settings, resolved, lease, reader, media, refusals } = plugin;
  const isCaptured = compileCapturePolicy(settings);
  const parts = { lease, reader, media, isCaptured, policy: settings, logger };
  const stopping = new AbortController();
  for (const notice of [...resolved.notices, ...refusals]) logger.warn(notice);
  if (resolved.stopped !== null) logger.error(resolved.stopped);
  if (settings.enabled && isFirstStart(settings)) introduceOnce(api, settings, lease);
  const sweep = async (phase: "startup" | "runtime", sessionId?: string): Promise<void> => {
    if (!settings.enabled) return;
    try {
      const open = (): Promise<Engine> => lease.open();
      const log = (line: string): void => logger.info(line);
      const only = sessionId === undefined ? {} : { sessionId };
      await sweepHostFiles({ open, settings, stateDir, phase, log, ...only });
    } catch (error) {
      logger.warn(`session files: ${describeError(error)}`);
    }
  };
  api.on("session_end", async (event) => {
    await noteSessionEnd(parts, event);
    await sweep("runtime", event.sessionId);
  });
  api.registerService({
    id: ENGINE_ID,
    start: () => startArchive(api, lease, parts, settings, stopping.signal, () => sweep("startup")),
    stop: async () => {
      stopping.abort();
      await lease.release();
    },
  });
  api.lifecycle?.onDispose?.(() => lease.release());
}

/** Beside the database; in the host's folder if the database is not a file. */
function locateSpool(databasePath: string, stateDir: string): string {
  return isServerAddress(databasePath) ? join(stateDir, "lcm.db") : databasePath;
}

function describeRefusal(model: string): string {
  return `the host does not let this plugin use ${model}. ${explainOverride(model)} openclaw doctor --fix adds it.`;
}

/**
 * Opens the archive when the gateway starts, so that an outage shows before the first turn, and reads the sessions of the host that are missing
 * or incomplete in it: all of them at the first start, later those that a shutdown interrupted. Nobody waits for this.
 */
function startArchive(
  api: PluginApi,
  lease: EngineLease,
  parts: SessionHookParts,
  settings: Settings,
  signal: AbortSignal,
  sweep: () => Promise<void>,
): void {
  const { logger } = parts;
  if (!settings.enabled) return;
  const sessions = listHostSessions(api);
  const isNew = isMissing(settings);
  if (isFirstStart(settings))
    logger.info(describeFirstStart({ settings, sessions: sessions.length, memory: lease.memory }));
  if (isNew && sessions.length === 0) return;
  const run = async (): Promise<void> => {
    try {
      await openWhenUpgraded(lease);
      const messages = await importSessions(parts, sessions, signal);
      if (messages > 0) logger.info(`${messages} earlier messages of ${sessions.length} sessions are stored`);
      await sweep();
    } catch (error) {
      if (parts.lease.memory.fail("archive", error)) logger.warn(`archive: ${describeError(error)}`);
    }
  };
  void run();
}

/** The file does not exist. For a server only a connection could tell: its archive is assumed to exist, or every start would be the first. */
const isMissing = ({ databasePath }: Settings): boolean =>
  !isServerAddress(databasePath) && !existsSync(databasePath);

/** There is no archive of ours yet: nothing at its path, or the database of another version. */
function isFirstStart(settings: Settings): boolean {
  return isMissing(settings) || needsAdoption(settings.databasePath);
}

/** Adopts a database of another version, or upgrades an older archive, first; if that failed, the second attempt reports why. */
async function openWhenUpgraded(lease: EngineLease): Promise<void> {
  try {
    await lease.open();
  } catch {
    await lease.whenUpgraded();
    await lease.open();
  }
}

function describeAdoption(adoption: Adoption): string | null {
  if (adoption.kind !== "adopted") return null;
  const { backup, report } = adoption;
  const summaries = report.summaries === 1 ? "1 summary" : `${report.summaries} summaries`;
  return `the database of another version was taken over: ${report.imported} rows and ${summaries}; the old file is ${backup}`;
}

function describeError(error: unknown): string {
  const next = error instanceof EngineError ? hintFor(error, CHAT_WORDS) : undefined;
  const hint = next === undefined ? "" : `; ${next}`;
  return `${error instanceof Error ? error.message : String(error)}${hint}`;
}

/**
 * Adds what the plugin does to the first answer after its installation. The host streams less while a plugin listens to answers, so this listens
 * only until the archive exists.
 */
function introduceOnce(api: PluginApi, settings: Settings, lease: EngineLease): void {
  const sessions = listHostSessions(api).length;
  const stateDir = api.runtime.state.resolveStateDir();
  let isTold = false;
  api.on("reply_payload_sending", ({ payload, kind }) => {
    if (isTold || kind !== "final" || !payload.text) return undefined;
    isTold = true;
    return {
      payload: {
        ...payload,
        text: `${payload.text}\n\nLossless Claw: ${describeFirstStart({ settings, sessions, memory: lease.memory, stateDir })}`,
      },
    };
  });
}

function reportEvent(logger: PluginLogger, event: EngineEvent): void {
  if (event.kind === "degraded") logger.warn(`${event.part}: ${event.message}`);
  if (event.kind === "recovered") logger.info(`${event.part} works again`);
  if (event.kind === "waiting") logger.warn(event.message);
}
