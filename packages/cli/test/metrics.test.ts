/** `lcm metrics`: every series once, whatever models are called. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandsFor, createRunner, makeFolder } from "./support.ts";

const home = makeFolder();
const { lcm, text } = commandsFor(createRunner(home.path), join(home.path, "a.db"));
afterAll(home.remove);

test("a model without a name and one that is called unknown are one series", async () => {
  const path = join(home.path, "talk.jsonl");
  const answer = (model: object, input: number): object => ({
    ...model,
    role: "assistant",
    content: "done",
    usage: { input_tokens: input, output_tokens: 1 },
  });
  const lines = [{ role: "user", content: "go" }, answer({}, 10), answer({ model: "unknown" }, 5)];
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  expect((await lcm("import", path)).status).toBe(0);
  const series = (await text("metrics")).split("\n").filter((line) => line.startsWith("lcm_agent_tokens{"));
  expect(series).toContain('lcm_agent_tokens{model="unknown",kind="input"} 15');
  expect(new Set(series.map((line) => line.split(" ")[0])).size).toBe(series.length);
});
