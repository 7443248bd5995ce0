/** The PostgreSQL store against the contract of the port. */
import { deriveMessage } from "@lossless/core/testing";
import { SqliteStore } from "@lossless/sqlite";
import { batchOf, makeEvent, say } from "@lossless/testkit/contract/parts.ts";
import { findPostgres, sharePostgres } from "@lossless/testkit/postgres-server.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import type { PostgresStore } from "../src/postgres-store.ts";

const programs = findPostgres();

/** Verbs of the port that this store may still be without. */
const MISSING =
  "backup bringIn claimVectorSpace countMessages countSpendCalls countSummaries countVectors dropVectorSpace findEnds findSessions findUnproven findWritten forget hasStale isForgettingOpen knownEvents listBlobs listConversations listDebts listFiles listInherited listMessageIds listMessages listMoved listNewest listPendingVectors listPublished listRecallParts listRun listScope listSealed listSummaries listSummariesOf listUnembedded listVectorSpaces locateMessage measureStorage planForget readCacheUsage readCalibration readConversation readCoverHead readCoverTail readFile readFileContent readFileMessages readForkItems readFoundSummaries readGraph readGuards readMessage readMovedCover readMovedFile readMovedRows readMovedSessions readMovedSummaries readOutline readPlaces readRedacted readRevisions readRun readSession readShown readShownSummaries readSourceItems readSources readStale readSummary readTexts readTextsWithin readTimes readVersions recordSpend reindex releaseVectorSpace removeConversations scanVectors status storeVectors sumSpend wipeFreed withSnapshot".split(
    " ",
  );

describe.skipIf(programs === null)("the PostgreSQL store", async () => {
  const server = await sharePostgres(programs ?? "");

  async function open(): Promise<PostgresStore> {
    const address = await server.createDatabase();
    const store = await openPostgresStore({ address, create: true, derive: deriveMessage });
    onTestFinished(() => store.close());
    return store;
  }

  test("has every verb but those that are named", async () => {
    const verbs = Object.entries(Object.getOwnPropertyDescriptors(SqliteStore.prototype))
      .filter(([name, { value }]) => typeof value === "function" && name !== "constructor")
      .map(([name]) => name);
    const store = await open();
    expect(verbs.filter((name) => !(name in store) && !MISSING.includes(name))).toEqual([]);
  });

  test("stores, proves and finds", async () => {
    const store = await open();
    const events = ["a walrus", "a carpenter"].map((text, i) => makeEvent(`e${i}`, say(text)));
    const { results } = await store.append(batchOf(events));
    const clues = [{ kind: "run", words: ["walrus"] } as const];
    const scope = { owner: "main" };
    const found = await store.findClues({ kind: "message", clues, scope, limit: 10 });
    expect(found.listings[0]?.ids).toEqual([results[0]?.messageId]);
    expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
  });
});
