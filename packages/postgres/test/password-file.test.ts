/** Passwords in a file, as libpq reads them. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit/temporary.ts";
import { expect, test, vi } from "vitest";
import { findPassword } from "../src/password-file.ts";

test("the first line that fits has the password, unless others may read the file", () => {
  const path = join(makeTemporaryDirectory(), "passwords");
  vi.stubEnv("PGPASSFILE", path);
  const login = { host: "db.example", port: 5432, database: "archive", user: "ann" };
  expect(findPassword(login)).toBeUndefined();
  const lines = [
    "# a comment",
    "db.example:1:*:*:no",
    "db.example:5432:archive:ann:a\\:b\\\\c",
    "*:*:*:*:rest",
  ];
  writeFileSync(path, `${lines.join("\n")}\n`, { mode: 0o600 });
  expect(findPassword(login)).toBe("a:b\\c");
  expect(findPassword({ ...login, user: "bob" })).toBe("rest");
  expect(findPassword({ ...login, port: 1 })).toBe("no");
  writeFileSync(path, "localhost:*:*:*:socket\n");
  expect(findPassword({ ...login, host: "/run/postgresql" })).toBe("socket");
  expect(findPassword(login)).toBeUndefined();
  if (process.platform !== "win32") {
    chmodSync(path, 0o644);
    expect(findPassword({ ...login, host: "/run/postgresql" })).toBeUndefined();
  }
  vi.unstubAllEnvs();
});
