/**
 * Where a simulated archive lies: in a SQLite file, in memory, on a server. A ground opens stores on it, as often as processes would, and
 * reads its rows past the engine. One that can keep an image of its files can be killed at any moment.
 */
import { copyFileSync, existsSync, rmSync } from "node:fs";

import { MemoryArchive } from "@lossless/testkit/memory-archive.ts";
import { openMemoryStore } from "@lossless/testkit/memory-store.ts";
import { openStore } from "lossless-claw";

import { deriveMessage } from "../../src/ingest/prepare.ts";
import type { Store } from "../../src/store/store.ts";
import { gather, readTables } from "./archive-tables.ts";
import type { ArchiveTables } from "./archive-tables.ts";

/** Where a process of its own finds the archive. */
export interface StoreLocation {
  readonly address: string;
  readonly filesDir?: string;
}

export interface Ground {
  /** Opened anew for every process. */
  openStore(options: { readonly readOnly: boolean }): Promise<Store>;
  readTables(): Promise<ArchiveTables>;
  /** What a killed process leaves; null: it is killed by an error in its midst, and what it wrote stays. */
  readonly image: Image | null;
  /** Null: only this process can open it. */
  readonly location: StoreLocation | null;
}

interface Image {
  keep(): void;
  putBack(): void;
}

export type MakeGround = (folder: string) => Promise<Ground>;

export const makeSqliteGround: MakeGround = async (folder) => {
  const database = `${folder}/lcm.db`;
  return {
    openStore: ({ readOnly }) => openStore(database, { readOnly, create: !readOnly, derive: deriveMessage }),
    readTables: async () => readTables(database),
    location: { address: database },
    image: {
      keep() {
        for (const end of ["", "-wal"]) copyIfThere(`${database}${end}`, `${database}.image${end}`);
      },
      putBack() {
        for (const end of ["", "-wal", "-shm"]) {
          rmSync(`${database}${end}`, { force: true });
          copyIfThere(`${database}.image${end}`, `${database}${end}`);
          rmSync(`${database}.image${end}`, { force: true });
        }
      },
    },
  };
};

/** Every store that is opened has the same maps, as processes have the same file. */
export const makeMemoryGround: MakeGround = async () => {
  const archive = new MemoryArchive();
  const isAsked = (row: { readonly reason: string; readonly undone_at: number | null }) =>
    row.reason === "new" && row.undone_at === null;
  const answersCall = (row: { readonly type: string; readonly tool_call_id: string | null }) =>
    row.type === "tool_result" && row.tool_call_id !== null;
  return {
    openStore: async () => openMemoryStore(deriveMessage, archive),
    readTables: async () =>
      gather([
        archive.list("messages"),
        archive.list("context_items"),
        archive.list("summary_messages").map((row) => ({ ...row, above: row.summary_id })),
        archive
          .list("summary_parents")
          .map((row) => ({ ...row, above: row.summary_id, summary_id: row.parent_summary_id })),
        archive.list("boundaries").filter(isAsked),
        archive.list("message_parts").filter(answersCall),
        archive.list("fork_items"),
      ]),
    image: null,
    location: null,
  };
};

function copyIfThere(from: string, to: string): void {
  if (existsSync(from)) copyFileSync(from, to);
}
