/** The command line on an archive in a PostgreSQL server: the same commands, and no word of the password. */
import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { afterAll, expect, test } from "vitest";
import { createRunner, makeFolder, SAMPLE } from "./support.ts";

const folder = makeFolder();
afterAll(() => folder.remove());
const lcm = createRunner(folder.path);
const PASSWORD = "sesame-4711";

interface Findings {
  readonly data: { readonly findings: readonly { readonly code: string }[] };
}

/** Everything that is written below a folder, names included. */
const readAll = (path: string): string =>
  readdirSync(path, { withFileTypes: true, recursive: true })
    .map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return entry.isFile() ? `${file}\n${readFileSync(file, "latin1")}` : file;
    })
    .join("\n");

describePostgres("lcm on PostgreSQL", (server) => {
  test("writes one state as a backup, which any database imports; the receipt of forgetting names it", async () => {
    const address = await server.createDatabase();
    const run = async (...args: string[]): Promise<string> => {
      const { status, stdout, stderr } = await lcm(args);
      expect({ args, status, stderr }).toMatchObject({ status: 0 });
      return stdout.toString();
    };
    await run("import", SAMPLE, "--db", address);
    await run("compact", "--conversation", "1", "--budget", "2000", "--no-model", "--db", address);
    const made = JSON.parse(await run("backup", "--json", "--db", address)) as { data: { path: string } };
    const { path } = made.data;
    expect(await run("backup", "list", "--db", address)).toContain(path);
    const restored = join(folder.path, "restored.db");
    await run("import", path, "--db", restored);
    const [one, two] = ["one.lcmx", "two.lcmx"].map((name) => join(folder.path, name)) as [string, string];
    await run("export", "--out", one, "--db", address);
    await run("export", "--out", two, "--db", restored);
    expect(readFileSync(two).equals(readFileSync(one))).toBe(true);
    const again = await lcm(["backup", "--out", path, "--db", address]);
    expect(again.stderr).toContain("it already exists");
    const preview = await run("forget", "--message", "msg_2", "--db", address);
    expect(preview).toContain("lcm backup writes an archive file first");
    const receipt = await run("forget", "--message", "msg_2", "--apply", "--db", address);
    expect(receipt).toContain(`${path} (may hold it)`);
    expect(receipt).toContain("the write-ahead log");
    const kept = JSON.parse(await run("backup", "--keep", "1", "--json", "--db", address)) as {
      data: { removed: string[] };
    };
    expect(kept.data.removed).toEqual([path]);
  });

  test("says what waits on this machine while the server cannot be reached, and when it is back", async () => {
    const address = await server.createDatabase();
    const gone = address.replace(/host=[^&]*/, "host=/nowhere");
    const spool = join(folder.path, "state", "lcm-spool");
    const none = await lcm(["status", "--db", gone]);
    expect(none).toMatchObject({ status: 5 });
    expect(none.stderr).toContain("nothing waits for it on this machine");
    mkdirSync(spool, { recursive: true });
    for (const name of ["one", "two"]) writeFileSync(join(spool, `${name}.json`), "{}");
    expect((await lcm(["status", "--db", gone])).stderr).toContain(`2 turns in ${spool}`);
    await lcm(["import", SAMPLE, "--db", address]);
    expect((await lcm(["status", "--db", address])).stdout.toString()).toContain("2 turns on this machine");
    rmSync(spool, { recursive: true });
  });

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
    await server.query(address, "CREATE ROLE agent_ann LOGIN");
    expect(await run("roles", "list", "--db", address)).toContain("No roles.");
    expect(await run("roles", "add", "agent_ann", "ann", "--db", address)).toContain("ok");
    expect(await run("roles", "list", "--db", address)).toMatch(/agent_ann\s+ann/);
    const ann = address.replace(/\/\/[^:]*/, "//agent_ann");
    expect(await run("conversations", "list", "--db", ann)).toContain("No conversations.");
    expect(await run("verify", "--db", ann)).toContain("everything is whole");
    expect(await run("roles", "remove", "agent_ann", "--db", address)).toContain("ok");
    const refused = await lcm(["roles", "list", "--db", copy]);
    expect(refused.stderr).toContain("the archive is in a file");
    const left = await run("forget", "--message", "msg_3", "--reason", "a test", "--apply", "--db", guest);
    expect(left).toContain("lcm doctor --fix");
    await run("doctor", "--fix", "--db", address);
    expect(await run("doctor", "--db", address)).toContain("ok  0 errors");
    const settings = { env: { OPENCLAW_STATE_DIR: join(folder.path, "configured") } };
    await lcm(["config", "set", "databasePath", address.replace(`:${PASSWORD}`, "")], settings);
    expect((await lcm(["status"], settings)).stdout.toString()).toContain("postgres://");
    const spool = join(folder.path, "state", "lcm-spool");
    mkdirSync(spool, { recursive: true, mode: 0o755 });
    writeFileSync(join(spool, "turn.json"), "{}", { mode: 0o600 });
    utimesSync(join(spool, "turn.json"), 0, 0);
    const found = JSON.parse(await run("doctor", "--json", "--db", address)) as Findings;
    expect(found.data.findings.map(({ code }) => code)).toEqual(["spool_waiting", "permissions_wide"]);
    rmSync(spool, { recursive: true });
    const restoring = await lcm(["restore", folder.path, "--db", address]);
    expect(restoring.stderr).toContain("cannot restore a database on a server");
    const wrong = await lcm(["status", "--db", address.replace(/host=[^&]*/, "host=/nowhere")]);
    expect(wrong.status).toBe(5);
    expect(wrong.stderr + readAll(folder.path)).not.toContain(PASSWORD);
  });
});
