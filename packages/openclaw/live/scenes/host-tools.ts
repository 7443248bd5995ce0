/**
 * Checks the plugin with other programs: the host's own doctor, which may add only the smallest permission a configured model needs, and the
 * public inspector of OpenClaw plugins. Uses states of its own.
 */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  createHostState,
  ensurePluginInspector,
  runHostCommand,
  runNodeProgram,
  type HostState,
} from "@lossless/testkit/openclaw-host.ts";
import { PATIENCE_MS, PLUGIN, type Stage } from "../stage.ts";

export async function playHostTools(stage: Stage): Promise<void> {
  await stage.step("the host's doctor allows the plugin the model it is configured for, and no more", () =>
    playDoctor(stage),
  );
  await stage.step("the public plugin inspector finds nothing to complain about", () => playInspector(stage));
}

interface PluginEntry {
  readonly config?: unknown;
  readonly llm?: unknown;
}

async function playDoctor(stage: Stage): Promise<void> {
  const rootDir = join(stage.rootDir, "doctor");
  mkdirSync(rootDir);
  const config = { summaryModel: "fake/fake-small" };
  const state = await createHostState({
    host: stage.state.host,
    rootDir,
    modelUrl: stage.model.url,
    models: { "fake-small": 64_000 },
    plugins: {
      load: { paths: [stage.pluginDir] },
      allow: [PLUGIN],
      slots: { contextEngine: PLUGIN, memory: "none" },
      entries: { [PLUGIN]: { enabled: true, config } },
    },
  });
  const { code, output } = await runHostCommand(state, ["doctor", "--fix", "--non-interactive"], PATIENCE_MS);
  assert.equal(code, 0, output.slice(-3000));
  assert.deepEqual(readEntry(state), {
    enabled: true,
    config,
    llm: { allowModelOverride: true, allowedModels: ["fake/fake-small"] },
  });
}

function readEntry(state: HostState): PluginEntry | undefined {
  const config = JSON.parse(readFileSync(state.env.OPENCLAW_CONFIG_PATH!, "utf8")) as {
    plugins?: { entries?: Record<string, PluginEntry> };
  };
  return config.plugins?.entries?.[PLUGIN];
}

async function playInspector(stage: Stage): Promise<void> {
  const entryFile = await ensurePluginInspector(console.log);
  const { code, output } = await runNodeProgram(
    [
      entryFile,
      "check",
      "--plugin-root",
      stage.pluginDir,
      "--openclaw",
      stage.state.host.packageDir,
      "--runtime",
      "--mock-sdk",
      "--allow-execute",
      "--out",
      "inspector-report",
    ],
    { cwd: stage.pluginDir, deadlineMs: PATIENCE_MS },
  );
  assert.equal(code, 0, output);
  assert.match(output, /Status: PASS/);
  assert.match(output, /Breakages: 0/);
  assert.match(output, /Issues: 0/);
}
