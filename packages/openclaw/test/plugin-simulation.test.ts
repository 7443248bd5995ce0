/**
 * A host at its worst, played from a seed: turns that are lost, repeated or cannot be read, rows nobody hands over, branches that move,
 * rewrites, resets, reads at any moment. Whatever happened, after the last turn every message row is stored exactly once.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine, HiddenReason } from "@lossless/core";
import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import type { CommitTurnParams, ContextEngine } from "../src/host/host.ts";
import { makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };

const actions = [
  "turn",
  "turn with a tool",
  "turn that cannot be read",
  "turn that is lost",
  "turn that is repeated",
  "slash command",
  "failed turn",
  "killed turn",
  "rewrite",
  "reset",
  "new",
  "note",
  "bootstrap",
  "asked read",
] as const;

type Action = (typeof actions)[number];

test("stores every row exactly once, whatever the host does in between", async () => {
  const script = fc.record({
    steps: fc.array(fc.constantFrom(...actions), { maxLength: 25 }),
    pageSize: fc.integer({ min: 1, max: 9 }),
  });
  await fc.assert(
    fc.asyncProperty(script, async ({ steps, pageSize }) => {
      const folder = await mkdtemp(join(tmpdir(), "lossless-simulation-"));
      const archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
      try {
        const host = new FakeHost(() => newEngine(archive, folder, host.transcript), pageSize);
        for (const step of steps) await host.play(step);
        await host.play("turn");
        const ids = host.transcript.messages.map((row) => row.id);
        expect((await archive.knownEvents({ sessionId: SESSION_ID, eventIds: ids })).length).toBe(ids.length);
        expect(await readHidden(archive, "branch")).toEqual(host.transcript.offBranch.toSorted());
        const report = await archive.verify();
        expect(report.problems).toEqual([]);
        expect(report.messages).toBe(ids.length + host.notes);
      } finally {
        await archive.close();
        await rm(folder, { recursive: true, force: true });
      }
    }),
    { numRuns: 60 },
  );
});

async function readHidden(archive: Engine, reason: HiddenReason): Promise<string[]> {
  const ids: string[] = [];
  for (const { conversationId } of (await archive.listConversations({ limit: 100 })).items) {
    const { items } = await archive.listMessages({ conversationId, limit: 1000 });
    ids.push(...items.filter((row) => row.hidden.includes(reason)).map((row) => row.eventId));
  }
  return ids.toSorted();
}

function newEngine(archive: Engine, stateDir: string, transcript: FakeTranscript): ContextEngine {
  return makeEngine({
    settings: resolveSettings({ config: {}, configSource: "test", stateDir }).settings,
    folder: stateDir,
    open: async () => archive,
    transcript,
  });
}

class FakeHost {
  readonly transcript = new FakeTranscript();
  notes = 0;
  #create: () => ContextEngine;
  #lastTurn: CommitTurnParams | null = null;

  constructor(create: () => ContextEngine, pageSize: number) {
    this.#create = create;
    this.transcript.pageSize = pageSize;
  }

  async play(action: Action): Promise<void> {
    const { transcript } = this;
    switch (action) {
      case "turn":
        return await this.#playTurn(0);
      case "turn with a tool":
        return await this.#playTurn(2);
      case "turn that cannot be read":
        return await this.#playTurn(2, { unreadable: true });
      case "turn that is lost":
        return await this.#playTurn(1, { lost: true });
      case "turn that is repeated":
        await this.#playTurn(1);
        expect(await this.#create().commitTurn(this.#lastTurn!)).toEqual({ status: "duplicate" });
        return;
      case "slash command":
      case "failed turn":
        transcript.say("user", "same text");
        transcript.say("assistant", []);
        return;
      case "killed turn":
        return await this.#playKilledTurn();
      case "rewrite":
        return transcript.rewrite();
      case "reset":
      case "new":
        transcript.reset(action);
        return;
      case "note":
        transcript.note("the host says something itself");
        this.notes += 1;
        return;
      case "bootstrap":
        await this.#create().bootstrap(session);
        return;
      case "asked read":
        await this.#create().ingestBatch({ ...session, messages: [] });
    }
  }

  async #playTurn(tools: number, { unreadable = false, lost = false } = {}): Promise<void> {
    const { transcript } = this;
    const engine = this.#create();
    await engine.bootstrap(session);
    const first = transcript.say("user", "same text");
    for (let call = 0; call < tools; call++) {
      transcript.say("assistant", [{ type: "toolCall", id: `call_${transcript.events.length}` }]);
      transcript.mark("custom");
      transcript.say("toolResult", [{ type: "text", text: "done" }], {
        toolCallId: `call_${transcript.events.length - 1}`,
      });
    }
    const last = transcript.say("assistant", "same answer");
    if (lost) return;
    this.#lastTurn = transcript.turn(first, last);
    transcript.broken = unreadable;
    expect(await engine.commitTurn(this.#lastTurn)).toEqual({ status: "committed" });
    transcript.broken = false;
  }

  /** The user's row is written and perhaps read; then the process dies, and the host takes the row off the branch. */
  async #playKilledTurn(): Promise<void> {
    const { transcript } = this;
    const before = transcript.events.at(-1);
    transcript.say("user", "cut off");
    await this.#create().bootstrap(session);
    if (before !== undefined && before.type !== "leaf") transcript.moveLeaf(before.id);
  }
}
