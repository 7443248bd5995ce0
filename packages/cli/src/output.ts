/**
 * The output of commands, in both forms. With `--json` one object on stdout, `{ok, command, data, pagination?, meta}`, where `ok` matches the
 * exit status, which is set before; without it text for people. Errors go to stderr in the same two forms. No other code writes to stdout.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { errorStyle } from "./style.ts";
import { indent, makePrintable, wrapToWidth } from "@lossless/core/doors";
import type { Failure } from "@lossless/core/doors";

export interface Pagination {
  /** Passed to `--after` (or `--offset`) to continue; null at the end. */
  readonly next: string | null;
  readonly limit: number;
  readonly total?: number;
}

export interface Result {
  readonly data: unknown;
  readonly pagination?: Pagination;
  /** The same for people; computed only when needed. */
  readonly text: () => string;
}

/** Members of the JSON object beside the data. */
export interface Meta {
  readonly version: string;
  readonly durationMs: number;
  readonly database?: string;
  readonly notices?: readonly string[];
}

export async function printResult(
  command: string,
  result: Result,
  meta: Meta,
  isJson: boolean,
): Promise<void> {
  if (!isJson) return showText(endLine(result.text()));
  const { data, pagination } = result;
  const ok = (process.exitCode ?? 0) === 0;
  const envelope = { ok, command, data, pagination, meta };
  return writeText(`${JSON.stringify(envelope, null, 2)}\n`);
}

const endLine = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`);

/** A pager like git's: it exits at once if the text fits, and keeps colours. `LCM_PAGER` or `PAGER` names another, empty or `cat` none. */
const DEFAULT_PAGER = "less -FRX";

/** On a terminal, text longer than the screen goes through a pager. */
async function showText(text: string): Promise<void> {
  const pager = process.env["LCM_PAGER"] ?? process.env["PAGER"] ?? DEFAULT_PAGER;
  const isLong = text.split("\n").length > (process.stdout.rows || 24);
  if (!process.stdout.isTTY || !isLong || pager === "" || pager === "cat") return writeText(text);
  if (!(await page(text, pager))) await writeText(text);
}

/** False if there is no such program. */
function page(text: string, pager: string): Promise<boolean> {
  // Ctrl-C belongs to the pager: it stops a search, and must not leave the pager alone with the terminal.
  const stay = (): void => undefined;
  process.on("SIGINT", stay);
  const shown = new Promise<boolean>((resolve) => {
    // `PAGER=less` alone would show colours as control characters.
    const env = { LESS: "FRX", ...process.env };
    const child = spawn(pager, { shell: true, stdio: ["pipe", "inherit", "inherit"], env });
    // Quitting the pager early is not an error.
    child.stdin.on("error", () => undefined);
    child.on("error", () => resolve(false));
    // 126 and 127: the shell could not start it.
    child.on("close", (status) => resolve(status !== 126 && status !== 127));
    child.stdin.end(text);
  });
  return shown.finally(() => process.off("SIGINT", stay));
}

async function writeText(text: string): Promise<void> {
  await writeBytes(Buffer.from(text));
}

/** Waits for a slow reader, so that a long list needs no memory. */
export async function writeBytes(bytes: Uint8Array): Promise<void> {
  if (!process.stdout.write(bytes)) await once(process.stdout, "drain");
}

export function printFailure(failure: Failure, isJson: boolean): void {
  process.stderr.write(isJson ? renderJsonFailure(failure) : renderFailure(failure));
}

function renderJsonFailure({ code, message, hint }: Failure): string {
  return `${JSON.stringify({ ok: false, error: { code, message, hint: hint ?? undefined } })}\n`;
}

/** One line, the hint as its second sentence. Only a list of problems takes more. */
function renderFailure({ message, hint }: Failure): string {
  const start = `${errorStyle.bad("lcm:")} `;
  if (hint === null) return `${start}${message}\n`;
  const isList = message.includes("\n");
  const end = isList || /[.!?]$/.test(message) ? "" : ".";
  return `${start}${message}${end}${isList ? "\n" : " "}${toSentence(hint)}\n`;
}

function toSentence(hint: string): string {
  const isWord = /^[a-z]+[ ,;]/.test(hint) && !hint.startsWith("lcm ");
  const begun = isWord ? hint.charAt(0).toUpperCase() + hint.slice(1) : hint;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** A note that is not a result: for people, on stderr. */
export function printNote(text: string): void {
  process.stderr.write(`${errorStyle.faint(text)}\n`);
}

/** Columns of the terminal, or null when the output goes elsewhere and must not be cut. */
export function terminalColumns(): number | null {
  return process.stdout.isTTY ? Math.max(40, process.stdout.columns || 80) : null;
}

/** Stored text under its heading: without control characters, indented, wrapped at words on a terminal. Piped text keeps its lines. */
export function renderStored(text: string): string {
  const columns = terminalColumns();
  const lines = makePrintable(text.trimEnd()).split("\n");
  const broken = columns === null ? lines : lines.flatMap((line) => wrapLine(line, columns - 2));
  return indent(broken.join("\n"));
}

/** All its lines are indented like the first, unless that leaves too little room. */
function wrapLine(line: string, columns: number): string[] {
  const [start = ""] = /^ */.exec(line) ?? [];
  if (start.length > columns / 2) return wrapToWidth(line, columns);
  return wrapToWidth(line.slice(start.length), columns - start.length).map((piece) => start + piece);
}
