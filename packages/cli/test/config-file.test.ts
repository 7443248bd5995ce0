import { mkdtempSync, rmSync } from "node:fs";
import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { explainSetting } from "@lossless/core/settings";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  findConfigLocations,
  loadSettings,
  readConfigFile,
  readHostConfig,
  writeConfigFile,
} from "../src/config-file.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lcm-config-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const own = (): string => join(folder, "lcm.json");
const host = (): string => join(folder, "openclaw.json");
const writeHost = (plugins: unknown): Promise<void> => writeFile(host(), JSON.stringify({ plugins }));

describe("reading", () => {
  test("a missing file is null, an object is given back", async () => {
    expect(await readConfigFile(own())).toBeNull();
    await writeFile(own(), '\uFEFF{"freshTailCount": 3}');
    expect(await readConfigFile(own())).toEqual({ freshTailCount: 3 });
  });

  test.each(["[]", "3", "null", "{", ""])("a file that holds %j is refused and named", async (text) => {
    await writeFile(own(), text);
    await expect(readConfigFile(own())).rejects.toMatchObject({
      code: "config",
      message: expect.stringContaining(`cannot read config ${own()}`) as string,
    });
  });

  test("a folder in place of the file is refused", async () => {
    await mkdir(own());
    await expect(readConfigFile(own())).rejects.toMatchObject({ code: "config" });
  });
});

describe("writing", () => {
  test("makes folder and file, private, and leaves nothing else behind", async () => {
    const file = join(folder, "deep", "state", "lcm.json");
    await writeConfigFile(file, { freshTailCount: 3 });
    expect(await readConfigFile(file)).toEqual({ freshTailCount: 3 });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(folder, "deep", "state"))).toEqual(["lcm.json"]);
  });

  test("makes a file private that was not", async () => {
    await writeFile(own(), "{}");
    await chmod(own(), 0o644);
    await writeConfigFile(own(), {});
    expect((await stat(own())).mode & 0o777).toBe(0o600);
  });

  test("refuses to replace what is not a JSON object, and leaves it as it is", async () => {
    await writeFile(own(), "// mine\n{}");
    await expect(writeConfigFile(own(), {})).rejects.toMatchObject({ code: "config" });
    expect(await readFile(own(), "utf8")).toBe("// mine\n{}");
  });

  test("keeps a link a link", async () => {
    const real = join(folder, "real.json");
    await writeFile(real, "{}");
    await symlink(real, own());
    await writeConfigFile(own(), { enabled: false });
    expect((await lstat(own())).isSymbolicLink()).toBe(true);
    expect(await readConfigFile(real)).toEqual({ enabled: false });
  });

  test("says what could not be written when the folder cannot be made", async () => {
    await writeFile(join(folder, "blocked"), "");
    await expect(writeConfigFile(join(folder, "blocked", "lcm.json"), {})).rejects.toMatchObject({
      code: "config",
    });
  });
});

describe("the host's file", () => {
  test("is read at the present place", async () => {
    await writeHost({ entries: { "lossless-claw": { enabled: true, config: { freshTailCount: 9 } } } });
    expect(await readHostConfig(host())).toEqual({
      layers: [{ source: host(), config: { freshTailCount: 9 }, tolerant: true }],
      notices: [],
    });
  });

  test("is read at the old place with a notice, and the present place wins", async () => {
    await writeHost({
      entries: { "lossless-claw": { config: { freshTailCount: 9 } } },
      config: { "lossless-claw": { freshTailCount: 8, leafMinFanout: 5 } },
    });
    const { settings, notices } = await loadSettings({ env: {}, stateDir: folder });
    expect(settings.freshTailCount).toBe(9);
    expect(settings.leafMinFanout).toBe(5);
    expect(notices).toEqual([expect.stringContaining('plugins.config["lossless-claw"]')]);
  });

  test("is passed over with a notice when it is not plain JSON", async () => {
    await writeFile(host(), "{ plugins: {}, // comment\n }");
    const { settings, notices } = await loadSettings({ env: {}, stateDir: folder });
    expect(settings.freshTailCount).toBe(64);
    expect(notices).toEqual([expect.stringContaining("not plain JSON")]);
  });

  test("may be absent, or say nothing about us", async () => {
    expect(await readHostConfig(host())).toEqual({ layers: [], notices: [] });
    await writeFile(host(), '{"plugins": null}');
    expect(await readHostConfig(host())).toEqual({ layers: [], notices: [] });
  });
});

describe("loading", () => {
  test("the environment wins over lcm.json, that over openclaw.json, that over the default, and each is named", async () => {
    await writeFile(own(), JSON.stringify({ freshTailCount: 2, leafMinFanout: 2 }));
    await writeHost({
      entries: {
        "lossless-claw": { config: { freshTailCount: 3, leafMinFanout: 3, maxSweepIterations: 3 } },
      },
    });
    const loaded = await loadSettings({ env: { LCM_FRESH_TAIL_COUNT: "1" }, stateDir: folder });
    const shown = (key: string) => {
      const { value, source } = explainSetting(key, loaded);
      return [value, source];
    };
    expect(shown("freshTailCount")).toEqual([1, "environment LCM_FRESH_TAIL_COUNT"]);
    expect(shown("leafMinFanout")).toEqual([2, `config ${own()}`]);
    expect(shown("maxSweepIterations")).toEqual([3, `config ${host()}`]);
    expect(shown("condensedMinFanout")).toEqual([4, "default"]);
    expect(loaded.locations).toEqual(findConfigLocations({ OPENCLAW_STATE_DIR: folder }));
  });

  test("an option on the command line wins over everything", async () => {
    const loaded = await loadSettings({
      env: { LCM_DATABASE_PATH: "/env.db" },
      stateDir: folder,
      options: { source: "--db", config: { databasePath: "/typed/x.db" } },
    });
    expect(explainSetting("databasePath", loaded)).toMatchObject({
      value: "/typed/x.db",
      source: "option --db",
    });
    expect(loaded.settings.largeFilesDir).toBe("/typed/x-files");
  });

  test("a bad value in a file is refused with the file's name", async () => {
    await writeFile(own(), '{"freshTailCount": -1}');
    await expect(loadSettings({ env: {}, stateDir: folder })).rejects.toMatchObject({
      code: "config",
      message: expect.stringContaining(`(config ${own()})`) as string,
    });
  });
});
