/**
 * The server on stdin and stdout, for hosts that start it themselves. It ends when the host closes stdin. No line ends it: a line that is not a
 * message gets no answer, and one that is longer than any message is dropped before it can fill the memory.
 */
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { McpServerFactory } from "@modelcontextprotocol/server";
import { Transform } from "node:stream";
import type { Readable, Writable } from "node:stream";
import { describeProblem } from "./problem.ts";

/** Far above any request of ours: the longest part of one is a search pattern. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024;

const NEWLINE = 10;

export interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Called for lines that cannot be answered. */
  readonly onProblem: (message: string) => void;
}

/** Serves until the input ends. */
export function runStdio(
  factory: McpServerFactory,
  { input, output, onProblem }: StdioOptions,
): Promise<void> {
  const lines = new DropLongLines(MAX_LINE_BYTES, () =>
    onProblem(`a line of more than ${MAX_LINE_BYTES} bytes was dropped`),
  );
  return new Promise((resolve) => {
    const transport = new StdioServerTransport(input.pipe(lines), output, {
      maxBufferSize: 2 * MAX_LINE_BYTES,
    });
    const handle = serveStdio(factory, { transport, onerror: (error) => onProblem(describeProblem(error)) });
    lines.once("close", () => void handle.close().finally(resolve));
  });
}

/** Passes lines on, except for those that do not end within the limit. */
export class DropLongLines extends Transform {
  readonly #limit: number;
  readonly #onDrop: () => void;
  #held: Buffer[] = [];
  #size = 0;
  #isDropping = false;

  constructor(limit: number, onDrop: () => void) {
    super();
    this.#limit = limit;
    this.#onDrop = onDrop;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#hold(chunk.subarray(from, end + 1));
      this.#endLine();
      from = end + 1;
    }
    this.#hold(chunk.subarray(from));
    done();
  }

  #hold(piece: Buffer): void {
    if (this.#isDropping || piece.length === 0) return;
    this.#size += piece.length;
    if (this.#size <= this.#limit) this.#held.push(piece);
    else {
      this.#held = [];
      this.#isDropping = true;
      this.#onDrop();
    }
  }

  #endLine(): void {
    if (!this.#isDropping) this.push(Buffer.concat(this.#held));
    this.#held = [];
    this.#size = 0;
    this.#isDropping = false;
  }
}
