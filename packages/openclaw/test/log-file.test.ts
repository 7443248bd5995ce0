import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";
import { LogFile, logTo } from "../src/host/log-file.ts";

const readLines = (file: string): Record<string, unknown>[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("events and warnings are written as JSON, to a private file, and to the host's log", () => {
  using folder = makeTemporaryFolder();
  const file = folder.file("logs/own.log");
  const log = new LogFile({ enabled: true, file, maxFileBytes: 10_000 }, (error) => {
    throw error;
  });
  const said: string[] = [];
  const host = {
    info: (text: string) => said.push(text),
    warn: (text: string) => said.push(text),
    error: () => 0,
  };
  logTo(host, log).warn("index: it is slow");
  log.writeEvent({ kind: "stored", conversationId: 1, messages: 2, revisions: 0 });
  log.writeEvent({ kind: "progress", operation: "upgrade", done: 1, total: 2 });
  log.write("info", { message: "x".repeat(5000) });
  expect(said).toEqual(["index: it is slow"]);
  const [first, second, third, ...rest] = readLines(file);
  expect(first).toMatchObject({ level: "warn", message: "index: it is slow" });
  expect(second).toMatchObject({ level: "info", event: "stored", conversationId: 1, messages: 2 });
  expect(String(third?.["message"]).length).toBe(501);
  expect(rest).toEqual([]);
  if (process.platform !== "win32") {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
  }
});

test("a full file is kept under a number, and five of them at most", () => {
  using folder = makeTemporaryFolder();
  const file = folder.file("own.log");
  const log = new LogFile({ enabled: true, file, maxFileBytes: 120 }, (error) => {
    throw error;
  });
  for (let at = 0; at < 12; at++) log.write("info", { number: at, filler: "y".repeat(40) });
  const names = readdirSync(folder.path).toSorted();
  expect(names).toEqual(["own.log", ...[1, 2, 3, 4, 5].map((number) => `own.log.${number}`)]);
  const numbers = names.map((name) => readLines(folder.file(name))[0]?.["number"]);
  expect(numbers).toEqual([11, 10, 9, 8, 7, 6]);
  for (const name of names) expect(statSync(folder.file(name)).size).toBeLessThanOrEqual(120);
});

test("a log that cannot be written is reported once; one that is switched off writes nothing", () => {
  using folder = makeTemporaryFolder();
  writeFileSync(folder.file("taken"), "");
  const failures: unknown[] = [];
  const settings = { enabled: true, file: folder.file("taken/own.log"), maxFileBytes: 100 };
  const log = new LogFile(settings, (error) => failures.push(error));
  log.write("info", { message: "one" });
  log.write("info", { message: "two" });
  expect(failures).toHaveLength(1);
  mkdirSync(folder.file("off"));
  new LogFile({ ...settings, enabled: false, file: folder.file("off/own.log") }, () => undefined).write(
    "info",
    {},
  );
  expect(readdirSync(folder.file("off"))).toEqual([]);
});
