/**
 * What the programs in front of the engine share (command line, terminal, web, plugin): files that survive a crash, words and numbers as
 * people read and type them, and reports that more than one of them shows. It prints nothing and loads quickly.
 */

// Files
export { openVault } from "../ingest/vault.ts";
export { writeNewFile } from "../repair/new-file.ts";
export { serializeExact } from "../message/json-text.ts";
export { toWriteError } from "../model/errors.ts";
export { flushPath } from "../store/flush-path.ts";

// Servers of this machine
export { isSameSecret, listenOnLoopback, LOOPBACK, waitForInterrupt } from "./loopback.ts";

// Threads
export { deserializeError, serializeError } from "../engine/thread-messages.ts";
export type { SerializedError } from "../engine/thread-messages.ts";

// Words
export { findNearest } from "../text/nearest.ts";
export { listMatchedWords } from "../text/matches.ts";
export { given, isObject, parseObject } from "../text/json-object.ts";
export { findDay } from "../summarize/time-of-day.ts";
export { diffLines, renderDiff } from "./diff.ts";
export type { DiffLine } from "./diff.ts";
export {
  countOf,
  formatBytes,
  formatCompression,
  formatCount,
  formatSeconds,
  formatShare,
  formatSpan,
  formatTime,
  indent,
  makePrintable,
  renderBar,
  toIso,
  toOneLine,
} from "./format.ts";
export { describeOrigin, nameProject } from "./headline.ts";
export { parseTime } from "./time-words.ts";
export { readTokenCount, TOKEN_COUNT_RULE } from "./token-count.ts";
export { displayWidth, truncateToWidth, wrapToWidth } from "./width.ts";

// Failures and next steps, for people at a shell
export { describeFailure, EXIT_CANCELLED, usageError } from "./failure.ts";
export type { Failure } from "./failure.ts";
export { renderCommandLine, SHELL_WORDS } from "./shell-words.ts";

// Reports
export { STATS_GROUPINGS } from "../engine/stats.ts";
export { readPrices, sumCost } from "./prices.ts";
export type { Cost, Price, Prices } from "./prices.ts";
export { describeGrammars, describeIds, describeReason, MODES } from "./explain-context.ts";
export type { GrammarVerdict } from "./explain-context.ts";
export { describePart, previewOf } from "./message-preview.ts";
export { findFrom, joinOutlines, Outlines, rowAt } from "./outline.ts";
export type { OutlineRow } from "./outline.ts";
export { beginsTurn, findLastTurns, findTurnFrom, sumTurns } from "./turn-sums.ts";
export type { TurnSum } from "./turn-sums.ts";
export { measureRaw, measureSaved } from "./raw-tokens.ts";
export { describeCaps, describeGuard, GROUPINGS, readLedger } from "./spend-ledger.ts";
export type { Grouping, Ledger } from "./spend-ledger.ts";
export { drawTree, readGraph } from "./summary-tree.ts";
