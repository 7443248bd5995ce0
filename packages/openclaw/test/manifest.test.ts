import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import plugin from "../package.json" with { type: "json" };
import { renderManifest } from "../src/host/manifest.ts";

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

test("the package contains what a reader looks for first", () => {
  const packed = spawnSync("npm", ["pack", "--dry-run", "--json", "--offline"], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  expect(packed.status, packed.stderr).toBe(0);
  const [{ files }] = JSON.parse(packed.stdout) as [{ files: { path: string }[] }];
  const names = files.map(({ path }) => path);
  expect(names).toEqual(
    expect.arrayContaining(["README.md", "LICENSE", "openclaw.plugin.json", "package.json"]),
  );
});

test("its license is the project's, and its install command the one of the docs", async () => {
  const read = (path: string) => readFile(new URL(path, import.meta.url), "utf8");
  expect(await read("../LICENSE")).toBe(await read("../../../LICENSE"));
  const findCommand = (text: string): string | undefined => /^openclaw plugins install .*$/m.exec(text)?.[0];
  const command = findCommand(await read("../README.md"));
  expect(command).toBe(findCommand(await read("../../../docs/openclaw.md")));
  expect(command).toContain(`${plugin.name}-${plugin.version}.tgz --force --accept-capabilities`);
});
