/** Sealed values from the command line: a key that is made, told at once when it is missing, and values opened for their owner. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, parseError } from "./support.ts";

const folder = makeFolder();
afterAll(folder.remove);
const run = createRunner(folder.path);
const file = (name: string): string => join(folder.path, name);
const json = async (...args: string[]) => parseEnvelope(await run([...args, "--json"]));
const refused = async (...args: string[]) => parseError(await run([...args, "--json"]));

test("a secret is sealed on import and opened again with the key", async () => {
  expect(await refused("config", "set", "redactedValues", "seal")).toMatchObject({
    code: "config",
    hint: expect.stringContaining("lcm vault new-key") as string,
  });
  expect(await refused("config", "set", "redactionKeyFile", file("absent"))).toMatchObject({
    code: "config",
  });
  const key = file("redaction.key");
  await json("vault", "new-key", key);
  expect(statSync(key).mode & 0o777).toBe(0o600);
  expect(await refused("vault", "new-key", key)).toMatchObject({ code: "usage" });
  await json("config", "set", "redactionKeyFile", key);
  await json("config", "set", "redactedValues", "seal");
  await json("config", "set", "redactPatterns", '["@cards"]');

  const message = { role: "user", content: "card 4111 1111 1111 1111 please", id: "m1" };
  writeFileSync(file("chat.jsonl"), `${JSON.stringify(message)}\n`);
  await json("import", file("chat.jsonl"), "--owner", "alice");
  const shown = (await run(["messages", "show", "msg_1"])).stdout.toString();
  expect(shown).toContain("[redacted:cards]");
  expect(shown).not.toContain("4111");
  expect((await json("unseal", "msg_1", "--owner", "alice")).data.items).toEqual([
    { ordinal: 0, placeholder: "[redacted:cards]", value: "4111 1111 1111 1111" },
  ]);
  expect(await refused("unseal", "msg_1", "--owner", "bob")).toMatchObject({ code: "not_found" });
  expect(await refused("unseal", "msg_1", "--value", "3")).toMatchObject({ code: "not_found" });
  expect((await json("verify")).data).toMatchObject({ ok: true, redacted: { messages: 1, proven: 1 } });

  await json("vault", "new-key", file("next.key"));
  expect((await json("vault", "rotate", file("next.key"))).data).toMatchObject({ messages: 1, values: 1 });
  expect(await refused("unseal", "msg_1")).toMatchObject({
    message: expect.stringContaining("another key") as string,
  });
  await json("config", "set", "redactionKeyFile", file("next.key"));
  expect((await json("unseal", "msg_1")).data.items).toHaveLength(1);
  const { stdout } = await run(["support", "--json"]);
  for (const secret of ["4111", readFileSync(key, "utf8").trim()])
    expect(stdout.includes(secret)).toBe(false);
});

test("settings that are changed at the same time are all changed", async () => {
  const changes = [
    ["freshTailCount", "48"],
    ["leafMinFanout", "9"],
    ["condensedMinFanout", "5"],
    ["recallCue", "false"],
  ] as const;
  const runs = await Promise.all(changes.map(([key, value]) => run(["config", "set", key, value])));
  expect(runs.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
  for (const [key, value] of changes)
    expect((await run(["config", "get", key])).stdout.toString().trim()).toBe(value);
});
