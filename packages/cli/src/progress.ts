/**
 * A bar on stderr during long work. Drawn only on a terminal, at most twenty times a second, and erased when done; in a pipe nothing is drawn,
 * so that logs stay readable.
 */
import { displayWidth, formatCount, renderBar, truncateToWidth } from "@lossless/core/doors";

export interface Progress {
  update(done: number, total: number, note?: string): void;
  finish(): void;
}

const REDRAW_MS = 50;
const BAR_COLUMNS = 28;

export function startProgress(label: string, options: { readonly isWanted: boolean }): Progress {
  const stream = process.stderr;
  if (!options.isWanted || !stream.isTTY || process.env["TERM"] === "dumb") {
    return { update: () => undefined, finish: () => undefined };
  }
  let drawnAt = 0;
  return {
    update(done, total, note = "") {
      const now = performance.now();
      if (now - drawnAt < REDRAW_MS && done < total) return;
      drawnAt = now;
      stream.write(`\r\x1b[K${renderProgress(label, done, total, note, (stream.columns || 80) - 1)}`);
    },
    finish() {
      if (drawnAt > 0) stream.write("\r\x1b[K");
    },
  };
}

/** One line: label, bar, share and note, cut to the width. */
export function renderProgress(
  label: string,
  done: number,
  total: number,
  note: string,
  columns: number,
): string {
  const share = total <= 0 ? 1 : Math.min(1, done / total);
  const line = `${label} ${renderBar(share, BAR_COLUMNS)} ${`${Math.floor(share * 100)}`.padStart(3)} %`;
  const rest = note === "" ? "" : `  ${note}`;
  return displayWidth(line + rest) <= columns ? line + rest : truncateToWidth(line + rest, columns);
}

export const countNote = (done: number, total: number, noun: string): string =>
  `${formatCount(done)} of ${formatCount(total)} ${noun}`;
