/** `lcm doctor imports`: lists what each import stored, and removes whole imports. */
import type { Command } from "commander";
import type { ListedImport, RemovalPlan, RemovalResult } from "@lossless/core/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatCount, formatTime, toOneLine } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { addExamples } from "../shared.ts";

export function defineDoctorImports(doctor: Command): void {
  const command = doctor
    .command("imports")
    .description("List what each import stored, or remove imports")
    .argument("[import...]", "imports to remove, by id")
    .option("--apply", "apply; without this, dry run")
    .action(toAction(runImports));
  addExamples(command, [
    ["lcm doctor imports", "list imports"],
    ["lcm doctor imports imp_0123456789abcdef", "dry run"],
    ["lcm doctor imports imp_0123456789abcdef --apply", "apply"],
  ]);
  command.addHelpText(
    "after",
    `
Without an id, lists the imports that left something in the archive. With ids, it is a dry run unless you pass --apply.

A conversation is removed if every message in it came with the named imports, with its summaries, files and search index.
A conversation stays, and the reason is shown, if a host or another import added to it (name that import, too), if messages
of it were forgotten, if another conversation was forked from it, or if its session continues in a conversation that stays.
Before anything is removed, the archive is copied beside the database. Ids of what was removed are not used again.

Removing is not forgetting: the same files can be imported again, and text may remain in the copy and in free pages of the
database. Use lcm forget to erase text for good. Archives that were imported before imports were recorded are not listed.`,
  );
}

interface Options {
  readonly apply?: boolean;
}

async function runImports(
  invocation: Invocation,
  { apply = false }: Options,
  importIds: readonly string[],
): Promise<void> {
  if (importIds.length === 0) return printList(invocation);
  const { planRemoval, removeImports } = await import("lossless-claw/repair");
  const { settings } = await invocation.settings();
  const { databasePath, largeFilesDir: filesDir } = settings;
  const { plan, result } = await invocation.withArchive(
    apply ? "change" : "read",
    async (engine) => {
      const made = await planRemoval(engine, [...new Set(importIds)]);
      return {
        plan: made,
        result: apply ? await removeImports({ engine, databasePath, filesDir }, made) : null,
      };
    },
    { thread: true },
  );
  const { remove, keep } = plan;
  await invocation.print({
    data: {
      applied: result !== null,
      importIds: plan.importIds,
      remove: remove.map(({ conversationId, sessionKey, messages, summaries }) => ({
        conversationId,
        sessionKey,
        messages,
        summaries,
      })),
      keep,
      removed: result?.removed,
      copyPath: result?.copyPath,
    },
    text: () => renderPlan(plan, result),
  });
}

async function printList(invocation: Invocation): Promise<void> {
  const { listImports } = await import("@lossless/core/repair");
  const { settings } = await invocation.settings();
  const items = await invocation.withArchive("read", listImports);
  await invocation.print({ data: { items }, text: () => renderList(items, settings.timezone) });
}

function renderList(imports: readonly ListedImport[], timezone: string): string {
  if (imports.length === 0) return `${style.good("ok")}  no imports`;
  return renderTable(
    [
      { title: "IMPORT", style: style.name },
      { title: "WHEN" },
      { title: "CONVERSATIONS", align: "right" },
      { title: "MESSAGES", align: "right" },
      { title: "SOURCE", flexible: true },
    ],
    imports.map(({ importId, at, conversationIds, messages, sources }) => [
      importId,
      formatTime(at, timezone),
      formatCount(conversationIds.length),
      formatCount(messages),
      sources.length === 1 ? toOneLine(sources[0] ?? "") : `${formatCount(sources.length)} files`,
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
}

function renderPlan({ remove, keep }: RemovalPlan, result: RemovalResult | null): string {
  const verb = result === null ? "would be removed" : "removed";
  const lines = [
    ...remove.map(
      ({ conversationId, sessionKey, messages, summaries }) =>
        `  conversation ${conversationId}  ${toOneLine(sessionKey)}  ${countOf(messages, "message")}, ${countOf(summaries, "summary", "summaries")} ${verb}`,
    ),
    ...keep.map(
      ({ conversationId, reason }) =>
        `  conversation ${conversationId}  ${style.warning("stays")}: ${toOneLine(reason)}`,
    ),
  ];
  const end =
    result === null
      ? "Nothing was removed. Add --apply to remove what can be."
      : `${style.good("ok")}  ${countOf(result.removed.conversations, "conversation")} with ${countOf(result.removed.messages, "message")} removed. Copy of the archive before: ${result.copyPath}`;
  return [...lines, "", end].join("\n");
}
