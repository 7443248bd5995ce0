/**
 * No window is too small: chats in windows of four sizes, with the host's tool search off (its tools alone fill the smallest two) and on. The
 * host without the plugin is the baseline: every turn that it answers must also be answered with the plugin. Then the plugin is switched on for
 * chats that were filled without it.
 */

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { Stage } from "../stage.ts";

/** Tokens of each window, and the characters per reply: a few turns fill it. */
const WINDOWS = { "16k": 4_000, "32k": 8_000, "40k": 10_000, "64k": 24_000 } as const;
const TURNS = 4;
const PROBE_CHAT = "agent:main:ignored:tools";

interface Way {
  readonly plugin: boolean;
  readonly toolSearch: boolean;
}

export async function playWindows(stage: Stage): Promise<void> {
  const own: Way[] = [
    { plugin: true, toolSearch: false },
    { plugin: true, toolSearch: true },
  ];
  const answered = new Map<string, boolean[]>();
  for (const way of [...own, { plugin: false, toolSearch: true }, { plugin: false, toolSearch: false }]) {
    await prepare(stage, way);
    await stage.step(`${describe(way)}: ${TURNS} turns in each window`, async () => {
      for (const window of Object.keys(WINDOWS)) {
        const turns = await playChat(stage, window, way);
        answered.set(nameChat(window, way), turns);
        console.log(`      ${window}: ${turns.filter(Boolean).length} of ${turns.length} answered`);
      }
    });
  }
  await prepare(stage, own[0]!);
  await stage.step("every turn that the host answers without the plugin is answered with it", async () => {
    for (const window of Object.keys(WINDOWS))
      for (const { toolSearch } of own) {
        const without = answered.get(nameChat(window, { plugin: false, toolSearch }))!;
        const turns = answered.get(nameChat(window, { plugin: true, toolSearch }))!;
        for (const [index, ok] of without.entries())
          assert.ok(turns[index] || !ok, `turn ${index + 1} in ${window}, tool search ${toolSearch}`);
      }
  });
  await stage.step("the plugin meets chats that were full before it came", async () => {
    for (const { toolSearch } of own)
      for (const window of Object.keys(WINDOWS)) {
        const key = nameChat(window, { plugin: false, toolSearch });
        for (let turn = 1; turn <= (toolSearch ? 1 : 2); turn++)
          await stage.playTurn(writeTurn(TURNS + turn, window), key);
      }
    assert.doesNotMatch(await stage.sendChat("/lcm doctor", PROBE_CHAT), /refused/);
  });
}

async function playChat(stage: Stage, window: string, way: Way): Promise<boolean[]> {
  const key = nameChat(window, way);
  await stage.client.request("sessions.patch", { key, model: `fake/fake-${window}` });
  const answered: boolean[] = [];
  for (let turn = 1; turn <= TURNS; turn++) {
    try {
      await stage.playTurn(writeTurn(turn, window), key);
      answered.push(true);
    } catch (error) {
      console.log(`      ${key} ${turn}: ${String(error)}`);
      answered.push(false);
    }
  }
  return answered;
}

function writeTurn(turn: number, window: string): string {
  return `tide ${turn} rises to ${turn * 613} centimetres. BIG_REPLY ${WINDOWS[window as keyof typeof WINDOWS]}`;
}

function nameChat(window: string, { plugin, toolSearch }: Way): string {
  return `agent:main:window-${window}-${toolSearch ? "search" : "plain"}-${plugin ? "with" : "without"}`;
}

function describe({ plugin, toolSearch }: Way): string {
  return `${plugin ? "with" : "without"} the plugin, tool search ${toolSearch ? "on" : "off"}`;
}

/** Changes the configuration of the running host, and waits until a request shows it. */
async function prepare(stage: Stage, { plugin, toolSearch }: Way): Promise<void> {
  await stage.configure({}, plugin ? /state\/lcm\.db/ : /^reply \d+$/, { toolSearch, plugin });
  for (;;) {
    const first = stage.model.requests.length;
    await stage.playTurn("SAY which tools are there", PROBE_CHAT);
    const tools = stage.requestsSince(first)[0]!.tools;
    if (tools.some((tool) => tool.startsWith("tool_search")) === toolSearch) return;
    await setTimeout(250);
  }
}
