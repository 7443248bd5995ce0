/**
 * `lcm worker`: a process that shares the folding, embedding and maintenance of one archive with any number of others, on any machine. It runs
 * until Ctrl-C, which does not wait for long work: finished folds stay, and claims are released.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { countOf, formatCount, usageError } from "@lossless/core/doors";
import { addModelOptions, chooseModel } from "../../choose-model.ts";
import type { ModelOptions } from "../../choose-model.ts";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { printNote } from "../../output.ts";
import { style } from "../../style.ts";
import { findEmbed } from "../recall/embed.ts";
import { addExamples, parseTokens } from "../shared.ts";
import { NO_WORK, WorkerRounds } from "./worker-rounds.ts";
import type { WorkerEvent, WorkerTotals } from "./worker-rounds.ts";

interface Options extends ModelOptions {
  readonly once?: boolean;
  /** In seconds, like all durations on the command line. */
  readonly idle?: number;
  readonly poll: number;
  readonly lease: number;
  readonly budget?: number;
  /** False with `--no-embed`. */
  readonly embed: boolean;
}

const POLL_SECONDS = 5;
const LEASE_SECONDS = 120;

export function defineWorker(program: Command): void {
  const seconds = (flags: string, text: string): Option => new Option(flags, text).argParser(parseSeconds);
  const command = addModelOptions(program.command("worker"))
    .description("Share folding, embedding and upkeep of an archive with other workers")
    .addOption(new Option("--once", "do what is due now and end").conflicts("idle"))
    .addOption(seconds("--idle <seconds>", "end after so long without work"))
    .addOption(seconds("--poll <seconds>", "how often to look for work").default(POLL_SECONDS))
    .addOption(
      seconds("--lease <seconds>", "how long others wait for a worker that gives no sign of life").default(
        LEASE_SECONDS,
      ),
    )
    .option("--budget <tokens>", "token budget where no host has named one", parseTokens)
    .option("--no-embed", "make no vectors")
    .action(toAction(runWorker));
  addExamples(command, [
    ["lcm worker --db postgres://lcm@db.example/archive", "until Ctrl-C, beside any number of others"],
    ["lcm worker --once --budget 200k", "everything that is due now, for a cron job"],
    ["lcm worker --idle 600 --model anthropic/claude-haiku-4-5", "until ten minutes without work"],
  ]);
  command.addHelpText(
    "after",
    `
Folds what is due, remakes stale summaries, makes vectors if a model for them is set, and indexes what was stored. Start
as many workers as you like, on any machine: each claims its work first, so that no two do the same. Ctrl-C or SIGTERM
ends a worker and gives back its claims.

A conversation is due once a host has stored a turn that reached its threshold; with --budget, conversations without such
a host are folded too. The claims of a killed worker are taken over after --lease; at most the model call that was under
way is made again. A server that cannot be reached is waited for; with --once that is an error.`,
  );
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (Number.isFinite(seconds) && seconds > 0 && seconds <= 86_400) return seconds;
  throw new InvalidArgumentError("It must be a number of seconds, at most 86400.");
}

async function runWorker(invocation: Invocation, options: Options): Promise<void> {
  if (invocation.owner !== undefined)
    throw usageError("cannot run lcm worker for one owner: it serves the whole archive", "Leave out --owner");
  const model = await chooseModel(invocation, options);
  const embed = options.embed ? await findEmbed(invocation) : null;
  const tell = (text: string): void => (invocation.isJson ? undefined : printNote(text));
  const totals = await runCancellable(
    async (signal) => {
      const open = (): Promise<Engine> =>
        invocation.openArchive("change", { model, embed, leaseMs: 1000 * options.lease });
      const engine = await openPatiently(open, options, signal, tell);
      if (engine === null) return { ...NO_WORK };
      try {
        const rounds = new WorkerRounds({
          engine,
          budgetTokens: options.budget ?? null,
          embeds: embed !== null,
          signal,
          onEvent: (event) => tell(renderEvent(event)),
        });
        if (options.once !== true) tell("working; Ctrl-C ends it");
        await repeat(rounds, options, signal);
        return rounds.totals;
      } finally {
        await engine.close();
      }
    },
    { isPatient: true, isService: true, what: "the work" },
  );
  if (options.once === true && totals.failures > 0) process.exitCode = 1;
  await invocation.print({ data: { ...totals }, text: () => renderTotals(totals) });
}

/** A service that starts before its server waits for it; one-off work fails. Null when it was ended meanwhile. */
async function openPatiently(
  open: () => Promise<Engine>,
  { once = false, idle = Number.POSITIVE_INFINITY, poll }: Options,
  signal: AbortSignal,
  tell: (text: string) => void,
): Promise<Engine | null> {
  const startedAt = performance.now();
  for (let isTold = false; !signal.aborted; isTold = true) {
    try {
      return await open();
    } catch (error) {
      const isPassing = error instanceof EngineError && error.code === "database_unreachable";
      if (!isPassing || once || performance.now() - startedAt >= 1000 * idle) throw error;
      if (!isTold) tell(`${error.message}; waiting for it, Ctrl-C ends it`);
    }
    await pause(1000 * poll, signal);
  }
  return null;
}

async function repeat(
  rounds: WorkerRounds,
  { once = false, idle, poll }: Options,
  signal: AbortSignal,
): Promise<void> {
  let workedAt = performance.now();
  while (!signal.aborted) {
    const isBusy = await rounds.run();
    if (isBusy) {
      workedAt = performance.now();
      continue;
    }
    if (once || (idle !== undefined && performance.now() - workedAt >= 1000 * idle)) return;
    await pause(1000 * poll, signal);
  }
}

/** Ends early when the worker should stop. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function renderEvent(event: WorkerEvent): string {
  switch (event.kind) {
    case "folded": {
      const { conversationId, tokensBefore, tokensAfter, passes, reason } = event.result;
      const size = `${formatCount(tokensBefore)} to ${formatCount(tokensAfter)} tokens`;
      return `conversation ${conversationId}: folded from ${size} in ${countOf(passes, "pass", "passes")}, ${reason}`;
    }
    case "maintained":
      return `conversation ${event.conversationId}: maintained`;
    case "embedded":
      return `${countOf(event.messages, "message")} embedded`;
    case "failed":
      return `cannot ${event.what}: ${event.error.message}`;
  }
}

function renderTotals({ folds, maintained, embedded, failures }: WorkerTotals): string {
  const done = [
    countOf(folds, "fold"),
    `${formatCount(maintained)} times upkeep`,
    `${countOf(embedded, "message")} embedded`,
  ];
  const failed = failures === 0 ? "" : `, ${countOf(failures, "failure")}`;
  return `${failures === 0 ? style.good("ok") : style.warning("failures")}  ${done.join(", ")}${failed}`;
}
