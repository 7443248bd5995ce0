/**
 * Forgetting on PostgreSQL: the rules are in `archive/forget.ts`. After the transaction no row and no term of the index contains the text. A
 * VACUUM removes what the server keeps of old rows on its pages, and later writes overwrite it; its log, its replicas and its backups are beyond
 * this program, as `docs/postgres.md` says.
 */
import { planForget, planForgetting } from "@lossless/core/adapter";
import { TABLE_NAMES } from "@lossless/core/ports";
import type { ForgetResult, ForgetPlan, ForgetRequest } from "@lossless/core/ports";
import { statement } from "./connection.ts";
import { purgeAll } from "./full-text-index.ts";
import { storedIn } from "./migrations/0004-links.ts";
import { CONFLICTING, readPlan, writePlan } from "./plans.ts";
import type { StoreContext } from "./store-context.ts";
import { removeUnnamed } from "./unnamed-blobs.ts";

/** What was forgotten and not cleared yet: one mark for each transaction, with the files in a folder that it leaves. */
const OPEN_MARKS = "SELECT key, value FROM meta WHERE starts_with(key, 'forgetting_open')";
const ADD_MARK =
  "INSERT INTO meta (key, value) VALUES ('forgetting_open ' || gen_random_uuid(), to_jsonb($1::text[]))";
/** Every table that may have contained a word of the forgotten text. */
const WIPED = [...TABLE_NAMES.map(storedIn), "blobs", "index_postings", "index_spellings", "index_documents"];
const VACUUM = `VACUUM ${WIPED.join(", ")}`;
/** The server skips tables of other owners with a mere warning. */
const MAY_VACUUM = `
  SELECT coalesce(bool_and(pg_has_role(c.relowner, 'USAGE')), false)
    OR (SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()) AS yes
  FROM unnest($1::text[]) name JOIN pg_class c ON c.oid = to_regclass(name)`;
const DROP_MARKS = "DELETE FROM meta WHERE key = ANY($1::text[])";

export const readForgetPlan = (
  context: StoreContext,
  messageIds: readonly number[],
  alsoSummaryIds: readonly string[],
): Promise<ForgetPlan> => readPlan(context, () => planForgetting(messageIds, alsoSummaryIds));

export async function forget(context: StoreContext, request: ForgetRequest): Promise<ForgetResult> {
  const { files } = context;
  const outcome = await context.sql.write(async (sql) => {
    const planned = await writePlan({ ...context, sql }, () => planForget(request));
    if (planned.kind === "stale") return planned;
    const blobs = planned.plan.files.map(({ blob }) => blob);
    sql.post(statement(ADD_MARK, files.isTransactional ? [] : blobs));
    await purgeAll(sql);
    if (files.isTransactional) for (const blob of blobs) files.remove(sql, blob);
    return planned;
  }, CONFLICTING);
  // Not before the commit, which may fail; by then another program may have stored the same content again. If one holds the conversation for
  // too long, the mark still names them.
  if (outcome.kind !== "stale" && !files.isTransactional)
    await removeUnnamed(
      context,
      outcome.plan.files.map(({ blob }) => blob),
    );
  return outcome;
}

export async function isForgettingOpen({ sql }: StoreContext): Promise<boolean> {
  return (await sql.get(OPEN_MARKS)) !== undefined;
}

/**
 * Removes files that an interrupted forgetting has left, and makes the server clear removed rows; those that an open transaction can still see
 * stay until the next time. False for a role that may not.
 */
export async function wipeFreed(context: StoreContext): Promise<boolean> {
  const { sql } = context;
  // What is forgotten from here on needs another VACUUM.
  const marks = await sql.all<{ key: string; value: readonly string[] | number }>(OPEN_MARKS);
  // Earlier versions noted the time instead.
  await removeUnnamed(
    context,
    marks.flatMap(({ value }) => (typeof value === "number" ? [] : value)),
  );
  if ((await sql.get<{ yes: boolean }>(MAY_VACUUM, WIPED))?.yes !== true) return false;
  await sql.all(VACUUM);
  const keys = marks.map(({ key }) => key);
  await sql.write(async (own) => own.post(statement(DROP_MARKS, keys)));
  return true;
}
