/**
 * `node scripts/write-archive.ts <tree> <file> [transcript]`: makes the program of another tree (a worktree of an earlier commit) store the
 * messages of `packages/testkit/archives/messages.json`, folds the first session, and writes the database as a gzip file. The archives of
 * earlier schema versions beside it were made this way; see "A migration" in CONTRIBUTING.md. With a transcript it imports that instead.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { readArchiveMessages } from "@lossless/testkit/older-archive.ts";

const [tree = "", out = "", transcript] = process.argv.slice(2);
/** The API that every version so far has; before adapters were packages, core was the library. */
const entry = ["lossless-claw", "core"].map((name) => resolve(tree, `packages/${name}/src/index.ts`));
const library = (await import(pathToFileURL(entry.find(existsSync) ?? "").href)) as {
  openEngine(options: { database: string; thread: false }): Promise<OldEngine>;
};

interface OldEngine {
  ingest(request: { session: object; messages: readonly object[] }): Promise<{ conversationId: number }>;
  compact?(request: { conversationId: number; budgetTokens: number; force: true }): Promise<unknown>;
  close(): Promise<void>;
}

const folder = mkdtempSync(join(tmpdir(), "lossless-archive-"));
const database = join(folder, "lcm.db");
const engine = await library.openEngine({ database, thread: false });
if (transcript === undefined) await storeMessages();
else await importLines(transcript);
await engine.close();
writeFileSync(out, gzipSync(readFileSync(database), { level: 9 }));
rmSync(folder, { recursive: true });

async function storeMessages(): Promise<void> {
  for (const { session, messages } of readArchiveMessages()) {
    const { conversationId } = await engine.ingest({ session, messages });
    if (session.id === "s1") await engine.compact?.({ conversationId, budgetTokens: 1_500, force: true });
  }
}

async function importLines(path: string): Promise<void> {
  const importer = (await import(pathToFileURL(resolve(tree, "packages/interchange/src/index.ts")).href)) as {
    importTranscript(request: { engine: OldEngine; path: string }): Promise<unknown>;
  };
  // The archive records where a transcript was.
  const copy = join(folder, basename(path));
  copyFileSync(path, copy);
  await importer.importTranscript({ engine, path: copy });
}
