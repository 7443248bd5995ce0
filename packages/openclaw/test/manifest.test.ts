import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import plugin from "../package.json" with { type: "json" };
import { renderManifest } from "../src/host/manifest.ts";

const INSTALL_COMMAND = "openclaw plugins install lossless-claw --force --accept-capabilities";

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
  const pages = ["README.md", "docs/openclaw.md", "docs/upgrading.md", "packages/lossless-claw/README.md"];
  const commands = pages.map(async (page) => {
    const text = await readFile(new URL(`../../../${page}`, import.meta.url), "utf8");
    return [...text.matchAll(/openclaw plugins install .*?(?=`|$)/gm)].map(([command]) => command);
  });
  for (const found of await Promise.all(commands)) expect(new Set(found)).toEqual(new Set([INSTALL_COMMAND]));
});
