/**
 * The environment of the scenes of the live test: one fake model, one host with private state, one gateway at a time. Counts steps, ends only
 * processes it started, and keeps what every gateway printed.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { startFakeModel, type FakeModel, type RecordedRequest } from "@lossless/testkit/fake-model.ts";
import type { GatewayClient } from "@lossless/testkit/gateway-client.ts";
import {
  createHostState,
  ensureHost,
  killStartedProcesses,
  startGateway,
  writeHostConfig,
  type HostState,
  type RunningGateway,
} from "@lossless/testkit/openclaw-host.ts";

export const PLUGIN = "lossless-claw";
/** A window so small that a chat of forty turns must be folded. */
export const SMALL_WINDOW = 64_000;

/** Ends a run that hangs. This is not a limit on speed: the slowest machine stays far below it. */
export const PATIENCE_MS = 15 * 60_000;

/** Models whose name gives their window. */
const WINDOWS = { "fake-16k": 16_000, "fake-32k": 32_000, "fake-40k": 40_000, "fake-64k": 64_000 };

const repository = join(import.meta.dirname, "..", "..", "..");

/** Shortly after a configuration change the host refuses turns: its plugins are being reloaded. */
const RELOADING = /superseded|plugin generation/;

async function whileReloading<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() >= deadline || !(error instanceof Error) || !RELOADING.test(error.message))
        throw error;
      await setTimeout(500);
    }
  }
}

export class Stage {
  readonly rootDir = mkdtempSync(join(tmpdir(), "lossless-live-"));
  readonly printed: (() => string)[] = [];
  model!: FakeModel;
  state!: HostState;
  pluginDir!: string;
  gateway!: RunningGateway;
  client!: GatewayClient;
  #startedAt = performance.now();
  #passed = 0;
  #failed = 0;
  #lastFailure: unknown = null;
  #undo: (() => void)[] = [];
  #watchdog = this.#watch();

  constructor() {
    process.once("SIGINT", () => this.endEarly("interrupted"));
    process.once("SIGTERM", () => this.endEarly("interrupted"));
  }

  async open(): Promise<void> {
    this.model = await startFakeModel();
    const host = await this.step("the host is installed", () => ensureHost(console.log));
    this.pluginDir = await this.step("the plugin is built and packed", async () => this.#stagePlugin());
    this.state = await createHostState({ host, rootDir: this.rootDir, ...this.#describeHost({}) });
    await this.step("the gateway starts with the plugin", () => this.start());
  }

  async start(): Promise<void> {
    this.gateway = await startGateway(this.state);
    this.printed.push(this.gateway.output);
    this.client = await this.gateway.connect();
  }

  async restart(): Promise<void> {
    this.client.close();
    await this.start();
  }

  /** Changes the plugin's configuration in the running gateway and waits until `/lcm status` shows it. */
  async configure(config: Record<string, unknown>, expected: RegExp, host: HostChange = {}): Promise<void> {
    await writeHostConfig(this.state, this.#describeHost(config, host));
    const status = await this.waitForAnswer("agent:main:ignored:configuration", "/lcm status", expected);
    if (process.argv.includes("--verbose")) console.log(status.replaceAll(/^/gm, "      "));
  }

  async playTurn(message: string, sessionKey: string): Promise<string> {
    const { status, text } = await whileReloading(() => this.client.runTurn(sessionKey, message));
    assert.equal(status, "ok", `the turn "${message}" ended with ${status}: ${text}`);
    return text;
  }

  async sendChat(message: string, sessionKey: string): Promise<string> {
    return (await whileReloading(() => this.client.sendChat(sessionKey, message))).text;
  }

  /** The host applies a change within a second or two; asks until it shows. */
  async waitForAnswer(
    sessionKey: string,
    message: string,
    expected: RegExp,
    limitMs = PATIENCE_MS,
  ): Promise<string> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const text = await this.sendChat(message, sessionKey);
      if (expected.test(text)) return text;
      assert.ok(performance.now() < deadline, `the answer to ${message} is still: ${text}`);
      await setTimeout(250);
    }
  }

  /** Requests of one chat, recognised by a word that every user message of it has. Requests for summaries have other system prompts. */
  requestsSince(first: number): RecordedRequest[] {
    return this.model.requests.slice(first).filter((request) => request.tools.length > 0);
  }

  async step<T>(name: string, run: () => Promise<T>): Promise<T> {
    try {
      const result = await run();
      this.#passed += 1;
      clearTimeout(this.#watchdog);
      this.#watchdog = this.#watch();
      console.log(`ok    ${this.#elapsed()}  ${name}`);
      return result;
    } catch (error) {
      this.#fail(name, error);
      throw error;
    }
  }

  /** Reports a failure between two steps; failures of steps are already reported. */
  tellFailure(error: unknown): void {
    if (error !== this.#lastFailure) this.#fail("between two steps", error);
  }

  #fail(name: string, error: unknown): void {
    this.#lastFailure = error;
    this.#failed += 1;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    console.log(`FAIL  ${this.#elapsed()}  ${name}\n${text}`);
  }

  /** Registers cleanup for when all processes of the run have ended. */
  whenClosed(undo: () => void): void {
    this.#undo.push(undo);
  }

  async close(): Promise<void> {
    killStartedProcesses();
    for (const undo of this.#undo.splice(0)) undo();
    await this.model?.close();
    clearTimeout(this.#watchdog);
  }

  /** A step takes minutes at most on any machine; one that takes much longer hangs. */
  #watch(): NodeJS.Timeout {
    return globalThis.setTimeout(
      () => this.endEarly(`a step has not ended for ${(2 * PATIENCE_MS) / 60_000} minutes`),
      2 * PATIENCE_MS,
    );
  }

  endEarly(reason: string): void {
    this.#failed += 1;
    console.log(`FAIL  ${this.#elapsed()}  ${reason}`);
    killStartedProcesses();
    for (const undo of this.#undo.splice(0)) undo();
    this.finish();
  }

  finish(): never {
    if (this.#failed === 0 && !process.argv.includes("--keep"))
      rmSync(this.rootDir, { recursive: true, force: true });
    else {
      writeFileSync(join(this.rootDir, "requests.json"), JSON.stringify(this.model.requests, null, 1));
      console.log(`state kept in ${this.rootDir}`);
    }
    console.log(`${this.#passed} passed, ${this.#failed} failed`);
    process.exit(this.#failed === 0 ? 0 : 1);
  }

  /** The package as it is published, without anything that only the workspace has. */
  #stagePlugin(): string {
    const built = spawnSync(process.execPath, [join(repository, "scripts", "build.ts")], {
      cwd: repository,
      encoding: "utf8",
    });
    assert.equal(built.status, 0, built.stderr);
    const target = join(this.rootDir, "plugin");
    cpSync(join(repository, "dist", PLUGIN), target, { recursive: true });
    return target;
  }

  #describeHost(
    config: Record<string, unknown>,
    { toolSearch = false, entry = {}, plugin = true }: HostChange = {},
  ) {
    return {
      modelUrl: this.model.url,
      models: { "fake-small": SMALL_WINDOW, "fake-vision": 128_000, ...WINDOWS },
      toolSearch,
      plugins: {
        load: { paths: [this.pluginDir] },
        allow: [PLUGIN, "memory-core"],
        slots: { ...(plugin ? { contextEngine: PLUGIN } : {}), memory: "memory-core" },
        entries: { [PLUGIN]: { enabled: plugin, ...entry, config: { ...PATTERNS, ...config } } },
      },
    };
  }

  #elapsed(): string {
    return `${((performance.now() - this.#startedAt) / 1000).toFixed(1).padStart(6)}s`;
  }
}

export interface HostChange {
  /** More members of the plugin's entry in the host's configuration: its permissions. */
  readonly entry?: Record<string, unknown>;
  readonly toolSearch?: boolean;
  /** False: the host runs without the plugin. */
  readonly plugin?: boolean;
}

const PATTERNS = {
  ignoreSessionPatterns: ["agent:*:ignored:**"],
  statelessSessionPatterns: ["agent:*:stateless:**"],
};
