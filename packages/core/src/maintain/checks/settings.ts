/** Settings that are allowed one by one but cannot work, together or in this place. */
import { resolve, sep } from "node:path";
import type { Settings } from "../../model/settings.ts";
import type { CheckInput, Finding } from "../finding.ts";

export async function checkSettings({
  settings,
  databasePath,
  filesDir,
  modelProblem,
}: CheckInput): Promise<Finding[]> {
  const findings = [...findContradictions(settings)];
  if (modelProblem !== null) {
    findings.push(
      describe("summaryModel", "warning", `the model for summaries cannot be used: ${modelProblem}`),
    );
  }
  if (resolve(databasePath).startsWith(resolve(filesDir) + sep)) {
    findings.push(
      describe("largeFilesDir", "warning", "the database lies inside the folder of the large files"),
    );
  }
  return findings;
}

function* findContradictions(settings: Settings): Generator<Finding> {
  const { leafTargetTokens, leafChunkTokens, condensedTargetTokens, spendMaxTokensPerDay } = settings;
  if (!settings.enabled)
    yield describe("enabled", "warning", "nothing is stored: the engine is switched off");
  if (leafTargetTokens >= leafChunkTokens) {
    const text = `a summary may have ${leafTargetTokens} tokens, what it is made from at most ${leafChunkTokens}: folding saves nothing`;
    yield describe("leafTargetTokens", "error", text);
  }
  if (condensedTargetTokens >= settings.condensedMinFanout * leafTargetTokens) {
    const text = `${settings.condensedMinFanout} summaries of ${leafTargetTokens} tokens are condensed into one of ${condensedTargetTokens}: that saves nothing`;
    yield describe("condensedTargetTokens", "warning", text);
  }
  if (settings.freshTailMaxTokens !== null && settings.freshTailMaxTokens < 1) {
    yield describe("freshTailMaxTokens", "warning", "no message is kept verbatim");
  }
  if (spendMaxTokensPerDay !== null && spendMaxTokensPerDay < leafChunkTokens) {
    const text = `${spendMaxTokensPerDay} tokens a day do not pay for one summary of ${leafChunkTokens}: models are never called`;
    yield describe("spendMaxTokensPerDay", "warning", text);
  }
}

function describe(key: string, severity: Finding["severity"], message: string): Finding {
  return { code: "setting_impossible", severity, id: key, message, mend: `lcm config explain ${key}` };
}
