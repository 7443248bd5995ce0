/** Every help text says what a command does, in the imperative, and shows an example. */
import { expect, test } from "vitest";
import { helpOf } from "../src/commands/config/help.ts";
import { buildProgram, listCommands } from "../src/program.ts";

/** How descriptions begin. A new verb is added here; what is no verb fails. */
const VERBS = new Set(
  `Add Adopt Answer Ask Assemble Back Browse Check Clean Compact Connect Continue Create Copy Dissolve Embed Expand Explain Export Find Fold Forget Generate Give Hide Import
  Install Let Limit List Make Manage Migrate Move Name Open Pin Print Prove Read Re-encrypt Rebuild Regenerate Remove Repair Replace Restore Rewrite Rotate Run Search Seal Serve Set
  Share Shorten Show Start Stop Store Tag Take Transplant Unseal Verify Watch Write`.split(/\s+/),
);

const commands = listCommands(buildProgram()).slice(1);
const nameOf = (command: (typeof commands)[number]): string =>
  command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name();

test("each begins with a verb in the imperative", () => {
  const others = commands.filter((command) => !VERBS.has(command.description().split(/[ ,]/, 1)[0] ?? ""));
  expect(others.map((command) => `${nameOf(command)}: ${command.description()}`)).toEqual([]);
});

test("each has an example", () => {
  expect(commands.filter((command) => !helpOf(command).includes("Example")).map(nameOf)).toEqual([]);
});

test("the list of commands is in groups, and no line of help is wider than asked for", () => {
  const text = helpOf(buildProgram(), 80);
  for (const heading of ["Look:", "Find:", "Fold:", "Prove and repair:"]) expect(text).toContain(heading);
  const wide = text.split("\n").filter((line) => line.length > 80);
  expect(wide).toEqual([]);
});

test("flags have their former names", () => {
  const find = (name: string) => commands.find((command) => nameOf(command) === name);
  const flags = (name: string): string[] => find(name)?.options.map(({ long }) => long ?? "") ?? [];
  expect(flags("restore")).toEqual(expect.arrayContaining(["--apply", "--yes"]));
  expect(flags("search")).toEqual(expect.arrayContaining(["--after", "--offset"]));
  expect(flags("doctor")).toEqual(expect.arrayContaining(["--apply", "--fix"]));
});
