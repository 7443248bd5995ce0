/**
 * A separate process for what can only be measured in one: the peak memory of an import, and how long the main thread is blocked while the
 * engine works. Prints one line of JSON.
 */
import { openEngine } from "lossless-claw";
import { importTranscript } from "@lossless/interchange";
import { StallProbe } from "@lossless/testkit/stall-probe.ts";
import { MessageSource, TURN_MESSAGES } from "./archive-messages.ts";

export interface ProgramResult {
  readonly peakBytes: number;
  readonly messages: number;
  /** Longest time between two moments at which the main thread was free, minus its wait for a processor. */
  readonly stallMs: number;
  /** The most processor time that the main thread itself used between two such moments. */
  readonly workMs: number;
}

const TURNS = 300;
const LARGE_BYTES = 10_000_000;

type Work = () => Promise<number>;

async function prepareWork(
  task: string,
  database: string,
  file: string,
): Promise<{ work: Work; close: () => Promise<void> }> {
  const engine = await openEngine({ database, thread: true });
  const session = { key: "agent:main:bench", id: "bench", owner: "main" };
  const close = (): Promise<void> => engine.close();
  if (task === "import") {
    return { work: async () => (await importTranscript({ engine, path: file })).imported, close };
  }
  const source = new MessageSource(5);
  const ingest = async (messages: { eventId: string; message: unknown }[]): Promise<number> =>
    (await engine.ingest({ session, messages })).results.length;
  const turns = Array.from({ length: TURNS }, () => source.take(TURN_MESSAGES));
  if (task === "turns") {
    const work: Work = async () => {
      let stored = 0;
      for (const turn of turns)
        stored += await ingest(turn.map(({ eventId, message }) => ({ eventId, message })));
      return stored;
    };
    return { work, close };
  }
  const words = turns
    .flat()
    .map(({ text }) => text)
    .join("\n");
  const text = words.repeat(Math.ceil(LARGE_BYTES / words.length)).slice(0, LARGE_BYTES);
  const message = {
    role: "toolResult",
    toolCallId: "call_1",
    toolName: "bash",
    content: [{ type: "text", text }],
  };
  return { work: () => ingest([{ eventId: "large", message }]), close };
}

const [task = "", database = "", file = ""] = process.argv.slice(2);
const { work, close } = await prepareWork(task, database, file);
// The first call includes compiling the path to the worker; a host pays that once, at its start.
const probe = new StallProbe();
const messages = await work();
probe.stop();
await close();
const { stallMs, workMs } = probe;
const peakBytes = process.resourceUsage().maxRSS * 1024;
console.log(JSON.stringify({ peakBytes, messages, stallMs, workMs } satisfies ProgramResult));
