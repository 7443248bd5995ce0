/**
 * A process that folds a conversation with a model it makes up itself, for tests that kill it or let two of them meet. Each call to the
 * model is told to the parent before it is answered; asked to hold, the model answers only when the parent says so.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";

import { makeRandom } from "@lossless/testkit";

import { openEngine } from "lossless-claw";
import type { Arrival, CompleteRequest, CompleteResult } from "../../src/index.ts";

import { drawWords, settingsFor, START_MS } from "./conversation.ts";

export const BUDGET_TOKENS = 6_000;
export const CONVERSATION = 1;
const SMALL = {
  freshTailCount: 6,
  leafChunkTokens: 420,
  leafTargetTokens: 110,
  condensedTargetTokens: 100,
  leafMinFanout: 3,
  summaryMaxCallsPerWindow: 100_000,
};

export const foldSettings = (database: string) => settingsFor(database, SMALL);

/** A number in letters, so that it is a word and no identifier that a summary would have to keep. */
const spell = (number: number): string =>
  [...String(number)].map((digit) => "abcdefghij"[Number(digit)]).join("");

/** Short turns, each with a word of its own by which it is known in a prompt. */
function makeMarkedTurn(number: number): Arrival[] {
  const random = makeRandom(number + 1);
  const timestamp = START_MS + number * 60_000;
  return [
    {
      eventId: `u${number}`,
      message: { role: "user", content: `marker${spell(number)} ${drawWords(random, 60)}`, timestamp },
    },
    {
      eventId: `a${number}`,
      message: {
        role: "assistant",
        content: [{ type: "text", text: drawWords(random, 60) }],
        timestamp: timestamp + 1,
      },
    },
  ];
}

export const makeMarkedTurns = (from: number, to: number): Arrival[] =>
  Array.from({ length: to - from }, (_, index) => makeMarkedTurn(from + index)).flat();

export interface CallNote {
  readonly kind: "call";
  /** What the call is about: the same sources give the same key. */
  readonly key: string;
}

function nameSources(request: CompleteRequest): string {
  const words =
    request.user.match(request.purpose === "leaf" ? /\bmarker[a-j]+\b/g : /\bnote[a-p]+\b/g) ?? [];
  return `${request.purpose} ${[...new Set(words)].join(" ")}`;
}

/** Writes a summary known by a word that follows from its sources. */
export function answerCall(request: CompleteRequest): { key: string; answer: CompleteResult } {
  const key = nameSources(request);
  const digest = createHash("sha256").update(key).digest("hex").slice(0, 12);
  const word = [...digest].map((digit) => "abcdefghijklmnop"[Number.parseInt(digit, 16)]).join("");
  // The gate asks for something of the sources.
  const words = (request.user.match(/[\w./-]{4,}/g) ?? []).filter((each) => !/^(?:marker|note)/.test(each));
  const text = `They spoke of ${[...new Set(words)].slice(-20).join(" ")}, and noted it under note${word}.`;
  const model = { provider: "fake", model: "fake" };
  return { key, answer: { kind: "text", text, model, inputTokens: 100, outputTokens: 20 } };
}

interface ProgramOptions {
  readonly skewMs: number;
  readonly leaseMs?: number;
  /** The model waits for the parent's word before each answer. */
  readonly holds?: boolean;
  /** The fold is paid as work in the background, which makes first and publishes then. */
  readonly isBackground?: boolean;
  /** Tells the parent when the archive is open and the fold is about to begin. */
  readonly tellsOpen?: boolean;
  readonly budgetTokens?: number;
}

async function main(database: string, options: ProgramOptions): Promise<void> {
  const complete = async (request: CompleteRequest): Promise<CompleteResult> => {
    const { key, answer } = answerCall(request);
    process.send?.({ kind: "call", key } satisfies CallNote);
    await (options.holds ? once(process, "message") : new Promise((resolve) => setTimeout(resolve, 4)));
    return answer;
  };
  const engine = await openEngine({
    database,
    thread: false,
    settings: foldSettings(database),
    complete,
    clock: {
      now: () => Date.now() + options.skewMs,
      random: (size) => crypto.getRandomValues(new Uint8Array(size)),
    },
    leaseMs: options.leaseMs,
  });
  if (options.tellsOpen) process.send?.({ kind: "open" });
  const { budgetTokens = BUDGET_TOKENS } = options;
  if (!options.isBackground) await engine.compact({ conversationId: CONVERSATION, budgetTokens });
  await engine.maintain({ conversationId: CONVERSATION, budgetTokens });
  await engine.close();
  process.send?.({ kind: "done" });
  process.disconnect();
}

if (process.argv[1] === import.meta.filename) {
  const [database = "", options = "{}"] = process.argv.slice(2);
  await main(database, JSON.parse(options) as ProgramOptions);
}
