/** Settings that are valid individually but cannot work together or in this place. */
import { resolve, sep } from "node:path";
import { openVault } from "../../ingest/vault.ts";
import { isServerAddress } from "../../model/address.ts";
import { EngineError } from "../../model/errors.ts";
import type { Settings } from "../../settings/settings.ts";
import { findConflicts } from "../../settings/settings-rules.ts";
import type { CheckInput, Finding } from "../finding.ts";

export async function checkSettings({
  settings,
  databasePath,
  filesDir,
  modelProblem,
  replacedSettings,
}: CheckInput): Promise<Finding[]> {
  const findings = [
    ...replacedSettings.map(({ key, message }) => describe(key, "error", message)),
    ...findContradictions(settings),
  ];
  if (modelProblem !== null) {
    findings.push(
      describe("summaryModel", "warning", `the model for summaries cannot be used: ${modelProblem}`),
    );
  }
  const keyProblem = findKeyProblem(settings);
  if (keyProblem !== null) findings.push(keyProblem);
  if (!isServerAddress(databasePath) && resolve(databasePath).startsWith(resolve(filesDir) + sep)) {
    findings.push(describe("largeFilesDir", "warning", "the database is inside the folder for large files"));
  }
  return findings;
}

/** Sealing values needs an existing key. */
function findKeyProblem(settings: Settings): Finding | null {
  const { redactPatterns, redactedValues } = settings;
  if (redactPatterns.length === 0 || redactedValues === "drop") return null;
  const effect = redactedValues === "seal" ? "nothing can be stored" : "redacted values are dropped";
  const severity = redactedValues === "seal" ? "error" : "warning";
  try {
    if (openVault(settings) !== null) return null;
    return describe("redactionKeyFile", severity, `${effect}: there is no redaction key`);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return describe("redactionKeyFile", severity, `${effect}: ${error.message}`);
  }
}

function* findContradictions(settings: Settings): Generator<Finding> {
  const { leafTargetTokens, leafChunkTokens, condensedTargetTokens, spendMaxTokensPerDay } = settings;
  for (const [{ key, at, value, says }] of findConflicts(settings))
    yield describe(key, "error", `${key}${at} = ${String(value)}: ${says}`);
  if (!settings.enabled)
    yield describe("enabled", "warning", "nothing is stored: the engine is switched off");
  if (condensedTargetTokens >= settings.condensedMinFanout * leafTargetTokens) {
    const text = `${settings.condensedMinFanout} summaries of ${leafTargetTokens} tokens are condensed into one of ${condensedTargetTokens}: that saves nothing`;
    yield describe("condensedTargetTokens", "warning", text);
  }
  if (spendMaxTokensPerDay !== null && spendMaxTokensPerDay < leafChunkTokens) {
    const text = `${spendMaxTokensPerDay} tokens a day are not enough for one summary of ${leafChunkTokens}: models are never called`;
    yield describe("spendMaxTokensPerDay", "warning", text);
  }
}

function describe(key: string, severity: Finding["severity"], message: string): Finding {
  return {
    code: "setting_impossible",
    severity,
    id: key,
    message,
    step: { kind: "explain_setting", name: key },
  };
}
