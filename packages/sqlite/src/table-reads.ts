/** Statements that read declared tables, made from a question: by equal columns, in pages or by a set of keys. */
import type { SQLInputValue } from "node:sqlite";
import type { KeysQuery, PageQuery, TableName, Values } from "@lossless/core/ports";

interface Statement {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

/** Columns are those of a declared table, never user input. */
const list = (columns: readonly string[]): string => columns.map((column) => `t.${column}`).join(", ");

function renderWhere(where: Values, further: readonly string[] = []): string {
  const equal = Object.entries(where).map(([column, value]) =>
    value === null ? `t.${column} IS NULL` : `t.${column} = ?`,
  );
  const all = [...equal, ...further];
  return all.length === 0 ? "" : ` WHERE ${all.join(" AND ")}`;
}

const bind = (where: Values): SQLInputValue[] => Object.values(where).filter((value) => value !== null);

const renderOrder = (order: readonly string[]): string =>
  order.length === 0 ? "" : ` ORDER BY ${list(order)}`;

export function renderPage({ table, columns, where, order, after, limit }: PageQuery): Statement {
  const later = after === null ? [] : [`(${list(order)}) > (${order.map(() => "?").join(", ")})`];
  return {
    sql: `SELECT ${list(columns)} FROM ${table} t${renderWhere(where, later)}${renderOrder(order)} LIMIT ?`,
    values: [...bind(where), ...(after ?? []), limit],
  };
}

export function renderKeys({ table, columns, where, order, column, keys }: KeysQuery): Statement {
  return {
    sql: `SELECT ${list(columns)} FROM json_each(?) j CROSS JOIN ${table} t ON t.${column} = j.value${renderWhere(where)}${renderOrder(order)}`,
    values: [JSON.stringify(keys), ...bind(where)],
  };
}

export const renderCount = (table: TableName, where: Values): Statement => ({
  sql: `SELECT count(*) AS n FROM ${table} t${renderWhere(where)}`,
  values: bind(where),
});
