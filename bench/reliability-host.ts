/**
 * A host of a version that the plugin does not know, in three shapes: one without context engines, one whose transcript can no longer be read,
 * and one that writes unknown entries and roles. Storing continues, and the user is told once what is wrong.
 */
import { resolveSettings } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { openEngine } from "lossless-claw";
import { noteSessionEnd } from "../packages/openclaw/src/capture/session-hooks.ts";
import { findShortfalls } from "../packages/openclaw/src/host/host-settings.ts";
import { ProcessMemory } from "../packages/openclaw/src/host/process-memory.ts";
import { makeEngine } from "../packages/openclaw/test/engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "../packages/openclaw/test/fake-transcript.ts";
import type { Measure } from "./reliability-items.ts";

const TURNS = 10;
const SESSION = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };

interface Played {
  readonly written: number;
  readonly stored: number;
  readonly told: readonly string[];
}

interface Stage {
  readonly engine: Engine;
  readonly folder: string;
  readonly transcript: FakeTranscript;
  readonly told: string[];
}

type Play = (stage: Stage) => Promise<void>;

function say(transcript: FakeTranscript, turn: number): [first: string, last: string] {
  const first = transcript.say("user", `question ${turn}`);
  return [first, transcript.say("assistant", `answer ${turn}`)];
}

/** The host chooses the contexts; messages are read when a session ends. */
const playWithoutEngines: Play = async ({ engine, transcript, told }) => {
  told.push(...findShortfalls({}, resolveSettings({ env: {} }).settings));
  for (let turn = 0; turn < TURNS; turn++) say(transcript, turn);
  const parts = {
    lease: {
      open: async () => engine,
      inOrder: <T>(_id: string, task: () => Promise<T>) => task(),
      memory: new ProcessMemory(),
    },
    reader: transcript.reader,
    isCaptured: () => true,
    logger: { info: () => undefined, warn: (text: string) => told.push(text), error: () => undefined },
  };
  await noteSessionEnd(parts, { ...SESSION, reason: "shutdown" });
  await noteSessionEnd(parts, { ...SESSION, reason: "restart" });
};

/** One instance of the context engine per turn, as in the host; they share the process memory. */
async function playTurns({ engine, folder, transcript, told }: Stage): Promise<void> {
  const memory = new ProcessMemory();
  const settings = resolveSettings({ env: {}, config: {}, stateDir: folder }).settings;
  for (let turn = 0; turn < TURNS; turn++) {
    const host = makeEngine({
      settings,
      folder,
      open: async () => engine,
      transcript,
      memory,
      warn: (text) => told.push(text),
    });
    const [first, last] = say(transcript, turn);
    await host.commitTurn(transcript.turn(first, last));
  }
}

const playUnreadable: Play = async (stage) => {
  stage.transcript.broken = true;
  await playTurns(stage);
};

const playUnknownEntries: Play = async (stage) => {
  const { transcript } = stage;
  transcript.mark("hologram");
  transcript.say("oracle", { shape: ["unknown"] });
  await playTurns(stage);
};

async function play(work: Play): Promise<Played> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const transcript = new FakeTranscript();
  const told: string[] = [];
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    await work({ engine, folder: folder.path, transcript, told });
    const { messages } = await engine.status();
    const { problems } = await engine.verify();
    return { written: transcript.messages.length, stored: problems.length === 0 ? messages : -1, told };
  } finally {
    await engine.close();
  }
}

export const unknownHost: Measure = async () => {
  const without = await play(playWithoutEngines);
  const unreadable = await play(playUnreadable);
  const entries = await play(playUnknownEntries);
  const show = ({ written, stored, told }: Played): string =>
    `${stored} of ${written} stored, told ${told.length} times`;
  return {
    found: `no context engines: ${show(without)}; a transcript that cannot be read: ${show(unreadable)}; unknown entries: ${show(entries)}`,
    holds:
      [without, unreadable, entries].every(({ written, stored }) => written > 0 && stored === written) &&
      without.told.length === 1 &&
      unreadable.told.length === 1 &&
      entries.told.length === 0,
  };
};
