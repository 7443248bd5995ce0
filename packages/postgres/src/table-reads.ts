/** Statements that read declared tables, built from a read: by equal columns, in pages or by a set of keys. */
import type { KeysQuery, PageQuery, TableName, Value, Values } from "@lossless/core/ports";
import type { Statement } from "./connection.ts";
import type { SqlValue } from "./sql-values.ts";

/** Columns are those of a declared table, never user input. */
const list = (columns: readonly string[]): string => columns.map((column) => `t.${column}`).join(", ");

/** Numbers the parameters of a statement. */
class Binding {
  readonly values: SqlValue[] = [];

  add(value: SqlValue): string {
    return `$${this.values.push(value)}`;
  }

  equal(where: Values): string[] {
    return Object.entries(where).map(([column, value]) =>
      value === null ? `t.${column} IS NULL` : `t.${column} = ${this.add(value)}`,
    );
  }

  end(text: string): Statement {
    return { text, values: this.values };
  }
}

const renderWhere = (conditions: readonly string[]): string =>
  conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;

const renderOrder = (order: readonly string[]): string =>
  order.length === 0 ? "" : ` ORDER BY ${list(order)}`;

export function renderPage({ table, columns, where, order, after, limit }: PageQuery): Statement {
  const bound = new Binding();
  const conditions = bound.equal(where);
  if (after !== null) {
    const place = after.map((value: Value) => bound.add(value));
    conditions.push(`(${list(order)}) > (${place.join(", ")})`);
  }
  return bound.end(
    `SELECT ${list(columns)} FROM ${table} t${renderWhere(conditions)}${renderOrder(order)} LIMIT ${bound.add(limit)}`,
  );
}

export function renderKeys({ table, columns, where, order, column, keys }: KeysQuery): Statement {
  const bound = new Binding();
  const type = typeof keys[0] === "string" ? "text" : "bigint";
  const among = `t.${column} = ANY(${bound.add(keys)}::${type}[])`;
  const conditions = [among, ...bound.equal(where)];
  return bound.end(`SELECT ${list(columns)} FROM ${table} t${renderWhere(conditions)}${renderOrder(order)}`);
}

export function renderCount(table: TableName, where: Values): Statement {
  const bound = new Binding();
  return bound.end(`SELECT count(*) AS n FROM ${table} t${renderWhere(bound.equal(where))}`);
}

/** Selects a column, or an expression over the row, where the columns equal these values. */
export function renderFind(table: TableName, what: string, where: Values): Statement {
  const bound = new Binding();
  return bound.end(`SELECT ${what} FROM ${table} t${renderWhere(bound.equal(where))}`);
}
