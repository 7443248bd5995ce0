/** The terminal UI on a virtual terminal, over an archive of its own: keys in, screens out. */
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Arrival, Complete, Engine, Settings } from "@lossless/core";
import { examine } from "@lossless/core/repair";
import { mend } from "lossless-claw/repair";
import { makeTemporaryFolder } from "@lossless/testkit";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { vi } from "vitest";
import { App } from "../src/app.ts";
import { createNavigator } from "../src/navigation.ts";
import { createPaint } from "../src/paint.ts";
import { ConversationsScreen } from "../src/screens/conversations.ts";
import { TerminalUi } from "../src/terminal-ui.ts";
import { VirtualTerminal } from "./virtual-terminal.ts";

export const MAIN = { key: "agent:main:main", id: "s1", owner: "main" };
const NOW = Date.UTC(2026, 2, 20);

/** Small summaries, so that a short talk has a graph of some depth. */
export const FOLDING = {
  freshTailCount: 4,
  leafChunkTokens: 400,
  leafTargetTokens: 80,
  condensedTargetTokens: 200,
  leafMinFanout: 2,
  condensedMinFanout: 2,
};

export interface StageOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly isColoured?: boolean;
  readonly complete?: Complete;
  /** Where transcripts are looked for. */
  readonly sessionFolders?: readonly string[];
  /** Fills the archive before the program is started. */
  readonly fill?: (writer: Engine) => Promise<void>;
}

export interface Stage {
  readonly terminal: VirtualTerminal;
  readonly app: App;
  readonly ui: TerminalUi;
  /** The archive as an agent has it open. */
  readonly writer: Engine;
  readonly databasePath: string;
  readonly settings: Settings;
  /** Types keys, one after the other, and returns the screen after the last. */
  press(...keys: string[]): Promise<string>;
  /** Types text, a character at a time. */
  write(text: string): Promise<string>;
  look(): Promise<string>;
  /** Waits until the screen shows something. */
  see(text: string | RegExp): Promise<string>;
  close(): Promise<void>;
}

export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const folder = makeTemporaryFolder("lcm-tui-");
  const databasePath = folder.file("lcm.db");
  const config = {
    ...FOLDING,
    databasePath,
    timezone: "UTC",
    ...(options.complete ? { summaryModel: "test/model" } : {}),
  };
  const { settings } = resolveSettings({ env: {}, config });
  const database = databasePath;
  const writer = await openEngine({ database, settings, thread: false });
  await (options.fill ?? fillTalk)(writer);
  // In this thread: another test has the threads, in a real terminal.
  const engine = await openEngine({ database, settings, readOnly: true, thread: false });
  const terminal = new VirtualTerminal(options.columns ?? 80, options.rows ?? 24);
  const ui = new TerminalUi(terminal);
  const app = new App({
    archive: {
      engine,
      scope: {},
      settings,
      sessionFolders: options.sessionFolders ?? [],
      modelName: options.complete ? "test/model" : null,
      change: async (work) => {
        const changer = await openEngine({
          database,
          settings,
          complete: options.complete ?? null,
          thread: false,
        });
        try {
          return await work(changer);
        } finally {
          await changer.close();
        }
      },
      examine: (onProgress) =>
        examine({ engine, settings, databasePath, filesDir: settings.largeFilesDir, onProgress }),
      mend: async (findings) => {
        const own = await openEngine({ database, settings, thread: false });
        try {
          return await mend(
            { engine: own, settings, databasePath, filesDir: settings.largeFilesDir },
            findings,
          );
        } finally {
          await own.close();
        }
      },
    },
    paint: createPaint(options.isColoured ?? false),
    size: () => ui.size,
    redraw: () => ui.redraw(),
    navigate: createNavigator,
    now: () => NOW,
  });
  await app.open(new ConversationsScreen(app));
  ui.start(app);
  const look = async (): Promise<string> => {
    await app.idle();
    ui.draw();
    return (await terminal.look()).join("\n");
  };
  return {
    terminal,
    app,
    ui,
    writer,
    databasePath,
    settings,
    look,
    press: async (...keys) => {
      for (const key of keys) {
        terminal.type(key);
        await app.idle();
      }
      return look();
    },
    write: async (text) => {
      for (const character of text) {
        terminal.type(character);
        await app.idle();
      }
      return look();
    },
    see: async (text) =>
      vi.waitFor(
        async () => {
          const screen = await look();
          const isThere = typeof text === "string" ? screen.includes(text) : text.test(screen);
          if (!isThere) throw new Error(`the screen does not show ${String(text)}:\n${screen}`);
          return screen;
        },
        { timeout: HANG_LIMIT_MS, interval: 10 },
      ),
    close: async () => {
      ui.stop();
      await engine.close();
      await writer.close();
      folder[Symbol.dispose]();
    },
  };
}

/** A folded conversation of 120 messages with tools. */
export async function fillTalk(writer: Engine): Promise<void> {
  await writer.ingest({ session: MAIN, messages: makeTalk(120) });
  await writer.compact({ sessionKey: MAIN.key, budgetTokens: 1_000, force: true });
}

/** The same as it was said, nothing folded. */
export async function fillPlain(writer: Engine): Promise<void> {
  await writer.ingest({ session: MAIN, messages: makeTalk(120) });
}

export const START = Date.UTC(2026, 2, 1);

export function makeTalk(count: number, from = 0): Arrival[] {
  return Array.from({ length: count }, (_, at) => {
    const index = from + at;
    const timestamp = START + index * 3_600_000;
    const words = `step ${index}: the greenhouse sensor ${index} reported ${20 + (index % 9)} degrees, so valve_${index} was opened by Mara after lunch`;
    const message =
      index % 4 === 1
        ? {
            role: "assistant",
            content: [
              { type: "text", text: words },
              {
                type: "toolCall",
                id: `call_${index}`,
                name: "read_file",
                arguments: { path: `step-${index}.ts` },
              },
            ],
            timestamp,
          }
        : index % 4 === 2
          ? {
              role: "toolResult",
              toolCallId: `call_${index - 1}`,
              toolName: "read_file",
              content: [{ type: "text", text: `const step = ${index};` }],
              timestamp,
            }
          : { role: index % 4 === 0 ? "user" : "assistant", content: words, timestamp };
    return { eventId: `e${index}`, message };
  });
}
