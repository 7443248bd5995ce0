/** Checks seals: every seal matches, none is missing, and none is left of removed rows. */
import { formatMessageId } from "../model/ids.ts";
import type { Values } from "./changes.ts";
import { equalBytes } from "./equal-bytes.ts";
import { readRows } from "./pages.ts";
import { read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import { hashSeal, pickSealed, SEAL_KINDS, SEALED } from "./seals.ts";
import type { SealedTable, SealKind } from "./seals.ts";
import type { Value } from "./tables.ts";
import type { Problems } from "./verify-problems.ts";

/** Each summary comes with its sources, a dozen or two. */
const PAGE_SEALS = 64;

export function* checkSeals(problems: Problems): Asking<void> {
  for (const kind of SEAL_KINDS) {
    const rows = yield* checkKind(kind, problems);
    const seals = yield* read.count("seals", { kind });
    if (seals !== rows)
      problems.add("seal", "archive", `there are ${seals} seals of kind ${kind}, counted ${rows} rows`);
  }
}

/** Returns how many rows are to be sealed. */
function* checkKind(kind: SealKind, problems: Problems): Asking<number> {
  const [first, ...others] = SEALED[kind];
  let count = 0;
  for (let after: readonly Value[] | null = null; ;) {
    const page: Values[] = yield* read.page({
      table: first.table,
      columns: first.columns,
      where: {},
      order: [first.id],
      after,
      limit: PAGE_SEALS,
    });
    if (page.length > 0) yield* checkPage(kind, page, others, problems);
    count += page.length;
    if (page.length < PAGE_SEALS) return count;
    after = [page.at(-1)?.[first.id] ?? null];
  }
}

function* checkPage(
  kind: SealKind,
  page: readonly Values[],
  others: readonly SealedTable[],
  problems: Problems,
): Asking<void> {
  const [first] = SEALED[kind];
  const keys = page.map((row) => toKey(row[first.id]));
  const belonging: Map<Value | undefined, Values[]>[] = [];
  for (const sealed of others) belonging.push(yield* readBelonging(sealed, keys));
  const seals = yield* readRows("seals", ["id", "hash"], {
    column: "id",
    keys: keys.map(String),
    where: { kind },
  });
  const hashes = new Map(seals.map((seal) => [seal.id, seal.hash]));
  for (const [index, row] of page.entries()) {
    const id = keys[index] ?? "";
    const facts = [
      [pickSealed(first, row)],
      ...others.map((sealed, at) => (belonging[at]?.get(id) ?? []).map((other) => pickSealed(sealed, other))),
    ];
    if (equalBytes(hashSeal(kind, facts), hashes.get(String(id)))) continue;
    const name = NAMES[kind](id);
    problems.add("seal", name, `${name} is not what was stored: ${DESCRIBED[kind]} was changed`);
  }
}

function* readBelonging(
  { table, id, columns, order }: SealedTable,
  keys: readonly (number | string)[],
): Asking<Map<Value | undefined, Values[]>> {
  const query = { table, columns: [id, ...columns], where: {}, order: [id, ...order], column: id, keys };
  return Map.groupBy(yield* read.rows(query), (row) => row[id]);
}

const toKey = (value: Value | undefined): number | string =>
  typeof value === "number" ? value : String(value);

const NAMES: Readonly<Record<SealKind, (id: number | string) => string>> = {
  session: (id) => `session ${id}`,
  conversation: (id) => `conversation ${id}`,
  summary: String,
  redaction: (id) => formatMessageId(Number(id)),
};
const DESCRIBED: Readonly<Record<SealKind, string>> = {
  session: "its id or owner",
  conversation: "when it was archived, where it comes from, its parent, a placement or a boundary",
  summary: "its span, state, a time or a source",
  redaction: "one of its vault entries",
};
