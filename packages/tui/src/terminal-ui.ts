/**
 * The app on a terminal: the one file that knows the library which draws. Takes the keys before the library does, which has keys of its own,
 * and gives the terminal back as it was: whatever ends the program comes by `stop`.
 */
import { ProcessTerminal, TuiAltScreen, type Component, type Terminal } from "@earendil-works/pi-tui";
import type { App } from "./app.ts";
import { readKey } from "./keys.ts";

export class TerminalUi {
  readonly #tui: TuiAltScreen;
  readonly #terminal: Terminal;
  #app: App | null = null;
  #isRunning = false;

  constructor(terminal: Terminal = new ProcessTerminal()) {
    this.#terminal = terminal;
    this.#tui = new TuiAltScreen(
      tapKeys(terminal, (data) => this.#receive(data)),
      false,
      undefined,
      { mouse: false },
    );
    const root: Component = {
      render: () => this.#app?.render() ?? [],
      invalidate: () => undefined,
    };
    this.#tui.setLayoutRoot(root);
  }

  get size(): { columns: number; rows: number } {
    return { columns: Math.max(1, this.#terminal.columns), rows: Math.max(1, this.#terminal.rows) };
  }

  start(app: App): void {
    this.#app = app;
    this.#isRunning = true;
    this.#tui.start();
  }

  /** Draws now. */
  draw(): void {
    if (this.#isRunning) this.#tui.renderNow();
  }

  /** Draws soon; many requests are one drawing. */
  redraw(): void {
    if (this.#isRunning) this.#tui.requestRender();
  }

  /** Gives the terminal back. May be called more than once. */
  stop(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.#tui.stop({ preserveScreen: true });
  }

  /** Lets the shell have the terminal until it brings the program back. */
  suspend(): void {
    if (!this.#isRunning || process.platform === "win32") return;
    this.stop();
    process.once("SIGCONT", () => {
      this.#isRunning = true;
      this.#tui.start();
      this.#tui.requestRender(true);
    });
    // The whole group, as the terminal itself would: a process that only waits for this one must stop as well.
    process.kill(0, "SIGTSTP");
  }

  #receive(data: string): void {
    // Over a slow line two presses of Esc may come as one.
    if (data === "\u001B\u001B") {
      this.#receive("\u001B");
      return this.#receive("\u001B");
    }
    const key = readKey(data);
    if (key === null || this.#app === null) return;
    if (key.name === "ctrl+z") return this.suspend();
    void this.#app.press(key).then(() => this.draw());
  }
}

/** The same terminal, but its keys go to us. */
function tapKeys(terminal: Terminal, onKey: (data: string) => void): Terminal {
  return new Proxy(terminal, {
    get(target, name) {
      if (name === "start")
        return (_onInput: (data: string) => void, onResize: () => void): void =>
          target.start(onKey, onResize);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}
