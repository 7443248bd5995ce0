/** Conversations that owe a fold, a model on loopback that counts what it is asked, and workers as processes. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { deriveMessage } from "@lossless/core/formats";
import { openEngine, openStore } from "lossless-claw";
import type { Engine } from "lossless-claw";
import { readBody, startLoopback } from "@lossless/testkit/loopback.ts";
import { expect } from "vitest";
import { LCM } from "./support.ts";

const CONVERSATIONS = 4;
const MESSAGES = 40;
const BUDGET = 4_000;
const MAX_NAMES = 30;
export const ANSWER_TOKENS = 100;

interface Call {
  readonly prompt: string;
  /** The model answered, and somebody was there to hear it. */
  isAnswered: boolean;
}

export interface CountingModel {
  readonly calls: readonly Call[];
  /** Takes the call of this number, from 1, and never answers it. */
  hold(number: number): void;
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export async function startCountingModel(): Promise<CountingModel> {
  const calls: Call[] = [];
  let held = 0;
  const server = await startLoopback((request, response) => {
    void readBody(request).then((body) => {
      const { messages } = JSON.parse(body) as { messages: { content: string }[] };
      const call: Call = { prompt: messages.at(-1)?.content ?? "", isAnswered: false };
      calls.push(call);
      if (calls.length !== held) answer(response, call);
      return undefined;
    });
  });
  return {
    calls,
    hold: (number) => (held = number),
    env: {
      LCM_SUMMARY_MODEL: "openai/tiny",
      OPENAI_API_KEY: "not-a-secret",
      OPENAI_BASE_URL: `${server.url}/v1`,
      LCM_LEAF_CHUNK_TOKENS: "1000",
      LCM_LEAF_TARGET_TOKENS: "300",
    },
    close: () => server.close(),
  };
}

/** Repeats names in its sources, which the gate asks for. */
function answer(response: ServerResponse, call: Call): void {
  const names = [...new Set(call.prompt.match(/fact-\d+-\d+/g))].slice(0, MAX_NAMES);
  const content = `The team worked on these in that time: ${names.join(" ")}.\nExpand for details about: facts`;
  response.setHeader("content-type", "application/json");
  response.on("finish", () => (call.isAnswered = true));
  response.end(
    JSON.stringify({
      model: "tiny",
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1_000, completion_tokens: ANSWER_TOKENS },
    }),
  );
}

export async function fillOwing(database: string): Promise<void> {
  const engine = await openEngine({ database, thread: false });
  for (let n = 1; n <= CONVERSATIONS; n++) {
    const messages = Array.from({ length: MESSAGES }, (_, at) => ({
      eventId: `e${at}`,
      message: {
        role: at % 2 === 0 ? "user" : "assistant",
        content: `fact-${n}-${at} ${"of some words that were said about it ".repeat(12)}`,
      },
    }));
    await engine.ingest({ session: { key: `agent:main:${n}`, id: `s${n}`, owner: "main" }, messages });
  }
  await engine.close();
  // As a gateway leaves it that has stored a turn and has not folded yet.
  const store = await openStore(database, { create: false, derive: deriveMessage });
  for (let conversationId = 1; conversationId <= CONVERSATIONS; conversationId++)
    await store.addDebt({ conversationId, budgetTokens: BUDGET, now: Date.now() });
  await store.close();
}

export async function look<T>(database: string, work: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await openEngine({ database, thread: false, readOnly: true });
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}

export interface WorkerProcess {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly output: () => string;
  /** Its exit code and what it printed. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
}

export function startWorker(home: string, args: readonly string[], env: CountingModel["env"]): WorkerProcess {
  const child = spawn(process.execPath, [LCM, "worker", ...args], {
    cwd: home,
    env: { PATH: process.env["PATH"] ?? "", HOME: home, OPENCLAW_STATE_DIR: home, TZ: "UTC", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, output }));
  return { child, output: () => output, ended };
}

/** Every answer became a summary, none was asked for twice, and the archive is whole. */
export async function expectPaidOnce(database: string, { calls }: CountingModel): Promise<void> {
  const answered = calls.filter(({ isAnswered }) => isAnswered);
  expect(answered.length).toBeGreaterThan(2 * CONVERSATIONS);
  expect(new Set(answered.map(({ prompt }) => prompt)).size).toBe(answered.length);
  await look(database, async (engine) => {
    let written = 0;
    for (let conversationId = 1; conversationId <= CONVERSATIONS; conversationId++) {
      const { items } = await engine.listSummaries({ conversationId, limit: 1_000 });
      expect(items.map(({ model }) => model)).not.toContain("extractive");
      written += items.length;
    }
    expect(written).toBe(answered.length);
    const [spent] = await engine.spend({ since: 0, by: "model" });
    expect(spent).toMatchObject({ key: "openai/tiny", outputTokens: ANSWER_TOKENS * answered.length });
    expect(await engine.listDebts()).toEqual([]);
    expect(await engine.verify()).toMatchObject({ ok: true });
  });
}
