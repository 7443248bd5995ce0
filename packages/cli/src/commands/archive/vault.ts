/**
 * `lcm unseal` and `lcm vault`: the values that redaction removed and sealed. Opening them requires the key and is recorded in the ledger; the
 * key is created and read only here and in the engine, and never printed.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import { EngineError, formatMessageId } from "@lossless/core";
import { countOf, renderCommandLine, usageError, writeNewFile } from "@lossless/core/doors";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { style } from "../../style.ts";
import { addExamples, parseMessageName } from "../shared.ts";

export function defineUnseal(program: Command): void {
  const command = program
    .command("unseal")
    .description("Show values that redaction sealed")
    .argument("<message>", "the message, such as msg_12", parseMessageName)
    .option("--value <n>", "only this placeholder of the message, counted from 0", parseOrdinal)
    .action(toAction(runUnseal));
  addExamples(command, [
    ["lcm unseal msg_12", "every value of the message"],
    ["lcm unseal msg_12 --value 0", "the first one"],
  ]);
  command.addHelpText(
    "after",
    `
Needs the key: the file that redactionKeyFile names, or the variable LCM_REDACTION_KEY. That a value was opened, and when, is
written into the ledger of its conversation. With --owner only messages of that agent are opened.`,
  );
}

function parseOrdinal(text: string): number {
  const ordinal = Number(text);
  if (/^\d{1,6}$/u.test(text)) return ordinal;
  throw new InvalidArgumentError("It must be a whole number from 0 on.");
}

async function runUnseal(
  invocation: Invocation,
  { value }: { readonly value?: number },
  messageId: number,
): Promise<void> {
  const ordinal = value === undefined ? {} : { ordinal: value };
  const values = await invocation.withArchive("change", (engine) =>
    engine.unseal({ messageId, ...invocation.scope, ...ordinal }),
  );
  await invocation.print({
    data: { id: formatMessageId(messageId), items: values },
    text: () =>
      values
        .map((item) => `${style.faint(`${item.ordinal}  ${item.placeholder}`)}  ${item.value}`)
        .join("\n"),
  });
}

export function defineVault(program: Command): void {
  const vault = program.command("vault").description("Create and rotate the key of sealed values");
  const create = vault
    .command("new-key")
    .description("Create a key file readable only by you")
    .argument("<file>", "must not exist yet")
    .action(toAction(runNewKey));
  addExamples(create, [
    [
      "lcm vault new-key ~/.openclaw/redaction.key",
      "then: lcm config set redactionKeyFile ~/.openclaw/redaction.key",
    ],
  ]);
  const rotate = vault
    .command("rotate")
    .description("Re-encrypt every sealed value with another key")
    .argument("<file>", "the new key; the settings still name the old one")
    .action(toAction(runRotate));
  rotate.addHelpText(
    "after",
    `
Afterwards set redactionKeyFile to the new file. If it is interrupted, run it again with both keys as they were: it continues where
it stopped. Proofs of what arrived stay with the key they were made with: without it, verify proves what is stored.`,
  );
  addExamples(rotate, [["lcm vault rotate new.key", "before the setting is changed"]]);
}

async function runNewKey(invocation: Invocation, _options: object, path: string): Promise<void> {
  if (!writeNewFile(path, `${randomBytes(32).toString("hex")}\n`)) {
    throw usageError(
      `cannot write the key ${path}: it exists, and an overwritten key cannot be recovered`,
      "Name a file that is not there yet",
    );
  }
  await invocation.print({
    data: { path },
    text: () =>
      `${style.good("ok")}  ${path}\nKeep a copy of it elsewhere: without it nothing that was sealed can be opened.\nlcm config set redactionKeyFile ${renderCommandLine([resolve(path)])}`,
  });
}

async function runRotate(invocation: Invocation, _options: object, path: string): Promise<void> {
  const newKey = readKey(path);
  const report = await invocation.withArchive("change", (engine) => engine.rotateVault({ newKey }));
  const { messages, values } = report;
  await invocation.print({
    data: report,
    text: () =>
      `${style.good("ok")}  ${countOf(values, "value")} of ${countOf(messages, "message")} re-encrypted\nlcm config set redactionKeyFile ${path}`,
  });
}

function readKey(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new EngineError("not_found", `cannot read the key ${path}: ${(error as Error).message}`, {
      hint: "lcm vault new-key FILE makes one",
    });
  }
}
