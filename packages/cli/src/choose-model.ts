/** The model for a command: the one given on the command line, else that of the settings, else none. */
import type { Command } from "commander";
import { nameModel } from "@lossless/core";
import type { Invocation, Model } from "./invocation.ts";
import { given, usageError } from "@lossless/core/doors";

export interface ModelOptions {
  /** A name with `--model`, false with `--no-model`, true without either. */
  readonly model: string | boolean;
  readonly provider?: string;
  readonly baseUrl?: string;
}

export function addModelOptions(command: Command): Command {
  return command
    .option("--model <name>", "the model to use (default: the setting summaryModel)")
    .option("--no-model", "write extractive summaries, without a model")
    .option("--provider <name>", "its provider, when the name does not hold it")
    .option("--base-url <url>", "where the provider is");
}

/** Must run before anything reads the settings: the command line takes precedence. */
export async function chooseModel(invocation: Invocation, options: ModelOptions): Promise<Model | null> {
  const { model, provider, baseUrl } = options;
  if (model === false) return null;
  const summaryModel = typeof model === "string" ? model : undefined;
  invocation.override(given({ summaryModel, summaryProvider: provider }));
  const { settings, locations } = await invocation.settings();
  const { openComplete } = await import("@lossless/models");
  const { listCandidates } = await import("@lossless/core");
  const first = listCandidates(settings)[0] ?? null;
  const env = { ...process.env, ...(baseUrl === undefined ? {} : nameAddress(first?.provider, baseUrl)) };
  const complete = openComplete({ settings, env, stateDir: locations.stateDir });
  return complete && { complete, ref: first };
}

/** The display name of the model; null when none is used. */
export function nameChosen(model: Model | null): string | null {
  if (model === null) return null;
  return model.ref === null ? "the configured model" : nameModel(model.ref);
}

function nameAddress(provider: string | undefined, baseUrl: string): Record<string, string> {
  if (provider === undefined || provider === "") {
    throw usageError(
      "cannot use --base-url: it needs a provider",
      "Name it with --provider, or as provider/model",
    );
  }
  return { [`${provider.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}_BASE_URL`]: baseUrl };
}
