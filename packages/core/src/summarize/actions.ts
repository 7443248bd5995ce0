/**
 * Tool calls and their results as a person would report them: "edited hooks.go", "ran `npm test` → 3 failed". Works by the names of
 * arguments, not by a list of tools, so that any host's tools read well. Bulk output is never included.
 */
import { cutAtWord } from "./sentences.ts";

export interface Action {
  /** Past tense, as in "edited". */
  readonly verb: string;
  /** File, command, query or address of the action; empty when there is none. */
  readonly target: string;
  readonly targetKind: "file" | "command" | "query" | "other";
  /** Short remark that follows the target, ready to print. */
  readonly detail: string;
  /** Text whose identifiers may be named beside the target. */
  readonly body: string;
  /** Tasks of a to-do list, when the call writes one. */
  readonly tasks?: readonly Task[];
}

export interface Task {
  readonly text: string;
  readonly done: boolean;
}

export interface ActionResult {
  readonly text: string;
  readonly failed: boolean;
}

type Arguments = Record<string, unknown>;

const FILE_KEYS = [
  "file_path",
  "filePath",
  "path",
  "file",
  "filename",
  "fileName",
  "notebook_path",
  "target_file",
];
const COMMAND_KEYS = ["command", "cmd", "script", "shell_command"];
const QUERY_KEYS = ["pattern", "query", "regex", "search", "q", "glob"];
const ADDRESS_KEYS = ["url", "uri", "href"];
const TITLE_KEYS = ["description", "title", "summary", "subject", "name"];
const OLD_KEYS = ["old_string", "old_str", "oldText", "old_text", "search_string"];
const NEW_KEYS = [
  "new_string",
  "new_str",
  "newText",
  "new_text",
  "content",
  "file_text",
  "text",
  "patch",
  "diff",
  "input",
];
const TASK_KEYS = ["content", "text", "title", "step", "task", "description"];
/** Arguments whose values run over many lines. */
const LONG_KEYS = new Set([...OLD_KEYS, ...NEW_KEYS, ...COMMAND_KEYS, "prompt"]);
const REPEATED_KEYS = new Set([...OLD_KEYS, ...NEW_KEYS, ...TASK_KEYS, "status", "activeForm"]);
const KNOWN_KEYS = new Set([
  ...FILE_KEYS,
  ...COMMAND_KEYS,
  ...QUERY_KEYS,
  ...ADDRESS_KEYS,
  ...OLD_KEYS,
  ...NEW_KEYS,
  "description",
  "status",
  "activeForm",
  "prompt",
  "replace_all",
  "offset",
  "limit",
  "timeout",
  "workdir",
  "subagent_type",
]);
const MAX_COMMAND = 180;

/** Describes one tool call from its readable text: JSON arguments, or a plain command line. */
export function describeCall(toolName: string | undefined, text: string): Action {
  const name = toolName ?? readLeadingName(text) ?? "tool";
  const args = parseArguments(toolName, text);
  if (args === null) return describePlainCall(name, text);
  const tasks = readTasks(name, args);
  if (tasks !== null)
    return { verb: "set tasks", target: "", targetKind: "other", detail: "", body: "", tasks };
  return (
    describeCommand(args) ??
    describeSearch(name, args) ??
    describeFileCall(name, args) ??
    describeAddress(name, args) ??
    describeOther(name, args)
  );
}

function describePlainCall(name: string, text: string): Action {
  const line = firstLine(`${text}\n`.startsWith(`${name}\n`) ? text.slice(name.length) : text);
  return {
    verb: "called",
    target: name,
    targetKind: "other",
    detail: line === "" ? "" : `: ${cutAtWord(line, MAX_COMMAND)}`,
    body: text,
  };
}

function describeCommand(args: Arguments): Action | null {
  const command = pickCommand(args);
  if (command === null) return null;
  const lines = command.split("\n").filter((line) => line.trim() !== "" && !line.trim().startsWith("#"));
  const line = dropDirectoryChange((lines[0] ?? "").trim());
  const why = pickText(args, ["description"]);
  const isLong = lines.length > 1 || line.length > MAX_COMMAND;
  const detail = isLong && why !== null ? ` (${cutAtWord(why, 90)})` : "";
  return {
    verb: "ran",
    target: cutAtWord(line, isLong ? 110 : MAX_COMMAND),
    targetKind: "command",
    detail,
    body: command,
  };
}

function pickCommand(args: Arguments): string | null {
  for (const key of COMMAND_KEYS) {
    const value = args[key];
    if (typeof value === "string" && value !== "" && pickText(args, FILE_KEYS) === null) return value;
    if (Array.isArray(value) && value.every((part) => typeof part === "string")) return unwrapShell(value);
  }
  return null;
}

/** `["bash", "-lc", "npm test"]` is `npm test`. */
function unwrapShell(words: readonly string[]): string {
  const isShell = words.length === 3 && /^-l?c$/.test(words[1] ?? "");
  return isShell ? (words[2] ?? "") : words.join(" ");
}

/** `cd /long/path && make` means `make`. */
function dropDirectoryChange(line: string): string {
  return line.replace(/^cd\s+(?:"[^"]*"|'[^']*'|\S+)\s*(?:&&|;)\s*/, "");
}

function describeSearch(name: string, args: Arguments): Action | null {
  const query = pickText(args, QUERY_KEYS);
  if (query === null || OLD_KEYS.some((key) => key in args)) return null;
  const file = pickText(args, FILE_KEYS);
  const isListing = /glob|find|list/i.test(name);
  return {
    verb: isListing ? "looked" : "searched",
    target: cutAtWord(firstLine(query), 120),
    targetKind: "query",
    detail: file === null ? "" : ` in \`${file}\``,
    body: query,
  };
}

function describeFileCall(name: string, args: Arguments): Action | null {
  const path = pickText(args, FILE_KEYS);
  if (path === null) return null;
  const before = pickDeepText(args, OLD_KEYS);
  const after = pickDeepText(args, NEW_KEYS);
  return {
    verb: fileVerb(name, args, before, after),
    target: path,
    targetKind: "file",
    detail: describeChange(before, after),
    body: after ?? before ?? "",
  };
}

function fileVerb(name: string, args: Arguments, before: string | null, after: string | null): string {
  // For an editor with its verb as an argument, that says more than its name.
  const hint = (typeof args.command === "string" ? args.command : name).toLowerCase();
  if (/delete|remove/.test(hint)) return "deleted";
  if (/move|rename/.test(hint)) return "moved";
  if (before !== null || /edit|patch|replace|insert|update|append/.test(hint)) return "edited";
  if (after !== null || /write|create|save/.test(hint)) return "wrote";
  if (/list|^ls\b|dir/.test(hint)) return "listed";
  if (/read|view|open|cat|get|show|fetch/.test(hint)) return "read";
  return `used ${name} on`;
}

/** A small replacement is shown whole: it describes the change best. */
function describeChange(before: string | null, after: string | null): string {
  if (before === null || after === null) return "";
  const from = before.trim();
  const to = after.trim();
  if (from === "" || to === "" || from.includes("\n") || to.includes("\n")) return "";
  return from.length + to.length > 110 ? "" : `: \`${from}\` → \`${to}\``;
}

function describeAddress(name: string, args: Arguments): Action | null {
  const address = pickText(args, ADDRESS_KEYS);
  if (address === null) return null;
  const prompt = pickText(args, ["prompt", "question"]);
  const detail = prompt === null ? "" : ` (${cutAtWord(firstLine(prompt), 90)})`;
  return {
    verb: /search/i.test(name) ? "searched" : "opened",
    target: address,
    targetKind: "other",
    detail,
    body: prompt ?? "",
  };
}

function describeOther(name: string, args: Arguments): Action {
  const title = pickText(args, TITLE_KEYS);
  const values = Object.entries(args)
    .filter(
      ([, value]) => typeof value === "string" || typeof value === "number" || typeof value === "boolean",
    )
    .map(([key, value]) => `${key} ${firstLine(String(value))}`);
  const detail = title ?? cutAtWord(values.join(", "), 140);
  return {
    verb: "called",
    target: name,
    targetKind: "other",
    detail: detail === "" ? "" : `: ${cutAtWord(firstLine(detail), 140)}`,
    body: collectStrings(args).slice(0, 8_000),
  };
}

function readTasks(name: string, args: Arguments): Task[] | null {
  if (/todo|task|plan/i.test(name) && !("items" in args)) {
    const single = readTask(args);
    if (single !== null) return [single];
  }
  for (const value of Object.values(args)) {
    if (!Array.isArray(value) || value.length === 0) continue;
    const tasks = value.map(readTask);
    if (tasks.every((task) => task !== null)) return tasks;
  }
  return null;
}

function readTask(value: unknown): Task | null {
  if (typeof value !== "object" || value === null) return null;
  const { status, ...rest } = value as Arguments;
  const text = pickText(rest, TASK_KEYS);
  if (typeof status !== "string" || text === null) return null;
  return { text: firstLine(text), done: /complet|done|closed|finish/i.test(status) };
}

// ---- results

const FAILURE_LINE =
  /^(?=.{0,400}$).*(?:\berror\b[:\s[]|\bError:|\berrors?\b.*\bfound\b|\bFAIL(?:ED|URE)?\b|--- FAIL|\bfailed\b|\bfatal:|\bpanic:|Traceback|\bException\b|exit (?:code|status) [1-9]|command not found|No such file|Permission denied|\bdenied\b|\btimed out\b|\bundefined:|cannot |not found|错误|失败|异常)/i;
const VERDICT_LINE =
  /^(?=.{0,300}$).*(?:\b\d+\s+(?:passed|failed|failing|passing|tests?|files? changed|errors?|warnings?|issues?|problems?|insertions?|deletions?|matches|results?)\b|\b(?:PASS|OK)\b|\bSuccess\w*|\bBuild (?:succeeded|failed)|^\[[\w./-]+ [0-9a-f]{7,}\]|https?:\/\/\S+\/(?:pull|issues|commit)\/\S+)/;
const QUIET_RESULT =
  /has been (?:updated|created|modified)|successfully|^\s*$|^\(?no (?:output|content)|tool ran without output/i;

/** A line that says no more than that something failed, or that nothing did. */
export const SAYS_ONLY_FAILED =
  /^\s*(?:error: )?(?:(?:command )?exit(?:ed)?(?: with)? (?:code|status):? \d+|fail(?:ed|ure)?|errors?|\(none\))[.:]?\s*$/i;

/** A result in one line, or null when it is bulk or says nothing new. */
export function describeResult(
  text: string,
  isError: boolean,
  kind: Action["targetKind"],
): ActionResult | null {
  const all = text.length > 60_000 ? sampleEnds(text) : text.split("\n");
  const telling = all.filter((line) => !SAYS_ONLY_FAILED.test(line));
  const lines = telling.some((line) => line.trim() !== "") ? telling : all;
  if (isError)
    return { text: cleanLine(findLine(lines, FAILURE_LINE) ?? firstFullLine(lines)), failed: true };
  if (kind === "query") return describeFound(lines);
  if (kind !== "command" && kind !== "other") return null;
  const failure = findLine(lines, FAILURE_LINE);
  const verdict = findLastLine(lines, VERDICT_LINE);
  if (failure !== null && looksLikeLog(lines)) {
    const isSame = verdict === null || verdict === failure;
    return {
      text: cleanLine(isSame ? failure : `${cleanLine(failure)}; ${cleanLine(verdict)}`, 230),
      failed: true,
    };
  }
  if (verdict !== null) return { text: cleanLine(verdict), failed: false };
  const full = lines.filter((line) => line.trim() !== "");
  if (full.length > MAX_SHOWN_LINES || QUIET_RESULT.test(full.join(" "))) return null;
  return { text: cleanLine(full.join(" / ")), failed: false };
}

/** Output of this few lines is shown whole, as far as it fits one. */
const MAX_SHOWN_LINES = 3;
const MAX_FOUND = 5;

/** The files that a search found. */
function describeFound(lines: readonly string[]): ActionResult | null {
  const files = new Set<string>();
  for (const line of lines) {
    const file = /^([^\s:()]{3,120}\.[A-Za-z]\w{0,5})(?::\d+|$)/.exec(line.trim())?.[1];
    if (file !== undefined) files.add(file);
  }
  if (files.size === 0) return null;
  const more = files.size > MAX_FOUND ? ` and ${files.size - MAX_FOUND} more` : "";
  return { text: `${[...files].slice(0, MAX_FOUND).join(" ")}${more}`, failed: false };
}

/** Source code mentions errors without reporting one; a log does not look like numbered source lines. */
function looksLikeLog(lines: readonly string[]): boolean {
  let code = 0;
  const sample = lines.slice(0, 60);
  for (const line of sample)
    if (/^\s*\d+[→\t|:]|[{};]\s*$|^\s*(?:\/\/|#include|import |func |def |class |return )/.test(line)) code++;
  return code * 3 < sample.length;
}

function sampleEnds(text: string): string[] {
  return [...text.slice(0, 20_000).split("\n"), ...text.slice(-20_000).split("\n")];
}

function findLine(lines: readonly string[], pattern: RegExp): string | null {
  for (const line of lines) if (pattern.test(line)) return line;
  return null;
}

function findLastLine(lines: readonly string[], pattern: RegExp): string | null {
  for (let i = lines.length - 1; i >= 0; i--) if (pattern.test(lines[i] as string)) return lines[i] as string;
  return null;
}

const firstFullLine = (lines: readonly string[]): string =>
  lines.find((line) => line.trim() !== "") ?? "no output";

function cleanLine(line: string, limit = 160): string {
  return cutAtWord(
    line
      // eslint-disable-next-line no-control-regex -- terminal colours are exactly what is removed here
      .replace(/\u001b\[[0-9;]*[A-Za-z]/g, "")
      .replace(/<\/?[a-z_]+>/g, "")
      .replace(/\s+/g, " ")
      .trim(),
    limit,
  );
}

// ---- arguments

/** Arguments come as JSON, or as the `key: value` lines that normalising makes of them. */
function parseArguments(toolName: string | undefined, text: string): Arguments | null {
  const brace = text.indexOf("{");
  const json = brace >= 0 && brace <= 80 ? parseJson(text.slice(brace, text.lastIndexOf("}") + 1)) : null;
  return json ?? parseMembers(toolName, text);
}

function parseJson(text: string): Arguments | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Arguments) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const MEMBER = /^(-?[A-Za-z][\w-]{0,30})(?:: (.*))?$/;

/**
 * Lines that do not start a member continue the previous one. Inside a long value only argument names known here start a new one, because
 * file content is full of `word: word`. A repeated name starts the next object of a list.
 */
function parseMembers(toolName: string | undefined, text: string): Arguments | null {
  const lines = text.split("\n");
  if (lines[0] === toolName) lines.shift();
  const objects: Record<string, string>[] = [{}];
  let key = "";
  for (const line of lines) {
    const match = MEMBER.exec(line);
    const current = objects.at(-1) as Record<string, string>;
    if (
      match === null ||
      match[2] === undefined ||
      (LONG_KEYS.has(key) && !KNOWN_KEYS.has(match[1] as string))
    ) {
      if (key !== "") current[key] += `\n${line}`;
      continue;
    }
    key = match[1] as string;
    if (!(key in current)) current[key] = match[2];
    else if (REPEATED_KEYS.has(key)) objects.push({ [key]: match[2] });
    else current[key] += `\n${line}`;
  }
  const first = objects[0] as Record<string, string>;
  if (Object.keys(first).length === 0) return null;
  return objects.length === 1 ? first : { ...first, items: objects };
}

const readLeadingName = (text: string): string | undefined =>
  /^([A-Za-z_][\w.-]{1,60})\s*[({:]/.exec(text)?.[1];

function pickText(args: Arguments, keys: readonly string[]): string | null {
  for (const key of keys) {
    const value = args[key];
    if (typeof value === "string" && value.trim() !== "") return value.trim();
  }
  return null;
}

/** Also checks one level deeper: several edits come as a list of objects. */
function pickDeepText(args: Arguments, keys: readonly string[]): string | null {
  const direct = "items" in args ? null : pickText(args, keys);
  if (direct !== null) return direct;
  const found: string[] = [];
  for (const value of Object.values(args)) {
    if (!Array.isArray(value)) continue;
    for (const item of value) {
      const text = typeof item === "object" && item !== null ? pickText(item as Arguments, keys) : null;
      if (text !== null) found.push(text);
    }
  }
  return found.length === 0 ? null : found.join("\n");
}

function collectStrings(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(collectStrings).join("\n");
  if (typeof value === "object" && value !== null) return Object.values(value).map(collectStrings).join("\n");
  return "";
}

function firstLine(text: string): string {
  const line = text.split("\n").find((candidate) => candidate.trim() !== "");
  return (line ?? "").replace(/\s+/g, " ").trim();
}
