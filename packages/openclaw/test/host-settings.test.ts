import { mkdirSync, writeFileSync } from "node:fs";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";
import { findShortfalls } from "../src/host/host-settings.ts";
import { sweepHostFiles } from "../src/host/session-files.ts";

const settingsWith = (config: object) => resolveSettings({ config, configSource: "test" }).settings;

test("a host without context engines only stores what is said, or is refused, as hostFallbackMode says", () => {
  const registerContextEngine = (): void => undefined;
  expect(findShortfalls({ registerContextEngine }, settingsWith({ hostFallbackMode: "error" }))).toEqual([]);
  const [shortfall] = findShortfalls({}, settingsWith({}));
  expect(shortfall).toContain("messages are stored when the gateway starts and when a session ends");
  expect(() => findShortfalls({}, settingsWith({ hostFallbackMode: "error" }))).toThrow("no context engines");
  expect(findShortfalls({}, settingsWith({ hostFallbackMode: "error", enabled: false }))).toEqual([]);
});

test("session files of the host are looked at as autoRotateSessionFiles says", async () => {
  using folder = makeTemporaryFolder();
  mkdirSync(folder.file("agents/main/sessions"), { recursive: true });
  for (const name of ["s1", "s2"])
    writeFileSync(folder.file(`agents/main/sessions/${name}.jsonl`), "x".repeat(200));
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  const sweep = async (
    phase: "startup" | "runtime",
    rules: object,
    sessionId?: string,
  ): Promise<string[]> => {
    const lines: string[] = [];
    await sweepHostFiles({
      open: async () => engine,
      settings: settingsWith({ autoRotateSessionFiles: { sizeBytes: 100, ...rules } }),
      stateDir: folder.path,
      phase,
      log: (line) => lines.push(line),
      sessionId,
    });
    return lines;
  };
  expect(await sweep("startup", {})).toHaveLength(3);
  expect((await sweep("startup", {})).at(-1)).toContain(
    "action=summary scanned=2 eligible=2 rotated=0 warned=2",
  );
  const runtime = await sweep("runtime", {}, "s2");
  expect(runtime).toHaveLength(1);
  expect(runtime[0]).toContain("s2.jsonl");
  expect(await sweep("runtime", {}, "s3")).toEqual([]);
  expect(await sweep("startup", { startup: "off" })).toEqual([]);
  expect(await sweep("startup", { enabled: false })).toEqual([]);
  // What is not proven to be archived is never rewritten.
  const [refused] = await sweep("startup", { startup: "rotate" });
  expect(refused).toContain("action=warn");
  await engine.close();
});
