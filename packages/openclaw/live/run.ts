/**
 * The plugin in the real host: `npm run test:hosts`. Starts a gateway of OpenClaw with private state and a fake model on loopback, talks to
 * it over its socket, kills it, starts it again, and at the end compares the archive with what the host itself wrote: every message row
 * stored exactly once, unchanged. Needs no network once the host is in the cache. Ends only what it started. `--keep` leaves the state of
 * the run behind for a look.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { openEngine } from "@lossless/core";
import { startFakeModel, type FakeModel } from "@lossless/testkit/fake-model.ts";
import type { GatewayClient } from "@lossless/testkit/gateway-client.ts";
import {
  createHostState,
  ensureHost,
  killStartedProcesses,
  runHostCommand,
  startGateway,
  writeHostConfig,
  type HostState,
  type RunningGateway,
} from "@lossless/testkit/openclaw-host.ts";
import { readArchive, type ArchivedRow } from "./archive-reader.ts";
import { readWitness } from "./transcript-witness.ts";

const PLUGIN = "lossless-claw";
const CHAT = "agent:main:live";
const IGNORED_CHAT = "agent:main:ignored:one";
const SWITCHED_OFF_CHAT = "agent:main:switched-off";
const TIME_LIMIT_MS = 6 * 60_000;

const startedAt = performance.now();
const repository = join(import.meta.dirname, "..", "..", "..");
let passed = 0;
let failed = 0;

const rootDir = mkdtempSync(join(tmpdir(), "lossless-live-"));
const watchdog = globalThis.setTimeout(
  () => endEarly(`the run took longer than ${TIME_LIMIT_MS / 60_000} minutes`),
  TIME_LIMIT_MS,
);
process.once("SIGINT", () => endEarly("interrupted"));
process.once("SIGTERM", () => endEarly("interrupted"));

const model = await startFakeModel();
try {
  await runScenario(model);
} catch {
  // The failing step has printed its reason; the steps after it would only repeat it.
} finally {
  killStartedProcesses();
  await model.close();
  clearTimeout(watchdog);
}
finish();

async function runScenario(fake: FakeModel): Promise<void> {
  const host = await step("the host is installed", () => ensureHost(console.log));
  const pluginDir = await step("the plugin is built and packed", async () => stagePlugin());
  const configure = (config: Record<string, unknown>) => ({
    modelUrl: fake.url,
    plugins: configurePlugins(pluginDir, config),
  });
  const state = await createHostState({ host, rootDir, ...configure({}) });
  let gateway = await step("the gateway starts with the plugin", () => startGateway(state));
  let client = await gateway.connect();

  const gateways = [gateway];

  async function restart(): Promise<void> {
    client.close();
    gateway = await startGateway(state);
    gateways.push(gateway);
    client = await gateway.connect();
  }

  await step("ten turns, one of them with a tool call", () => playTenTurns(client, fake));
  await step("a turn whose model call fails", async () => {
    await assert.rejects(client.runTurn(CHAT, "FAIL_HTTP 400"));
  });
  await step("/lcm status answers in the chat", async () => {
    const { text } = await client.sendChat(CHAT, "/lcm status");
    assert.match(text, /This chat: \d+ messages/);
    assert.match(text, /lcm\.db/);
    assert.match((await client.sendChat(CHAT, "/lossless nonsense")).text, /There is no "nonsense"/);
  });
  await step("a turn in a session that is to be ignored", () =>
    playTurn(client, "SAY nothing of this is kept", IGNORED_CHAT),
  );
  await step("/reset, and three turns", async () => {
    assert.match((await client.sendChat(CHAT, "/reset")).text, /reset/i);
    for (let turn = 1; turn <= 3; turn++) await playTurn(client, `SAY after the reset, ${turn}`);
  });
  await step("the gateway is killed between turns and started again", async () => {
    await gateway.kill();
    await restart();
    await playTurn(client, "SAY after the first kill");
  });
  await step("the gateway is killed while the model thinks, and started again", async () => {
    await killDuringTurn(gateway, client, fake, "thinking", () => undefined);
    await restart();
    await playTurn(client, "what was I saying?");
  });
  await step("the gateway is killed as the answer arrives, and started again", async () => {
    await killDuringTurn(gateway, client, fake, "answering", () => fake.release("answering"));
    await restart();
    await playTurn(client, "and now?");
  });
  await step("/new, and two turns with equal texts", async () => {
    assert.match((await client.sendChat(CHAT, "/new")).text, /new session/i);
    await playTurn(client, "SAY ok");
    await playTurn(client, "SAY ok");
  });
  await step("the plugin is switched off while the gateway runs, and stores nothing more", async () => {
    await writeHostConfig(state, configure({ enabled: false }));
    await waitForAnswer(client, SWITCHED_OFF_CHAT, "/lcm status", /switched off/);
    await playTurn(client, "SAY nothing of this either", SWITCHED_OFF_CHAT);
  });
  await step("the gateway stops by itself when asked", async () => {
    client.close();
    await gateway.stop();
  });
  await step("no turn went past the plugin, and it had nothing to warn of", async () => {
    for (const { output } of gateways)
      assert.doesNotMatch(
        output(),
        /degraded to "legacy"|could not be (used|read)|context engine .* failed/i,
      );
  });
  await step("the host lists and inspects the plugin", () => inspectPlugin(state));
  await compareWithHost(state, pluginDir);
}

async function playTenTurns(client: GatewayClient, fake: FakeModel): Promise<void> {
  for (let turn = 1; turn <= 10; turn++) {
    if (turn === 4) await playTurn(client, "CALL_TOOL session_status {}");
    else await playTurn(client, turn === 7 ? "BIG_REPLY 20000" : `SAY turn ${turn}`);
  }
  assert.ok(
    fake.requests.some((request) => request.answer === "tool:session_status"),
    "the model was asked to call a tool",
  );
}

async function playTurn(client: GatewayClient, message: string, sessionKey = CHAT): Promise<void> {
  const { status, text } = await client.runTurn(sessionKey, message);
  assert.equal(status, "ok", `the turn "${message}" ended with ${status}: ${text}`);
}

/** The host takes a change of its configuration within a second or two; asks until it shows. */
async function waitForAnswer(
  client: GatewayClient,
  sessionKey: string,
  message: string,
  expected: RegExp,
): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const { text } = await client.sendChat(sessionKey, message);
    if (expected.test(text)) return;
    assert.ok(performance.now() < deadline, `the answer to ${message} is still: ${text}`);
    await setTimeout(250);
  }
}

/** Sends a message whose model call is held, does something, and kills the gateway before it can answer. */
async function killDuringTurn(
  gateway: RunningGateway,
  client: GatewayClient,
  fake: FakeModel,
  key: string,
  act: () => void,
): Promise<void> {
  const cut = client.runTurn(CHAT, `HOLD ${key}`);
  cut.catch(() => undefined);
  await fake.waitForRequest(
    (request) => request.answer === "held" && request.userText.includes(`HOLD ${key}`),
    30_000,
  );
  act();
  await gateway.kill();
}

async function inspectPlugin(state: HostState): Promise<void> {
  const list = await runHostCommand(state, ["plugins", "list"]);
  assert.match(list.output, /lossless-claw/);
  const inspect = await runHostCommand(state, ["plugins", "inspect", PLUGIN, "--runtime", "--json"]);
  assert.equal(inspect.code, 0, inspect.output.slice(-2000));
  const report = JSON.parse(inspect.output.slice(inspect.output.indexOf("{"))) as Record<string, unknown>;
  const text = JSON.stringify(report);
  assert.match(text, /"status":"loaded"/);
  assert.match(text, /"contextEngineIds":\["lossless-claw"\]/);
}

async function compareWithHost(state: HostState, pluginDir: string): Promise<void> {
  const witness = readWitness(state.stateDir);
  // The worker that was shipped, so that the archive is judged by the code that wrote it.
  const engine = await openEngine({
    database: join(state.stateDir, "lcm.db"),
    filesDir: join(state.stateDir, "lcm-files"),
    create: false,
    workerUrl: pathToFileURL(join(pluginDir, "dist", "worker.js")),
  });
  try {
    const archived = await readArchive(engine);
    const kept = witness.messages.filter((row) => row.sessionKey === CHAT);
    await step(
      `every one of the host's ${kept.length} message rows is stored exactly once, unchanged`,
      async () => {
        const rows = groupById(archived);
        for (const row of kept) {
          const stored = rows.get(`${row.sessionId} ${row.entryId}`) ?? [];
          assert.equal(stored.length, 1, `${row.entryId} (${row.role}) is stored ${stored.length} times`);
          assert.deepEqual(stored[0]!.message, row.message);
        }
        assert.equal(archived.length, kept.length, "nothing else is stored");
      },
    );
    await step(
      "the rows stand in the order of the host, and those that left its branch are hidden",
      async () => {
        assert.deepEqual(
          archived.map((row) => [row.eventId, row.hidden]),
          kept.map((row) => [row.entryId, row.onBranch ? [] : ["branch"]]),
        );
      },
    );
    await step(
      "the reset archived a conversation, and nothing of the sessions that are not kept is there",
      async () => {
        const { items } = await engine.listConversations({ limit: 100 });
        assert.deepEqual(
          items.filter((row) => row.archivedAt !== null).map((row) => row.archiveCause),
          ["reset"],
        );
        assert.deepEqual([...new Set(items.map((row) => row.sessionKey))], [CHAT]);
        assert.deepEqual(
          witness.resets.map((reset) => reset.reason),
          ["reset", "new"],
        );
      },
    );
    await step("no turn is left undelivered", async () => assert.equal(witness.undelivered, 0));
    await step("the archive proves itself", async () => {
      const report = await engine.verify();
      assert.deepEqual(report.problems, []);
      assert.equal(report.messages, kept.length);
    });
  } finally {
    await engine.close();
  }
}

function groupById(rows: readonly ArchivedRow[]): Map<string, ArchivedRow[]> {
  return Map.groupBy(rows, (row) => `${row.sessionId} ${row.eventId}`);
}

/** The package as it is published: built files, manifest, package.json, and nothing that only the workspace has. */
function stagePlugin(): string {
  const built = spawnSync(process.execPath, [join(repository, "scripts", "build.ts")], {
    cwd: repository,
    encoding: "utf8",
  });
  assert.equal(built.status, 0, built.stderr);
  const source = join(repository, "packages", "openclaw");
  const target = join(rootDir, "plugin");
  mkdirSync(target);
  for (const name of ["package.json", "openclaw.plugin.json", "dist"])
    cpSync(join(source, name), join(target, name), { recursive: true });
  return target;
}

function configurePlugins(pluginDir: string, config: Record<string, unknown>): Record<string, unknown> {
  return {
    load: { paths: [pluginDir] },
    allow: [PLUGIN],
    slots: { contextEngine: PLUGIN, memory: "none" },
    entries: {
      [PLUGIN]: { enabled: true, config: { ignoreSessionPatterns: ["agent:*:ignored:**"], ...config } },
    },
  };
}

async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  try {
    const result = await run();
    passed += 1;
    console.log(`ok    ${elapsed()}  ${name}`);
    return result;
  } catch (error) {
    failed += 1;
    console.log(
      `FAIL  ${elapsed()}  ${name}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
    throw error;
  }
}

function elapsed(): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)}s`;
}

function endEarly(reason: string): void {
  failed += 1;
  console.log(`FAIL  ${elapsed()}  ${reason}`);
  killStartedProcesses();
  finish();
}

function finish(): never {
  if (failed === 0 && !process.argv.includes("--keep")) rmSync(rootDir, { recursive: true, force: true });
  else console.log(`state kept in ${rootDir}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
