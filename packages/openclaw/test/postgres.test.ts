/** The plugin on an archive in a server: turns, contexts and tools, and what happens to a chat when the server cannot be reached. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { startCutProxy } from "@lossless/testkit/cut-proxy.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { expect, onTestFinished, test } from "vitest";
import { Spool } from "../src/capture/spool.ts";
import { createCommands } from "../src/commands/command.ts";
import { resolveForHost } from "../src/host/host-settings.ts";
import type { AssembleResult } from "../src/host/host.ts";
import { leaseEngine } from "../src/host/shared-engine.ts";
import { makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };
const WORKER = new URL("../../lossless-claw/src/worker.ts", import.meta.url);
const OUTAGE_MS = isSoak ? 30_000 : 0;
/** Turns while the server is gone, at least. */
const TURNS = isSoak ? 3 : 2;

/** A chat with the plugin, opened as the host's process does, on a database. */
async function startChat(databasePath: string, atEnd: () => Promise<void> = async () => undefined) {
  const stateDir = makeTemporaryDirectory();
  await mkdir(stateDir, { recursive: true });
  const config = { databasePath };
  const resolved = resolveForHost({ config, configSource: "test", stateDir });
  const { settings } = resolveSettings({ config, configSource: "test", stateDir });
  const lease = leaseEngine({ settings, workerUrl: WORKER, onEvent: () => undefined });
  onTestFinished(() => lease.release().then(atEnd));
  const transcript = new FakeTranscript();
  // An instance knows only of turns that it has written itself, or found when it was made.
  const openSpool = (): Spool => new Spool(join(stateDir, "lcm.db"));
  const countSpooled = (): Promise<number> => openSpool().size();
  const { memory } = lease;
  const open = (): Promise<Engine> => lease.open();
  /** One turn as the host plays it: read, choose a context, answer, commit. */
  async function take(text: string): Promise<AssembleResult> {
    const engine = makeEngine({ settings, folder: stateDir, open, transcript, memory });
    await engine.bootstrap(session);
    const first = transcript.say("user", text);
    const context = await engine.assemble({
      ...session,
      messages: transcript.messages.map(({ message }) => message),
      tokenBudget: 20_000,
    });
    const turn = transcript.turn(first, transcript.say("assistant", `answer to ${text}`));
    expect(await engine.commitTurn(turn)).toEqual({ status: "committed" });
    return context;
  }

  return {
    transcript,
    memory,
    open,
    countSpooled,
    take,
    /** Turns until none waits: on a busy machine even a server that is there may be late for one. */
    async takeUntilStored(text: string): Promise<void> {
      do await take(text);
      while ((await countSpooled()) > 0);
    },
    async status(): Promise<string> {
      const [command] = createCommands({ settings, resolved, lease, spool: openSpool() });
      return (await command!.handler({ args: "status", agentId: "main", sessionKey: SESSION_KEY })).text;
    },
    async listStored(): Promise<string[]> {
      const engine = await open();
      const { items } = await engine.listConversations({ limit: 10 });
      const pages = await Promise.all(
        items.map(({ conversationId }) => engine.listMessages({ conversationId, limit: 1_000 })),
      );
      return pages.flatMap((page) => page.items.map(({ eventId }) => eventId));
    },
  };
}

describePostgres("the plugin on PostgreSQL", (server) => {
  test("stores turns, shows them, finds them and proves them", async () => {
    const chat = await startChat(await server.createDatabase());
    for (const text of ["of harbours", "of tides", "of ledgers"]) await chat.takeUntilStored(text);
    const { messages } = await chat.take("and now?");
    await chat.takeUntilStored("and then?");
    const said = chat.transcript.messages.length;
    expect(JSON.stringify(messages)).toContain("answer to of tides");
    expect(await chat.listStored()).toEqual(chat.transcript.messages.map(({ id }) => id));
    const engine = await chat.open();
    const { hits } = await engine.grep({ pattern: "ledgers", allConversations: true });
    expect(hits.length).toBeGreaterThanOrEqual(2);
    expect(await chat.status()).toContain(`This chat: ${said} messages,`);
    expect(await engine.verify()).toMatchObject({ ok: true, messages: said });
    expect(chat.memory.outages).toEqual([]);
  });

  test.each(["refuses", "is silent"] as const)(
    "a chat goes on while the server %s; its turns wait, and are stored in order afterwards",
    async (how) => {
      const proxy = await startCutProxy(server);
      const database = proxy.through(await server.createDatabase());
      const chat = await startChat(database, () => proxy.close());
      await chat.takeUntilStored("before");
      const cutAt = performance.now();
      if (how === "refuses") await proxy.refuse();
      else proxy.silence();
      const taken: number[] = [];
      while (taken.length < TURNS || performance.now() - cutAt < OUTAGE_MS) {
        const startedAt = performance.now();
        const { messages } = await chat.take(`meanwhile ${taken.length}`);
        taken.push(Math.round(performance.now() - startedAt));
        // The host's own messages, since the archive cannot be asked.
        expect(JSON.stringify(messages)).toContain("before");
      }
      expect(await chat.countSpooled()).toBe(taken.length);
      expect(await chat.status()).toMatch(new RegExp(`cannot be reached[^]*${taken.length} turns wait`));
      await proxy.heal();
      await chat.takeUntilStored("after");
      expect(await chat.listStored()).toEqual(chat.transcript.messages.map(({ id }) => id));
      expect(chat.memory.outages).toEqual([]);
      expect(await chat.status()).not.toContain("wait");
      const stored = { ok: true, messages: chat.transcript.messages.length };
      expect(await (await chat.open()).verify()).toMatchObject(stored);
      if (isSoak) console.log(`the server ${how}: ${taken.length} turns, ms each`, taken);
    },
  );
});
