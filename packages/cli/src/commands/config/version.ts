/** `lcm version`: the versions in use. */
import type { Command } from "commander";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { readVersion } from "../../own-files.ts";
import { addExamples } from "../shared.ts";

export function defineVersion(program: Command): void {
  const command = program
    .command("version")
    .description("Show the versions of lcm, Node and SQLite")
    .action(toAction(runVersion));
  addExamples(command, [["lcm version --json", "for a bug report"]]);
}

async function runVersion(invocation: Invocation): Promise<void> {
  const data = {
    lcm: readVersion(),
    node: process.versions.node,
    sqlite: process.versions["sqlite"] ?? null,
    platform: `${process.platform}-${process.arch}`,
  };
  await invocation.print({
    data,
    text: () => `lcm ${data.lcm} (Node ${data.node}, SQLite ${data.sqlite ?? "unknown"}, ${data.platform})`,
  });
}
