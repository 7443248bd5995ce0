/** A role of the server for each agent: it reads nothing of others by any statement, and the engine works when it is connected as one. */
import { POSITION_STEP } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { deriveMessage } from "@lossless/core/testing";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { openEngine } from "lossless-claw";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { ACCESS, KEYS, LINKS, RULED_TABLES } from "../src/migrations/0004-links.ts";
import { Connection, databaseFiles, FullTextIndex, IndexQueue, migrate } from "../src/testing.ts";
import { addRole, listRoles, removeRole } from "../src/roles.ts";
import { divide, speak, START } from "./speak.ts";

/** Facts about the archive as a whole, and what is not used on a server. */
const SHARED = ["meta", "vector_spaces", "word_blocks"];
/** What the server calls a refusal. */
const DENIED = "42501";
let roles = 0;

async function connect(address: string): Promise<pg.Client> {
  const client = new pg.Client(address.replace(/&partitions=\d+/, ""));
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

const RIGHTS = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];

/** What the server lets a role do with each table and view. */
async function listRights(client: pg.Client, role: string): Promise<Record<string, string[]>> {
  const { rows } = await client.query<{ name: string; rights: string[] }>(
    `SELECT c.relname::text AS name, ARRAY(
       SELECT r FROM unnest($2::text[]) r WHERE has_table_privilege($1, c.oid, r)) AS rights
     FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')`,
    [role, RIGHTS],
  );
  // Whoever may use a table has no right to its parts, nor to the keys that they share.
  const isPart = (name: string): boolean => /_p\d+$|^message_keys$/.test(name);
  expect(rows.filter(({ name }) => isPart(name)).flatMap(({ rights }) => rights)).toEqual([]);
  return Object.fromEntries(
    rows.filter(({ name }) => !isPart(name)).map(({ name, rights }) => [name, rights]),
  );
}

/** The rows of every table that the client may read. */
async function dump(client: pg.Client): Promise<Dump> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname::text AS name FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition AND has_table_privilege(oid, 'SELECT')
     ORDER BY 1`,
  );
  const entries: [string, string[]][] = [];
  for (const { name } of rows) {
    const all = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t ORDER BY 1`);
    entries.push([name, all.rows.map(({ row }) => row)]);
  }
  return Object.fromEntries(entries);
}

const mapValues = <T>(one: Readonly<Record<string, unknown>>, change: () => T): Record<string, T> =>
  Object.fromEntries(Object.keys(one).map((key) => [key, change()]));

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

for (const partitions of [0, 4]) testRoles(partitions);

function testRoles(partitions: number): void {
  describePostgres(`a role for each agent, partitions: ${partitions}`, (server) => {
    /** An archive, and a role of its server without any right. */
    async function start(): Promise<{ address: string; admin: pg.Client; role: string; asRole: string }> {
      const address = divide(await server.createDatabase(), partitions);
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
      const client = await connect(asRole);
      const seen = await dump(client);
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

    test("may do with every table what the list says, and no more", async () => {
      const { address, admin, role } = await start();
      await open(address);
      await addRole(address, { role, owner: "ann" });
      expect(await listRights(admin, role)).toEqual(ACCESS);
      expect(await removeRole(address, role, null)).toBe(true);
      expect(Object.values(await listRights(admin, role)).flat()).toEqual([]);
    });

    test("loses with an upgrade what an older program has given it", async () => {
      const { address, admin, role } = await start();
      const older = new Connection({ address, readOnly: false });
      await migrate(older, { create: true, known: 3 });
      await older.close();
      await admin.query(`INSERT INTO archive_roles VALUES ('${role}', 'ann'); INSERT INTO guards VALUES ('model', 1, 1, '');
      GRANT SELECT, INSERT, UPDATE, DELETE ON guards, token_calibration, ${RULED_TABLES.join(", ")} TO ${role}`);
      await open(address);
      expect(await listRights(admin, role)).toEqual(ACCESS);
      expect((await admin.query("SELECT name FROM guards")).rows).toEqual([{ name: "model" }]);
    });

    /** Two owners, and a client as the role of ann; also with rows in every table. */
    async function startBoth(
      isFilled: boolean,
    ): Promise<{ engine: Engine; admin: pg.Client; client: pg.Client }> {
      const { address, admin, role, asRole } = await start();
      const engine = await open(address);
      await admin.query("INSERT INTO vector_spaces (model, dimensions, created_at) VALUES ('model', 1, 1)");
      for (const owner of ["ann", "bob"]) await talk(engine, owner);
      await indexAll(address);
      if (isFilled) for (const owner of ["ann", "bob"]) await fillRest(admin, owner);
      await addRole(address, { role, owner: "ann" });
      return { engine, admin, client: await connect(asRole) };
    }

    /** What the server answers: the code of its refusal, or how many rows it changed. */
    const attempt = (client: pg.Client, text: string): Promise<string | number | null> =>
      client.query(text).then(
        ({ rowCount }) => rowCount,
        (error: pg.DatabaseError) => error.code ?? error.message,
      );

    test("points no row of its own at a row of another owner, by any column", async () => {
      const { admin, client } = await startBoth(true);
      const answers: Record<string, unknown> = {};
      for (const { table, column, to } of LINKS.filter((link) => ACCESS[link.table]?.includes("UPDATE"))) {
        const ids = `SELECT ${KEYS[to]}::text AS id FROM ${to}`;
        const own = (await client.query<{ id: string }>(ids)).rows.map(({ id }) => id);
        const foreign = (await admin.query<{ id: string }>(ids)).rows.find(({ id }) => !own.includes(id));
        const row = `(tableoid, ctid) = (SELECT tableoid, ctid FROM ${table} LIMIT 1)`;
        answers[`${table}.${column}`] = await attempt(
          client,
          `UPDATE ${table} SET ${column} = '${foreign?.id}' WHERE ${row}`,
        );
      }
      expect(answers).toEqual(mapValues(answers, () => DENIED));
      expect(Object.keys(answers).length).toBeGreaterThan(20);
    });

    test("writes nothing that others rely on", async () => {
      const { admin, client } = await startBoth(true);
      const find = async (text: string): Promise<string> => {
        const [row] = (await admin.query<{ v: string }>(text)).rows;
        return row?.v ?? "";
      };
      const other = await find("SELECT min(conversation_id) AS v FROM conversations WHERE owner = 'bob'");
      const message = await find(
        `SELECT max(message_id) AS v FROM messages WHERE conversation_id = ${other}`,
      );
      const next = "(SELECT max(message_id) + 1000000 FROM messages)";
      await admin.query(
        "INSERT INTO guards VALUES ('model', 1, 1, ''); INSERT INTO token_calibration VALUES ('m', 1, 1, 1)",
      );
      const copy = async (table: string, column: string, value: string): Promise<string> => {
        const columns = await find(`SELECT string_agg(attname, ', ') AS v FROM pg_attribute
        WHERE attrelid = '${table}'::regclass AND attnum > 0 AND attname <> '${column}'`);
        return `INSERT INTO ${table} (${column}, ${columns}) SELECT ${value}, ${columns} FROM ${table} LIMIT 1`;
      };
      const attempts: Record<string, string> = {
        "the number of a message to come": (await copy("messages", "message_id", next)).replace(
          " seq,",
          " seq,",
        ),
        "the number of a session to come": await copy("sessions", "session_ref", "1000000"),
        "the number of a vector to come": await copy("message_vectors", "vector_id", "1000000"),
        "the number of a message of others": await copy("messages", "message_id", message),
        "a payload of a conversation to come": "INSERT INTO blobs VALUES ('1000000/file_a.txt', 0, '')",
        "a payload of others": `INSERT INTO blobs VALUES ('${other}/file_a.txt', 9, '')`,
        "a file that names a payload of others": `UPDATE large_files SET storage_path = '${other}/file_a.txt'`,
        "a file outside its folder":
          "UPDATE large_files SET storage_path = conversation_id || '/../../secret'",
        "a seal of a conversation to come": "INSERT INTO seals VALUES ('conversation', '1000000', '')",
        "a document of others": `INSERT INTO index_documents VALUES ('message', ${message}, 'ann', 1, NULL)
         ON CONFLICT (kind, id) DO UPDATE SET owner = excluded.owner`,
        "a document to come": "INSERT INTO index_documents VALUES ('message', 1000000, 'ann', 1, NULL)",
        "the indexing of a message of others": `INSERT INTO index_pending (owner, message_id) VALUES ('ann', ${message})`,
        "the schema's version": "UPDATE archive_schema SET version = 99",
        "its own owners": "INSERT INTO archive_roles SELECT current_user, 'bob'",
        "a fact of the archive": "INSERT INTO meta VALUES ('other', '1')",
        "the note of a forgetting": "DELETE FROM meta",
        "the lease of a space": "UPDATE vector_spaces SET lease_until = 9000000000000000",
        "the bill of others": `INSERT INTO spend (at, conversation_id, purpose, provider, model, input_tokens, output_tokens, duration_ms, outcome)
         VALUES (1, ${other}, '', '', '', 1, 1, 1, '')`,
        "what was spent, less some": `INSERT INTO spend (at, purpose, provider, model, input_tokens, output_tokens, duration_ms, outcome)
         VALUES (1, '', '', '', -1000000, 0, 0, '')`,
        "the record of usage": "DELETE FROM spend",
        "how others count tokens": "UPDATE token_calibration_by_role SET factor = 9",
        "the guards of others": "DELETE FROM guards_by_role",
        "a number given twice": "SELECT setval('messages_ids', 1)",
      };
      const answers: Record<string, unknown> = {};
      for (const [what, text] of Object.entries(attempts)) answers[what] = await attempt(client, text);
      // It must not be taken twice, whoever sees it.
      expect(answers["the number of a message of others"]).toBe("23505");
      delete answers["the number of a message of others"];
      expect(answers).toEqual(mapValues(answers, () => DENIED));
      // What it keeps for itself it may write, and nobody else is told.
      expect(await attempt(client, "INSERT INTO guards VALUES ('model', 9, 9, '')")).toBe(1);
      expect(await attempt(client, "UPDATE token_calibration SET factor = 9")).toBe(0);
      expect((await admin.query("SELECT failures::int FROM guards")).rows).toEqual([{ failures: 1 }]);
    });

    test("learns nothing about others in the name of their role", async () => {
      const { address, admin, role, asRole } = await start();
      const engine = await open(address);
      const other = `other_${role}`;
      await admin.query(`CREATE ROLE ${other} LOGIN`);
      await talk(engine, "bob");
      await addRole(address, { role, owner: "ann" });
      await addRole(address, { role: other, owner: "bob" });
      const client = await connect(asRole);
      const ask = async (call: string): Promise<unknown[]> =>
        (await client.query(`SELECT DISTINCT ${call} AS told FROM generate_series(1, 100) n`)).rows;
      expect(await ask(`is_of_others(n, '${other}')`)).toEqual([{ told: true }]);
      for (const kind of ["session", "conversation", "summary", "message"])
        expect(await ask(`is_seal_of_others('${kind}', n::text, '${other}')`), kind).toEqual([
          { told: true },
        ]);
    });

    test("runs nothing as the role that owns the tables", async () => {
      const { admin, client } = await startBoth(false);
      const { rows } = await admin.query<{ name: string }>(
        "SELECT oid::regprocedure::text AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef AND prorettype = 'trigger'::regtype",
      );
      // A table of its own, with a trigger of ours, that writes to a table of its own, whose trigger is its own.
      await client.query(`CREATE TEMP TABLE bait (message_id bigint); CREATE TEMP TABLE message_keys (message_id bigint);
        CREATE TEMP TABLE ran_as (who text); GRANT ALL ON bait, message_keys, ran_as TO PUBLIC;
        CREATE FUNCTION pg_temp.run() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN INSERT INTO pg_temp.ran_as VALUES (current_user); RETURN NULL; END';
        CREATE TRIGGER run AFTER INSERT ON pg_temp.message_keys FOR EACH ROW EXECUTE FUNCTION pg_temp.run()`);
      for (const { name } of rows)
        expect(
          await attempt(
            client,
            `CREATE TRIGGER bait AFTER INSERT ON bait REFERENCING NEW TABLE AS changed
             FOR EACH STATEMENT EXECUTE FUNCTION ${name}; INSERT INTO bait VALUES (1)`,
          ),
          name,
        ).toBe(DENIED);
      expect((await client.query("SELECT who FROM ran_as")).rows).toEqual([]);
    });

    test("gives no message of its own the number of another's, and takes nothing of others along", async () => {
      const { admin, client } = await startBoth(false);
      const bobs = `SELECT p.* FROM message_parts p JOIN messages m USING (message_id) JOIN conversations c USING (conversation_id)
        WHERE c.owner = 'bob' ORDER BY 1, 2`;
      const before = (await admin.query<{ message_id: string }>(bobs)).rows;
      const victim = before[0]?.message_id;
      const row = "(tableoid, ctid) = (SELECT tableoid, ctid FROM messages ORDER BY message_id DESC LIMIT 1)";
      expect(await attempt(client, `UPDATE messages SET message_id = ${victim} WHERE ${row}`)).not.toBe(1);
      await attempt(client, `DELETE FROM messages WHERE message_id = ${victim}`);
      expect((await admin.query(bobs)).rows).toEqual(before);
    });

    /** The links of its own rows, as a role would have to bend them, and the reads of a program that no rule holds. */
    test("gets no text of others shown or folded by a program that may read everything", async () => {
      const { engine, admin, client } = await startBoth(false);
      const message = { role: "user", content: "the secret of bob is zanzibar" };
      await engine.ingest({ session: sessionOf("bob"), messages: [{ eventId: "secret", message }] });
      const {
        rows: [said],
      } = await admin.query<{ id: string }>("SELECT max(message_id) AS id FROM messages");
      for (const text of [
        `UPDATE context_items SET message_id = ${said?.id} WHERE message_id IS NOT NULL`,
        `UPDATE summary_messages SET message_id = ${said?.id}`,
        "UPDATE summaries SET stale = 1 WHERE state = 'cover'",
      ])
        await attempt(client, text);
      const { key: sessionKey, owner } = sessionOf("ann");
      const shown = await engine.assemble({ sessionKey, owner, budgetTokens: 50_000 });
      await engine.maintain({ sessionKey, owner, budgetTokens: 1_000 });
      const { rows } = await client.query<{ content: string }>("SELECT content FROM summaries");
      expect(JSON.stringify([shown, rows]).includes("zanzibar")).toBe(false);
      expect(rows.length).toBeGreaterThan(0);
    });

    test("reads and names nothing of others by tables and functions of its own that stand before the archive's", async () => {
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
      await talk(await open(asRole), "ann");
      const { rows } = await admin.query<{ id: string }>(
        "SELECT min(message_id) AS id FROM messages JOIN conversations USING (conversation_id) WHERE owner = 'bob'",
      );
      await client.query(`INSERT INTO pg_temp.messages (message_id) VALUES (${rows[0]?.id})`).catch(() => 0);
      const point = `UPDATE public.messages SET revises = ${rows[0]?.id}`;
      expect(await attempt(client, point)).toBe(DENIED);
      // A function of its own that fits a call of the check better than the server's.
      await admin.query(`CREATE SCHEMA own AUTHORIZATION ${role}`);
      await client.query(`
        CREATE FUNCTION own.format(text, name) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'SELECT $1 IS NOT NULL';
        SET search_path = own, public`);
      expect(await attempt(client, point)).toBe(DENIED);
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
      // A message and its revision in one statement, which also teach how a model counts.
      const usage = { input_tokens: 900, output_tokens: 2_100 };
      const says = (content: string): object => ({
        eventId: "twice",
        message: { role: "assistant", content: content.repeat(2_000), provider: "p", model: "m", usage },
      });
      await engine.ingest({ session: sessionOf("ann"), messages: [says("x "), says("y ")] });
      expect((await admin.query("SELECT 1 FROM messages WHERE revises IS NOT NULL")).rows).toHaveLength(1);
      expect((await admin.query("SELECT role FROM token_calibration_by_role")).rows).toEqual([{ role }]);
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
      const maker = `maker_${role}`;
      await admin.query(`CREATE ROLE ${maker} LOGIN; GRANT CREATE ON SCHEMA public TO PUBLIC`);
      await expect(add(maker)).rejects.toMatchObject({ code: "usage" });
      await admin.query("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
      expect(await listRoles(address)).toEqual([]);
    });
  });
}
