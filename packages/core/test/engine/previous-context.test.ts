/** The previous context of a summary: kept by its id, proven, and carried wherever summaries go. */
import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Complete, Engine, VerifyResult } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, onTestFinished, test } from "vitest";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import { SqliteStore } from "@lossless/sqlite";
import { exportArchive, importArchive } from "@lossless/interchange/testing";

const session = { key: "agent:main:main", id: "s1", owner: "main" };
const target = { key: "agent:main:other", id: "s2", owner: "main" };
const FOLDING = {
  freshTailCount: 4,
  leafChunkTokens: 400,
  leafTargetTokens: 80,
  condensedTargetTokens: 200,
  leafMinFanout: 4,
  condensedMinFanout: 4,
};

function makeFolder(): string {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

async function openAt(database: string, complete: Complete | null = null): Promise<Engine> {
  const config = {
    ...FOLDING,
    databasePath: database,
    ...(complete === null ? {} : { summaryModel: "test/m" }),
  };
  const { settings } = resolveSettings({ env: {}, config });
  return openEngine({ database, settings, thread: false, complete });
}

async function buildArchive(folder: string, complete: Complete | null = null): Promise<string> {
  const database = join(folder, "lcm.db");
  const engine = await openAt(database, complete);
  const messages = Array.from({ length: 60 }, (_, n) => ({
    eventId: `e${n}`,
    message: {
      role: n % 2 === 0 ? "user" : "assistant",
      content: `Valve_${n} was opened. `.repeat(12),
      timestamp: n + 1,
    },
  }));
  await engine.ingest({ session, messages });
  await engine.compact({ conversationId: 1, budgetTokens: 4_000, force: true });
  await engine.close();
  return database;
}

interface Given {
  readonly id: string;
  readonly previous: string | null;
  readonly content: string;
  readonly start: number;
}

function readGiven(database: string, conversationId = 1): Given[] {
  using db = new DatabaseSync(database, { readOnly: true });
  return db
    .prepare(
      "SELECT summary_id AS id, previous_id AS previous, content, start_pos AS start FROM summaries WHERE conversation_id = ? ORDER BY start_pos, depth",
    )
    .all(conversationId) as unknown as Given[];
}

async function verifyArchive(database: string): Promise<VerifyResult> {
  const engine = await openAt(database);
  try {
    return await engine.verify();
  } finally {
    await engine.close();
  }
}

test("a summary names the one whose text its writer was given", async () => {
  const prompts: string[] = [];
  const complete: Complete = ({ user }) => {
    prompts.push(user);
    return Promise.resolve({
      kind: "text",
      text: "",
      model: { provider: "test", model: "m" },
      inputTokens: 1,
      outputTokens: 0,
    });
  };
  const database = await buildArchive(makeFolder(), complete);
  const rows = readGiven(database);
  const byId = new Map(rows.map((row) => [row.id, row]));
  expect(rows[0]?.previous).toBeNull();
  const later = rows.filter(({ previous }) => previous !== null);
  expect(later.length).toBeGreaterThan(1);
  for (const { previous, start } of later) expect(byId.get(previous ?? "")?.start).toBeLessThan(start);
  // A model that answers nothing is soon not asked any more, so the first are looked at.
  const given = byId.get(later[0]?.previous ?? "")?.content.trim() ?? "?";
  expect(prompts.some((prompt) => prompt.includes(given))).toBe(true);
  expect((await verifyArchive(database)).problems).toEqual([]);
});

test.each([
  ["another one", "(SELECT summary_id FROM summaries ORDER BY start_pos DESC LIMIT 1)"],
  ["none", "NULL"],
  ["one that is nowhere", "'sum_0000000000000000'"],
])("verify names a summary whose previous context was changed to %s", async (_what, value) => {
  const database = await buildArchive(makeFolder());
  const victim = readGiven(database).find(({ previous }) => previous !== null)?.id ?? "";
  using db = new DatabaseSync(database);
  db.exec(`UPDATE summaries SET previous_id = ${value} WHERE summary_id = '${victim}'`);
  const { problems } = await verifyArchive(database);
  expect(problems.length).toBeGreaterThan(0);
  for (const problem of problems) expect(problem.message).toContain(victim);
});

test("an archive carries it, and one that names what it does not hold is refused", async () => {
  const folder = makeFolder();
  const database = await buildArchive(folder);
  const path = join(folder, "out.lcmx");
  const source = new SqliteStore({ path: database, filesDir: join(folder, "lcm-files") });
  await exportArchive(source, { out: path });
  await source.close();
  const bring = async (name: string, from: string): Promise<string> => {
    const place = { path: join(folder, `${name}.db`), filesDir: join(folder, `${name}-files`) };
    const store = new SqliteStore({ ...place, create: true });
    try {
      await importArchive(store, { path: from, derive: deriveMessage, now: 1 });
    } finally {
      await store.close();
    }
    return place.path;
  };
  const copy = await bring("copy", path);
  expect(readGiven(copy)).toEqual(readGiven(database));
  expect((await verifyArchive(copy)).problems).toEqual([]);
  const forged = join(folder, "forged.lcmx");
  writeFileSync(forged, forge(readFileSync(path, "utf8")));
  await expect(bring("forged", forged)).rejects.toThrow("does not come before it");
});

/** The last summary that has a previous context names one that is not there; the checksum at the end is that of the new text. */
function forge(text: string): string {
  const lines = text.trimEnd().split("\n").slice(0, -1);
  const body = `${lines.join("\n")}\n`.replace(
    /"previousId":"sum_[0-9a-f]{16}"/u,
    `"previousId":"sum_${"0".repeat(16)}"`,
  );
  const end = { record: "end", records: lines.length, sha256: hash("sha256", body) };
  return `${body}${JSON.stringify(end)}\n`;
}

test("a transplanted summary names the copy of what it was given", async () => {
  const database = await buildArchive(makeFolder());
  const engine = await openAt(database);
  await engine.ingest({
    session: target,
    messages: [{ eventId: "t", message: { role: "user", content: "hello" } }],
  });
  await engine.transplant({ from: 1, to: 2, dryRun: false });
  await engine.close();
  const [from, to] = [readGiven(database, 1), readGiven(database, 2)];
  const shape = (rows: readonly Given[]): (number | null)[] =>
    rows.map(({ previous }) => (previous === null ? null : rows.findIndex(({ id }) => id === previous)));
  expect(shape(to)).toEqual(shape(from));
  expect(shape(to).filter((place) => place !== null).length).toBeGreaterThan(1);
  expect((await verifyArchive(database)).problems).toEqual([]);
});

test("what was given can be forgotten: the reference stays, its text says so, and the archive verifies", async () => {
  const database = await buildArchive(makeFolder());
  const [first, second] = readGiven(database).filter(({ previous }) => previous !== null);
  const engine = await openAt(database);
  const given = await engine.readSummary({ summaryId: second?.previous ?? "" });
  expect(given?.summaryId).toBe(first?.id);
  await engine.forget({ messageIds: given?.messageIds.slice(0, 1) ?? [], reason: "a test" });
  const after = await engine.readSummary({ summaryId: given?.summaryId ?? "" });
  expect(after?.content).toContain("[LCM forgotten]");
  expect(after?.previousId).toBe(first?.previous);
  expect((await engine.readSummary({ summaryId: second?.id ?? "" }))?.previousId).toBe(first?.id);
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
});
