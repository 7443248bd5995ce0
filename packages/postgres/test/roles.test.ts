/** A role of the server for each agent: it reads nothing of others by any statement, and the engine works when it is connected as one. */
import { POSITION_STEP } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { deriveMessage } from "@lossless/core/testing";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { openEngine } from "lossless-claw";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { RULED_TABLES } from "../src/migrations/0003-owners.ts";
import { Connection, databaseFiles, FullTextIndex, IndexQueue } from "../src/testing.ts";
import { addRole, listRoles, removeRole } from "../src/roles.ts";
import { speak, START } from "./speak.ts";

/** Facts about models and about the archive as a whole; and what is not used on a server. */
const SHARED = ["meta", "token_calibration", "guards", "vector_spaces", "word_blocks"];
let roles = 0;

async function connect(address: string): Promise<pg.Client> {
  const client = new pg.Client(address);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function open(database: string): Promise<Engine> {
  const engine = await openEngine({ database, thread: false });
  onTestFinished(() => engine.close());
  return engine;
}

const sessionOf = (owner: string) => ({ key: `agent:${owner}:test`, id: `session of ${owner}`, owner });

async function talk(engine: Engine, owner: string): Promise<void> {
  const session = sessionOf(owner);
  for (const from of [0, 30])
    await engine.ingest({
      session,
      messages: Array.from({ length: 30 }, (_, i) => ({
        eventId: `e${from + i}`,
        position: (from + i + 1) * POSITION_STEP,
        createdAt: START + (from + i) * 60_000,
        message: speak(from + i),
      })),
    });
  await engine.compact({ sessionKey: session.key, owner, budgetTokens: 1_000 });
  const child = { ...session, key: `agent:${owner}:fork`, id: `fork of ${owner}` };
  await engine.fork({ session: child, parentSessionId: session.id, eventIds: ["e50", "e51"] });
  await engine.forget({ messageIds: [await findMessage(engine, owner)], reason: "a test" });
}

async function findMessage(engine: Engine, owner: string): Promise<number> {
  const [hit] = (await engine.grep({ pattern: "sextants", mode: "full_text", session: sessionOf(owner) }))
    .hits;
  if (hit?.type !== "message") throw new Error("nothing was found");
  return hit.messageId;
}

/** Rows of tables that a talk does not fill. */
const REST = `
  INSERT INTO turns SELECT 'turn of ' || owner, session_ref, 1 FROM sessions WHERE owner = $1 LIMIT 1;
  INSERT INTO imports SELECT 'import of ' || owner, conversation_id, 'file', 1, 1 FROM conversations WHERE owner = $1;
  INSERT INTO redactions SELECT message_id, 'key', '', 0 FROM own_message;
  INSERT INTO sealed_values SELECT message_id, 0, 0, 1, 'key', '', '' FROM own_message;
  INSERT INTO boundaries SELECT conversation_id, session_ref, 'boundary', 1, 'new', 0, 0, 1, NULL FROM own_message;
  INSERT INTO expansion_grants VALUES ('grant of ' || $1, $1, 'a', 'b', '[]', '[]', 1, 1, 0, 1, NULL);
  INSERT INTO compaction_debt SELECT conversation_id, 'test', 1, 1, 0, 0 FROM own_message;
  INSERT INTO spend (at, conversation_id, purpose, provider, model, input_tokens, output_tokens, duration_ms, outcome)
    SELECT 1, conversation_id, '', '', '', 1, 1, 1, '' FROM own_message;
  INSERT INTO cache_usage SELECT conversation_id, 1, 1, 1, 1 FROM own_message;
  INSERT INTO message_vectors (space_id, message_id, vector) SELECT space_id, message_id, '' FROM own_message, vector_spaces;
  INSERT INTO index_gone VALUES ($1, 'message', 1);
  INSERT INTO index_pending SELECT message_id, $1 FROM own_message;
  INSERT INTO summary_parents SELECT summary_id, 99, summary_id FROM summaries JOIN conversations USING (conversation_id) WHERE owner = $1;
  INSERT INTO index_pending_summaries
    SELECT summary_ref, $1 FROM summary_refs JOIN summaries USING (summary_id) JOIN conversations USING (conversation_id) WHERE owner = $1`;

async function fillRest(client: pg.Client, owner: string): Promise<void> {
  const literal = client.escapeLiteral(owner);
  await client.query(`
    CREATE TEMP TABLE own_message AS SELECT m.* FROM messages m JOIN conversations c USING (conversation_id)
      WHERE c.owner = ${literal} ORDER BY m.message_id LIMIT 1;
    ${REST.replaceAll("$1", literal)};
    DROP TABLE own_message`);
}

type Dump = Readonly<Record<string, readonly string[]>>;

async function dump(client: pg.Client): Promise<Dump> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
  );
  const entries: [string, string[]][] = [];
  for (const { name } of rows) {
    const all = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t ORDER BY 1`);
    entries.push([name, all.rows.map(({ row }) => row)]);
  }
  return Object.fromEntries(entries);
}

const mapTables = (one: Dump, change: (rows: readonly string[], table: string) => string[]): Dump =>
  Object.fromEntries(Object.entries(one).map(([table, rows]) => [table, change(rows, table)]));

const join = (one: Dump, other: Dump): Dump =>
  mapTables(one, (rows, table) => [...rows, ...(other[table] ?? [])].toSorted());

const subtract = (one: Dump, other: Dump): Dump =>
  mapTables(one, (rows, table) => rows.filter((row) => !other[table]?.includes(row)));

/** Writes what waits into segments, however little it is. */
async function indexAll(address: string): Promise<void> {
  const sql = new Connection({ address, readOnly: false });
  const context = { sql, files: databaseFiles, index: new FullTextIndex(), derive: deriveMessage };
  await new IndexQueue(context).settle("all");
  await sql.close();
}

describePostgres("a role for each agent", (server) => {
  /** An archive, and a role of its server without any right. */
  async function start(): Promise<{ address: string; admin: pg.Client; role: string; asRole: string }> {
    const address = await server.createDatabase();
    const admin = await connect(address);
    const role = `agent_${(roles += 1)}`;
    await admin.query(`CREATE ROLE ${role} LOGIN`);
    return { address, admin, role, asRole: address.replace("//lcm@", `//${role}@`) };
  }

  test("reads no row and no term of another owner, in any table", async () => {
    const { address, admin, role, asRole } = await start();
    const engine = await open(address);
    await admin.query("INSERT INTO vector_spaces (model, dimensions, created_at) VALUES ('model', 1, 1)");
    await talk(engine, "ann");
    await indexAll(address);
    const talked = await dump(admin);
    await talk(engine, "bob");
    await indexAll(address);
    const before = await dump(admin);
    await fillRest(admin, "ann");
    const own = join(talked, subtract(await dump(admin), before));
    await fillRest(admin, "bob");
    await addRole(address, { role, owner: "ann" });
    const all = await dump(admin);
    expect(Object.keys(all).filter((name) => !RULED_TABLES.includes(name))).toEqual([
      "archive_roles",
      "archive_schema",
    ]);
    const seen = await dump(await connect(asRole));
    for (const table of RULED_TABLES) {
      if (SHARED.includes(table)) continue;
      // Else nothing would be proven about it.
      expect(all[table]?.length, table).toBeGreaterThan(own[table]?.length ?? 0);
      expect(seen[table], table).toEqual(all[table]?.filter((row) => own[table]?.includes(row)));
      expect(seen[table]?.length, table).toBeGreaterThan(0);
    }
    const other = `other_${role}`;
    await admin.query(`CREATE ROLE ${other} LOGIN`);
    const stranger = await connect(address.replace("//lcm@", `//${other}@`));
    await expect(stranger.query("SELECT * FROM messages")).rejects.toThrow("permission denied");
  });

  test("reads nothing of others by tables of its own that stand before the archive's", async () => {
    const { address, admin, role, asRole } = await start();
    await talk(await open(address), "bob");
    await addRole(address, { role, owner: "ann" });
    const count =
      "SELECT (SELECT count(*) FROM blobs)::int AS blobs, (SELECT count(*) FROM seals)::int AS seals";
    expect((await admin.query(count)).rows).not.toEqual([{ blobs: 0, seals: 0 }]);
    const client = await connect(asRole);
    expect((await client.query(count)).rows).toEqual([{ blobs: 0, seals: 0 }]);
    for (const table of ["archive_roles", "conversations", "sessions", "summaries", "messages"])
      await client.query(
        `CREATE TEMP TABLE ${table} (LIKE ${table}); GRANT ALL ON pg_temp.${table} TO PUBLIC`,
      );
    await client.query("INSERT INTO pg_temp.archive_roles VALUES (current_user, 'bob')");
    expect((await client.query(count)).rows).toEqual([{ blobs: 0, seals: 0 }]);
  });

  test("is taken back after it was dropped, and does not keep others from being added", async () => {
    const { address, admin, role } = await start();
    await open(address);
    await addRole(address, { role, owner: "ann" });
    await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    const next = `next_${role}`;
    await admin.query(`CREATE ROLE ${next} LOGIN`);
    await addRole(address, { role: next, owner: "bob" });
    expect(await removeRole(address, role, null)).toBe(true);
    expect(await listRoles(address)).toEqual([{ role: next, owner: "bob" }]);
  });

  test("lets the engine work on its own part, and on nothing else", async () => {
    const { address, admin, role, asRole } = await start();
    const all = await open(address);
    await talk(all, "bob");
    await addRole(address, { role, owner: "ann" });
    expect(await listRoles(address)).toEqual([{ role, owner: "ann" }]);
    const engine = await open(asRole);
    await talk(engine, "ann");
    const { key: sessionKey, ...session } = sessionOf("ann");
    const context = await engine.assemble({ sessionKey, owner: "ann", budgetTokens: 2_000 });
    expect(context?.messages.length).toBeGreaterThan(0);
    const found = await engine.grep({ pattern: "harbours", mode: "full_text", allConversations: true });
    expect(found.hits.length).toBeGreaterThan(0);
    expect(found.conversations.map((one) => one.sessionKey)).toEqual([sessionKey]);
    expect((await engine.status()).conversations).toBe(2);
    const own = await engine.verify();
    expect(own).toMatchObject({ ok: true, conversations: 2 });
    expect(
      await engine.grep({ pattern: "harbours", session: sessionOf("bob"), mode: "full_text" }),
    ).toMatchObject({
      hits: [],
    });
    const message = { role: "user", content: "not mine" };
    const stored = engine.ingest({ session: sessionOf("bob"), messages: [{ eventId: "x", message }] });
    await expect(stored).rejects.toMatchObject({ code: "denied" });
    expect(session.owner).toBe("ann");
    expect(await all.verify()).toMatchObject({ ok: true, conversations: 4 });
    expect(await removeRole(address, role, null)).toBe(true);
    expect(await removeRole(address, role, null)).toBe(false);
    await expect(engine.status()).rejects.toMatchObject({ code: "database_unreadable" });
    expect((await admin.query("SELECT count(*)::int AS n FROM conversations")).rows).toEqual([{ n: 4 }]);
  });

  test("refuses roles that the server would not hold to the rules", async () => {
    const { address, admin, role } = await start();
    await open(address);
    const add = (name: string): Promise<void> => addRole(address, { role: name, owner: "ann" });
    await expect(add("nobody at all")).rejects.toMatchObject({ code: "usage" });
    await expect(add("lcm")).rejects.toMatchObject({ code: "usage" });
    await admin.query(`ALTER ROLE ${role} BYPASSRLS`);
    await expect(add(role)).rejects.toMatchObject({ code: "usage" });
    const member = `member_${role}`;
    await admin.query(`CREATE ROLE ${member} LOGIN; GRANT ${role} TO ${member}`);
    await expect(add(member)).rejects.toMatchObject({ code: "usage" });
    expect(await listRoles(address)).toEqual([]);
  });
});
