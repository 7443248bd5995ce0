/** Helpers for tests with a real database: an engine that closes itself, the stored lines, and a file with every oddity. */

import { join } from "node:path";

import { onTestFinished } from "vitest";

import { POSITION_STEP } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { openEngine } from "lossless-claw";

import { makeRandom } from "./random.ts";
import { makeTemporaryDirectory } from "./temporary.ts";

export async function openTestEngine(database = join(makeTemporaryDirectory(), "lcm.db")): Promise<Engine> {
  const engine = await openEngine({ database, thread: false });
  onTestFinished(() => engine.close());
  return engine;
}

export interface StoredLine {
  readonly line: number;
  readonly eventId: string;
  readonly role: string;
  readonly hidden: string;
  readonly revises: number | null;
  /** The bytes as latin1 text. */
  readonly text: string;
}

/** All rows of a conversation, in the order of their lines. */
export async function readStoredLines(engine: Engine, conversationId: number | null): Promise<StoredLine[]> {
  const lines: StoredLine[] = [];
  let after: string | null = null;
  do {
    const page = await engine.listMessages({ conversationId: conversationId ?? 0, limit: 500, after });
    for (const row of page.items) {
      const body = await engine.readMessage({ messageId: row.messageId });
      const { eventId, role, revises } = row;
      const text = Buffer.from(body?.bytes ?? []).toString("latin1");
      lines.push({
        line: row.position / POSITION_STEP,
        eventId,
        role,
        revises,
        hidden: row.hidden.join("+"),
        text,
      });
    }
    after = page.next;
  } while (after !== null);
  return lines;
}

/** A pi session with branches, repeated ids, blank and broken lines, several scripts and a large paste. */
export function generateSession(seed: number, entries: number): Buffer {
  const random = makeRandom(seed);
  const lines = [JSON.stringify({ type: "session", version: 3, id: `generated-${seed}`, cwd: "/tmp" })];
  const ids: string[] = [];
  for (let index = 0; index < entries; index += 1) {
    if (random.next() < 0.03)
      lines.push(random.pick(["", "{broken", "  ", "\u0000\u0000", '{"type":"label"}']));
    const id = random.next() < 0.03 && ids.length > 0 ? random.pick(ids) : `e${index}`;
    const parentId = random.next() < 0.02 && ids.length > 0 ? random.pick(ids) : (ids.at(-1) ?? null);
    const words = Array.from({ length: random.below(60) }, () =>
      random.pick(["ok", "größer", "数据库", "🙂", "run()"]),
    );
    const content = index === 50 ? "paste ".repeat(40_000) : words.join(" ");
    const message = {
      role: random.pick(["user", "assistant"]),
      content,
      timestamp: 1_700_000_000_000 + index,
    };
    lines.push(JSON.stringify({ type: "message", id, parentId, message }));
    ids.push(id);
  }
  return Buffer.from(`${lines.join("\n")}\n`);
}
