/**
 * The plugin's manifest, made from the settings table so that the host validates exactly what the engine accepts. `npm run build` writes it to
 * `openclaw.plugin.json`, where the host expects it; a test keeps the two equal. Not part of the bundle.
 */

import { settingsJsonSchema, settingsUiHints } from "@lossless/core/settings";
import { TOOL_NAMES } from "../commands/tool-names.ts";

export function renderManifest(plugin: { version: string; description: string }): string {
  const manifest = {
    id: "lossless-claw",
    name: "Lossless Claw",
    description: plugin.description,
    version: plugin.version,
    kind: "context-engine",
    categories: ["context"],
    activation: { onStartup: true },
    contracts: { tools: [...TOOL_NAMES] },
    skills: ["./skills"],
    doctorContract: { configRepair: true },
    configSchema: settingsJsonSchema(),
    uiHints: settingsUiHints(),
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}
