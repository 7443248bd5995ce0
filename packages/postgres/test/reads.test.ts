/** Reads on a real server: the same rows give the same answers as on SQLite, whatever is asked, in few round trips. */
import { POSITION_STEP } from "@lossless/core";
import type { Engine } from "@lossless/core";
import type { RecallScope, Store } from "@lossless/core/ports";
import { deriveMessage } from "@lossless/core/testing";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { copyArchive } from "@lossless/testkit/copy-archive.ts";
import { describePostgres, sharePostgres } from "@lossless/testkit/postgres-server.ts";
import { openEngine, openStore } from "lossless-claw";
import { expect, onTestFinished, test } from "vitest";
import { folderFiles } from "../src/blobs.ts";
import { FullTextIndex } from "../src/full-text-index.ts";
import { Connection, migrate } from "../src/testing.ts";
import type { StoreContext } from "../src/testing.ts";
import { bindVerbs, VERBS } from "../src/verbs.ts";
import { session, speak, START } from "./speak.ts";

async function fill(engine: Engine): Promise<void> {
  const messages = Array.from({ length: 160 }, (_, at) => ({
    eventId: `e${at}`,
    position: (at + 1) * POSITION_STEP,
    createdAt: START + at * 60_000,
    message: speak(at),
  }));
  for (let at = 0; at < messages.length; at += 40)
    await engine.ingest({ session, messages: messages.slice(at, at + 40) });
  await engine.ingest({
    session,
    messages: [
      { eventId: "e12", position: 13 * POSITION_STEP, message: { role: "user", content: "revised" } },
    ],
  });
  await engine.ingest({
    session: { ...session, key: "agent:main:other", id: "session-2" },
    messages: [{ eventId: "o1", createdAt: START, message: { role: "user", content: "elsewhere" } }],
  });
}

interface Both {
  readonly sqlite: Store;
  readonly postgres: Pick<Store, keyof typeof VERBS>;
  readonly connection: Connection;
}

async function openBoth(prepare: (engine: Engine) => Promise<void>): Promise<Both> {
  const server = await sharePostgres();
  const folder = makeTemporaryDirectory();
  const database = `${folder}/lcm.db`;
  const engine = await openEngine({ database, thread: false });
  await prepare(engine);
  await engine.close();
  const address = await server.createDatabase();
  const connection = new Connection({ address, readOnly: false });
  onTestFinished(() => connection.close());
  await migrate(connection, { create: true });
  await copyArchive(database, address);
  const sqlite = await openStore(database, { derive: deriveMessage });
  onTestFinished(() => sqlite.close());
  const context: StoreContext = {
    sql: connection,
    files: folderFiles(`${folder}/lcm-files`),
    index: new FullTextIndex(),
    derive: deriveMessage,
  };
  return { sqlite, postgres: bindVerbs(VERBS, context), connection };
}

/** Bytes of any class, and sets as lists. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, one: unknown) =>
      one instanceof Uint8Array
        ? Buffer.from(one).toString("base64")
        : one instanceof Set || one instanceof Map
          ? [...(one as Iterable<unknown>)]
          : one,
    ) ?? "null",
  ) as unknown;

type Asked = Pick<Store, keyof typeof VERBS>;

async function expectEqual<T>({ sqlite, postgres }: Both, ask: (store: Asked) => Promise<T>): Promise<T> {
  const expected = await ask(sqlite);
  expect(plain(await ask(postgres))).toEqual(plain(expected));
  return expected;
}

const CONVERSATION = 1;
const byId = <T extends { id: number }>(rows: readonly T[]): T[] => rows.toSorted((a, b) => a.id - b.id);

async function compareReads(both: Both): Promise<void> {
  const same = <T>(ask: (store: Asked) => Promise<T>): Promise<T> => expectEqual(both, ask);
  const { items } = await same((store) =>
    store.listMessages({
      conversationId: CONVERSATION,
      after: null,
      limit: 500,
      order: "position",
      direction: "oldest",
    }),
  );
  const ids = items.map(({ messageId }) => messageId);
  for (const order of ["position", "arrival"] as const)
    for (const direction of ["oldest", "newest"] as const) {
      const page = { conversationId: CONVERSATION, limit: 7, order, direction };
      const first = await same((store) => store.listMessages({ ...page, after: null }));
      await same((store) => store.listMessages({ ...page, after: first.next, owner: "main" }));
    }
  await same((store) =>
    store.listMessages({
      conversationId: 1,
      after: null,
      limit: 5,
      order: "arrival",
      direction: "oldest",
      owner: "x",
    }),
  );
  await same((store) => store.listConversations({ after: null, limit: 1 }));
  await same((store) =>
    store.listConversations({ after: "2", limit: 5, owner: "main", sessionKey: session.key }),
  );
  await same((store) => store.readConversation(CONVERSATION));
  await same((store) => store.readConversation(CONVERSATION, "nobody"));
  await same((store) => store.readOutline({ conversationId: CONVERSATION, after: null, limit: 500 }));
  await same((store) => store.listMessageIds({ conversationId: CONVERSATION, at: 20, limit: 5 }));
  await same((store) => store.locateMessage(ids[30] ?? 0));
  for (const id of ids) await same((store) => store.readMessage(id));
  await same((store) => store.readShown(ids.toReversed()));
  await same((store) => store.readRevisions(ids[12] ?? 0));
  await same((store) => store.readSession("main", "session-1"));
  await same((store) => store.readSession(null, "session-2"));
  await same((store) => store.readSession(null, "none"));
  await same((store) => store.knownEvents("main", "session-1", ["e3", "x", "e1"]));
  await same((store) => store.findSessions("main", "e3"));
  await same((store) => store.countMessages([2, CONVERSATION, 99]));
  await same((store) => store.countMessages([CONVERSATION], "nobody"));
  await compareCover(same);
  await compareRecall(same, ids);
  await compareMoved(same);
  await same((store) =>
    store.findUnproven("main", "session-1", [
      { eventId: "e12", bytes: Buffer.from("other") },
      { eventId: "none", bytes: Buffer.from("") },
    ]),
  );
  await same((store) => store.listDebts());
  await same((store) => store.listBlobs());
  await same((store) => store.listSealed({ after: 0, limit: 5 }));
}

type Same = <T>(ask: (store: Asked) => Promise<T>) => Promise<T>;

async function compareCover(same: Same): Promise<void> {
  for (const maxTokens of [0, 300, 2_000, 100_000, Number.MAX_SAFE_INTEGER])
    for (const withSummaries of [true, false])
      await same((store) =>
        store.readCoverTail({ conversationId: CONVERSATION, maxTokens, maxMessages: 5, withSummaries }),
      );
  await same((store) => store.readCoverTail({ conversationId: 99, maxTokens: 5, maxMessages: 5 }));
  for (const maxMessageTokens of [0, 500, 100_000])
    await same((store) => store.readCoverHead({ conversationId: CONVERSATION, maxMessageTokens }));
  const stretch = { startPosition: 3 * POSITION_STEP, endPosition: 40 * POSITION_STEP };
  const empty = { startPosition: 1, endPosition: 2 };
  const later = { startPosition: 44 * POSITION_STEP, endPosition: 45 * POSITION_STEP };
  for (const stretches of [[stretch], [empty, stretch, later], [empty], []])
    await same((store) => store.findEnds({ conversationId: CONVERSATION, stretches }));
  const graph = await same((store) => store.readGraph({ conversationId: CONVERSATION }));
  const summaryIds = graph.nodes.map(({ summaryId }) => summaryId);
  await same((store) => store.readGraph({ conversationId: CONVERSATION, owner: "nobody" }));
  await same((store) => store.readSourceItems(summaryIds));
  await same((store) => store.readShownSummaries(summaryIds.toReversed()));
  for (const id of [...summaryIds, "none"]) {
    await same((store) => store.readSummary(id, "main"));
    await same((store) => store.readSources(id));
  }
  const page = await same((store) =>
    store.listSummaries({ conversationId: CONVERSATION, after: null, limit: 2 }),
  );
  await same((store) =>
    store.listSummaries({ conversationId: CONVERSATION, after: page.next, limit: 2, state: "cover" }),
  );
  await same((store) => store.countSummaries(CONVERSATION));
  await same((store) => store.listPublished({ after: "", limit: 3 }));
  await same((store) => store.hasStale(CONVERSATION));
  await same((store) => store.readStale(CONVERSATION));
  const head = await same((store) =>
    store.readCoverHead({ conversationId: CONVERSATION, maxMessageTokens: 900 }),
  );
  await same((store) => store.readRun(CONVERSATION, head.items.slice(0, 6)));
  await same((store) => store.readRun(CONVERSATION, head.items.slice(0, 6), false));
  await same((store) => store.readForkItems(CONVERSATION));
  await same((store) => store.readForkItems(3));
}

const SCOPES: readonly RecallScope[] = [
  {},
  { owner: "main" },
  { owner: "nobody" },
  { conversationIds: [CONVERSATION] },
  { conversationIds: [2], inherited: [{ conversationId: CONVERSATION, position: 50 * POSITION_STEP }] },
  { since: START + 600_000, before: START + 6_000_000, role: "user" },
];

async function compareRecall(same: Same, ids: readonly number[]): Promise<void> {
  const refs = [1, 2, 3];
  const some = ids.filter((_, at) => at % 3 === 0).toReversed();
  for (const scope of SCOPES) {
    await same((store) => store.readTexts(some, scope));
    await same((store) =>
      store.readTextsWithin(
        [
          [3, 20],
          [30, 90],
        ],
        scope,
      ),
    );
    await same((store) => store.readFoundSummaries(refs, scope));
    await same((store) => store.listFiles(scope, null));
    await same((store) => store.listFiles(scope, ["file_x"]));
    await same(async (store) => {
      const ranges = [{ since: START, before: START + 1_000_000 }];
      // Parts of our own tools come along on a server alone; what they are is compared below.
      return (await store.findWritten({ scope, ranges, limit: 9 })).map(({ messageId, createdAt }) => ({
        messageId,
        createdAt,
      }));
    });
    for (const kind of ["message", "summary"] as const) {
      const asked = kind === "message" ? some : refs;
      await same(async (store) => byId(await store.readTimes({ kind, ids: asked, scope })));
      await same((store) => store.listNewest({ kind, scope, within: null }));
      await same((store) =>
        store.listNewest({
          kind,
          scope,
          within: [
            [2, 9],
            [20, 30],
          ],
        }),
      );
      await same(async (store) => {
        const places = await store.readCandidates({ kind, ids: asked, reach: 2, scope, withRoles: true });
        // How many words each has is the index's to say, and nothing is indexed here.
        return byId(
          places.map((place) => ({
            ...place,
            recall: undefined,
            words: 0,
            group: 0,
            position: kind === "message" ? place.position : 0,
          })),
        );
      });
    }
  }
  await same(async (store) =>
    (await store.listRecallParts(ids))
      .map(({ messageId, ordinals, isAll }) => ({ messageId, ordinals, isAll }))
      .toSorted((a, b) => a.messageId - b.messageId),
  );
  await same((store) => store.listRange(ids[40] ?? 0, ids[10] ?? 0));
  await same((store) => store.listRange(ids[4] ?? 0, 999_999));
  for (const id of ids.slice(0, 40)) await same((store) => store.listSummariesOf(id));
  const [file] = await same((store) => store.listFiles({}, null));
  const fileId = file?.fileId ?? "";
  await same((store) => store.readFile(fileId));
  await same((store) => store.readFile(fileId, "nobody"));
  await same((store) => store.readFileContent(fileId));
  await same((store) => store.readFileMessages(fileId));
  await same((store) => store.listScope({ owner: "main" }));
  await same((store) => store.listScope({ exceptSession: "session-1" }));
  const key = { owner: "main", sessionKey: "agent:main:test" };
  for (const newestOnly of [true, false]) await same((store) => store.readFamily({ ...key, newestOnly }));
}

async function compareMoved(same: Same): Promise<void> {
  const listed = await same((store) => store.listMoved({}));
  await same((store) => store.listMoved({ owner: "main", conversationIds: [2] }));
  await same((store) => store.readMovedSessions(listed.map(({ conversationId }) => conversationId)));
  for (const { conversationId, rows } of listed) {
    for (let seq = 0; seq < rows; seq += 100)
      await same((store) => store.readMovedRows(conversationId, seq, 100));
    await same((store) => store.readMovedSummaries(conversationId, 1, 3));
    await same((store) => store.readMovedCover(conversationId));
  }
  const [file] = await same((store) => store.listFiles({}, null));
  await same((store) => store.readMovedFile(CONVERSATION, file?.sha256 ?? ""));
}

describePostgres("reads on PostgreSQL", () => {
  test("a folded conversation with payloads, revisions, tools and a fork", async () => {
    const both = await openBoth(async (engine) => {
      await fill(engine);
      await engine.compact({ conversationId: CONVERSATION, budgetTokens: 3_000 });
      await engine.setBranch({ session, offBranch: ["e150", "e151", "e20"] });
      await engine.fork({
        session: { ...session, key: "agent:main:fork", id: "session-3" },
        parentSessionId: session.id,
        eventIds: Array.from({ length: 80 }, (_, at) => `e${at}`),
      });
      // A row that comes late makes the summaries above it stale.
      const message = { role: "user", content: "late" };
      await engine.ingest({
        session,
        messages: [{ eventId: "late", position: 4.5 * POSITION_STEP, message }],
      });
    });
    await compareReads(both);
  });

  test("a conversation with a boundary that hides all but deep summaries", async () => {
    const both = await openBoth(async (engine) => {
      await fill(engine);
      await engine.compact({ conversationId: CONVERSATION, budgetTokens: 1_500 });
      await engine.recordBoundary({ session, eventId: "new", reason: "new" });
      await engine.ingest({
        session,
        messages: Array.from({ length: 80 }, (_, at) => ({
          eventId: `n${at}`,
          position: (at + 200) * POSITION_STEP,
          message: speak(at),
        })),
      });
      await engine.compact({ conversationId: CONVERSATION, budgetTokens: 1_500 });
    });
    await compareReads(both);
  });
});
