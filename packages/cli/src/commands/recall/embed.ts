/**
 * `lcm embed`: vectors for semantic search. Shows their progress, makes the missing ones, and removes them. Off unless the settings name an
 * address and a model; search works without.
 */
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { Embed, EmbedMessagesResult, EmbedStatusResult } from "@lossless/core";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, EXIT_CANCELLED, formatCount, formatShare, toOneLine } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { countNote, startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { addExamples } from "../shared.ts";

export function defineEmbed(program: Command): void {
  const command = program
    .command("embed")
    .description("Manage vectors for semantic search; off unless a model is set");
  const status = command
    .command("status")
    .description("Show which vectors exist and how many are missing")
    .action(toAction(runStatus));
  addExamples(status, [["lcm embed status", "for how many messages there is a vector, by model"]]);
  const run = command
    .command("run")
    .description("Create missing vectors; can be cancelled and repeated")
    .action(toAction(runEmbed));
  addExamples(run, [["lcm embed run", "continues where the last run stopped"]]);
  const drop = command
    .command("drop")
    .description("Remove all vectors; messages are kept")
    .action(toAction(runDrop));
  addExamples(drop, [["lcm embed drop", "search uses words only; lcm embed run creates them again"]]);
  addExamples(command, [
    ["lcm config set embedding.baseUrl http://127.0.0.1:11434", "Ollama on this machine"],
    ["lcm config set embedding.model nomic-embed-text", "its model"],
    ["lcm embed run", "make the vectors; lcm search and lcm ask use them from then on"],
    ["lcm embed status", "progress"],
  ]);
  command.addHelpText(
    "after",
    `
The setting embedding.model names the model, and embedding.baseUrl where the text of your messages is sent; a local model
needs embedding.folder and embedding.loader instead. A key is read from LCM_EMBEDDING_API_KEY. lcm spend shows the cost.

When you name another model, its vectors are made beside the old ones, which serve until the new ones are complete.`,
  );
}

/** Access to the configured model, or null when none is configured. */
export async function findEmbed(invocation: Invocation): Promise<Embed | null> {
  const { settings } = await invocation.settings();
  if (settings.embedding.model === null) return null;
  const { openEmbed } = await import("@lossless/models");
  return openEmbed({ settings, env: process.env });
}

async function runStatus(invocation: Invocation): Promise<void> {
  const status = await invocation.withArchive("read", (engine) => engine.embedStatus());
  await invocation.print({ data: { ...status, items: status.spaces }, text: () => renderStatus(status) });
}

function renderStatus({ model, messages, left, spaces }: EmbedStatusResult): string {
  const head =
    model === null
      ? "Search by meaning is off: embedding.baseUrl and embedding.model are not both set."
      : left === 0
        ? `${style.good("ok")}  all of ${countOf(messages, "message")} have a vector of ${toOneLine(model)}`
        : `${formatCount(left)} of ${countOf(messages, "message")} have no vector of ${toOneLine(model)} yet; lcm embed run makes them`;
  if (spaces.length === 0) return head;
  const table = renderTable(
    [
      { title: "MODEL", flexible: true, style: style.name },
      { title: "NUMBERS", align: "right" },
      { title: "MESSAGES", align: "right" },
      { title: "SHARE", align: "right", style: style.faint },
      { title: "STATE" },
    ],
    spaces.map((space) => [
      toOneLine(space.model),
      formatCount(space.dimensions),
      formatCount(space.vectors),
      formatShare(space.vectors, messages),
      `${space.isFilled ? "complete" : "being filled"}${space.serves ? ", serves" : ""}`,
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return `${head}\n\n${table}`;
}

async function runEmbed(invocation: Invocation): Promise<void> {
  const embed = await findEmbed(invocation);
  const progress = startProgress("Embedding", { isWanted: !invocation.isJson });
  const answer = await runCancellable(
    (signal) =>
      invocation.withArchive(
        "change",
        (engine) =>
          engine.embedMessages({
            signal,
            onProgress: (done, total) => progress.update(done, total, countNote(done, total, "messages")),
          }),
        { embed },
      ),
    { isPatient: true, what: "the vectors" },
  ).finally(() => progress.finish());
  if (answer.failure !== null) throw explainStop(answer);
  if (answer.kind === "stopped") process.exitCode = EXIT_CANCELLED;
  await invocation.print({ data: { ...answer }, text: () => renderAnswer(answer) });
}

function explainStop({ failure, embedded }: EmbedMessagesResult): EngineError {
  const kept = `${countOf(embedded, "message")} got a vector and ${embedded === 1 ? "keeps" : "keep"} it`;
  return new EngineError("model_failed", `cannot embed the rest: ${failure?.message ?? ""}`, {
    hint: `${kept}; run lcm embed run again to continue`,
  });
}

function renderAnswer({ kind, embedded, skipped, calls, inputTokens }: EmbedMessagesResult): string {
  if (kind === "busy")
    return "Another process is making vectors right now; lcm embed status shows how far it is.";
  const cost = `${countOf(calls, "call")}, ${countOf(inputTokens, "token")}`;
  const left = skipped === 0 ? "" : `; ${countOf(skipped, "message")} could not be embedded`;
  const done = `${countOf(embedded, "message")} embedded (${cost})${left}`;
  return kind === "filled"
    ? `${style.good("ok")}  ${done}`
    : `Cancelled. ${done}. lcm embed run continues from here.`;
}

async function runDrop(invocation: Invocation): Promise<void> {
  const spaces = await invocation.withArchive("change", (engine) => engine.dropVectors());
  await invocation.print({
    data: { spaces },
    text: () =>
      spaces === 0
        ? "There are no vectors."
        : `${style.good("ok")}  vectors of ${countOf(spaces, "model")} removed`,
  });
}
