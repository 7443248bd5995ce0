/**
 * Runs the terminal UI on an open archive until the user quits. Whatever ends it, the terminal is restored first: quitting, Ctrl-C, a signal, an
 * exception anywhere in the program.
 */
import { styleText } from "node:util";
import type { HeadedConversation } from "@lossless/core";
import { usageError } from "@lossless/core/doors";
import { App } from "./app.ts";
import { follow } from "./live.ts";
import { createNavigator } from "./navigation.ts";
import { createPaint } from "./paint.ts";
import type { TuiArchive } from "./screen.ts";
import { DEFAULT_BUDGET } from "./screens/context.ts";
import { ConversationsScreen } from "./screens/conversations.ts";
import { TerminalUi } from "./terminal-ui.ts";

export interface TuiOptions {
  readonly archive: TuiArchive;
  /** Opened at once, if named. */
  readonly conversation: HeadedConversation | null;
  /** Whether the transcripts are opened at once. */
  readonly withTranscripts: boolean;
  /** False leaves the mouse to the terminal. */
  readonly mouse: boolean;
}

/** Exit codes of a process that a signal ended. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export function requireTerminal(): void {
  if (process.stdin.isTTY && process.stdout.isTTY && process.env["TERM"] !== "dumb") return;
  throw usageError(
    "cannot run lcm tui: it needs a terminal",
    "In scripts and pipes use the other commands, such as lcm conversations list or lcm messages list; lcm help names them",
  );
}

export async function runTui({ archive, conversation, withTranscripts, mouse }: TuiOptions): Promise<void> {
  requireTerminal();
  const ui = new TerminalUi(undefined, { mouse });
  const app = new App({
    archive,
    paint: createPaint(isColoured()),
    size: () => ui.size,
    redraw: () => ui.redraw(),
    navigate: createNavigator,
  });
  const restore = guardTerminal(ui, app);
  try {
    await app.open(new ConversationsScreen(app));
    if (conversation !== null) await app.go.messages(conversation);
    if (withTranscripts) await app.go.transcripts();
    ui.start(app);
    void app.refresh();
    void warmUp(archive);
    using _live = follow(app);
    await app.ended;
  } finally {
    restore();
  }
}

/** The first context takes many times as long as later ones; one is built while the user still reads the list. */
async function warmUp({ engine, scope }: TuiArchive): Promise<void> {
  try {
    const [row] = (await engine.listConversations({ ...scope, limit: 1 })).items;
    if (row === undefined) return;
    await engine.assemble({ ...scope, conversationId: row.conversationId, budgetTokens: DEFAULT_BUDGET });
  } catch {
    // Opening the context reports the error.
  }
}

/** Follows NO_COLOR and FORCE_COLOR, like every command. */
const isColoured = (): boolean => styleText("bold", "x", { stream: process.stdout }) !== "x";

/** Ends the program cleanly on signals and exceptions; returns a function that restores the terminal and removes the handlers. */
function guardTerminal(ui: TerminalUi, app: App): () => void {
  const onSignal = (name: NodeJS.Signals): void => {
    process.exitCode = SIGNALS[name as keyof typeof SIGNALS];
    app.quit();
  };
  const onError = (error: unknown): void => app.fail(error);
  const onExit = (): void => ui.stop();
  for (const name of Object.keys(SIGNALS)) process.on(name, onSignal);
  process.on("uncaughtException", onError);
  process.on("unhandledRejection", onError);
  process.on("exit", onExit);
  return () => {
    ui.stop();
    for (const name of Object.keys(SIGNALS)) process.off(name, onSignal);
    process.off("uncaughtException", onError);
    process.off("unhandledRejection", onError);
    process.off("exit", onExit);
  };
}
