import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { describeFirstStart } from "../src/host/first-start.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";

const stateDir = resolve("/home/somebody/.openclaw");
const settings = { databasePath: join(stateDir, "lcm.db"), largeFilesDir: join(stateDir, "lcm-files") };

test("the first reply in a chat names what is kept where without the folders of the machine", () => {
  const text = describeFirstStart({ settings, sessions: 3, memory: new ProcessMemory(), stateDir });
  expect(text).toContain("every message is kept from now on in lcm.db, large files in lcm-files.");
  expect(text).not.toContain("somebody");
});

test("a database elsewhere is named by its file alone", () => {
  const elsewhere = {
    databasePath: resolve("/mnt/disk/archive.db"),
    largeFilesDir: resolve("/mnt/disk/archive-files"),
  };
  const text = describeFirstStart({
    settings: elsewhere,
    sessions: 0,
    memory: new ProcessMemory(),
    stateDir,
  });
  expect(text).toContain("kept from now on in archive.db, large files in archive-files.");
  expect(text).not.toContain("/mnt");
});

test("the log names whole paths", () => {
  expect(describeFirstStart({ settings, sessions: 0, memory: new ProcessMemory() })).toContain(
    settings.databasePath,
  );
});

test("an archive on a server is named without its password", () => {
  const settings = {
    databasePath: "postgres://lcm:sesame@db.example/archive",
    largeFilesDir: "/state/lcm-files",
  };
  for (const stateDir of [undefined, "/state"]) {
    const place = stateDir === undefined ? {} : { stateDir };
    const text = describeFirstStart({ settings, sessions: 0, memory: new ProcessMemory(), ...place });
    expect(text).toContain(stateDir === undefined ? "db.example/archive" : "archive");
    expect(text).not.toContain("sesame");
  }
});
