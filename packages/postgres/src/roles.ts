/**
 * Roles of the server that may use only the rows of one owner. The rules are part of the schema (`migrations/0003-owners.ts`, and
 * `0004-links.ts` for what may be written); this file grants the tables to a role, and from the first role on the server enforces the rules.
 * They do not apply to the role that owns the tables: it adds roles, upgrades the schema and runs work on the whole archive.
 *
 * Invariant: while there is a role, the rules of every table are enforced. So adding a role, or upgrading a schema, enforces them in the same
 * transaction.
 */
import { EngineError } from "@lossless/core/adapter";
import { Connection, statement } from "./connection.ts";
import type { Sql, WriteSql } from "./connection.ts";
import { migrate } from "./migrate.ts";
import { ACCESS, RULED_TABLES } from "./migrations/0004-links.ts";

export interface ArchiveRole {
  readonly role: string;
  readonly owner: string;
}

/** A role may have been dropped since: the server no longer knows it, and nothing can be granted to it or revoked. */
const LIST_LIVING =
  "SELECT rolname::text AS role FROM pg_roles JOIN archive_roles ON role = rolname GROUP BY rolname";
const IS_LIVING = "SELECT FROM pg_roles WHERE rolname = $1";
const LIST = "SELECT role, owner FROM archive_roles ORDER BY role, owner";
const COUNT = "SELECT count(*) AS n FROM archive_roles";
const ADD = "INSERT INTO archive_roles (role, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const REMOVE = "DELETE FROM archive_roles WHERE role = $1 AND ($2::text IS NULL OR owner = $2)";
const LEFT = "SELECT count(*) AS n, count(*) FILTER (WHERE role = $1) AS own FROM archive_roles";
/** A role that the rules do not apply to, and why. */
const FIND = `
  SELECT (SELECT bool_or(g.rolsuper OR g.rolbypassrls) FROM pg_roles g WHERE pg_has_role(r.oid, g.oid, 'MEMBER')) AS "isAbove",
    pg_has_role(r.oid, c.relowner, 'MEMBER') AS "isOwner", has_schema_privilege(r.oid, c.relnamespace, 'CREATE') AS "mayCreate",
    c.relnamespace::regnamespace::text AS schema
  FROM pg_roles r CROSS JOIN pg_class c WHERE r.rolname = $1 AND c.oid = to_regclass('archive_roles')`;
const SEQUENCES = `
  SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.relkind = 'S' AND c.relnamespace = current_schema()::regnamespace
    AND c.relowner = (SELECT relowner FROM pg_class WHERE oid = to_regclass('archive_roles'))`;
const SCHEMA = "SELECT quote_ident(current_schema()) AS name";

const ALL_TABLES = Object.keys(ACCESS).join(", ");
const GRANTS = Object.entries(ACCESS).flatMap(([table, rights]) =>
  rights.length === 0 ? [] : [`GRANT ${rights.join(", ")} ON ${table}`],
);

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Enforces the rules on every table and grants the tables to every role. Also after an upgrade, which may have added tables. */
export async function enforceRules(sql: WriteSql): Promise<void> {
  const count = await sql.get<{ n: number }>(COUNT);
  if (count?.n === 0) return;
  const roles = await sql.all<{ role: string }>(LIST_LIVING);
  const sequences = (await sql.all<{ name: string }>(SEQUENCES)).map(({ name }) => name);
  const schema = await sql.get<{ name: string }>(SCHEMA);
  switchRules(sql, "ENABLE");
  for (const role of roles.map((one) => quote(one.role)))
    sql.post(
      statement(`GRANT USAGE ON SCHEMA ${schema?.name} TO ${role}`),
      // An older program may have granted more.
      statement(`REVOKE ALL ON ${ALL_TABLES} FROM ${role}`),
      ...GRANTS.map((grant) => statement(`${grant} TO ${role}`)),
      statement(`GRANT USAGE ON SEQUENCE ${sequences.join(", ")} TO ${role}`),
    );
}

function switchRules(sql: WriteSql, how: "ENABLE" | "DISABLE"): void {
  for (const table of [...RULED_TABLES, "archive_roles"])
    sql.post(statement(`ALTER TABLE ${table} ${how} ROW LEVEL SECURITY`));
}

async function withArchive<T>(
  address: string,
  readOnly: boolean,
  work: (sql: Connection) => Promise<T>,
): Promise<T> {
  const connection = new Connection({ address, readOnly });
  try {
    await migrate(connection, { create: false, onUpgraded: enforceRules });
    return await work(connection);
  } finally {
    await connection.close();
  }
}

export const listRoles = (address: string): Promise<ArchiveRole[]> =>
  withArchive(address, true, (sql) => sql.all<ArchiveRole>(LIST));

/** Lets the role use the rows of an owner. */
export const addRole = (address: string, { role, owner }: ArchiveRole): Promise<void> =>
  withArchive(address, false, (connection) =>
    connection.write(async (sql) => {
      await checkRole(sql, role);
      sql.post(statement(ADD, role, owner));
      await enforceRules(sql);
    }),
  );

/** Removes an owner from a role, or all of them and the tables. False if there was nothing to remove. */
export const removeRole = (address: string, role: string, owner: string | null): Promise<boolean> =>
  withArchive(address, false, (connection) =>
    connection.write(async (sql) => {
      if ((await sql.change(REMOVE, role, owner)) === 0) return false;
      const left = await sql.get<{ n: number; own: number }>(LEFT, role);
      if (left === undefined || left.own > 0) return true;
      // Without a role everything is as before the first one.
      if (left.n === 0) switchRules(sql, "DISABLE");
      if ((await sql.get(IS_LIVING, role)) === undefined) return true;
      const sequences = (await sql.all<{ name: string }>(SEQUENCES)).map(({ name }) => name);
      sql.post(
        statement(`REVOKE ALL ON ${ALL_TABLES} FROM ${quote(role)}`),
        statement(`REVOKE ALL ON SEQUENCE ${sequences.join(", ")} FROM ${quote(role)}`),
      );
      return true;
    }),
  );

/**
 * The server applies rules neither to a superuser nor to the owner of the tables. A role that may create objects in their schema could add a
 * function that matches a call better than the server's own, and the owner of the tables would run it.
 */
async function checkRole(sql: Sql, role: string): Promise<void> {
  const found = await sql.get<{ isAbove: boolean; isOwner: boolean; mayCreate: boolean; schema: string }>(
    FIND,
    role,
  );
  const refuse = (why: string, hint: string): never => {
    throw new EngineError("usage", `cannot add the role ${role}: ${why}`, { hint });
  };
  if (found === undefined)
    refuse("the server has no such role", `create it first: CREATE ROLE ${quote(role)} LOGIN PASSWORD '…'`);
  if (found?.isAbove)
    refuse(
      "the server lets it read everything",
      "take SUPERUSER and BYPASSRLS from it and from the roles that it may act as, or name another role",
    );
  if (found?.isOwner)
    refuse("it owns the tables, or may act as the role that does", "name a role of its own for the agent");
  if (found?.mayCreate)
    refuse(
      `it may create functions in the schema ${found.schema}, which others would run`,
      `take the right from it: REVOKE CREATE ON SCHEMA ${found.schema} FROM PUBLIC, ${quote(role)} (databases of servers before PostgreSQL 15 give it to everybody)`,
    );
}
