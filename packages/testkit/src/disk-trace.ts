/**
 * The file operations of a program as the kernel saw them: a run under `strace`, parsed into steps in the order in which they ended. Only files
 * below one folder count, and the program's output.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { unpackDebian } from "./debian-package.ts";

export type DiskStep =
  | { readonly kind: "create"; readonly path: string; readonly truncates: boolean }
  | { readonly kind: "write"; readonly path: string; readonly at: number; readonly data: Buffer }
  | {
      readonly kind: "copy";
      readonly path: string;
      readonly at: number;
      readonly from: string;
      readonly start: number;
      readonly length: number;
    }
  | { readonly kind: "resize"; readonly path: string; readonly size: number }
  | { readonly kind: "flush"; readonly path: string }
  | { readonly kind: "rename"; readonly path: string; readonly to: string }
  | { readonly kind: "link"; readonly path: string; readonly to: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "mkdir"; readonly path: string }
  /** Output of the program: what it has acknowledged by then. */
  | { readonly kind: "print"; readonly text: string };

export interface DiskTrace {
  readonly status: number | null;
  readonly steps: readonly DiskStep[];
  readonly stderr: string;
}

/** A fault at the nth call of a kind, as `strace` injects it. */
export interface Fault {
  readonly call: string;
  readonly when: number;
  readonly error: "EIO" | "ENOSPC";
}

const TRACED =
  "openat,write,pwrite64,writev,pwritev,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,mkdir,mkdirat,copy_file_range,sendfile";
/** Longer than any write of ours. */
const MAX_DATA = 64 * 1024 * 1024;

/** The path of `strace`; null if it is not available or not permitted. */
export async function findTracer(): Promise<string | null> {
  if (process.platform !== "linux") return null;
  if (existsSync("/usr/bin/strace")) return "/usr/bin/strace";
  const root = await unpackDebian(["strace"]);
  return root === null ? null : join(root, "usr/bin/strace");
}

export async function traceDisk(
  tracer: string,
  folder: string,
  command: readonly string[],
  options: { readonly output: string; readonly env?: NodeJS.ProcessEnv; readonly fault?: Fault },
): Promise<DiskTrace> {
  const { fault } = options;
  const inject = fault ? ["-e", `inject=${fault.call}:error=${fault.error}:when=${fault.when}`] : [];
  const args = ["-f", "-qq", "-y", "-xx", "-s", String(MAX_DATA), "-e", `trace=${TRACED}`, ...inject];
  const child = spawn(tracer, [...args, "-e", "signal=none", "-o", options.output, ...command], {
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => (stderr += data.toString()));
  child.stdout.resume();
  const [status] = (await once(child, "close")) as [number | null];
  const text = await readFile(options.output, "latin1");
  return { status, stderr, steps: parseTrace(text, folder) };
}

/** Parses the output of `strace -f -y -xx`. Failed calls changed nothing and are left out. */
export function parseTrace(text: string, folder: string): DiskStep[] {
  const reader = new TraceReader(folder);
  const begun = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, pid = "", rest = ""] = /^(\d+) +(.*)$/s.exec(line) ?? [];
    const cut = rest.indexOf(" <unfinished ...>");
    if (cut >= 0) {
      begun.set(pid, rest.slice(0, cut));
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/s.exec(rest);
    reader.take(resumed ? (begun.get(pid) ?? "") + (resumed[1] ?? "") : rest);
  }
  return reader.steps;
}

const unescape = (hex: string): Buffer => Buffer.from(hex.replaceAll("\\x", ""), "hex");
const readPath = (argument = ""): string =>
  unescape(/[<"]((?:\\x..)*)[>"]/.exec(argument)?.[1] ?? "").toString();
const readData = (argument = ""): Buffer => unescape(/"((?:\\x..)*)"/.exec(argument)?.[1] ?? "");
const readNumber = (argument = ""): number => Number(/-?\d+/.exec(argument)?.[0] ?? Number.NaN);

class TraceReader {
  readonly steps: DiskStep[] = [];
  readonly #folder: string;
  /** Where the next write without an offset goes, by file descriptor; null: at the end. */
  readonly #offsets = new Map<number, number | null>();
  readonly #sizes = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder + sep;
  }

  take(line: string): void {
    const match = /^(\w+)\((.*)\) += (-?\d+)/s.exec(line);
    if (!match) return;
    const [, name = "", inside = "", result = ""] = match;
    if (Number(result) >= 0) this.#read(name, inside.split(", "), Number(result), line);
  }

  #read(name: string, args: readonly string[], result: number, line: string): void {
    const path = readPath(args[0]);
    switch (name) {
      case "openat":
        return this.#open(readPath(args[1]), args[2] ?? "", result);
      case "pwrite64":
        return this.#write(path, readNumber(args[3]), readData(args[1]).subarray(0, result));
      case "write":
        if (readNumber(args[0]) === 1) this.steps.push({ kind: "print", text: readData(args[1]).toString() });
        return this.#write(path, this.#advance(args[0], path, result), readData(args[1]).subarray(0, result));
      case "writev":
      case "pwritev": {
        const data = [...line.matchAll(/iov_base="((?:\\x..)*)"/g)].map(([, hex]) => unescape(hex ?? ""));
        const at = name === "pwritev" ? readNumber(args.at(-1)) : this.#advance(args[0], path, result);
        return this.#write(path, at, Buffer.concat(data).subarray(0, result));
      }
      case "copy_file_range":
        return this.#copy(args[0], args[2], readNumber(args[1]), result);
      case "sendfile":
        return this.#copy(args[1], args[0], readNumber(args[2]), result);
      case "ftruncate":
        this.#sizes.set(path, readNumber(args[1]));
        return this.#add({ kind: "resize", path, size: readNumber(args[1]) });
      case "fsync":
      case "fdatasync":
        return this.#add({ kind: "flush", path });
      case "rename":
        return this.#add({ kind: "rename", path, to: readPath(args[1]) });
      case "renameat":
      case "renameat2":
        return this.#add({ kind: "rename", path: readPath(args[1]), to: readPath(args[3]) });
      case "link":
        return this.#add({ kind: "link", path, to: readPath(args[1]) });
      case "linkat":
        return this.#add({ kind: "link", path: readPath(args[1]), to: readPath(args[3]) });
      case "unlink":
      case "rmdir":
        return this.#add({ kind: "remove", path });
      case "unlinkat":
        return this.#add({ kind: "remove", path: readPath(args[1]) });
      case "mkdir":
        return this.#add({ kind: "mkdir", path });
      case "mkdirat":
        return this.#add({ kind: "mkdir", path: readPath(args[1]) });
      default:
        throw new Error(`a call that is not expected: ${name}`);
    }
  }

  #open(path: string, flags: string, descriptor: number): void {
    this.#offsets.set(descriptor, flags.includes("O_APPEND") ? null : 0);
    if (!/O_WRONLY|O_RDWR/.test(flags)) return;
    const truncates = flags.includes("O_TRUNC");
    if (truncates) this.#sizes.set(path, 0);
    if (truncates || flags.includes("O_CREAT")) this.#add({ kind: "create", path, truncates });
  }

  #write(path: string, at: number, data: Buffer): void {
    this.#sizes.set(path, Math.max(this.#sizes.get(path) ?? 0, at + data.length));
    this.#add({ kind: "write", path, at, data });
  }

  #copy(from = "", to = "", start: number, length: number): void {
    const path = readPath(to);
    const at = this.#advance(to, path, length);
    this.#add({
      kind: "copy",
      path,
      at,
      from: readPath(from),
      start: Number.isNaN(start) ? at : start,
      length,
    });
  }

  /** Where a write without an offset begins. */
  #advance(descriptor = "", path: string, length: number): number {
    const number = readNumber(descriptor);
    const at = this.#offsets.get(number) ?? this.#sizes.get(path) ?? 0;
    if (this.#offsets.get(number) !== null) this.#offsets.set(number, at + length);
    return at;
  }

  #add(step: Exclude<DiskStep, { kind: "print" }>): void {
    // The first process that opens the log rebuilds its index.
    if ((step.path + sep).startsWith(this.#folder) && !step.path.endsWith("-shm")) this.steps.push(step);
  }
}
