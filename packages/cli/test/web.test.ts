import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, parseError, readSampleLines, ROOT } from "./support.ts";
import type { RunOptions } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const database = join(folder.path, "lcm.db");

beforeAll(async () => {
  writeFileSync(join(folder.path, "session.jsonl"), readSampleLines(12));
  await run(["import", join(folder.path, "session.jsonl"), "--db", database]);
});
afterAll(folder.remove);

/** Ctrl-C as soon as the address is printed, and what it answered before. */
function endWhenReady(seen: string[]): RunOptions["onStart"] {
  let printed = "";
  return (child) =>
    child.stdout?.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
      const url = /http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]+/.exec(printed)?.[0];
      if (url === undefined || seen.length > 0) return;
      seen.push(url);
      void fetch(url).then((response) => {
        seen.push(String(response.status));
        return child.kill("SIGINT");
      });
    });
}

test("prints an address with a token, serves it, and ends with Ctrl-C", async () => {
  const seen: string[] = [];
  const ended = await run(["web", "--db", database], { onStart: endWhenReady(seen) });
  expect(ended.stderr).toBe("");
  expect(ended.status).toBe(0);
  expect(seen[1]).toBe("200");
});

test("with --json the address is in the envelope; with --write it says that it can change the archive", async () => {
  const seen: string[] = [];
  const ended = await run(["web", "--write", "--db", database, "--json"], { onStart: endWhenReady(seen) });
  expect(parseEnvelope(ended).data).toMatchObject({ url: seen[0], write: true });
  const plain = await run(["web", "--write", "--db", database], { onStart: endWhenReady([]) });
  expect(String(plain.stdout)).toContain("It can change the archive.");
});

test("the demo leaves it open with --web", async () => {
  const seen: string[] = [];
  const script = join(ROOT, "packages/cli/test/short-demo-program.ts");
  const ended = await run(["--folder", join(folder.path, "demo"), "--web"], {
    script,
    onStart: endWhenReady(seen),
  });
  expect(ended.status).toBe(0);
  expect(seen[1]).toBe("200");
});

test("refuses an archive that is not there, and a port that is none", async () => {
  const missing = await run(["web", "--db", join(folder.path, "none.db"), "--json"]);
  expect(parseError(missing).code).toBe("database_missing");
  expect(parseError(await run(["web", "--port", "99999", "--json"])).code).toBe("usage");
});
