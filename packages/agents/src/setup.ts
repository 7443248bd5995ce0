/**
 * Registers the MCP server with other agents, in their own files: what changes is shown first, the file as it was is kept, and removing gives
 * it back.
 *
 * Invariants: a file that nobody changed since is given back byte for byte; otherwise only our entry is taken out. Doing it twice changes
 * nothing. No other file is written but the record of what was done, beside the database.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { EngineError } from "@lossless/core";
import { isObject, nameLocally, type JsonObject } from "@lossless/core/formats";

export type SetupAgent = "claude-code" | "codex";

export interface SetupRequest {
  readonly agent: SetupAgent;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** What starts the MCP server: a program and its arguments. */
  readonly command: readonly string[];
  /** Beside it lies the record of what was done. */
  readonly database: string;
}

/** One file, as it is and as it would be; null when there is none. */
export interface SetupEdit {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

interface Format {
  add(text: string | null, command: readonly string[], path: string): string;
  remove(text: string, original: string | null, path: string): string;
}

/** The name under which agents know the server. Hosts put it before the names of tools. */
const NAME = "lossless";

export const findAgentFolder = ({ agent, env, home }: SetupRequest): string =>
  agent === "codex"
    ? env["CODEX_HOME"] || join(home, ".codex")
    : env["CLAUDE_CONFIG_DIR"] || join(home, ".claude");

function findFile(request: SetupRequest): string {
  if (request.agent === "codex") return join(findAgentFolder(request), "config.toml");
  return join(request.env["CLAUDE_CONFIG_DIR"] || request.home, ".claude.json");
}

/** What setting up would change. */
export function planSetup(request: SetupRequest): SetupEdit {
  const path = findFile(request);
  const before = readIfThere(path);
  return { path, before, after: FORMATS[request.agent].add(before, request.command, path) };
}

/** What removing would change. */
export function planRemoval(request: SetupRequest): SetupEdit {
  const path = findFile(request);
  const before = readIfThere(path);
  const record = readRecord(request);
  if (before === null) return { path, before, after: null };
  if (record?.afterHash === hashText(before)) return { path, before, after: record.before };
  return { path, before, after: takeOut(request, before, record, path) };
}

/** Writes what was planned, unless the file changed since it was looked at. */
export function applySetup(request: SetupRequest, edit: SetupEdit, isRemoval: boolean): void {
  const { path, before, after } = edit;
  if (readIfThere(path) !== before)
    throw new EngineError("database_busy", `cannot change ${path}: another program has just written it`, {
      hint: "run the command again",
    });
  if (!isRemoval && after !== before && after !== null)
    writeRecord(request, path, { before, afterHash: hashText(after) });
  if (after === null) rmSync(path, { force: true });
  else if (after !== before) replaceFile(path, after);
  if (isRemoval) rmSync(recordFile(request), { force: true });
}

/** Null when there is no such file. What cannot be given back byte for byte is refused. */
function readIfThere(path: string): string | null {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
  } catch (error) {
    const reason = error instanceof TypeError ? "it is not UTF-8" : messageOf(error);
    throw new EngineError("invalid_input", `cannot change ${path}: ${reason}`, { cause: error });
  }
}

/** As a whole, with the rights it had; a link stays a link. */
function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const target = existsSync(path) ? realpathSync(path) : path;
  const mode = existsSync(target) ? statSync(target).mode & 0o777 : 0o600;
  const unfinished = `${target}.${process.pid}.lcm-new`;
  try {
    writeFileSync(unfinished, text, { mode, flush: true });
    renameSync(unfinished, target);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw new EngineError("invalid_input", `cannot change ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** The file as it was before, and the hash of what was written. */
interface SetupRecord {
  readonly before: string | null;
  readonly afterHash: string;
}

const recordFile = ({ database, agent }: SetupRequest): string =>
  `${nameLocally(database)}.setup-${agent}.json`;

/** One that cannot be read counts as none: our entry is taken out all the same. */
function readRecord(request: SetupRequest): SetupRecord | null {
  try {
    const record: unknown = JSON.parse(readIfThere(recordFile(request)) ?? "null");
    return isRecord(record) ? record : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const isRecord = (value: unknown): value is SetupRecord =>
  isObject(value) &&
  typeof value["afterHash"] === "string" &&
  (value["before"] === null || typeof value["before"] === "string");

/** The original is the file without our entry: as it was before the first time, or else as somebody else has written it since. */
function writeRecord(request: SetupRequest, path: string, { before, afterHash }: SetupRecord): void {
  const known = readRecord(request);
  const isOurs = known !== null && before !== null && known.afterHash === hashText(before);
  const original = isOurs || before === null ? null : takeOut(request, before, known, path);
  const record = { before: isOurs ? known.before : original, afterHash };
  replaceFile(recordFile(request), JSON.stringify(record));
}

const takeOut = ({ agent }: SetupRequest, text: string, record: SetupRecord | null, path: string): string =>
  FORMATS[agent].remove(text, record?.before ?? null, path);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const hashText = (text: string): string => createHash("sha256").update(text).digest("hex");

/** `~/.claude.json`: servers of the user are in `mcpServers`. */
const CLAUDE_JSON: Format = {
  add(text, command, path) {
    const [program = "", ...args] = command;
    const config = parseConfig(text ?? "{}", path);
    const servers = config["mcpServers"] ?? {};
    if (!isObject(servers))
      throw new EngineError("invalid_input", `cannot change ${path}: its mcpServers is not an object`);
    const entry = { type: "stdio", command: program, args };
    if (NAME in servers && !isOurEntry(servers[NAME])) throw taken(path);
    if (JSON.stringify(servers[NAME]) === JSON.stringify(entry)) return text ?? "";
    return renderLike(text, { ...config, mcpServers: { ...servers, [NAME]: entry } });
  },
  remove(text, original, path) {
    const config = parseConfig(text, path);
    const { mcpServers, ...others } = config;
    if (!isObject(mcpServers) || !isOurEntry(mcpServers[NAME])) return text;
    const { [NAME]: _ours, ...servers } = mcpServers;
    const hadServers = original !== null && "mcpServers" in parseConfig(original, path);
    const isEmpty = Object.keys(servers).length === 0 && !hadServers;
    return renderLike(text, isEmpty ? others : { ...config, mcpServers: servers });
  },
};

/** Whatever starts it, an entry of ours runs the command `mcp`. */
const isOurEntry = (entry: unknown): boolean =>
  isObject(entry) && Array.isArray(entry["args"]) && entry["args"].includes("mcp");

const taken = (path: string): EngineError =>
  new EngineError("invalid_input", `cannot change ${path}: it has an MCP server named ${NAME} already`, {
    hint: "remove that entry first",
  });

function parseConfig(text: string, path: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new EngineError("invalid_input", `cannot change ${path}: it is not a JSON object`, {
    hint: "mend the file, or move it away, and run the command again",
  });
}

/** With the indentation and the last line feed of the text. */
function renderLike(text: string | null, value: JsonObject): string {
  const indent = text === null ? "  " : (/^\{\r?\n([ \t]+)/u.exec(text)?.[1] ?? 0);
  return `${JSON.stringify(value, null, indent)}${text === null || text.endsWith("\n") ? "\n" : ""}`;
}

const BEGIN = "# lossless-claw, written by lcm setup codex";
const END = "# lossless-claw, end";
const BLOCK = new RegExp(`\\n?${BEGIN}\\n[\\s\\S]*?${END}\\n`, "u");

/** Whether our table would be there twice, in whichever way the other is written: the agent would refuse the whole file. */
function isTaken(text: string): boolean {
  let table = "";
  for (const line of text.split("\n")) {
    const plain = line.replace(/["'\s]/gu, "");
    const header = /^\[([^[\]]*)\]/u.exec(plain)?.[1];
    table = header ?? table;
    const key = header ?? `${table}${table === "" ? "" : "."}${plain}`;
    if (OURS.test(key)) return true;
  }
  return false;
}

/** The table or a part of it, or all servers as one value. */
const OURS = new RegExp(`^mcp_servers(?:=|\\.${NAME}(?:$|[.=]))`, "u");

/** `config.toml`: a block at its end, which is cut out again. */
const CODEX_TOML: Format = {
  add(text, command, path) {
    const [program = "", ...args] = command;
    // Without `required` the first turn begins before the tools are there.
    const block = [
      BEGIN,
      `[mcp_servers.${NAME}]`,
      `command = ${JSON.stringify(program)}`,
      `args = ${JSON.stringify(args)}`,
      "required = true",
      END,
      "",
    ].join("\n");
    const others = (text ?? "").replace(BLOCK, "");
    if (isTaken(others)) throw taken(path);
    if (text?.includes(block) === true) return text;
    return `${others}${others === "" ? "" : "\n"}${block}`;
  },
  remove: (text) => text.replace(BLOCK, ""),
};

const FORMATS: Readonly<Record<SetupAgent, Format>> = { "claude-code": CLAUDE_JSON, codex: CODEX_TOML };
