/** Each line of the threat model names an existing test. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./source-files.ts";

const LINE = /^\|.*\| `([^`]+)`: (.+) \|$/u;

test("each line of the threat model has its test", () => {
  const rows = readFileSync(join(ROOT, "docs/threat-model.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| Threat"));
  expect(rows.length).toBeGreaterThan(30);
  const missing = rows.filter((row) => {
    const [, file = "", title = ""] = LINE.exec(row) ?? [];
    const path = join(ROOT, file);
    return file === "" || !existsSync(path) || !readFileSync(path, "utf8").includes(title);
  });
  expect(missing).toEqual([]);
});
