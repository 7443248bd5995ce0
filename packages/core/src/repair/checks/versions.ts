/** Whether the running program has what the archive needs: the schema, a SQLite that can delete from the index, and zstd. */
import * as zlib from "node:zlib";
import type { CheckInput, Finding } from "../finding.ts";

/** The first version with deletion from contentless index tables. */
const MIN_SQLITE = [3, 43] as const;

export async function checkVersions({ engine }: CheckInput): Promise<Finding[]> {
  const findings: Finding[] = [];
  const sqlite = process.versions["sqlite"] ?? "0";
  if (isOlder(sqlite, MIN_SQLITE)) {
    findings.push({
      code: "version_sqlite",
      severity: "error",
      id: `sqlite ${sqlite}`,
      message: `SQLite ${sqlite} cannot delete from the search index; ${MIN_SQLITE.join(".")} or newer is needed`,
      step: null,
    });
  }
  if (typeof zlib.zstdCompressSync !== "function") {
    findings.push({
      code: "version_node",
      severity: "error",
      id: `node ${process.versions.node}`,
      message: `Node ${process.versions.node} has no zstd, which stored messages need`,
      step: null,
    });
  }
  const { schemaVersion, storedSchemaVersion } = await engine.readVersions();
  if (storedSchemaVersion !== schemaVersion) {
    findings.push({
      code: "version_schema",
      severity: "error",
      id: `schema ${storedSchemaVersion}`,
      message: `the database has schema ${storedSchemaVersion}, this program writes ${schemaVersion}`,
      step: { kind: "rebuild_index" },
    });
  }
  return findings;
}

function isOlder(version: string, [major, minor]: readonly [number, number]): boolean {
  const [foundMajor = 0, foundMinor = 0] = version.split(".").map(Number);
  return foundMajor < major || (foundMajor === major && foundMinor < minor);
}
