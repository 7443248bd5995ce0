/** Books of a host's requests that an earlier program had indexed are taken out of the index of a server. */
import { encodeForIndex } from "@lossless/core/adapter";
import { deriveMessage } from "@lossless/core/testing";
import { makeOpenEngine } from "@lossless/core/ports";
import type { Derive, Store } from "@lossless/core/ports";
import { makeTemporaryDirectory } from "@lossless/testkit";
import {
  CLAUDE_CODE_FOUND,
  readClaudeCodeLines,
  searchClaudeCodeLines,
} from "@lossless/testkit/older-archive.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { expect, onTestFinished, test } from "vitest";
import { databaseFiles } from "../src/blobs.ts";
import { readIndexState } from "../src/full-text-index.ts";
import { takeOutBookkeeping } from "../src/migrations/0003-bookkeeping.ts";
import { openPostgresStore } from "../src/postgres-store.ts";
import { Connection, FullTextIndex, IndexQueue } from "../src/testing.ts";
import { session } from "./speak.ts";

/** As before: words of copies, too. */
const deriveBefore: Derive = (bytes, cuts) => {
  const derived = deriveMessage(bytes, cuts);
  const text = Buffer.from(bytes).toString();
  const isCopy = text.includes('"api-request-blob"');
  return isCopy ? { ...derived, readTerms: (sink) => encodeForIndex(text, sink) } : derived;
};

function readArrivals(): { eventId: string; message: object; hidden: "meta"[] }[] {
  return readClaudeCodeLines().map((line, at) => {
    const message = JSON.parse(line) as { type: string };
    const isSaid = message.type === "user" || message.type === "assistant";
    return { eventId: `e${at}`, message, hidden: isSaid ? [] : ["meta"] };
  });
}

describePostgres("books of a host's requests on PostgreSQL", (server) => {
  test("leave the index with an upgrade, and wait for it once more", async () => {
    const address = await server.createDatabase();
    const make = makeOpenEngine({
      openStore: (_path, options) =>
        openPostgresStore({ ...options, address }) as Promise<unknown> as Promise<Store>,
      workerUrl: new URL("file:///none"),
    });
    const engine = await make({ database: `${makeTemporaryDirectory()}/lcm.db`, thread: false });
    onTestFinished(() => engine.close());
    const sql = new Connection({ address, readOnly: false });
    onTestFinished(() => sql.close());
    const settle = (derive: Derive): Promise<void> =>
      new IndexQueue({ sql, files: databaseFiles, index: new FullTextIndex(), derive }).settle("all");
    const isProven = async (): Promise<boolean> => (await engine.verify()).ok;

    await engine.ingest({ session, messages: readArrivals() });
    await settle(deriveBefore);
    expect(await isProven()).toBe(false);
    await sql.write((transaction) => takeOutBookkeeping(transaction));
    expect(await readIndexState(sql)).toMatchObject({ pending: 7, messages: 3 });
    expect(await isProven()).toBe(true);
    expect(await searchClaudeCodeLines(engine)).toEqual(CLAUDE_CODE_FOUND);
    await settle(deriveMessage);
    expect(await readIndexState(sql)).toMatchObject({ pending: 0, messages: 10 });
    expect(await isProven()).toBe(true);
    expect(await searchClaudeCodeLines(engine)).toEqual(CLAUDE_CODE_FOUND);
  });
});
