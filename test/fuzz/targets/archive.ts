/**
 * The archive format. The line at its end, with the count and the hash, is always correct, so that the records before it are tested. Some inputs
 * go into SQLite, whose import path differs from that of the memory store.
 */
import { deriveMessage } from "@lossless/core/testing";
import type { Store } from "@lossless/core/ports";
import { exportArchive, importArchive } from "@lossless/interchange/testing";
import { SqliteStore } from "@lossless/sqlite";
import { openMemoryStore } from "@lossless/testkit/memory-store.ts";
import { hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nameInput } from "../corpus.ts";
import { accept, hold } from "../target.ts";
import type { Target } from "../target.ts";

const NOW = 1_780_000_000_000;
/** One in this many goes into SQLite. */
const SQLITE_SHARE = 8;

export const archiveTarget: Target = {
  name: "archive",
  words: [
    "message",
    "summary",
    "cover",
    "ledger",
    "conversation",
    "session",
    "file",
    "piece",
    "turn",
    "seq",
    "position",
    "chain",
    "salt",
    "summaryId",
    "messages",
    "hidden",
    "leaf",
    "condensed",
    "retired",
    "reserve",
    "prepared",
    "forgottenAt",
    "fork",
    "boundary",
    "relabel",
  ],
  open: async (folder) => ({
    run: async (input) => {
      const own = mkdtempSync(join(folder, "run-"));
      try {
        await tryArchive(own, input);
      } finally {
        rmSync(own, { recursive: true });
      }
    },
    close: async () => undefined,
  }),
};

async function tryArchive(folder: string, input: Buffer): Promise<void> {
  const path = join(folder, "a.lcmx");
  writeFileSync(path, seal(input));
  const isSqlite = Number.parseInt(nameInput(input), 16) % SQLITE_SHARE === 0;
  const first = isSqlite ? openSqlite(folder) : openMemoryStore(deriveMessage);
  const second = openMemoryStore(deriveMessage);
  try {
    const result = await takeIn(first, path);
    if (result === null) {
      const { messages, conversations, summaries } = await first.status();
      hold(messages + conversations + summaries === 0, "a refused archive left something", {
        messages,
        conversations,
        summaries,
      });
      return;
    }
    const again = await takeIn(first, path);
    hold(again?.imported === 0, "a second import stores something", again);
    const once = await writeOut(first, join(folder, "once.lcmx"));
    await takeIn(second, join(folder, "once.lcmx"));
    const twice = await writeOut(second, join(folder, "twice.lcmx"));
    hold(once === twice, "what is exported, imported and exported again has other bytes");
  } finally {
    await first.close();
    await second.close();
  }
}

const openSqlite = (folder: string): Store =>
  new SqliteStore({
    path: join(folder, "lcm.db"),
    filesDir: join(folder, "files"),
    create: true,
    derive: deriveMessage,
  });

/** Proven afterwards, whatever the outcome. */
async function takeIn(store: Store, path: string): Promise<{ imported: number } | null> {
  const result = await accept(() => importArchive(store, { path, derive: deriveMessage, now: NOW }));
  const { problems } = await store.verify(deriveMessage, () => undefined);
  hold(problems.length === 0, "after an import the archive does not verify", result, problems);
  return result;
}

async function writeOut(store: Store, out: string): Promise<string> {
  await exportArchive(store, { out });
  return readFileSync(out, "latin1");
}

function seal(input: Buffer): Buffer {
  const text = input.toString("latin1");
  const content = Buffer.from(text === "" || text.endsWith("\n") ? text : `${text}\n`, "latin1");
  const records = content.filter((byte) => byte === 10).length;
  const end = { record: "end", records, sha256: hash("sha256", content) };
  return Buffer.concat([content, Buffer.from(`${JSON.stringify(end)}\n`)]);
}
