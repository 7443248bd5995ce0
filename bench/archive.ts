/**
 * The cost of the archive: time per message compared with a floor measured in the same run, growth of that time with the size of the archive,
 * bytes on disk, memory of an import, and the longest time the host's thread is blocked.
 *
 * `npm run bench -- archive [--sizes 2000,20000,200000] [--only speed|footprint]`
 */
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { measureGeneratedDisk, measureRealDisk, runProgram, writeSessionFile } from "./archive-footprint.ts";
import type { DiskResult } from "./archive-footprint.ts";
import type { ProgramResult } from "./archive-program.ts";
import { importFile } from "./import.ts";
import { IMPORT, measureSpeed, measureWork, SINGLE, TURNS } from "./archive-speed.ts";
import type { SpeedResult } from "./archive-speed.ts";
import type { BenchResult } from "./report.ts";

type Row = Record<string, string | number>;

const SMALL = 2_000;
const DEFAULT_SIZES = [SMALL, 20_000, 200_000];
const GENERATED_DISK_BYTES = 20_000_000;
const MEMORY_FILE_BYTES = 100_000_000;
const STALL_FILE_BYTES = 10_000_000;
const STALL_RUNS = 5;

const MAX_TURN_RATIO = 3;
const MAX_GROWTH = 1.3;
const MAX_DISK_RATIO = 0.6;
const MAX_MEMORY_MB = 250;
const MAX_STALL_MS = 20;

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const only = readOption(args, "--only");
  const rows: Row[] = [];
  const notes: string[] = [];
  if (only !== "footprint")
    rows.push(...(await measureAllSpeeds(readSizes(args))), ...(await measureAllWork()));
  if (only !== "speed") {
    rows.push(...(await measureDisk(notes)), ...(await measureMemory()));
    rows.push(...(await measureStalls()));
  }
  clearProgress();
  notes.push(
    "Floor: the same JSON in one plain table and its text in a contentless FTS5 index, in this thread, WAL, synchronous FULL. Ours: the engine behind its thread.",
    "Processor time: both in one thread, so neither waiting for the disk nor other processes count; nor does the way to the engine's thread and back (about 30 µs). On a fast, quiet disk the time comes near this ratio.",
    "Ratio and growth are medians over neighbouring slices; growth is the cost per message beside that of an archive of 2,000 messages.",
    `Stalls: the best of ${STALL_RUNS} runs, less the time the thread waited for a processor that others had; "own work" is the processor time it took itself.`,
  );
  return { name: "archive", rows, notes };
}

function readSizes(args: readonly string[]): number[] {
  const text = readOption(args, "--sizes");
  if (text === null) return DEFAULT_SIZES;
  const sizes = text.split(",").map(Number);
  if (sizes.some((size) => !Number.isInteger(size) || size < SMALL)) {
    throw new Error(
      `cannot measure --sizes ${text}: name whole numbers from ${SMALL} up, with commas between`,
    );
  }
  return sizes;
}

function readOption(args: readonly string[], name: string): string | null {
  const at = args.indexOf(name);
  return at < 0 ? null : (args[at + 1] ?? "");
}

async function measureAllSpeeds(sizes: readonly number[]): Promise<Row[]> {
  const found = new Map<number, SpeedResult[]>();
  for (const size of sizes.filter((candidate) => candidate > SMALL || sizes.length === 1)) {
    const results = [
      ...(await measureSpeed(size, [SINGLE, TURNS], showProgress)),
      ...(await measureSpeed(size, [IMPORT], showProgress)),
    ];
    // The small archive is measured beside each large one; the last measurement is used.
    found.set(
      SMALL,
      results.map((result) => result.small),
    );
    if (size > SMALL)
      found.set(
        size,
        results.map((result) => result.large),
      );
  }
  const results = [...found.values()].flat();
  return [SINGLE, TURNS, IMPORT].flatMap((workload) =>
    results.filter((result) => result.workload === workload).flatMap(renderSpeed),
  );
}

async function measureAllWork(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const workload of [SINGLE, TURNS, IMPORT]) {
    showProgress(`processor time of ${workload.name}`);
    const { size, floorUs, oursUs, ratio } = await measureWork(workload);
    rows.push({
      what: `${workload.name}, processor time`,
      messages: size,
      unit: "µs/message",
      floor: round(floorUs),
      ours: round(oursUs),
      ratio: round(ratio, 2),
    });
  }
  return rows;
}

function renderSpeed(result: SpeedResult): Row[] {
  const { workload, size } = result;
  const cost: Row = {
    what: workload.name,
    messages: size,
    unit: "µs/message",
    floor: round(result.floorUs),
    ours: round(result.oursUs),
    ratio: round(result.ratio, 2),
    ...(workload === TURNS ? judge(result.ratio, MAX_TURN_RATIO) : {}),
  };
  if (size <= SMALL) return [cost];
  const growth: Row = {
    what: `${workload.name}, growth since ${SMALL}`,
    messages: size,
    unit: "times",
    floor: round(result.floorGrowth, 2),
    ours: round(result.oursGrowth, 2),
    ...judge(result.oursGrowth, MAX_GROWTH),
  };
  return [cost, growth];
}

async function measureDisk(notes: string[]): Promise<Row[]> {
  showProgress("weighing databases");
  const real = await measureRealDisk();
  if (real === null) notes.push("Real transcripts skipped: there is no ../shared/data.");
  return [
    ...(real === null ? [] : renderDisk("Claude Code transcripts", real, MAX_DISK_RATIO)),
    ...renderDisk("generated messages", await measureGeneratedDisk(GENERATED_DISK_BYTES), null),
  ];
}

function renderDisk(title: string, disk: DiskResult, limit: number | null): Row[] {
  const ratio = disk.databaseBytes / disk.rawBytes;
  const both = (disk.databaseBytes + disk.filesBytes) / disk.rawBytes;
  return [
    {
      what: `database, ${title}`,
      unit: "bytes/raw byte",
      ours: round(ratio, 3),
      ...(limit === null ? {} : judge(ratio, limit)),
    },
    { what: `database and files, ${title}`, unit: "bytes/raw byte", ours: round(both, 3) },
  ];
}

/** Memory of the command, as people run it; and of a program that calls the library with Node's default memory settings. */
async function measureMemory(): Promise<Row[]> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const file = folder.file("large.jsonl");
  showProgress("importing a large file");
  writeSessionFile(file, MEMORY_FILE_BYTES);
  const size = `${MEMORY_FILE_BYTES / 1e6} MB`;
  const command = await importFile(file, folder.file("lcm.db"), folder.file("usage.json"));
  const [library] = await runProgram("import", file, 1);
  const commandMb = command.peakBytes / 1e6;
  return [
    {
      what: `peak memory, lcm import of ${size}`,
      messages: command.stored,
      unit: "MB",
      ours: round(commandMb),
      ...judge(commandMb, MAX_MEMORY_MB),
    },
    {
      what: `peak memory, the same by the library`,
      messages: library?.messages ?? 0,
      unit: "MB",
      ours: round((library?.peakBytes ?? Infinity) / 1e6),
    },
  ];
}

async function measureStalls(): Promise<Row[]> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const file = folder.file("session.jsonl");
  writeSessionFile(file, STALL_FILE_BYTES);
  const rows: Row[] = [];
  for (const [task, title] of [
    ["turns", "turns"],
    ["import", "import"],
    ["large", "message of 10 MB"],
  ] as const) {
    showProgress(`watching the main thread: ${title}`);
    const reports = await runProgram(task, file, STALL_RUNS);
    const best = (pick: (report: ProgramResult) => number): number => Math.min(...reports.map(pick));
    const stallMs = best((report) => report.stallMs);
    const messages = reports[0]?.messages ?? 0;
    rows.push(
      {
        what: `longest stall, ${title}`,
        messages,
        unit: "ms",
        ours: round(stallMs, 1),
        ...judge(stallMs, MAX_STALL_MS),
      },
      {
        what: `own work in a stall, ${title}`,
        messages,
        unit: "ms",
        ours: round(
          best((report) => report.workMs),
          1,
        ),
      },
    );
  }
  return rows;
}

function judge(value: number, limit: number): Row {
  return { goal: `≤ ${limit}`, holds: value <= limit ? "yes" : "NO" };
}

function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}

/** Progress is printed only for people: the table and the JSON stay clean. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

function clearProgress(): void {
  if (process.stderr.isTTY) process.stderr.write("\r\u001b[K");
}
