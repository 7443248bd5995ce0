/**
 * `lcm forget`: the one way to delete. Shows what would be deleted and what depends on it; deletes only with `--apply`, and leaves a receipt.
 */
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { formatMessageId, isServerAddress } from "@lossless/core";
import type { Engine } from "@lossless/core";
import type { ForgetPreview, ForgetResult, ForgetSelection } from "@lossless/core/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, formatCount, usageError } from "@lossless/core/doors";
import { countNote, startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { renderPairs } from "../../table.ts";
import {
  addConversationOptions,
  addExamples,
  chooseConversation,
  parseMessageName,
  readTimeOption,
} from "../shared.ts";
import type { ConversationChoice } from "../shared.ts";

interface ForgetOptions extends ConversationChoice {
  readonly message?: readonly number[];
  readonly since?: string;
  readonly before?: string;
  readonly olderThan?: number;
  readonly pattern?: string;
  readonly regex?: RegExp;
  readonly reason: string;
  readonly apply?: boolean;
}

export function defineForget(program: Command): void {
  const command = addConversationOptions(program.command("forget"))
    .description("Remove messages permanently, with everything derived from them")
    .option("--message <id...>", "these messages", collectMessages)
    .option("--since <time>", "written at this time or later, such as 2026-02-14 or 2026-02-14T10:00Z")
    .option("--before <time>", "written before this time")
    .addOption(
      new Option("--older-than <age>", "written longer ago than this: 90d, 12w, 24h")
        .argParser(parseAge)
        .conflicts("before"),
    )
    .option("--pattern <text>", "that contain this text, ignoring case")
    .addOption(
      new Option("--regex <expression>", "that match this regular expression")
        .argParser(parseExpression)
        .conflicts("pattern"),
    )
    .option(
      "--reason <text>",
      "why, for the record; do not repeat what is to be forgotten",
      "asked for by the operator",
    )
    .option("--apply", "apply; without this, dry run")
    .action(toAction(runForget));
  addExamples(command, [
    ["lcm forget --pattern 'hunter2'", "dry run"],
    ["lcm forget --pattern 'hunter2' --apply", "remove it"],
    ["lcm forget --conversation 4 --apply", "everything in a conversation"],
    ["lcm forget --older-than 90d --apply", "everything written before"],
    ["lcm forget --message msg_12 --message msg_13", "two messages"],
  ]);
  command.addHelpText(
    "after",
    `
Without --apply it is a dry run that lists what would go. A message must meet every condition you give.

Removed: the text of the messages (every version, and the copies that lcm transplant made), its index terms, large files
that no other message uses, turns waiting in the spool, notes and bundles of hooks, and every summary made from them.
Summaries in a context are regenerated without the messages; no model is called. Title, name, tags and branch of the
conversation go too; its project, agent and model go when nothing of it is left to show.

Kept: that there was a message, when and in which session, and a hash that reveals nothing, so that lcm verify still
proves the rest. A forgotten message is never stored again.

Not removed: earlier backups and exports, and the host's own transcript; the receipt names them. On a server, free pages,
logs and replicas keep text for longer (docs/postgres.md). More in docs/care.md.`,
  );
}

function collectMessages(text: string, before: readonly number[] = []): readonly number[] {
  return [...before, ...text.split(",").map(parseMessageName)];
}

const UNITS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: 31_557_600_000,
};

function parseAge(text: string): number {
  const [, digits = "", unit = ""] = /^(\d{1,6})([hdwy])$/.exec(text.trim()) ?? [];
  const ms = Number(digits) * (UNITS[unit] ?? 0);
  if (ms > 0) return ms;
  throw new InvalidArgumentError("It must be an age such as 90d, 12w or 24h.");
}

function parseExpression(text: string): RegExp {
  try {
    return new RegExp(text, "iu");
  } catch (error) {
    throw new InvalidArgumentError(`Not a regular expression: ${(error as Error).message}.`);
  }
}

async function runForget(invocation: Invocation, options: ForgetOptions): Promise<void> {
  const { previewForget, applyForget } = await import("lossless-claw/repair");
  const { settings } = await invocation.settings();
  const apply = options.apply === true;
  const progress = startProgress("Looking", { isWanted: !invocation.isJson });
  const onProgress = (done: number, total: number): void =>
    progress.update(done, total, countNote(done, total, "messages"));
  await invocation
    .withArchive(
      apply ? "change" : "read",
      async (engine) => {
        const selection = await readSelection(engine, invocation, options);
        const request = { engine, databasePath: settings.databasePath, selection, onProgress };
        if (!apply) return printPreview(invocation, await previewForget(request), settings.databasePath);
        return printResult(invocation, await applyForget({ ...request, reason: options.reason }));
      },
      { thread: true },
    )
    .finally(() => progress.finish());
}

async function readSelection(
  engine: Engine,
  invocation: Invocation,
  options: ForgetOptions,
): Promise<ForgetSelection> {
  const { message, olderThan, pattern, regex } = options;
  const since = await readTimeOption(invocation, "--since", options.since);
  const before = await readTimeOption(invocation, "--before", options.before);
  const isNamed = options.conversation !== undefined || options.session !== undefined;
  const hasMore = [message, since, before, olderThan, pattern, regex].some((value) => value !== undefined);
  if (!isNamed && !hasMore) {
    throw usageError("cannot forget: nothing was chosen", "See lcm forget --help for the ways to choose");
  }
  if (
    message !== undefined &&
    (isNamed || [since, before, olderThan, pattern, regex].some((value) => value !== undefined))
  ) {
    throw usageError("cannot forget: --message names the messages, nothing else may narrow them");
  }
  const end = olderThan === undefined ? before : Date.now() - olderThan;
  const match = pattern ?? regex;
  return {
    ...invocation.scope,
    conversationIds: isNamed
      ? [(await chooseConversation(engine, invocation, options)).conversationId]
      : undefined,
    messageIds: message,
    since,
    before: end,
    pattern: match,
  };
}

async function printPreview(
  invocation: Invocation,
  preview: ForgetPreview,
  databasePath: string,
): Promise<void> {
  await invocation.print({
    data: {
      applied: false,
      messages: preview.messageIds.map(formatMessageId),
      conversations: preview.conversationIds,
      bytes: preview.arrivalBytes,
      files: preview.files.map((file) => file.fileId),
      summaries: preview.summaries,
      spoolFiles: preview.spoolFiles,
      captureFiles: preview.captureFiles,
      transcripts: preview.transcripts,
    },
    text: () => renderPreview(preview, databasePath),
  });
}

/** The archive cannot refuse what it never had an id of. */
const COMES_BACK =
  "the host's transcript has them, and its next turn stores them from there: forget them again then";

function renderPreview(preview: ForgetPreview, databasePath: string): string {
  const { messageIds, conversationIds, arrivalBytes, files, summaries, spoolFiles } = preview;
  if (messageIds.length + spoolFiles.length === 0) return "Nothing matches; nothing would be forgotten.";
  const published = summaries.filter((summary) => summary.isPublished).length;
  const where = countOf(conversationIds.length, "conversation");
  const pairs: [string, string][] = [
    ["Messages", `${formatCount(messageIds.length)} in ${where} (${formatBytes(arrivalBytes)})`],
    ["", nameSome(messageIds.map(formatMessageId))],
    ["Large files", files.length === 0 ? "none" : nameSome(files.map((file) => file.fileId))],
    [
      "Summaries",
      `${formatCount(published)} regenerated, ${formatCount(summaries.length - published)} erased`,
    ],
    [
      "Waiting turns",
      spoolFiles.length === 0
        ? "none"
        : `${formatCount(spoolFiles.length)} that were never stored; ${COMES_BACK}`,
    ],
    ["Of hooks", countOf(preview.captureFiles.length, "note or bundle", "notes and bundles")],
    ...preview.transcripts.map((path): [string, string] => [
      "Not changed",
      `${path}, the agent's own transcript`,
    ]),
  ];
  const copy = isServerAddress(databasePath)
    ? "lcm backup writes an archive file first, on this machine, which then still holds it. Copies of the server are its operator's."
    : "lcm backup makes a copy first, which then still holds it.";
  return `${renderPairs(pairs, style.faint)}\n\nNothing was done. Add --apply to remove it for ever; ${copy}`;
}

const SHOWN_NAMES = 12;

function nameSome(names: readonly string[]): string {
  const more = names.length - SHOWN_NAMES;
  return `${names.slice(0, SHOWN_NAMES).join(", ")}${more > 0 ? ` and ${formatCount(more)} more` : ""}`;
}

async function printResult(invocation: Invocation, { receipt, receiptPath }: ForgetResult): Promise<void> {
  await invocation.print({
    data: { applied: true, receiptPath, receipt },
    text: () => renderResult({ receipt, receiptPath }),
  });
}

const explainUnwiped = ({ serverKeeps }: ForgetResult["receipt"]): string =>
  serverKeeps === undefined
    ? "another process kept old pages in use: stop it and run lcm doctor --fix to wipe them"
    : "this role may not vacuum the tables: have their owner run lcm doctor --fix";

function renderResult({ receipt, receiptPath }: ForgetResult): string {
  const held = receipt.olderCopies.filter((copy) => copy.holds !== "no");
  const anew = countOf(receipt.summariesRemade.length, "summary", "summaries");
  return [
    `${style.good("ok")}  ${countOf(receipt.messages.length, "message")} forgotten, ${countOf(receipt.files.length, "large file")} removed, ${anew} regenerated`,
    `    receipt: ${receiptPath}`,
    ...(receipt.intakeFiles.length === 0
      ? []
      : [
          "    removed, too, what killed imports had left:",
          ...receipt.intakeFiles.map((path) => `      ${path}`),
        ]),
    ...(receipt.spoolFiles.length === 0
      ? []
      : [
          style.warning(
            `    ${countOf(receipt.spoolFiles.length, "waiting turn")} removed, never stored: ${COMES_BACK}`,
          ),
        ]),
    ...(receipt.isWiped ? [] : [style.warning(`    ${explainUnwiped(receipt)}`)]),
    ...(receipt.serverKeeps === undefined
      ? []
      : [
          "    the server may keep it for longer, out of reach of this program (docs/postgres.md):",
          ...receipt.serverKeeps.map((what) => `      ${what}`),
        ]),
    ...(receipt.transcripts.length === 0
      ? []
      : [
          style.warning("    the agent's own transcripts still hold it; they are not changed:"),
          ...receipt.transcripts.map((path) => `      ${path}`),
        ]),
    ...(held.length === 0
      ? []
      : [
          style.warning("    copies made before that still hold it, or may:"),
          ...held.map(({ path, holds }) => `      ${path}${holds === "yes" ? "" : " (may hold it)"}`),
        ]),
  ].join("\n");
}
