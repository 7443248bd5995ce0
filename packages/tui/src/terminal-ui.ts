/**
 * The app on a terminal: the one file that uses the drawing library. Intercepts keys before the library, which has keys of its own, and restores
 * the terminal: every way to end the program calls `stop`.
 */
import { ProcessTerminal, TuiAltScreen, type Component, type Terminal } from "@earendil-works/pi-tui";
import type { App } from "./app.ts";
import { readKey } from "./keys.ts";
import { isMouse, MOUSE_OFF, MOUSE_ON, readMouse } from "./mouse.ts";

export class TerminalUi {
  readonly #tui: TuiAltScreen;
  readonly #terminal: Terminal;
  #app: App | null = null;
  #isRunning = false;

  readonly #withMouse: boolean;

  constructor(terminal: Terminal = new ProcessTerminal(), { mouse = true }: { mouse?: boolean } = {}) {
    this.#terminal = terminal;
    this.#withMouse = mouse;
    this.#tui = new TuiAltScreen(
      tapKeys(terminal, (data) => this.#receive(data)),
      false,
      undefined,
      // The library would request every movement, and draw its own selections.
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
    this.#begin();
  }

  #begin(): void {
    this.#isRunning = true;
    this.#tui.start();
    if (this.#withMouse) this.#terminal.write(MOUSE_ON);
  }

  /** Draws now. */
  draw(): void {
    if (this.#isRunning) this.#tui.renderNow();
  }

  /** Schedules a redraw; several requests are one redraw. */
  redraw(): void {
    if (this.#isRunning) this.#tui.requestRender();
  }

  /** Restores the terminal. May be called more than once. */
  stop(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    if (this.#withMouse) this.#terminal.write(MOUSE_OFF);
    this.#tui.stop({ preserveScreen: true });
  }

  /** Returns the terminal to the shell until the program is resumed. */
  suspend(): void {
    if (!this.#isRunning || process.platform === "win32") return;
    this.stop();
    process.once("SIGCONT", () => {
      this.#begin();
      this.#tui.requestRender(true);
    });
    // The whole group, as the terminal itself would: a process that only waits for this one must stop as well.
    process.kill(0, "SIGTSTP");
  }

  #receive(data: string): void {
    // Over a slow connection two presses of Esc may arrive as one.
    if (data === "\u001B\u001B") {
      this.#receive("\u001B");
      return this.#receive("\u001B");
    }
    if (isMouse(data)) {
      const point = readMouse(data);
      if (point !== null) void this.#app?.point(point).then(() => this.draw());
      return;
    }
    const key = readKey(data);
    if (key === null || this.#app === null) return;
    if (key.name === "ctrl+z") return this.suspend();
    void this.#app.press(key).then(() => this.draw());
  }
}

/** The same terminal, but we get its keys. */
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
