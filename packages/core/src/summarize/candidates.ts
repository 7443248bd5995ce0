/**
 * Which models may write a summary, in the order they are tried: those in the settings (environment and config are already merged there),
 * the host's own model, then the fallbacks. Each model is listed once, so that nobody pays for calling the same one twice.
 */
import { nameModel } from "../model/complete.ts";
import type { ModelRef } from "../model/complete.ts";
import type { Settings } from "../settings/settings.ts";

/** Null lets the host choose. */
export type Candidate = ModelRef | null;

export type CandidateSettings = Pick<Settings, "summaryModel" | "summaryProvider" | "fallbackProviders">;

/**
 * @param hostModel the host's compaction or runtime model; null when the host chooses it at the call; undefined without a host, in which
 * case `complete` chooses only if the settings name nothing.
 */
export function listCandidates(settings: CandidateSettings, hostModel?: Candidate): Candidate[] {
  const named = [
    parseModelRef(settings.summaryModel, settings.summaryProvider || (hostModel?.provider ?? "")),
    ...(hostModel === undefined ? [] : [hostModel]),
    ...settings.fallbackProviders.map(({ provider, model }) => ({ provider, model })),
  ].filter((candidate) => candidate !== undefined);
  return dropRepeated(named.length === 0 ? [null] : named);
}

/** A provider before the first slash takes precedence over the one named beside the model. */
export function parseModelRef(name: string, provider: string): ModelRef | undefined {
  const model = name.trim();
  if (model === "") return undefined;
  const slash = model.indexOf("/");
  if (slash > 0 && slash < model.length - 1)
    return { provider: model.slice(0, slash), model: model.slice(slash + 1) };
  return { provider: provider.trim(), model };
}

/** The name of a candidate in the ledger, in guards and with a summary. */
export function nameCandidate(candidate: Candidate): string {
  return candidate === null ? "host/default" : nameModel(candidate);
}

function dropRepeated(candidates: readonly Candidate[]): Candidate[] {
  return [...new Map(candidates.map((candidate) => [nameCandidate(candidate), candidate])).values()];
}
