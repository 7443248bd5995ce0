/** TLS: a server that proves who it is, one that cannot, and one that has no certificate. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit";
import { describePostgres, findPostgres, startPostgres } from "@lossless/testkit/postgres-server.ts";
import { openEngine } from "lossless-claw";
import { afterAll, expect, test } from "vitest";
import { session, speak } from "./speak.ts";

interface Signed {
  readonly certificate: string;
  readonly key: string;
  /** Where the certificate of who signed it is. */
  readonly path: string;
}

/** A certificate for a host that vouches for itself. */
function sign(folder: string, name: string, host: string): Signed {
  const [path, keyPath] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=${host}`];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyPath];
  execFileSync("openssl", ["req", "-x509", "-days", "2", ...key, "-out", path, ...subject], {
    stdio: "ignore",
  });
  return { certificate: readFileSync(path, "utf8"), key: readFileSync(keyPath, "utf8"), path };
}

describePostgres("TLS", async (plain) => {
  const folder = makeTemporaryFolder();
  const own = sign(folder.path, "server", "IP:127.0.0.1");
  const other = sign(folder.path, "stranger", "IP:127.0.0.1");
  const server = await startPostgres((await findPostgres()) ?? "", own);
  afterAll(async () => {
    await server.stop();
    folder[Symbol.dispose]();
  });
  const address = (parameters: string): string => `${server.tcpAddressOf("postgres")}?${parameters}`;
  const open = (database: string) => openEngine({ database, thread: false });

  test.each(["verify-full", "require"])("sslmode=%s stores over TLS, and proves the server", async (mode) => {
    const engine = await open(address(`sslmode=${mode}&sslrootcert=${own.path}&application_name=${mode}`));
    await engine.ingest({ session, messages: [{ eventId: mode, message: speak(0) }] });
    const seen = await server.query(
      server.addressOf("postgres"),
      `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '${mode}'`,
    );
    await engine.close();
    expect(seen).toEqual([{ ssl: true }]);
  });

  test.each([
    ["verify-full", "another authority", `&sslrootcert=${other.path}`],
    ["require", "another authority", `&sslrootcert=${other.path}`],
    ["verify-full", "none that this machine trusts", ""],
  ])("sslmode=%s refuses a server that is vouched for by %s", async (mode, _whom, root) => {
    await expect(open(address(`sslmode=${mode}${root}`))).rejects.toMatchObject({
      code: "database_unreadable",
      message: expect.stringMatching(/cannot log in to the database .*: .*certificate/),
      hint: expect.stringContaining("sslmode"),
    });
  });

  test("a certificate for another host is refused", async () => {
    const wrong = address(`sslmode=verify-full&sslrootcert=${own.path}`).replace("127.0.0.1", "localhost");
    await expect(open(wrong)).rejects.toMatchObject({
      code: "database_unreadable",
      message: expect.stringMatching(/cannot log in .*altnames/),
    });
  });

  test("a server without TLS is refused where TLS is asked for", async () => {
    const database = `${await plain.createDatabase()}&sslmode=require`;
    await expect(open(database)).rejects.toMatchObject({ code: "database_unreadable" });
  });

  test("a missing file of a certificate is named", async () => {
    await expect(open(address("sslmode=verify-full&sslrootcert=/nowhere/root.crt"))).rejects.toMatchObject({
      code: "config",
      message: expect.stringContaining("/nowhere/root.crt"),
    });
  });
});
