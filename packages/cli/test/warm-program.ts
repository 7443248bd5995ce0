/**
 * The program in a process that has read its source once, and then runs one command line after the other: reading the source is most of
 * what a short command costs. Each run has its own arguments, environment, folder, output and exit status, and is over when nothing of
 * it is left that would keep a process alive. No command has threads of its own here: what one does behind threads is tested by processes of
 * their own (`threads.test.ts`).
 */
import { registerHooks } from "node:module";
import { setTimeout } from "node:timers/promises";

const CONTEXT = new URL("../src/invocation.ts", import.meta.url).href;
const THREADLESS = new URL("./threadless-engine.ts", import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "lossless-claw" && context.parentURL === CONTEXT ? THREADLESS : specifier, context),
});
const { main } = await import("../src/main.ts");

export interface WarmOrder {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
}

export interface WarmResult {
  readonly status: number;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

const LOOK_AGAIN_MS = 1;

/** Collects what is written to a stream. */
function collect(stream: NodeJS.WriteStream): { take(): Uint8Array } {
  let chunks: Buffer[] = [];
  stream.write = (
    chunk: Uint8Array | string,
    encoding?: BufferEncoding | ((error?: Error | null) => void),
    done?: (error?: Error | null) => void,
  ): boolean => {
    const isEncoded = typeof encoding === "string";
    chunks.push(
      typeof chunk === "string" ? Buffer.from(chunk, isEncoded ? encoding : "utf8") : Buffer.from(chunk),
    );
    const onWritten = isEncoded ? done : encoding;
    if (onWritten) process.nextTick(onWritten);
    return true;
  };
  return {
    take: () => {
      const all = Buffer.concat(chunks);
      chunks = [];
      stream.removeAllListeners("error");
      return all;
    },
  };
}

const stdout = collect(process.stdout);
const stderr = collect(process.stderr);

function enter({ env, folder }: WarmOrder): void {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(folder);
  process.exitCode = 0;
}

async function run(order: WarmOrder): Promise<WarmResult> {
  // Between two runs, only the way to the parent keeps this process alive.
  const atRest = process.getActiveResourcesInfo().length;
  enter(order);
  await main(order.args);
  while (process.getActiveResourcesInfo().length > atRest) await setTimeout(LOOK_AGAIN_MS);
  return { status: Number(process.exitCode), stdout: stdout.take(), stderr: stderr.take() };
}

process.on("message", (order: WarmOrder) => void run(order).then((result) => process.send?.(result)));
