/**
 * Statements that are sent together, and answered together. By itself the driver ends every statement with a Sync, and the server flushes its
 * answer to each: a batch has one Sync at its end, so it takes one flush there and one wake-up here.
 *
 * Invariants: several statements are in a transaction that began before them; outside one, the server would make them one by itself. If a
 * statement fails, the server skips those after it, and the whole batch fails.
 */
import { must } from "@lossless/core/adapter";
import pg from "pg";
import type { Parameter } from "./sql-values.ts";

/** What the server answered to a statement. */
export interface Answer {
  readonly command: string;
  readonly rowCount: number | null;
  readonly rows: unknown[];
}

/** A statement of a batch, and where its answer goes. */
export interface BatchedStatement {
  readonly text: string;
  readonly values: Parameter[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** The published types still ask for it; the driver takes no notice. */
const MORE = true;

export class Batch extends pg.Query {
  readonly #statements: readonly BatchedStatement[];

  constructor(statements: readonly BatchedStatement[], onAnswer: (error: unknown) => void) {
    super("", (error: Error | null | undefined, answers: unknown) => {
      onAnswer(error);
      if (error) for (const { reject } of statements) reject(error);
      else this.#resolve([answers].flat() as Answer[]);
    });
    this.#statements = statements;
  }

  override submit = (connection: pg.Connection): void => {
    for (const { text, values } of this.#statements) {
      connection.parse({ name: "", text, types: [] }, MORE);
      connection.bind({ values }, MORE);
      connection.describe({ type: "P" }, MORE);
      connection.execute(null, MORE);
    }
    connection.sync();
  };

  #resolve(answers: readonly Answer[]): void {
    for (const [i, { resolve }] of this.#statements.entries())
      resolve(must(answers[i], "the answer to a statement"));
  }
}
