/** The command line on an archive in a PostgreSQL server: the same commands, and no word of the password. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { afterAll, expect, test } from "vitest";
import { createRunner, makeFolder, SAMPLE } from "./support.ts";

const folder = makeFolder();
afterAll(() => folder.remove());
const lcm = createRunner(folder.path);
const PASSWORD = "sesame-4711";

/** Everything that is written below a folder, names included. */
const readAll = (path: string): string =>
  readdirSync(path, { withFileTypes: true, recursive: true })
    .map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return entry.isFile() ? `${file}\n${readFileSync(file, "latin1")}` : file;
    })
    .join("\n");

describePostgres("lcm on PostgreSQL", (server) => {
  test("imports, folds, finds, exports, forgets and proves; the password appears nowhere", async () => {
    const address = (await server.createDatabase()).replace("@", `:${PASSWORD}@`);
    const archive = join(folder.path, "all.lcmx");
    const copy = join(folder.path, "copy.db");
    const run = async (...args: string[]): Promise<string> => {
      const { status, stdout, stderr } = await lcm(args);
      expect(stderr + stdout.toString()).not.toContain(PASSWORD);
      expect({ args, status, stderr }).toMatchObject({ status: 0 });
      return stdout.toString();
    };
    await run("import", SAMPLE, "--db", address);
    expect(await run("import", "--dry-run", SAMPLE, "--db", address)).toMatch(/: 0 messages would be stored/);
    await run("compact", "--conversation", "1", "--budget", "2000", "--db", address);
    expect(await run("status", "--db", address)).toContain("postgres://");
    await run("config", "show", "--db", address);
    await run("doctor", "--db", address);
    expect(await run("search", "the", "--limit", "1", "--db", address)).toContain("Read: lcm show");
    await run("adopt", "--db", address);
    await run("backup", "list", "--db", address);
    await run("export", "--out", archive, "--db", address);
    await run("import", archive, "--db", copy);
    const context = ["assemble", "--conversation", "1", "--budget", "2000", "--json"];
    const shown = (text: string): unknown =>
      (JSON.parse(text) as { data: { messages: unknown } }).data.messages;
    expect(shown(await run(...context, "--db", copy))).toEqual(shown(await run(...context, "--db", address)));
    await run("forget", "--message", "msg_2", "--reason", "a test", "--apply", "--db", address);
    expect(await run("verify", "--db", address)).toContain("everything is whole");
    const rights = ["TABLES", "SEQUENCES"].map(
      (kind) => `GRANT ALL ON ALL ${kind} IN SCHEMA public TO guest;`,
    );
    await server.query(address, `CREATE ROLE guest LOGIN; ${rights.join(" ")}`);
    const guest = address.replace(/\/\/[^:]*/, "//guest");
    const left = await run("forget", "--message", "msg_3", "--reason", "a test", "--apply", "--db", guest);
    expect(left).toContain("lcm doctor --fix");
    await run("doctor", "--fix", "--db", address);
    expect(await run("doctor", "--db", address)).toContain("ok  0 errors");
    const settings = { env: { OPENCLAW_STATE_DIR: join(folder.path, "configured") } };
    await lcm(["config", "set", "databasePath", address.replace(`:${PASSWORD}`, "")], settings);
    expect((await lcm(["status"], settings)).stdout.toString()).toContain("postgres://");
    const restoring = await lcm(["restore", folder.path, "--db", address]);
    expect(restoring.stderr).toContain("cannot restore a database on a server");
    const wrong = await lcm(["status", "--db", address.replace(/host=[^&]*/, "host=/nowhere")]);
    expect(wrong.status).toBe(5);
    expect(wrong.stderr + readAll(folder.path)).not.toContain(PASSWORD);
  });
});
