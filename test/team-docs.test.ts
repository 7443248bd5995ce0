/**
 * Follows docs/team.md on a real server: its SQL and its commands, in order, with this server's address instead of the one on the page. Steps
 * that would change the machine (installing, the services of agents) are skipped by name.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { expect, test } from "vitest";
import { listBlocks, ROOT } from "./source-files.ts";

const PAGE = "docs/team.md";
const LCM = join(ROOT, "packages/cli/bin/lcm.js");
const SAMPLE = join(ROOT, "packages/cli/sample/sample-session.jsonl");
const LEFT_OUT = ["npm install -g lossless-claw", "export PGPASSWORD=…", "lcm setup", "lcm watch --install"];

const linesOf = (language: string): string[] =>
  listBlocks(PAGE, language)
    .flatMap((block) => block.split("\n"))
    .map((line) => line.replace(/\s+#.*$/, "").trim())
    .filter((line) => line !== "" && !LEFT_OUT.includes(line));

describePostgres("a team's archive", (server) => {
  test("is made as the page says", async () => {
    const home = mkdtempSync(join(tmpdir(), "lcm-team-"));
    const admin = await server.createDatabase();
    const addressOf = (role: string): string =>
      server.addressOf("archive").replace(/\/\/[^:@/]*/, `//${role}`);
    const run = (line: string): string => {
      const command = line
        .replaceAll(
          /'?postgres:\/\/(\w+)@db\.example\/archive(\?sslmode=verify-full)?'?/g,
          (_, role: string) => `'${addressOf(role)}'`,
        )
        .replace(/^lcm\b/, `"${process.execPath}" "${LCM}"`);
      const ended = spawnSync("bash", ["-c", command], {
        cwd: home,
        encoding: "utf8",
        env: { PATH: process.env["PATH"], HOME: home, TZ: "UTC", NO_COLOR: "1" },
      });
      expect(ended.status, `${line}\n${ended.stdout}${ended.stderr}`).toBe(0);
      return ended.stdout;
    };
    try {
      mkdirSync(join(home, ".openclaw"));
      run(`lcm import ${SAMPLE}`);
      for (const statement of linesOf("sql")) await server.query(admin, statement);

      const said = new Map<string, string>();
      for (const line of linesOf("sh")) {
        const sql = /^psql .* -c "(.*)"$/.exec(line)?.[1];
        if (sql === undefined) said.set(line, run(line));
        else await server.query(admin, sql);
      }

      const found = (begin: string): string | undefined =>
        [...said].find(([line]) => line.startsWith(begin))?.[1];
      expect(found("lcm status")).toContain("1,276");
      expect(found("lcm roles list")).toMatch(/agent_bea\s+bea/);
      // From here on the settings name the archive, and the role sees nothing of another owner.
      expect(run("lcm conversations list")).toContain("No conversations.");
      run(`lcm import ${SAMPLE} --owner bea`);
      expect(run("lcm verify")).toContain("1,276 messages");
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
});
