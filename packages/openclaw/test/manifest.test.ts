import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import plugin from "../package.json" with { type: "json" };
import { renderManifest } from "../src/manifest.ts";

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
