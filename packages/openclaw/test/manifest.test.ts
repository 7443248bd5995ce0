import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import plugin from "../package.json" with { type: "json" };
import { renderManifest } from "../src/host/manifest.ts";

const INSTALL_COMMAND = "openclaw plugins install lossless-claw --force --accept-capabilities";
const CLAUDE_COMMANDS = [
  'claude plugin marketplace add "$(npm root -g)/lossless-claw"',
  "claude plugin install lossless@lossless-claw",
];

test("the manifest that the host reads is made from the settings table", async () => {
  const written = await readFile(new URL("../openclaw.plugin.json", import.meta.url), "utf8");
  expect(JSON.parse(written), "run npm run build").toEqual(JSON.parse(renderManifest(plugin)));
});

test("the manifest claims the context engine and refuses unknown keys", () => {
  const manifest = JSON.parse(renderManifest(plugin)) as {
    id: string;
    kind: string;
    configSchema: Record<string, unknown>;
  };
  expect(manifest).toMatchObject({ id: "lossless-claw", kind: "context-engine" });
  expect(manifest.configSchema.additionalProperties).toBe(false);
});

test("every page that says how to install the plugin says the same", async () => {
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  const pages = ["*.md", "docs/*.md", "packages/*/*.md"].flatMap((pattern) =>
    globSync(pattern, { cwd: root }),
  );
  const texts = await Promise.all(pages.map((page) => readFile(join(root, page), "utf8")));
  const find = (command: RegExp): string[] =>
    texts.flatMap((text) => [...text.matchAll(command)].map(([found]) => found));
  const inOpenClaw = find(/openclaw plugins install .*?(?=`|$)/gm);
  expect(inOpenClaw.length).toBeGreaterThan(3);
  expect(new Set(inOpenClaw)).toEqual(new Set([INSTALL_COMMAND]));
  const inClaudeCode = find(/claude plugin (?:marketplace add|install) .*?(?=`|$)/gm);
  expect(new Set(inClaudeCode)).toEqual(new Set(CLAUDE_COMMANDS));
});
