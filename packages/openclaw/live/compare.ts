/** Compares the archive with what the host itself wrote: every message row is stored exactly once, unchanged, in the host's order. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { ATTACHMENT_PREFIX } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { readArchive, type ArchivedRow } from "./archive-reader.ts";
import { PATIENCE_MS, type Stage } from "./stage.ts";
import { readWitness, type Witness, type WitnessedRow } from "./transcript-witness.ts";

export interface Comparison {
  readonly database: string;
  /** Chats that must be completely in this database. */
  readonly isKept: (sessionKey: string) => boolean;
  /** Chats of which an earlier state may be in this database. No others may be. */
  readonly mayHold?: (sessionKey: string) => boolean;
}

/**
 * After a scene, while the gateway runs: every row of the chats is stored. Waits only for turns that are still being stored: an extra row or a
 * different text fails at once.
 */
export async function compareAfterScene(
  stage: Stage,
  scene: string,
  comparisons: readonly Comparison[],
  /** Chats that may get another turn: an announcement that came late is read with it. */
  chats: readonly string[],
): Promise<void> {
  await stage.step(`after ${scene}: the archive holds what the host's transcripts hold`, async () => {
    const deadline = performance.now() + PATIENCE_MS;
    for (const { database, isKept } of comparisons)
      for (;;) {
        const witness = readWitness(stage.state.stateDir);
        const kept = witness.messages.filter((row) => isKept(row.sessionKey));
        const archived = (await readRows(stage, database)).filter(
          (row) => isOwnRow(row, witness) && isKept(nameInTables(row.sessionKey)),
        );
        const missing = listMissing(archived, kept);
        const isLate = witness.undelivered > 0 || missing.length > 0;
        if (!isLate || performance.now() >= deadline) {
          compareRows(archived, kept);
          compareOrder(archived, kept);
          break;
        }
        const late = new Set(missing.map((row) => row.sessionKey));
        for (const chat of chats) if (late.has(chat)) await stage.playTurn("SAY goodbye", chat);
        await setTimeout(500);
      }
  });
}

async function readRows(stage: Stage, database: string): Promise<ArchivedRow[]> {
  const engine = await openEngine({
    database: join(stage.state.stateDir, database),
    readOnly: true,
    thread: false,
  });
  try {
    return await readArchive(engine);
  } finally {
    await engine.close();
  }
}

function isOwnRow(row: ArchivedRow, witness: Witness): boolean {
  return !row.eventId.startsWith(ATTACHMENT_PREFIX) && !witness.notes.has(`${row.sessionId} ${row.eventId}`);
}

function listMissing(archived: readonly ArchivedRow[], kept: readonly WitnessedRow[]): WitnessedRow[] {
  const stored = new Set(archived.map((row) => `${row.sessionId} ${row.eventId}`));
  return kept.filter(
    (row) =>
      !stored.has(`${row.sessionId} ${row.entryId}`) &&
      (row.copyOf === null || !stored.has(`${row.copyOf} ${row.entryId}`)),
  );
}

export async function compareWithHost(stage: Stage, comparisons: readonly Comparison[]): Promise<void> {
  const witness = readWitness(stage.state.stateDir);
  await stage.step("no turn is left undelivered", async () => assert.equal(witness.undelivered, 0));
  for (const comparison of comparisons) await compareDatabase(stage, witness, comparison);
}

async function compareDatabase(
  stage: Stage,
  witness: Witness,
  { database, isKept, mayHold }: Comparison,
): Promise<void> {
  const kept = witness.messages.filter((row) => isKept(row.sessionKey));
  // A single scene may leave nothing to compare.
  if (kept.length === 0) return;
  // Use the shipped worker, so that the archive is checked by the code that wrote it.
  const engine = await openEngine({
    database: join(stage.state.stateDir, database),
    create: false,
    workerUrl: pathToFileURL(join(stage.pluginDir, "dist", "worker.js")),
  });
  try {
    const all = await readArchive(engine);
    const archived = all.filter(
      (row) => isOwnRow(row, witness) && (isKept(row.sessionKey) || mayHold?.(row.sessionKey) !== true),
    );
    await stage.step(
      `${database}: each of the host's ${kept.length} message rows is stored once, unchanged`,
      async () => compareRows(archived, kept),
    );
    await stage.step(
      `${database}: the rows stand in the order of the host, and those off its branch are hidden`,
      async () => compareOrder(archived, kept),
    );
    await stage.step(`${database}: the archive proves itself`, () => prove(engine, all.length));
  } finally {
    await engine.close();
  }
}

function compareRows(archived: readonly ArchivedRow[], kept: readonly WitnessedRow[]): void {
  const rows = Map.groupBy(archived, (row) => `${row.sessionId} ${row.eventId}`);
  let copied = 0;
  for (const row of kept) {
    const own = rows.get(`${row.sessionId} ${row.entryId}`) ?? [];
    // Rows that a session copied from its parent are stored there.
    const stored =
      own.length === 0 && row.copyOf !== null ? (rows.get(`${row.copyOf} ${row.entryId}`) ?? []) : own;
    copied += stored === own ? 0 : 1;
    assert.equal(
      stored.length,
      1,
      `${row.sessionKey} ${row.entryId} (${row.role}) is stored ${stored.length} times`,
    );
    assert.deepEqual(stored[0]!.message, row.message);
  }
  const strangers = new Set(archived.map((row) => nameInTables(row.sessionKey)));
  for (const row of kept) strangers.delete(row.sessionKey);
  assert.deepEqual([...strangers], [], "chats that are not to be kept");
  assert.equal(archived.length, kept.length - copied, "nothing else is stored");
}

/** The host passes a run of a scheduled job under a key of its own, but files it under the key of the job. */
function nameInTables(sessionKey: string): string {
  return sessionKey.replace(/(:cron:[^:]+):run:[^:]+$/, "$1");
}

function compareOrder(archived: readonly ArchivedRow[], kept: readonly WitnessedRow[]): void {
  const bySession = Map.groupBy(archived, (row) => row.sessionId);
  for (const [sessionId, rows] of Map.groupBy(kept, (row) => row.sessionId)) {
    const stored = bySession.get(sessionId) ?? [];
    const own = new Set(stored.map((row) => row.eventId));
    assert.deepEqual(
      stored.map((row) => [row.eventId, row.hidden]),
      rows
        .filter((row) => row.copyOf === null || own.has(row.entryId))
        .map((row) => [row.entryId, row.onBranch ? [] : ["branch"]]),
    );
  }
}

async function prove(engine: Engine, messages: number): Promise<void> {
  const report = await engine.verify();
  assert.deepEqual(report.problems, []);
  assert.equal(report.messages, messages);
}
