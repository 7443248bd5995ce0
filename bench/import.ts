/**
 * `lcm import` on a very large file: messages per second compared with the floor of the archive benchmark, peak memory, and whether it uses more
 * than one processor. The file is generated, imported by the real program, and deleted.
 *
 * `npm run bench -- import [--gigabytes 0.1]`
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { Floor } from "./archive-floor.ts";
import { MessageSource, renderSessionFile } from "./archive-messages.ts";
import type { BenchResult } from "./report.ts";

type Row = Record<string, string | number>;

const SEED = 1;
const DEFAULT_GIGABYTES = 0.1;
const FLOOR_BATCH = 500;
const WRITE_BYTES = 4_000_000;
const MAX_MEMORY_MB = 300;
const MIN_SHARE_OF_FLOOR = 0.3;
const PROCESSORS = 2;
const LCM = join(import.meta.dirname, "../packages/cli/bin/lcm.js");

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const bytes = readGigabytes(args, DEFAULT_GIGABYTES) * 1e9;
  using folder = makeTemporaryFolder("lossless-bench-");
  const file = folder.file("session.jsonl");
  const messages = await writeSession(file, bytes, SEED);
  const floor = measureFloor(folder.file("floor.db"), messages);
  const ours = await importFile(file, folder.file("lcm.db"), folder.file("usage.json"));
  return {
    name: "import",
    rows: renderRows(bytes, messages, floor, ours),
    notes: [
      "Floor: the same messages as JSON in one plain table and their text in a contentless FTS5 index, one thread, 500 a commit. Ours: the process, from its start to its end.",
      "Processor time says what two processors could do if nobody else used them and nobody waited for the disk.",
    ],
  };
}

export function readGigabytes(args: readonly string[], usual: number): number {
  const at = args.indexOf("--gigabytes");
  const gigabytes = at < 0 ? usual : Number(args[at + 1]);
  if (gigabytes > 0 && gigabytes <= 100) return gigabytes;
  throw new Error(`cannot take --gigabytes ${args[at + 1]}: name a number above 0, up to 100`);
}

/** Writes a session file and counts its lines. */
export async function writeSession(path: string, bytes: number, seed: number): Promise<number> {
  const out = createWriteStream(path);
  let [pending, size, lines] = [[] as string[], 0, 0];
  for (const line of renderSessionFile(seed, bytes)) {
    pending.push(line);
    size += line.length;
    lines += 1;
    if (size < WRITE_BYTES) continue;
    if (!out.write(pending.join(""))) await once(out, "drain");
    [pending, size] = [[], 0];
  }
  out.end(pending.join(""));
  await once(out, "finish");
  return lines;
}

interface Measured {
  readonly wallUs: number;
  readonly cpuUs: number;
}

/** Time of the floor per message; its messages are made beforehand, batch by batch. */
function measureFloor(path: string, messages: number): Measured {
  const floor = new Floor(path);
  const source = new MessageSource(SEED);
  let [wallMs, cpuUs, done] = [0, 0, 0];
  while (done < messages) {
    const batch = source.take(FLOOR_BATCH);
    const [before, startedAt] = [process.cpuUsage(), performance.now()];
    floor.insert(batch);
    wallMs += performance.now() - startedAt;
    const { user, system } = process.cpuUsage(before);
    cpuUs += user + system;
    done += batch.length;
  }
  floor.close();
  return { wallUs: (wallMs * 1000) / done, cpuUs: cpuUs / done };
}

/** The output of `import-watch.mjs`. */
interface ImportUsage {
  readonly peakBytes: number;
  /** Processor time of the whole process, of its main thread, and of the engine's if the system reports it. */
  readonly cpuMs: number;
  readonly mainCpuMs: number;
  readonly engineCpuMs: number | null;
}

interface Imported extends ImportUsage {
  readonly wallMs: number;
  readonly stored: number;
}

/** Runs `lcm import` in its own process. */
export async function importFile(file: string, database: string, usage: string): Promise<Imported> {
  const watch = pathToFileURL(join(import.meta.dirname, "import-watch.mjs")).href;
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    ["--import", watch, LCM, "import", file, "--db", database, "--json"],
    {
      env: { ...process.env, LCM_BENCH_USAGE: usage },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  const [status] = (await once(child, "close")) as [number | null];
  const wallMs = performance.now() - startedAt;
  if (status !== 0) throw new Error(`lcm import ended with status ${status}`);
  const { data } = JSON.parse(Buffer.concat(output).toString("utf8")) as { data: { imported: number } };
  return { ...(JSON.parse(readFileSync(usage, "utf8")) as ImportUsage), wallMs, stored: data.imported };
}

function renderRows(bytes: number, messages: number, floor: Measured, ours: Imported): Row[] {
  if (ours.stored !== messages) throw new Error(`${messages} lines were written, ${ours.stored} stored`);
  const perMessage = (ms: number): number => (ms * 1000) / messages;
  const engineMs = ours.engineCpuMs ?? ours.cpuMs - ours.mainCpuMs;
  const helpersMs = ours.cpuMs - ours.mainCpuMs - engineMs;
  // Helper threads use the rest of either processor.
  const busiestMs = Math.max(ours.mainCpuMs, engineMs, ours.cpuMs / PROCESSORS);
  const share = (floorUs: number, oursUs: number): Row => ({
    floor: round(1e6 / floorUs),
    ours: round(1e6 / oursUs),
    share: round(floorUs / oursUs, 2),
    goal: `≥ ${MIN_SHARE_OF_FLOOR}`,
    holds: floorUs / oursUs >= MIN_SHARE_OF_FLOOR ? "yes" : "NO",
  });
  const peakMb = ours.peakBytes / 1e6;
  return [
    {
      what: `import of ${round(bytes / 1e9, 2)} GB`,
      messages,
      unit: "messages/s",
      ...share(floor.wallUs, perMessage(ours.wallMs)),
    },
    {
      what: "the same, by processor time",
      messages,
      unit: "messages/s",
      ...share(floor.cpuUs, perMessage(busiestMs)),
    },
    {
      what: "peak memory",
      messages,
      unit: "MB",
      ours: round(peakMb),
      goal: `≤ ${MAX_MEMORY_MB}`,
      holds: peakMb <= MAX_MEMORY_MB ? "yes" : "NO",
    },
    { what: "processor time, first thread", messages, unit: "s", ours: round(ours.mainCpuMs / 1000, 1) },
    { what: "processor time, engine's thread", messages, unit: "s", ours: round(engineMs / 1000, 1) },
    { what: "processor time, helpers of V8", messages, unit: "s", ours: round(helpersMs / 1000, 1) },
    { what: "processors at work", messages, unit: "", ours: round(ours.cpuMs / ours.wallMs, 2) },
    { what: "time, start to end", messages, unit: "s", ours: round(ours.wallMs / 1000, 1) },
  ];
}

function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
