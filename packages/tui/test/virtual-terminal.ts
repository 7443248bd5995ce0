/** A terminal without a window: what the program writes is drawn by the emulator that real terminals are built on, and can be looked at. */
import type { Terminal } from "@earendil-works/pi-tui";
import xterm from "@xterm/headless";

const KEYS: Readonly<Record<string, string>> = {
  enter: "\r",
  escape: "\u001B",
  up: "\u001B[A",
  down: "\u001B[B",
  right: "\u001B[C",
  left: "\u001B[D",
  pageUp: "\u001B[5~",
  pageDown: "\u001B[6~",
  home: "\u001B[H",
  end: "\u001B[F",
  tab: "\t",
  space: " ",
  backspace: "\u007F",
  "ctrl+c": "\u0003",
};

export class VirtualTerminal implements Terminal {
  readonly #xterm: xterm.Terminal;
  readonly kittyProtocolActive = false;
  #onInput: (data: string) => void = () => undefined;
  #onResize: () => void = () => undefined;
  /** Everything that was written. */
  written = "";

  constructor(columns: number, rows: number) {
    this.#xterm = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
  }

  get columns(): number {
    return this.#xterm.cols;
  }

  get rows(): number {
    return this.#xterm.rows;
  }

  start(onInput: (data: string) => void, onResize: () => void): void {
    this.#onInput = onInput;
    this.#onResize = onResize;
  }

  stop(): void {
    this.#onInput = () => undefined;
  }

  drainInput(): Promise<void> {
    return Promise.resolve();
  }

  write(data: string): void {
    this.written += data;
    this.#xterm.write(data);
  }

  /** A key by its name, or as it is. */
  type(key: string): void {
    this.#onInput(KEYS[key] ?? key);
  }

  resize(columns: number, rows: number): void {
    this.#xterm.resize(columns, rows);
    this.#onResize();
  }

  /** What one would see: lines without the spaces at their ends. */
  async look(): Promise<string[]> {
    await new Promise<void>((resolve) => this.#xterm.write("", resolve));
    const { active } = this.#xterm.buffer;
    return Array.from({ length: this.#xterm.rows }, (_, row) =>
      (active.getLine(active.baseY + row)?.translateToString(true) ?? "").trimEnd(),
    );
  }

  /** Which of the two screens of a terminal is shown. */
  get screen(): "normal" | "alternate" {
    return this.#xterm.buffer.active.type;
  }

  moveBy(): void {}
  hideCursor(): void {
    this.write("\u001B[?25l");
  }
  showCursor(): void {
    this.write("\u001B[?25h");
  }
  clearLine(): void {}
  clearFromCursor(): void {}
  clearScreen(): void {}
  setTitle(): void {}
  setProgress(): void {}
}
