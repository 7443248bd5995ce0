/** Changes an archive by SQL as the program itself would, seals included, for states that are hard to reach through its API. */
import { Connection, keepSeals } from "@lossless/sqlite/testing";

export function editArchive(path: string, sql: string): void {
  const connection = new Connection({ path, create: false, readOnly: false, busyLimitMs: 1_000 });
  try {
    keepSeals(connection);
    connection.write(() => connection.exec(sql));
  } finally {
    connection.close();
  }
}
