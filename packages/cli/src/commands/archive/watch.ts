/** `lcm watch`: stores the sessions of other agents as they happen, until Ctrl-C, or as a user service. */
import type { Command } from "commander";
import { settleAddress } from "@lossless/core";
import { Option } from "commander";
import { homedir } from "node:os";
import type { AgentState, HookState, ServiceResult, WatchEvent, WatchState } from "@lossless/agents";
import { countOf, formatTime, toIso, toOneLine } from "@lossless/core/doors";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { printNote } from "../../output.ts";
import { style } from "../../style.ts";
import { addExamples, nameProgram } from "../shared.ts";

interface Options {
  readonly once?: boolean;
  readonly install?: boolean;
  readonly uninstall?: boolean;
}

/** The state on disk is for people who query it; writing more often would only wake the disk. */
const STATE_MS = 500;

export function defineWatch(program: Command): void {
  const command = program
    .command("watch")
    .description(
      "Store the sessions of Claude Code, Codex, Gemini CLI, OpenCode, pi and Copilot CLI as they happen",
    )
    .option("--once", "store what is there now and end")
    .addOption(new Option("--install", "run it as a service of your user from now on").conflicts("once"))
    .addOption(new Option("--uninstall", "end and remove that service").conflicts(["once", "install"]))
    .action(toAction(runWatch));
  addExamples(command, [
    ["lcm watch", "follow until Ctrl-C"],
    ["lcm watch --once", "store what is there, for a cron job"],
    ["lcm watch --install", "start it with your session, as a service"],
    [`lcm config set captureExclude '["~/private"]'`, "store nothing from below a folder"],
  ]);
  command.addHelpText(
    "after",
    `
Stores every line of the session files of agents on this machine within about a second. It only reads them, and calls no
model. One watcher runs per archive; after a crash it resumes where it stopped. lcm status shows each agent's last event.

To leave sessions out, name their folder, file or id in the setting captureExclude, or put a .lcmignore file into a
project: empty for the whole project, or with a glob per line for folders below it.

What is stored belongs to the owner in the setting captureOwner (or --owner). The service is a systemd user unit; on macOS
a launchd agent, which is not tested. For OpenClaw use the plugin.`,
  );
}

async function runWatch(invocation: Invocation, options: Options): Promise<void> {
  if (options.install === true || options.uninstall === true) return runService(invocation, options);
  const { settings } = await invocation.settings();
  const agents = await import("@lossless/agents");
  const database = settings.databasePath;
  await agents.watchAlone(database, () =>
    invocation.withArchive(
      "create",
      async (engine) => {
        const states = new StateWriter((state) => agents.writeWatchState(database, state));
        const owner = invocation.owner ?? settings.captureOwner;
        const watcher = new agents.Watcher({
          engine,
          locations: agents.listLocations(process.env, homedir()),
          owner,
          hooks: new agents.CaptureHooks({ database, engine, owner }),
          exclude: agents.makeExclusion(
            settings.captureExclude,
            Date.now,
            agents.openIgnoredFolders(database),
          ),
          onEvent: (event) => printNote(renderEvent(event)),
          onState: (state) => states.note(state),
        });
        if (options.once !== true) printNote("watching; Ctrl-C ends it");
        const state = await (options.once === true ? watcher.runOnce() : followUntilEnd(watcher));
        states.end(state);
        await invocation.print({
          data: { agents: state.agents.map(toAgentJson) },
          text: () => renderAgents(state.agents, Date.now()).join("\n"),
        });
      },
      { thread: true, readsHooks: false },
    ),
  );
}

async function followUntilEnd(watcher: {
  run(signal: AbortSignal): Promise<void>;
  state(): WatchState;
}): Promise<WatchState> {
  const controller = new AbortController();
  const end = (): void => controller.abort();
  process.on("SIGINT", end).on("SIGTERM", end);
  try {
    await watcher.run(controller.signal);
    return watcher.state();
  } finally {
    process.off("SIGINT", end).off("SIGTERM", end);
  }
}

/** Writes the newest state, at most once per interval. */
class StateWriter {
  readonly #write: (state: WatchState) => void;
  #timer: NodeJS.Timeout | null = null;
  #next: WatchState | null = null;

  constructor(write: (state: WatchState) => void) {
    this.#write = write;
  }

  note(state: WatchState): void {
    this.#next = state;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (this.#next) this.#write(this.#next);
    }, STATE_MS);
  }

  end(state: WatchState): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#write(state);
  }
}

function renderEvent(event: WatchEvent): string {
  if (event.kind === "stored") {
    const { imported, revisions, path } = event.report;
    const changed = revisions === 0 ? "" : `, ${revisions} changed`;
    return `${event.agent}: ${countOf(imported, "line", "lines")} stored${changed}, ${path}`;
  }
  const what = event.kind === "failed" ? "cannot store" : "left out";
  return `${event.agent}: ${what} ${event.path}: ${toOneLine(event.reason)}`;
}

async function runService(invocation: Invocation, { uninstall = false }: Options): Promise<void> {
  const { installService, readLocationVariables, uninstallService } = await import("@lossless/agents");
  const { settings } = await invocation.settings();
  const owner = invocation.owner === undefined ? [] : ["--owner", invocation.owner];
  const request = {
    home: homedir(),
    platform: process.platform,
    configHome: process.env["XDG_CONFIG_HOME"] || undefined,
    env: readLocationVariables(process.env),
    command: nameProgram("watch", "--db", settleAddress(settings.databasePath), ...owner),
  };
  const report = uninstall ? uninstallService(request) : installService(request);
  await invocation.print({
    data: { installed: !uninstall, path: report?.path ?? null, next: report?.next ?? null },
    text: () => renderService(report, uninstall),
  });
}

function renderService(report: ServiceResult | null, isRemoval: boolean): string {
  if (report === null) return "There is no service to remove.";
  const lines = [`${isRemoval ? "Removed" : "Wrote"} ${style.name(report.path)}`];
  if (report.next !== null) lines.push(`The service manager could not be asked. Run: ${report.next}`);
  if (!report.isTested) lines.push(style.warning("This was never tried on this kind of system."));
  return lines.join("\n");
}

export const toAgentJson = (state: AgentState): object => ({
  ...state,
  lastEventAt: toIso(state.lastEventAt),
  lastStoredAt: toIso(state.lastStoredAt),
});

/** One line for each agent that is installed, or has hooks. */
export function renderAgents(
  agents: readonly AgentState[],
  now: number,
  {
    hooks = [],
    timezone = "UTC",
  }: { readonly hooks?: readonly HookState[]; readonly timezone?: string } = {},
): string[] {
  const present = agents.filter(({ isPresent }) => isPresent);
  const lines = present.map((state) => {
    const own = hooks.filter(({ agent }) => agent === state.agent);
    return [
      `${state.agent}: ${describeAgent(state, now, timezone)}`,
      ...own.map((each) => describeHooks(each, now)),
    ].join(", ");
  });
  const others = hooks.filter(({ agent }) => present.every((state) => state.agent !== agent));
  lines.push(...others.map((state) => `${state.agent}: ${describeHooks(state, now)}`));
  return lines.length === 0 ? ["No sessions of an agent that can be followed were found."] : lines;
}

/** An agent that does not trust its hooks does not report that anywhere. */
function describeHooks({ agent, silent, lastAt, waiting, lost }: HookState, now: number): string {
  const trust = agent === "codex" ? " (trust them in Codex with /hooks)" : "";
  const never = style.warning(
    lastAt === null ? `hooks never fired${trust}` : `hooks that never fired: ${silent.join(", ")}`,
  );
  return [
    ...(lastAt === null ? [] : [`last hook ${describeAge(now - lastAt)} ago`]),
    silent.length === 0 ? style.good("all hooks fired") : never,
    ...(waiting === 0 ? [] : [`${countOf(waiting, "hook event")} unread`]),
    ...(lost === 0 ? [] : [`${countOf(lost, "hook event")} written over`]),
  ].join(", ");
}

function describeAgent(state: AgentState, now: number, timezone: string): string {
  const { transcripts, lastEventAt, lagMs, waiting, problem } = state;
  const isToday = lastEventAt !== null && now - lastEventAt < 86_400_000;
  const age = isToday ? `${describeAge(now - lastEventAt)} ago` : formatTime(lastEventAt, timezone);
  return [
    countOf(transcripts, "transcript", "transcripts"),
    lastEventAt === null ? "no event yet" : `last event ${age}`,
    ...(lagMs === null ? [] : [`stored ${(lagMs / 1000).toFixed(1)} s later`]),
    ...(waiting === 0 ? [] : [`${waiting} waiting`]),
    ...(problem === null ? [] : [toOneLine(problem)]),
  ].join(", ");
}

function describeAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
