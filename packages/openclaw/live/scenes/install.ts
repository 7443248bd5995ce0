/**
 * The package as a user gets it: installed from a registry by the command of the docs into an empty state, inspected, examined, and used for
 * a turn; and installed from the folder that a clone builds.
 */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  createHostState,
  runHostCommand,
  startGateway,
  type HostState,
} from "@lossless/testkit/openclaw-host.ts";
import { packPackage, startRegistry } from "@lossless/testkit/package-registry.ts";
import { PLUGIN, type Stage } from "../stage.ts";

const ANSWERS = ["--force", "--accept-capabilities"];

export async function playInstall(stage: Stage): Promise<void> {
  const state = await makeState(stage, "install");
  await stage.step("the host installs the plugin by its name and gives it the slot", async () => {
    const registry = await startRegistry(stage.pluginDir, packPackage(stage.pluginDir, state.rootDir));
    writeFileSync(join(state.rootDir, "home", ".npmrc"), `registry=${registry.url}\nupdate-notifier=false\n`);
    try {
      await run(state, ["plugins", "install", PLUGIN, ...ANSWERS]);
    } finally {
      await registry.close();
    }
    assert.equal(readSlot(state), PLUGIN);
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
  await stage.step("the installed plugin stores a turn and proves it", () => playTurn(state));
  await stage.step("the host installs the folder that a clone builds", async () => {
    const own = await makeState(stage, "install-folder");
    await run(own, ["plugins", "install", stage.pluginDir, ...ANSWERS]);
    assert.equal(readSlot(own), PLUGIN);
  });
}

async function makeState(stage: Stage, name: string): Promise<HostState> {
  const rootDir = join(stage.rootDir, name);
  mkdirSync(rootDir);
  return createHostState({ host: stage.state.host, rootDir, modelUrl: stage.model.url, plugins: {} });
}

function readSlot(state: HostState): string | undefined {
  const config = JSON.parse(readFileSync(state.env.OPENCLAW_CONFIG_PATH!, "utf8")) as {
    plugins?: { slots?: { contextEngine?: string } };
  };
  return config.plugins?.slots?.contextEngine;
}

async function playTurn(state: HostState): Promise<void> {
  const gateway = await startGateway(state);
  try {
    const client = await gateway.connect();
    const { status } = await client.runTurn("agent:main:installed", "SAY hello");
    assert.equal(status, "ok");
    const { text } = await client.sendChat("agent:main:installed", "/lcm verify");
    assert.match(text, /Proven: 2 messages/);
    client.close();
  } finally {
    await gateway.stop();
  }
}

async function run(state: HostState, args: readonly string[]): Promise<string> {
  const { code, output } = await runHostCommand(state, args);
  assert.equal(code, 0, `openclaw ${args.join(" ")}:\n${output.slice(-3000)}`);
  return output;
}
