/** What a model has answered is paid for: it is stored whatever happens in that moment, and not asked for again. Kills are in `cli/test/paid-once.ts`. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { watchStores } from "@lossless/testkit/watched-store.ts";
import { openStore } from "lossless-claw";
import { expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../src/index.ts";
import { EngineError } from "../../src/index.ts";
import { makeOpenEngine } from "../../src/ports.ts";
import { SESSION } from "./conversation.ts";
import { answerCall, CONVERSATION, foldSettings, makeMarkedTurns } from "./fold-program.ts";

const REQUEST = { conversationId: CONVERSATION, budgetTokens: 4_000, force: true };

interface Stage {
  readonly engine: Engine;
  /** What the model was asked about. */
  readonly asked: string[];
}

/** A conversation that owes a fold; `meddle` is called before each verb of the store that follows an answer. */
async function setStage(meddle: (verb: string) => void): Promise<Stage> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const asked: string[] = [];
  const openWatched = watchStores(openStore, async (verb, run) => {
    if (asked.length > 0) meddle(verb);
    return run();
  });
  const engine = await makeOpenEngine({ openStore: openWatched, workerUrl: new URL(import.meta.url) })({
    database,
    thread: false,
    settings: foldSettings(database),
    complete: async (request) => {
      const { key, answer } = answerCall(request);
      asked.push(key);
      return answer;
    },
  });
  onTestFinished(() => engine.close());
  await engine.ingest({ session: SESSION, messages: makeMarkedTurns(0, 60) });
  return { engine, asked };
}

/** Each answer became one summary, and nothing was asked for twice. */
async function expectEachStored({ engine, asked }: Stage): Promise<void> {
  const { items } = await engine.listSummaries({ conversationId: CONVERSATION, limit: 1_000 });
  expect(items.filter(({ model }) => model !== "extractive")).toHaveLength(asked.length);
  expect(new Set(asked).size).toBe(asked.length);
  const [spent] = await engine.spend({ since: 0, by: "all" });
  expect(spent?.calls).toBe(asked.length);
  expect(await engine.verify()).toMatchObject({ ok: true });
}

test("an archive that is away when the answer comes gets it when it is back", async () => {
  const away = new Set<number>();
  const stage: Stage = await setStage((verb) => {
    const { length } = stage.asked;
    // Its first two answers meet an archive that cannot be reached.
    if (verb !== "storeSummary" || length > 2 || away.has(length)) return;
    away.add(length);
    throw new EngineError("database_unreachable", "the server is restarting");
  });
  const result = await stage.engine.compact(REQUEST);
  expect(result.compacted).toBe(true);
  expect(away.size).toBe(2);
  await expectEachStored(stage);
});

test("a caller who cancels when the answer is there does not lose it", async () => {
  const controller = new AbortController();
  const stage = await setStage(() => controller.abort());
  const { signal } = controller;
  expect(await stage.engine.compact({ ...REQUEST, signal })).toMatchObject({ compacted: true, passes: 1 });
  expect(stage.asked).toHaveLength(1);
  await stage.engine.compact(REQUEST);
  expect(stage.asked.length).toBeGreaterThan(1);
  await expectEachStored(stage);
});
