/** Searching an archive on a server, beside the same archive in SQLite: the same rankings, whatever is pending, forgotten or merged. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Arrival, Engine, GrepRequest, GrepResult } from "@lossless/core";
import { deriveMessage } from "@lossless/core/testing";
import { makeOpenEngine, readTextTerms } from "@lossless/core/ports";
import type { Store } from "@lossless/core/ports";
import { openStore } from "lossless-claw";
import { copyArchive } from "@lossless/testkit/copy-archive.ts";
import { describePostgres, sharePostgres } from "@lossless/testkit/postgres-server.ts";
import { makeRandom } from "@lossless/testkit/random.ts";
import { findSharedData, listTranscripts } from "@lossless/testkit/shared-data.ts";
import { makeTemporaryDirectory } from "@lossless/testkit/temporary.ts";
import { expect, onTestFinished, test } from "vitest";
import { databaseFiles } from "../src/blobs.ts";
import { findClues } from "../src/find-clues.ts";
import { FullTextIndex, purgeAll, readIndexState } from "../src/full-text-index.ts";
import { IndexQueue } from "../src/index-queue.ts";
import { readDocuments } from "../src/pending.ts";
import { reindex } from "../src/reindex.ts";
import { bindVerbs, VERBS } from "../src/verbs.ts";
import { readIndexProof } from "../src/verify-index.ts";
import { Connection, migrate } from "../src/testing.ts";
import type { StoreContext } from "../src/testing.ts";

const OWNER = "main";
const DONE = (): Promise<void> => Promise.resolve();
const WORDS =
  "archive budget cache deploy error folder graph handler index journal kernel ledger message network owner parser queue retry session token update vector worker 数据库 连接 错误".split(
    " ",
  );
const IDENTIFIERS = ["parseConfig", "src/store/text-index.ts", "ECONN_RESET", "v1.2.3", "user@example.org"];

function writeTexts(count: number, seed: number): string[] {
  const random = makeRandom(seed);
  return Array.from({ length: count }, () => {
    const words = Array.from({ length: 3 + random.below(40) }, () => {
      const share = random.next();
      if (share < 0.06) return random.pick(IDENTIFIERS);
      if (share < 0.12) return `rare${random.below(400)}`;
      return WORDS[Math.floor(WORDS.length * random.next() ** 2)] ?? "";
    });
    return `${words.join(" ")}${random.next() < 0.2 ? "?" : "."}`;
  });
}

async function fill(engine: Engine, texts: readonly string[], owners: readonly string[]): Promise<void> {
  const size = 60;
  for (let at = 0; at < texts.length; at += size) {
    const part = at / size;
    const owner = owners[part % owners.length] ?? OWNER;
    const key = `agent:${part % 5}`;
    const messages = texts.slice(at, at + size).map((content, i): Arrival => ({
      eventId: createHash("sha1")
        .update(`${at + i}`)
        .digest("hex")
        .slice(0, 12),
      createdAt: 1_700_000_000_000 + (at + i) * 60_000,
      message: { role: i % 2 === 0 ? "user" : "assistant", content },
    }));
    await engine.ingest({ session: { key, id: `${owner}:${key}`, owner }, messages });
  }
}

interface Pair {
  readonly sqlite: Engine;
  readonly postgres: Engine;
  readonly connection: Connection;
  readonly context: StoreContext;
  readonly queue: IndexQueue;
}

/** The same archive twice. */
async function openPair(texts: readonly string[], owners: readonly string[] = [OWNER]): Promise<Pair> {
  const server = await sharePostgres();
  const database = `${makeTemporaryDirectory()}/lcm.db`;
  const open = makeOpenEngine({ openStore, workerUrl: new URL("file:///none") });
  const sqlite = await open({ database, thread: false });
  onTestFinished(() => sqlite.close());
  await fill(sqlite, texts, owners);
  for (const { conversationId } of (await sqlite.listConversations({ limit: 2 })).items)
    await sqlite.compact({ conversationId, budgetTokens: 2_000 });
  const address = await server.createDatabase();
  const connection = new Connection({ address, readOnly: false });
  onTestFinished(() => connection.close());
  await migrate(connection, { create: true });
  await copyArchive(database, address);
  const context: StoreContext = {
    sql: connection,
    files: databaseFiles,
    index: new FullTextIndex(),
    derive: deriveMessage,
  };
  const store = {
    ...bindVerbs(VERBS, context),
    flushIndex: DONE,
    close: DONE,
  };
  const postgres = await makeOpenEngine({
    openStore: () => Promise.resolve(store as unknown as Store),
    workerUrl: new URL("file:///none"),
  })({ database, thread: false });
  onTestFinished(() => postgres.close());
  return { sqlite, postgres, connection, context, queue: new IndexQueue(context) };
}

/** Questions of every kind about some texts. */
function* askAbout(texts: readonly string[], count: number, seed: number): Generator<GrepRequest> {
  const random = makeRandom(seed);
  const scopes: readonly Partial<GrepRequest>[] = [
    { allConversations: true },
    { allConversations: true, scope: "messages" },
    {},
    { allConversations: true, role: "user" },
    { allConversations: true, since: 1_700_000_000_000 + 6_000_000 },
  ];
  for (let i = 0; i < count; i++) {
    const words = random
      .pick(texts)
      .split(/\s+/)
      .flatMap((word) => (word === "" ? [] : word.slice(0, 60)));
    const from = random.below(words.length);
    const run = words.slice(from, from + 1 + random.below(5));
    const [first = "archive"] = run;
    const patterns: readonly (readonly [string, "full_text" | "regex"])[] = [
      [run.join(" "), "full_text"],
      [`"${run.join(" ")}"`, "full_text"],
      [`${first.slice(0, 3)}*`, "full_text"],
      [`what about ${run.join(" and ")}?`, "full_text"],
      [`${first} ${random.pick(WORDS)} ${random.pick(IDENTIFIERS)}`, "full_text"],
      [first.replace(/[^\w]/g, "."), "regex"],
      [`${first.slice(1, 5).replace(/[^\w]/g, ".")}\\w*`, "regex"],
    ];
    const [pattern, mode] = random.pick(patterns);
    if (pattern.replaceAll(/["*\s]/g, "") === "") continue;
    yield { pattern, mode, ...random.pick(scopes), limit: 20 };
  }
}

/** How many texts an expression was tried on, before its page was full, depends on how well the index narrows them down. */
function withoutCount(result: GrepResult): Partial<GrepResult> {
  if (result.mode === "full_text") return result;
  const { total: _total, complete: _complete, isTotalExact: _isTotalExact, ...rest } = result;
  return rest;
}

async function expectSame(pair: Pair, requests: Iterable<GrepRequest>): Promise<number> {
  let hits = 0;
  for (const request of requests) {
    const session = { key: "agent:0", id: `${OWNER}:agent:0`, owner: OWNER };
    const expected = await pair.sqlite.grep({ session, ...request });
    const found = await pair.postgres.grep({ session, ...request });
    expect(withoutCount(found), JSON.stringify(request)).toEqual(withoutCount(expected));
    hits += found.hits.length;
  }
  return hits;
}

describePostgres("search on a server", () => {
  test("ranks made-up texts as SQLite does, pending or indexed, in one segment or many", async () => {
    const texts = writeTexts(600, 1);
    const pair = await openPair(texts, [OWNER, OWNER, "other"]);
    expect(await expectSame(pair, askAbout(texts, 20, 2))).toBeGreaterThan(0);
    await new IndexQueue(pair.context, { readOnly: true }).settle("all");
    expect(await readIndexState(pair.connection)).toMatchObject({ pending: texts.length });
    await pair.queue.settle("all");
    const rows = await pair.connection.all<{ n: number }>("SELECT count(*) AS n FROM index_pending");
    expect(rows).toEqual([{ n: 0 }]);
    expect(await expectSame(pair, askAbout(texts, 200, 3))).toBeGreaterThan(0);
  });

  test("forgets documents with their terms, and joins small segments", async () => {
    const texts = writeTexts(300, 5).map((text, at) => (at === 70 ? `${text} zanzibar quokkas` : text));
    const pair = await openPair(texts);
    const { connection, context, queue } = pair;
    // Many small segments, as turns leave them.
    await connection.write((sql) =>
      sql.change("CREATE TABLE later AS SELECT owner, message_id FROM index_pending"),
    );
    await connection.write((sql) => sql.change("DELETE FROM index_pending"));
    for (let round = 0; round < 9; round++) {
      await connection.write((sql) =>
        sql.change(
          "INSERT INTO index_pending (owner, message_id) SELECT owner, message_id FROM later WHERE message_id % 9 = $1",
          round,
        ),
      );
      await queue.settle("all");
    }
    const count = "SELECT count(*) AS n FROM index_segments WHERE kind = 'message'";
    expect(await connection.get(count)).toEqual({ n: 2 });
    await expectSame(pair, askAbout(texts, 60, 6));
    const clues = ["zanzibar", "quokka"].map((word) => ({ kind: "phrase", words: [word] }) as const);
    const find = async (): Promise<readonly (readonly number[])[]> => {
      const found = await findClues(context, { kind: "message", clues, scope: {}, limit: 10 });
      return found.listings.map(({ ids }) => ids);
    };
    const [[messageId = 0] = []] = await find();
    expect(await find()).toEqual([[messageId], [messageId]]);
    const before = await readIndexState(connection);
    await connection.write(async (sql) => {
      sql.post(...context.index.render([{ kind: "remove-message", messageId }]));
      await Promise.resolve();
    });
    expect(await find()).toEqual([[], []]);
    expect(await countTerms(connection, "zanzibar")).toBe(1);
    await connection.write(purgeAll);
    expect(await countTerms(connection, "zanzibar")).toBe(0);
    expect(await find()).toEqual([[], []]);
    expect(await readIndexState(connection)).toEqual({ ...before, messages: texts.length - 1 });
  });

  test("finds a damaged index, and rebuilds it while messages arrive", async () => {
    const texts = writeTexts(260, 7);
    const pair = await openPair(texts);
    const { connection, context, queue } = pair;
    await queue.settle("all");
    expect(await proveIndex(pair)).toEqual([]);
    const damages = [
      "UPDATE index_postings SET places = substr(places, 1, 1) || substr(places, 1, 1) WHERE octet_length(places) = 2",
      "DELETE FROM index_postings WHERE term = 'archiv'",
      "DELETE FROM index_documents WHERE id = (SELECT max(id) FROM index_documents WHERE kind = 'message')",
      "UPDATE index_heads SET analysis = 0",
    ];
    for (const damage of damages) {
      await connection.write((sql) => sql.change(damage));
      expect(await proveIndex(pair), damage).not.toEqual([]);
      // What is pending when a rebuild begins is in it, and pending no more.
      await connection.write((sql) =>
        sql.change(
          "INSERT INTO index_pending (owner, message_id) SELECT 'main', max(message_id) FROM messages",
        ),
      );
      expect(await reindex(context, deriveMessage, () => undefined)).toBe(texts.length);
      expect(await proveIndex(pair), damage).toEqual([]);
      expect(await readIndexState(connection)).toEqual({ kind: "ready", messages: texts.length, pending: 0 });
    }
    const cancelled = reindex(context, deriveMessage, () => undefined, AbortSignal.abort());
    await expect(cancelled).rejects.toMatchObject({ code: "aborted" });
    expect(await proveIndex(pair)).toEqual([]);
    await expectSame(pair, askAbout(texts, 30, 8));
  });

  test("misses no message while several index", async () => {
    const texts = writeTexts(400, 11).map((text) => `${text} everywhere`);
    const pair = await openPair(texts, [OWNER, "other"]);
    const clues = [{ kind: "phrase", words: [readTextTerms("everywhere").words[0] ?? ""] } as const];
    let isDone = false;
    const search = async (): Promise<void> => {
      while (!isDone) {
        const found = await findClues(pair.context, { kind: "message", clues, scope: {}, limit: 1_000 });
        expect(new Set(found.listings[0]?.ids).size).toBe(texts.length);
        expect(found.listings[0]?.frequency).toBe(texts.length);
      }
    };
    const searching = search();
    await Promise.all(Array.from({ length: 3 }, () => new IndexQueue(pair.context).settle("all")));
    isDone = true;
    await searching;
    await pair.queue.settle("all");
    expect(await readIndexState(pair.connection)).toMatchObject({ messages: texts.length, pending: 0 });
    expect(await proveIndex(pair)).toEqual([]);
  });

  test("ranks real texts as SQLite does", async ({ skip }) => {
    const texts = readRealTexts(800);
    if (texts.length === 0) skip("there are no shared transcripts here");
    const pair = await openPair(texts);
    await pair.queue.settle("all");
    expect(await expectSame(pair, askAbout(texts, 150, 4))).toBeGreaterThan(0);
  });
});

/** What is wrong with the index, by the texts of the archive. */
async function proveIndex({ connection, context }: Pair): Promise<string[]> {
  const found: string[] = [];
  const { problems } = await connection.read(async (sql) => {
    const open = await readIndexProof(sql);
    const proof = open({ add: (_kind, _id, text) => void found.push(text) });
    const rows = await sql.all<{ id: number }>(
      "SELECT message_id AS id FROM messages WHERE forgotten_at IS NULL",
    );
    const ids = rows.map(({ id }) => id);
    for (const { id, conversationId, readTerms } of await readDocuments(sql, context, ids))
      proof.expect(id, conversationId, readTerms);
    proof.finish();
    return { problems: found };
  });
  return problems;
}

async function countTerms(connection: Connection, term: string): Promise<number> {
  const row = await connection.get<{ n: number }>(
    "SELECT count(*) AS n FROM index_postings WHERE term = $1",
    term,
  );
  return row?.n ?? 0;
}

function readRealTexts(count: number): string[] {
  const folder = findSharedData();
  if (folder === null) return [];
  const texts: string[] = [];
  const take = (value: unknown): void => {
    if (typeof value === "string" && value.length > 40) texts.push(value.slice(0, 4_000));
    else if (Array.isArray(value)) value.forEach(take);
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(take);
  };
  for (const kind of ["claude-code", "codex", "gemini-cli"]) {
    for (const path of listTranscripts(folder, kind).slice(0, 3)) {
      for (const line of readFileSync(path, "utf8").slice(0, 2_000_000).split("\n")) {
        try {
          take(JSON.parse(line));
        } catch {
          continue;
        }
      }
    }
  }
  const step = Math.max(1, Math.floor(texts.length / count));
  return texts.filter((_, at) => at % step === 0).slice(0, count);
}
