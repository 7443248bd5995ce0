/** `lcm roles list|add|remove`: which role of a server may use the rows of which owner. */
import type { Command } from "commander";
import type { Roles } from "lossless-claw/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { toOneLine } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { addExamples } from "../shared.ts";

export function defineRoles(program: Command): void {
  const group = program.command("roles").description("Limit roles of a PostgreSQL server to one owner each");
  const list = group
    .command("list")
    .description("List roles and the owners whose rows they may use")
    .action(toAction(runList));
  addExamples(list, [["lcm roles list", "who may read what"]]);
  const add = group
    .command("add")
    .description("Let a role use the rows of an owner, and no others")
    .argument("<role>", "a role that exists on the server")
    .argument("<owner>", "the owner, as lcm conversations list shows it")
    .action(toAction(runAdd));
  addExamples(add, [
    ["lcm roles add agent_ann ann", "a program that connects as agent_ann sees only the rows of ann"],
  ]);
  const remove = group
    .command("remove")
    .description("Take an owner from a role; without one, everything")
    .argument("<role>", "the role")
    .argument("[owner]", "one of its owners")
    .action(toAction(runRemove));
  addExamples(remove, [["lcm roles remove agent_ann", "it may use nothing of the archive any more"]]);
}

async function openRoles(invocation: Invocation): Promise<Roles> {
  const { settings } = await invocation.settings();
  const repair = await import("lossless-claw/repair");
  return repair.openRoles(settings.databasePath);
}

async function runList(invocation: Invocation): Promise<void> {
  const items = await (await openRoles(invocation)).list();
  const table = (): string =>
    renderTable(
      [{ title: "ROLE", style: style.name }, { title: "OWNER" }],
      items.map(({ role, owner }) => [toOneLine(role), toOneLine(owner)]),
      { maxWidth: terminalColumns(), styleTitle: style.faint },
    );
  await invocation.print({ data: { items }, text: () => (items.length === 0 ? "No roles." : table()) });
}

async function runAdd(invocation: Invocation, _options: object, role: string, owner: string): Promise<void> {
  await (await openRoles(invocation)).add({ role, owner });
  await invocation.print({
    data: { role, owner },
    text: () => `${style.good("ok")}  ${role} may use the rows of ${owner}, and no others`,
  });
}

async function runRemove(
  invocation: Invocation,
  _options: object,
  role: string,
  owner?: string,
): Promise<void> {
  const removed = await (await openRoles(invocation)).remove(role, owner ?? null);
  const of = owner === undefined ? "anything of the archive" : `the rows of ${owner}`;
  await invocation.print({
    data: { role, owner: owner ?? null, removed },
    text: () =>
      removed ? `${style.good("ok")}  ${role} may no longer use ${of}` : `${role} had nothing to remove`,
  });
}
