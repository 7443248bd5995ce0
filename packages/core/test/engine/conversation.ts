/** Conversations that follow from a seed, as a host would hand them over, for tests that need turns rather than everything that can happen. */
import { makeRandom } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";

import { resolveSettings } from "../../src/index.ts";
import type { Arrival, Settings } from "../../src/index.ts";

export const SESSION = { key: "agent:main:test", id: "session-1", owner: "main" };
export const START_MS = Date.UTC(2026, 1, 14, 9, 0);
const TURN_MS = 90_000;

const WORDS = (
  "seedling tray greenhouse label printer order carrier parcel invoice supplier stock shelf frost delivery window " +
  "script table import backup queue restart morning truck warehouse customer refund"
).split(" ");

export const settingsFor = (database: string, config: Record<string, unknown> = {}): Settings =>
  resolveSettings({ env: {}, config: { databasePath: database, ...config } }).settings;

export const drawWords = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random.pick(WORDS)).join(" ");

export interface TurnSize {
  /** Words of the prompt and of the reply, and how many calls are made between. */
  readonly words?: number;
  readonly calls?: number;
  readonly resultWords?: number;
}

/** A whole turn: prompt, calls with their results, reply. Ids and times follow from its number. */
export function makeTurn(number: number, size: TurnSize = {}): Arrival[] {
  const random = makeRandom(number + 1);
  const { words = 40, calls = random.below(3), resultWords = 80 } = size;
  const at = START_MS + number * TURN_MS;
  const turn: Arrival[] = [];
  const add = (message: object) =>
    turn.push({
      eventId: `t${number}-${turn.length}`,
      message: { ...message, timestamp: at + turn.length * 1_000 },
    });
  add({ role: "user", content: `Question ${number}: ${drawWords(random, words)}?` });
  for (let call = 0; call < calls; call++) {
    const id = `call_${number}_${call}`;
    const text = { type: "text", text: drawWords(random, 6) };
    add({
      role: "assistant",
      content: [
        text,
        { type: "toolCall", id, name: "bash", arguments: { command: `grep ${drawWords(random, 4)}` } },
      ],
    });
    add({
      role: "toolResult",
      toolCallId: id,
      toolName: "bash",
      content: [{ type: "text", text: drawWords(random, resultWords) }],
      isError: false,
    });
  }
  add({
    role: "assistant",
    content: [{ type: "text", text: `Answer ${number}: ${drawWords(random, words)}.` }],
  });
  return turn;
}

/** The turns from one number up to another, not included, in one batch. */
export const makeTurns = (from: number, to: number, size: TurnSize = {}): Arrival[] =>
  Array.from({ length: to - from }, (_, index) => makeTurn(from + index, size)).flat();
