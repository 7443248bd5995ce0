/** The package as a user gets it: packed, installed by the host's own command into an empty state, listed, inspected and examined. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHostState, runHostCommand, type HostState } from "@lossless/testkit/openclaw-host.ts";
import { PLUGIN, type Stage } from "../stage.ts";

export async function playInstall(stage: Stage): Promise<void> {
  const rootDir = join(stage.rootDir, "install");
  mkdirSync(rootDir);
  const state = await createHostState({
    host: stage.state.host,
    rootDir,
    modelUrl: stage.model.url,
    plugins: {},
  });
  // The package has no dependencies, so installing it needs no network; without this npm asks for news of itself.
  writeFileSync(
    join(rootDir, "home", ".npmrc"),
    "offline=true\naudit=false\nfund=false\nupdate-notifier=false\n",
  );
  await stage.step("the packed plugin is installed by the host and takes the slot", async () => {
    const archive = pack(stage, rootDir);
    const install = ["plugins", "install", `npm-pack:${archive}`, "--force", "--accept-capabilities"];
    await run(state, install);
    const config = JSON.parse(readFileSync(state.env.OPENCLAW_CONFIG_PATH!, "utf8")) as {
      plugins?: { slots?: { contextEngine?: string } };
    };
    assert.equal(config.plugins?.slots?.contextEngine, PLUGIN);
  });
  await stage.step("the host inspects the installed plugin and finds no fault", async () => {
    const inspect = await run(state, ["plugins", "inspect", PLUGIN, "--runtime", "--json"]);
    const text = JSON.stringify(JSON.parse(inspect.slice(inspect.indexOf("{"))));
    assert.match(text, /"status":"loaded"/);
    assert.match(text, /"contextEngineIds":\["lossless-claw"\]/);
    for (const name of ["lcm_grep", "lcm_describe", "lcm_expand_query", "lcm_expand"])
      assert.ok(text.includes(name), name);
    assert.match(
      await run(state, ["plugins", "doctor"]),
      /discovery, module loading, compatibility, and configuration checks passed/,
    );
  });
}

function pack(stage: Stage, target: string): string {
  const packed = spawnSync("npm", ["pack", "--json", "--pack-destination", target], {
    cwd: stage.pluginDir,
    encoding: "utf8",
  });
  assert.equal(packed.status, 0, packed.stderr);
  const [{ filename }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf("["))) as [
    { filename: string },
  ];
  return join(target, filename);
}

async function run(state: HostState, args: readonly string[]): Promise<string> {
  const { code, output } = await runHostCommand(state, args);
  assert.equal(code, 0, `openclaw ${args.join(" ")}:\n${output.slice(-3000)}`);
  return output;
}
