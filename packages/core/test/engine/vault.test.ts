/** Redaction with a key: values sealed, what arrived provable, and no byte of a secret anywhere on the disk. */
import { createVault } from "../../src/ingest/vault.ts";
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeTemporaryFolder, type TemporaryFolder } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { EngineError, resolveSettings, type Engine } from "../../src/index.ts";
import { openEngine } from "lossless-claw";
import { buildSupportBundle } from "../../src/repair/support.ts";
import { exportConversations, importHistory } from "lossless-claw/interchange";

const KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const OTHER_KEY = "ff".repeat(32);
const SESSION = { key: "agent:main:test", id: "s", owner: "main" };
const SECRET = "hunter2-ünïcode";
const say = (eventId: string, content: string) => ({ eventId, message: { role: "user", content } });

function makeFolder(): TemporaryFolder {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder;
}

function writeKey(folder: TemporaryFolder, key = KEY, name = "key"): string {
  const path = folder.file(name);
  writeFileSync(path, `${key}\n`, { mode: 0o600 });
  chmodSync(path, 0o600);
  return path;
}

interface Where {
  readonly database: string;
  readonly keyFile?: string;
  readonly values?: "drop" | "seal" | "seal-or-drop";
  readonly patterns?: readonly string[];
}

const settingsOf = ({ database, keyFile = "", values = "seal", patterns = ["hunter\\S+"] }: Where) =>
  resolveSettings({
    env: {},
    config: {
      databasePath: database,
      redactPatterns: patterns,
      redactedValues: values,
      redactionKeyFile: keyFile,
      largeFileThresholdTokens: 1000,
    },
  }).settings;

async function open(
  place: Where,
  onEvent?: (event: { kind: string; message?: string }) => void,
): Promise<Engine> {
  const { database } = place;
  const settings = settingsOf(place);
  const engine = await openEngine({ database, thread: false, settings, onEvent });
  onTestFinished(() => engine.close());
  return engine;
}

const textOf = async (engine: Engine, messageId: number): Promise<string> =>
  Buffer.from((await engine.readMessage({ messageId }))?.bytes ?? []).toString("utf8");
const outcomes = async (engine: Engine, messages: ReturnType<typeof say>[]): Promise<string[]> =>
  (await engine.ingest({ session: SESSION, messages })).results.map(({ outcome }) => outcome);

/** Every file below a folder, the key left out. */
function readAll(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const kept = files.filter((file) => file.isFile() && !file.name.startsWith("key"));
  return Buffer.concat(kept.map((file) => readFileSync(join(file.parentPath, file.name))));
}

describe("values are sealed", () => {
  test("and opened one by one for their owner, with a record of it", async () => {
    const folder = makeFolder();
    const engine = await open({ database: folder.file("a.db"), keyFile: writeKey(folder) });
    await outcomes(engine, [say("e1", `first ${SECRET}, then hunter3 "x"`)]);
    expect(await textOf(engine, 1)).toContain("first [redacted:pattern-1] then [redacted:pattern-1]");
    expect(await engine.unseal({ messageId: 1, owner: "main" })).toEqual([
      { ordinal: 0, placeholder: "[redacted:pattern-1]", value: `${SECRET},` },
      { ordinal: 1, placeholder: "[redacted:pattern-1]", value: "hunter3" },
    ]);
    expect((await engine.unseal({ messageId: 1, ordinal: 1 })).map(({ value }) => value)).toEqual([
      "hunter3",
    ]);
    await expect(engine.unseal({ messageId: 1, owner: "stranger" })).rejects.toThrow(/has no values of it/u);
    await expect(engine.unseal({ messageId: 1, ordinal: 7 })).rejects.toThrow(/it has 0 to 1/u);
    const database = new DatabaseSync(folder.file("a.db"), { readOnly: true });
    const records = database.prepare("SELECT kind, body FROM ledger ORDER BY seq").all();
    database.close();
    expect(records).toEqual([
      { kind: "unseal", body: '{"seq":1,"ordinals":[0,1]}' },
      { kind: "unseal", body: '{"seq":1,"ordinals":[1]}' },
    ]);
    expect(await engine.verify()).toMatchObject({ ok: true, redacted: { messages: 1, proven: 1 } });
  });

  test("a repeated event adds nothing, another secret is a revision", async () => {
    const folder = makeFolder();
    const place = { database: folder.file("a.db"), keyFile: writeKey(folder) };
    const engine = await open(place);
    const message = say("e1", `the password is ${SECRET}`);
    expect(await outcomes(engine, [message])).toEqual(["stored"]);
    expect(await outcomes(engine, [message])).toEqual(["known"]);
    expect(await outcomes(engine, [say("e1", "the password is hunter9")])).toEqual(["revision"]);
    expect(await outcomes(engine, [message])).toEqual(["known"]);
    // Other patterns leave other text; what arrived is the same.
    expect(await outcomes(await open({ ...place, patterns: ["password", "hunter\\S+"] }), [message])).toEqual(
      ["known"],
    );
    expect(await outcomes(await open({ ...place, patterns: [] }), [message])).toEqual(["known"]);
    // Without the key what is stored is compared.
    expect(await outcomes(await open({ database: place.database, values: "drop" }), [message])).toEqual([
      "known",
    ]);
    expect((await engine.verify()).problems).toEqual([]);
  });

  test("a commitment says nothing about a short secret to whoever has the archive and not the key", async () => {
    const folder = makeFolder();
    const engine = await open({
      database: folder.file("a.db"),
      keyFile: writeKey(folder),
      patterns: ["\\d{4}"],
    });
    await outcomes(engine, [say("e1", "pin 4711")]);
    const database = new DatabaseSync(folder.file("a.db"), { readOnly: true });
    const row = database.prepare("SELECT salt, commitment FROM messages").get() as Record<string, Uint8Array>;
    database.close();
    const { commit } = await import("../../src/model/chain.ts");
    const guess = Buffer.from(JSON.stringify({ role: "user", content: "pin 4711" }));
    expect(commit(row["salt"] as Uint8Array, guess).equals(row["commitment"] as Uint8Array)).toBe(false);
  });

  test("none of its bytes is in any file, the log and large files included", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uuid({ version: 4 }), fc.boolean(), async (secret, isLarge) => {
        using folder = makeTemporaryFolder();
        const [database, keyFile] = [folder.file("a.db"), writeKey(folder)];
        const place = { database, keyFile, patterns: ["[0-9a-f]{8}-[0-9a-f-]{27}"] };
        const engine = await openEngine({ database, thread: false, settings: settingsOf(place) });
        const around = isLarge ? "many words of a log\n".repeat(2000) : "few words";
        await outcomes(engine, [say("e1", `${around} ${secret} ${around}`)]);
        expect(readAll(folder.path).includes(secret)).toBe(false);
        expect((await engine.unseal({ messageId: 1 }))[0]?.value).toBe(secret);
        const { hits } = await engine.search({ query: secret, limit: 5 });
        expect(JSON.stringify(hits)).not.toContain(secret);
        await engine.close();
        expect(readAll(folder.path).includes(secret)).toBe(false);
        expect(readAll(folder.path).includes(KEY)).toBe(false);
      }),
      { numRuns: 12 },
    );
  });
});

describe("the proof", () => {
  const damage = async (sql: string): Promise<{ withKey: string[]; without: string[] }> => {
    const folder = makeFolder();
    const place = { database: folder.file("a.db"), keyFile: writeKey(folder) };
    const engine = await open(place);
    await outcomes(engine, [say("e1", "one hunter1 two hunter2"), say("e2", "three hunter3")]);
    await engine.close();
    const database = new DatabaseSync(place.database);
    database.exec(sql);
    database.close();
    const check = async (chosen: Where): Promise<string[]> =>
      (await (await open(chosen)).verify()).problems.map(({ code, id }) => `${code} ${id}`);
    return { withKey: await check(place), without: await check({ database: place.database }) };
  };

  test("holds with the key and without it", async () => {
    expect(await damage("SELECT 1")).toEqual({ withKey: [], without: [] });
  });

  test("finds a value that is gone, without the key", async () => {
    const found = await damage("DELETE FROM sealed_values WHERE message_id = 1 AND ordinal = 1");
    expect(found.without).toContain("altered msg_1");
  });

  test("finds values that changed places, with the key; without it, that something changed", async () => {
    const found = await damage(`
      UPDATE sealed_values SET sealed = (SELECT sealed FROM sealed_values WHERE message_id = 2),
        nonce = (SELECT nonce FROM sealed_values WHERE message_id = 2) WHERE message_id = 1 AND ordinal = 0`);
    expect(found).toEqual({ withKey: ["sealed msg_1", "seal msg_1"], without: ["seal msg_1"] });
  });

  test("finds a keyed commitment that was changed, without the key", async () => {
    const found = await damage("UPDATE redactions SET keyed = zeroblob(32) WHERE message_id = 2");
    expect(found.without).toContain("altered msg_2");
  });
});

describe("without a usable key", () => {
  const refusal = async (work: Promise<unknown>): Promise<EngineError> =>
    work.then(
      () => expect.unreachable(),
      (error: unknown) => error as EngineError,
    );

  test("seal refuses before anything is stored, seal-or-drop drops and says so", async () => {
    const folder = makeFolder();
    const place = { database: folder.file("a.db"), keyFile: folder.file("absent") };
    const engine = await open(place);
    const refused = await refusal(engine.ingest({ session: SESSION, messages: [say("e1", "no secret")] }));
    expect(refused.code).toBe("config");
    expect(refused.message).toMatch(/no such file/u);
    expect((await engine.status()).messages).toBe(0);
    const said: string[] = [];
    const dropping = await open({ ...place, values: "seal-or-drop" }, (event) =>
      said.push(event.message ?? ""),
    );
    expect(await outcomes(dropping, [say("e1", "hunter2")])).toEqual(["stored"]);
    expect(said.filter((text) => text.includes("dropped"))).toHaveLength(1);
    await expect(dropping.unseal({ messageId: 1 })).rejects.toThrow(/no such file/u);
    expect((await dropping.verify()).problems).toEqual([]);
    // A key that is put there later is found.
    writeKey(folder, KEY, "absent");
    expect(await outcomes(engine, [say("e2", "hunter3")])).toEqual(["stored"]);
  });

  test.each([
    ["too short", "0011", 0o600, /32 bytes/u],
    ["empty", "", 0o600, /empty/u],
    ["open to others", KEY, 0o644, /others can read/u],
  ])("a key that is %s is refused", async (_name, key, mode, reason) => {
    const folder = makeFolder();
    const keyFile = folder.file("key");
    writeFileSync(keyFile, key);
    chmodSync(keyFile, mode);
    const engine = await open({ database: folder.file("a.db"), keyFile });
    const refused = await refusal(engine.ingest({ session: SESSION, messages: [say("e1", "x")] }));
    expect(refused.message).toMatch(reason);
    expect(refused.message).not.toContain(KEY);
  });
});

describe("the vault goes where its messages go", () => {
  test("through an archive file, sealed, to whoever has the key", async () => {
    const folder = makeFolder();
    const place = { database: folder.file("a.db"), keyFile: writeKey(folder) };
    const engine = await open(place);
    await outcomes(engine, [say("e0", "plain"), say("e1", `take ${SECRET}`)]);
    const out = folder.file("all.lcmx");
    await exportConversations({ database: place.database, format: "archive", out });
    expect(readFileSync(out).includes("hunter")).toBe(false);
    const database = folder.file("b.db");
    await importHistory("archive", {
      database,
      filesDir: folder.file("b-files"),
      path: out,
      largeFileThresholdTokens: 25_000,
    });
    const moved = await open({ ...place, database });
    expect(await moved.verify()).toMatchObject({ ok: true, redacted: { messages: 1, proven: 1 } });
    expect((await moved.unseal({ messageId: 2 }))[0]?.value).toBe(SECRET);
    await moved.close();
    const again = folder.file("again.lcmx");
    await exportConversations({ database, format: "archive", out: again });
    const strip = (path: string): string =>
      readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => !line.includes('"unseal"'))
        .slice(0, -2)
        .join("\n");
    expect(strip(again).replace(/"rows":\d+/u, "")).toBe(strip(out).replace(/"rows":\d+/u, ""));
  });

  test("with a transplant, and away with forgetting", async () => {
    const folder = makeFolder();
    const place = { database: folder.file("a.db"), keyFile: writeKey(folder) };
    const engine = await open(place);
    await outcomes(engine, [say("e1", `take ${SECRET}`)]);
    await engine.ingest({
      session: { ...SESSION, key: "agent:main:other", id: "o" },
      messages: [say("x", "hello")],
    });
    await engine.transplant({ from: 1, to: 2, dryRun: false });
    expect((await engine.unseal({ messageId: 3 }))[0]?.value).toBe(SECRET);
    await engine.forget({ messageIds: [1, 3], reason: "test" });
    await expect(engine.unseal({ messageId: 1 })).rejects.toThrow(/no values of it/u);
    const database = new DatabaseSync(place.database, { readOnly: true });
    const left = database.prepare("SELECT count(*) AS n FROM sealed_values").get();
    database.close();
    expect(left).toEqual({ n: 0 });
    expect((await engine.verify()).problems).toEqual([]);
  });

  test("never into a support bundle", async () => {
    const folder = makeFolder();
    const place = { database: folder.file("a.db"), keyFile: writeKey(folder) };
    const engine = await open(place);
    await outcomes(engine, [say("e1", `take ${SECRET}`)]);
    const settings = settingsOf(place);
    const defaults = resolveSettings({ env: {} }).settings;
    const paths = { databasePath: place.database, filesDir: settings.largeFilesDir };
    const bundle = JSON.stringify(
      await buildSupportBundle({ engine, settings, defaults, version: "0", ...paths }),
    );
    for (const word of ["hunter", KEY, place.keyFile]) expect(bundle).not.toContain(word);
  });
});

test("a title, a branch and a folder are redacted as what was said", async () => {
  const folder = makeFolder();
  const engine = await open({ database: folder.file("archive.db"), keyFile: writeKey(folder) });
  const origin = { agent: "codex", title: `Use ${SECRET} here`, branch: SECRET, project: `/srv/${SECRET}` };
  await engine.ingest({ session: SESSION, messages: [say("1", "hello")], origin });
  const [conversation] = (await engine.listConversations({ limit: 1 })).items;
  expect(conversation).toMatchObject({ agent: "codex", title: expect.stringMatching(/^Use .+ here$/) });
  await engine.close();
  expect(readAll(folder.path).includes(SECRET)).toBe(false);
});

test("a new key opens everything after rotating, the old one nothing", async () => {
  const folder = makeFolder();
  const [oldKey, newKey] = [writeKey(folder), writeKey(folder, OTHER_KEY, "key2")];
  const database = folder.file("a.db");
  const engine = await open({ database, keyFile: oldKey });
  const message = say("e1", `take ${SECRET} and hunter3`);
  await outcomes(engine, [message]);
  expect(await engine.rotateVault({ newKey: OTHER_KEY })).toMatchObject({ messages: 1, values: 2 });
  expect(await engine.rotateVault({ newKey: OTHER_KEY })).toMatchObject({ messages: 0, values: 0 });
  await expect(engine.unseal({ messageId: 1 })).rejects.toThrow(/another key/u);
  const after = await open({ database, keyFile: newKey });
  expect((await after.unseal({ messageId: 1 })).map(({ value }) => value)).toEqual([SECRET, "hunter3"]);
  expect(await after.verify()).toMatchObject({ ok: true, redacted: { messages: 1, proven: 0 } });
  expect(await outcomes(after, [message])).toEqual(["known"]);
});

test("a sealed value opens only for the message and the place it was sealed for", () => {
  const vault = createVault(Buffer.alloc(32, 7));
  const range = { commitment: Buffer.alloc(32, 1), ordinal: 0, at: 10, length: 15 };
  const sealed = vault.seal(Buffer.from("4711"), range, (size) => Buffer.alloc(size, 3));
  expect(vault.open(sealed, range)?.toString()).toBe("4711");
  for (const other of [{ commitment: Buffer.alloc(32, 2) }, { ordinal: 1 }, { at: 11 }, { length: 16 }])
    expect(vault.open(sealed, { ...range, ...other })).toBeNull();
  expect(createVault(Buffer.alloc(32, 8)).open(sealed, range)).toBeNull();
});
