import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import { makeRandom, type Random } from "@lossless/testkit";
import { runWithCrashes } from "@lossless/testkit/crash.ts";
import { rounds, someOf } from "@lossless/testkit/rounds.ts";
import { expect, test } from "vitest";

import type { Engine } from "@lossless/core";
import { importPaths, type ImportResult } from "../src/transcript/import.ts";

import {
  generateSession,
  openTestEngine,
  readStoredLines,
  type StoredLine,
} from "@lossless/testkit/session-archive.ts";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { cutRandomly, listRealTranscripts, splitLines } from "./support.ts";

const PROGRAM = fileURLToPath(new URL("crash-program.ts", import.meta.url));
const KILLS = rounds({ test: 2, soak: 16 });
const SEED = 20_260;

/** A directory of files that are written step by step. */
class GrowingDirectory {
  readonly path: string;
  readonly contents = new Map<string, Buffer>();
  readonly #cuts = new Map<string, number[]>();
  readonly #written = new Map<string, number>();

  constructor(path: string, files: ReadonlyMap<string, Buffer>, steps: number, random: Random) {
    this.path = path;
    mkdirSync(path);
    for (const [name, content] of files) {
      this.contents.set(name, content);
      this.#cuts.set(name, cutRandomly(content.length, steps, random));
      this.#written.set(name, 0);
      writeFileSync(join(path, name), "");
    }
  }

  grow(): void {
    for (const [name, cuts] of this.#cuts) {
      const next = cuts.shift();
      if (next === undefined) continue;
      appendFileSync(
        join(this.path, name),
        (this.contents.get(name) as Buffer).subarray(this.#written.get(name), next),
      );
      this.#written.set(name, next);
    }
  }

  growToEnd(): void {
    while ([...this.#cuts.values()].some((cuts) => cuts.length > 0)) this.grow();
  }
}

function collectFiles(): Map<string, Buffer> {
  const wanted = /ccv-5c0375b4|00-c9e2351016|openclaw__large|claude__small|pi\/large-session/u;
  const real = listRealTranscripts().filter((path) => wanted.test(path));
  const files = new Map([["generated.jsonl", generateSession(2, 400)]]);
  for (const path of someOf(real, 2))
    files.set(`${path.includes("/pi") ? "pi" : "other"}-${basename(path)}`, readFileSync(path));
  return files;
}

/** The stored lines of every file, by name. Importing once more tells which conversation holds which file. */
async function readAll(
  engine: Engine,
  directory: string,
): Promise<{ files: Map<string, StoredLine[]>; imported: number }> {
  const reports: ImportResult[] = [];
  const { imported } = await importPaths({
    engine,
    paths: [directory],
    onReport: (report) => reports.push(report),
  });
  const files = new Map<string, StoredLine[]>();
  for (const report of reports)
    files.set(basename(report.path), await readStoredLines(engine, report.conversationId));
  return { files, imported };
}

test("an import of growing files that is killed at random moments ends as one clean import does", async () => {
  const random = makeRandom(SEED);
  const root = makeTemporaryDirectory();
  const directory = new GrowingDirectory(join(root, "sessions"), collectFiles(), KILLS, random);
  const database = join(root, "crashed.db");

  const result = await runWithCrashes({
    module: PROGRAM,
    args: [database, directory.path],
    random,
    kills: KILLS,
    beforeRun: (isLast) => (isLast ? directory.growToEnd() : directory.grow()),
    // Files also grow while they are being read.
    onMessage: () => {
      if (random.next() < 0.05) directory.grow();
    },
  });
  expect(result.kills).toBeGreaterThan(0);

  const crashed = await openTestEngine(database);
  const verdict = await crashed.verify();
  expect(verdict.problems).toEqual([]);
  const ended = await readAll(crashed, directory.path);
  expect(ended.imported).toBe(0);
  const clean = await readAll(await openTestEngine(), directory.path);
  expect(verdict.messages).toBe(clean.imported);
  for (const [name, content] of directory.contents) {
    expect([name, ended.files.get(name)]).toEqual([name, clean.files.get(name)]);
    expect(ended.files.get(name)?.map((line) => line.text)).toEqual(splitLines(content));
  }
});
