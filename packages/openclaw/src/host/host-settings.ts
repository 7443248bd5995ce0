/**
 * The settings that a gateway starts with. An invalid value never stops the gateway: the default is used, and status and doctor report it.
 * Redaction and sealing are the exception: their defaults would store what was to be kept out, so nothing is stored and the host compacts by
 * itself. Messages of that time are read from the host's transcript when the setting is valid again.
 */

import { EngineError, resolveSettings } from "@lossless/core";
import type { Settings } from "@lossless/core";
import { openVault } from "@lossless/core/doors";
import type { ResolvedSettings, ResolveInput } from "@lossless/core/settings";
import type { PluginApi } from "./host.ts";

export interface HostSettings extends ResolvedSettings {
  /** Why nothing is stored although the plugin is enabled; null when it stores. */
  readonly stopped: string | null;
}

export function resolveForHost(input: ResolveInput): HostSettings {
  const resolved = resolveSettings({ ...input, tolerant: true, replaceConflicts: true });
  const problems = [...resolved.storingProblems, ...findKeyProblem(resolved.settings)];
  if (problems.length === 0 || !resolved.settings.enabled) return { ...resolved, stopped: null };
  return {
    ...resolved,
    settings: { ...resolved.settings, enabled: false },
    stopped: `nothing is stored, because redaction does not work: ${problems.join("; ")}`,
  };
}

/** Sealing values requires a key. */
function findKeyProblem(settings: Settings): string[] {
  if (settings.redactPatterns.length === 0 || settings.redactedValues !== "seal") return [];
  try {
    return openVault(settings) === null
      ? ["redactedValues is seal and there is no redaction key; set redactionKeyFile"]
      : [];
  } catch (error) {
    if (error instanceof EngineError) return [error.message];
    throw error;
  }
}

/** Features this host lacks. Refuses to start if the settings require that. */
export function findShortfalls(
  api: Pick<PluginApi, "registerContextEngine">,
  { enabled, hostFallbackMode }: Settings,
): string[] {
  if (!enabled || api.registerContextEngine !== undefined) return [];
  const lack = "this host has no context engines (OpenClaw 2026.9.6 has them)";
  if (hostFallbackMode === "error")
    throw new EngineError("config", `cannot start lossless-claw: ${lack}`, {
      hint: "update the host, or set hostFallbackMode to capture-only",
    });
  return [
    `${lack}: messages are stored when the gateway starts and when a session ends; contexts are chosen and compacted by the host`,
  ];
}
