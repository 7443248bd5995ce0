/**
 * The upgrade of a large archive, killed again and again: what is left is the old archive whole or the new one whole, to the last row, and whoever
 * opens it next upgrades it. `LCM_SOAK=50` does it with two hundred thousand messages.
 */
import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeTemporaryFolder } from "@lossless/testkit";
import { renderTakeBack } from "@lossless/testkit/older-archive.ts";
import { makeRandom } from "@lossless/testkit/random.ts";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { expect, test } from "vitest";
import { openEngine } from "../src/index.ts";
import { importTranscript } from "../src/interchange.ts";

const PROGRAM = fileURLToPath(new URL("./upgrade-program.ts", import.meta.url));
const MESSAGES = rounds({ test: 0, soak: 4_000 });
const KILLS = 24;
/** Before seals: the upgrade seals everything as it is. */
const OLD_VERSION = 15;

/** A transcript in which every third line says no time, so that the upgrade has to look at bodies, folded in part. */
async function writeOldArchive(database: string, transcript: string): Promise<void> {
  const header = { type: "session", version: 3, id: "long", timestamp: "2026-01-05T08:00:00.000Z", cwd: "/" };
  const lines = Array.from({ length: MESSAGES }, (_, at) => {
    const time = at % 3 === 0 ? {} : { timestamp: new Date(1_750_000_000_000 + at * 1000).toISOString() };
    const content = `line ${at}: the pump of greenhouse ${at % 17} runs at ${at * 7} turns. `.repeat(8);
    const message = { role: at % 2 === 0 ? "user" : "assistant", content: [{ type: "text", text: content }] };
    return { type: "message", id: `e${at}`, parentId: at === 0 ? null : `e${at - 1}`, ...time, message };
  });
  writeFileSync(transcript, [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(""));
  const engine = await openEngine({ database, thread: false });
  await importTranscript({ engine, path: transcript });
  const session = { key: "agent:main:chat", id: "chat", owner: "main" };
  const messages = lines.slice(0, 400).map(({ id, message }) => ({ eventId: id, message }));
  const { conversationId } = await engine.ingest({ session, messages });
  await engine.compact({ conversationId, budgetTokens: 8_000 });
  await engine.flushIndex();
  await engine.close();
  const raw = new DatabaseSync(database);
  raw.exec(renderTakeBack(OLD_VERSION));
  raw.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  raw.close();
}

interface State {
  readonly version: number;
  /** Of the schema and of every row of every table. */
  readonly hash: string;
}

function readState(database: string): State {
  const raw = new DatabaseSync(database);
  try {
    expect(raw.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    const hash = createHash("sha256");
    const objects = raw.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
    hash.update(JSON.stringify(objects));
    for (const { type, name, sql } of objects) {
      if (type !== "table" || String(sql).startsWith("CREATE VIRTUAL")) continue;
      hash.update(`\n${String(name)}\n`);
      for (const row of raw.prepare(`SELECT * FROM "${String(name)}"`).iterate())
        for (const value of Object.values(row))
          hash.update(value instanceof Uint8Array ? value : `${String(value)}\u0000`);
    }
    const { user_version: version } = raw.prepare("PRAGMA user_version").get() as { user_version: number };
    return { version, hash: hash.digest("hex") };
  } finally {
    raw.close();
  }
}

/** Opens the archive in a process of its own, which is killed so long after it began; null: never. Returns how long it took. */
async function upgrade(database: string, killAfterMs: number | null): Promise<number> {
  const child = fork(PROGRAM, [database], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const ended = once(child, "exit");
  await Promise.race([once(child, "message"), ended]);
  const since = performance.now();
  if (killAfterMs !== null) {
    await Promise.race([sleep(killAfterMs), ended]);
    child.kill("SIGKILL");
  }
  const [status, signal] = (await ended) as [number | null, NodeJS.Signals | null];
  expect(signal === "SIGKILL" || status === 0).toBe(true);
  return performance.now() - since;
}

test.runIf(isSoak)(
  "an upgrade that is killed leaves the old archive or the new one, whole, and is made by whoever opens it next",
  async () => {
    using folder = makeTemporaryFolder();
    const [old, database] = [folder.file("old.db"), folder.file("lcm.db")];
    await writeOldArchive(old, folder.file("long.jsonl"));
    const restore = (): void => {
      for (const end of ["-wal", "-shm"]) rmSync(`${database}${end}`, { force: true });
      cpSync(old, database);
    };
    restore();
    const before = readState(database);
    const tookMs = await upgrade(database, null);
    const after = readState(database);
    expect(before.version).toBe(OLD_VERSION);
    expect(after.version).toBeGreaterThan(OLD_VERSION);

    const random = makeRandom(22);
    const found = { old: 0, new: 0 };
    restore();
    for (let round = 0; round < KILLS; round++) {
      // Spread over the whole of it, a little drawn, and a little beyond its end.
      await upgrade(database, (tookMs * (round + random.next()) * 1.1) / KILLS);
      const state = readState(database);
      expect([before, after]).toContainEqual(state);
      if (state.version === OLD_VERSION) found.old += 1;
      else {
        found.new += 1;
        restore();
      }
    }
    console.log(
      `${MESSAGES} messages, upgraded in ${Math.round(tookMs)} ms; ${KILLS} kills: ${found.old} left the old archive, ${found.new} the new one`,
    );
    expect(found.old).toBeGreaterThan(0);

    await upgrade(database, null);
    expect(readState(database)).toEqual(after);
    const engine = await openEngine({ database, thread: false });
    expect((await engine.verify()).problems).toEqual([]);
    expect((await engine.status()).messages).toBe(MESSAGES + 401);
    await engine.close();
  },
);
