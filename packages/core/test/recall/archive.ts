/** A small archive for the tests of recall: two agents, a folded conversation, a large file. */
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Arrival, Complete, Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";

export const main = { key: "agent:main:garden", id: "garden-1", owner: "main" };
export const other = { key: "agent:other:garden", id: "garden-1", owner: "other" };
const START = Date.UTC(2026, 2, 1, 9);
const HOUR = 3_600_000;

export function say(eventId: string, role: string, text: string, hours = 0): Arrival {
  return { eventId, createdAt: START + hours * HOUR, message: { role, content: text } };
}

export interface RecallArchive {
  readonly engine: Engine;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function openArchive(
  options: { complete?: Complete; settings?: Record<string, unknown>; thread?: boolean } = {},
): Promise<RecallArchive> {
  const folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const settings = resolveSettings({
    env: {},
    config: { databasePath: database, ...options.settings },
  }).settings;
  const engine = await openEngine({
    database,
    settings,
    thread: options.thread ?? false,
    complete: options.complete ?? null,
  });
  return {
    engine,
    async [Symbol.asyncDispose]() {
      await engine.close();
      folder[Symbol.dispose]();
    },
  };
}

const TOPICS = [
  "tulips",
  "roses",
  "the greenhouse door",
  "compost",
  "watering",
  "seed orders",
  "the fence",
  "bees",
];

/** A conversation long enough to be folded more than once, with one fact per message. */
export function longTalk(prefix: string, count: number): Arrival[] {
  return Array.from({ length: count }, (_, i) =>
    say(
      `${prefix}${i}`,
      i % 2 === 0 ? "user" : "assistant",
      `Note ${prefix}-${i}: about ${TOPICS[i % TOPICS.length]}, we agreed on option ${i * 7} because row ${i} of the plan says so. `.repeat(
        3,
      ),
      i,
    ),
  );
}
