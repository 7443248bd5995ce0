/** Archives are opened by address: which ones there are, what is refused, and that a thread opens the same one. */
import { existsSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { openEngine, openStore, resolveSettings } from "lossless-claw";
import { deriveMessage } from "@lossless/core/testing";
import { makeTemporaryFolder } from "@lossless/testkit";

const SESSION = { key: "agent:main:s1", id: "s1", owner: "main" };
const SPELLINGS: readonly (readonly [name: string, spell: (path: string) => string])[] = [
  ["a path", (path) => path],
  ["a relative path", (path) => relative(process.cwd(), path)],
  ["sqlite: and a path", (path) => `sqlite:${path}`],
  ["sqlite: and a relative path", (path) => `sqlite:${relative(process.cwd(), path)}`],
  ["sqlite:// and a path", (path) => `SQLITE://${path}`],
  ["the address of a file", (path) => pathToFileURL(path).href],
  ["the address of a file on this host", (path) => `file://localhost${path}`],
];

describe("an archive is opened", () => {
  test.each(SPELLINGS)("by %s", async (_name, spell) => {
    using folder = makeTemporaryFolder();
    const path = folder.file("my notes.db");
    const store = await openStore(spell(path), { create: true, derive: deriveMessage });
    await store.close();
    expect(existsSync(path)).toBe(true);
  });

  test.each([true, false])(
    "by an address, with its large files beside it (behind a thread: %s)",
    async (thread) => {
      using folder = makeTemporaryFolder();
      const path = folder.file("notes.db");
      const engine = await openEngine({ database: `sqlite:${path}`, thread });
      const message = { role: "user", content: "x".repeat(400_000) };
      await engine.ingest({ session: SESSION, messages: [{ message }] });
      expect(await engine.verify()).toMatchObject({ ok: true, messages: 1, files: 1 });
      await engine.close();
      expect(existsSync(join(dirname(path), "notes-files"))).toBe(true);
    },
  );

  test("by the address in the settings, which the rest of the program sees as a path", () => {
    const { settings } = resolveSettings({ env: { LCM_DATABASE_PATH: "sqlite:~/a/notes.db", HOME: "/h" } });
    expect(settings).toMatchObject({ databasePath: "/h/a/notes.db", largeFilesDir: "/h/a/notes-files" });
  });
});

test("an address in the settings that names no file is refused when it is opened, and breaks no other setting", () => {
  const { settings } = resolveSettings({ env: { LCM_DATABASE_PATH: "sqlite://host/lcm.db", HOME: "/h" } });
  expect(settings.databasePath).toBe("sqlite://host/lcm.db");
});

describe("an address is refused", () => {
  test.each(["mysql://ada:secret@host/lcm", "https://host/lcm.db"])(
    "of another kind of database: %s",
    async (address) => {
      const refusal = { code: "config", hint: expect.stringContaining("sqlite:") };
      await expect(openEngine({ database: address })).rejects.toMatchObject(refusal);
      const opening = openStore(address, { create: true, derive: deriveMessage });
      await expect(opening).rejects.toMatchObject(refusal);
      await expect(opening).rejects.not.toThrow(/secret/);
    },
  );

  test("of a server that is not there, or with a parameter nobody knows; its password is not told", async () => {
    for (const [address, code] of [
      ["postgres://ada:secret@127.0.0.1:1/lcm", "database_unreachable"],
      ["postgresql://ada:secret@127.0.0.1:1/lcm?sslmod=require", "config"],
    ] as const) {
      const opening = openStore(address, { create: true, derive: deriveMessage });
      await expect(opening).rejects.toMatchObject({ code });
      await expect(opening).rejects.not.toThrow(/secret/);
    }
  });

  test.each(["sqlite:", "sqlite://", "sqlite://host/lcm.db", "file:///a.db?mode=ro", "file:%zz"])(
    "that names no file: %s",
    async (address) => {
      const opening = openStore(address, { create: true, derive: deriveMessage });
      await expect(opening).rejects.toMatchObject({
        code: "config",
        message: expect.stringContaining("names no file"),
      });
    },
  );
});
