/** Describes data that comes in records: JSON values, lines of JSON, tables, logs. */
import { countOf, excerpt, listSome } from "./explore-text.ts";

const MAX_KEYS = 12;

export function describeJson(value: object, size: string): string[] {
  if (Array.isArray(value)) {
    const lines = [`JSON array, ${size}, ${countOf(value.length, "element")}`];
    if (value.length > 0) lines.push(`Each: ${renderShape(value[0], 2)}`);
    return lines;
  }
  const keys = Object.keys(value);
  return [`JSON object, ${size}, ${countOf(keys.length, "key")}`, renderShape(value, 2)];
}

/** The shape of a value: keys with their types, two levels deep, arrays by length and first element. */
function renderShape(value: unknown, depth: number): string {
  if (Array.isArray(value)) {
    const element = value.length > 0 && depth > 0 ? ` of ${renderShape(value[0], depth - 1)}` : "";
    return `array(${value.length})${element}`;
  }
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  const keys = Object.keys(value);
  if (depth === 0 || keys.length === 0) return `object(${countOf(keys.length, "key")})`;
  const members = keys.map(
    (key) => `${excerpt(key, 40)}: ${renderShape((value as Record<string, unknown>)[key], depth - 1)}`,
  );
  return `{${listSome(members, MAX_KEYS)}}`;
}

export function describeJsonLines(text: string, size: string, lineCount: number): string[] {
  const first = text.split("\n", 1)[0] as string;
  const lines = [`JSON lines, ${size}, ${countOf(lineCount, "line")}`];
  try {
    lines.push(`First: ${renderShape(JSON.parse(first), 2)}`);
  } catch {
    lines.push(`First line (no JSON): ${excerpt(first, 200)}`);
  }
  return lines;
}

const DELIMITERS = [",", "\t", ";", "|"];

/** Columns, number of rows and the first row. Records may contain line breaks inside quotes. */
export function describeTable(text: string, size: string, bytes: Buffer, known: string | null): string[] {
  const delimiter = known ?? guessDelimiter(text);
  const [header = [], sample = []] = readRecords(text, delimiter, 2);
  const rows = Math.max(0, countRecords(bytes) - 1);
  const name = delimiter === "\t" ? "TSV" : "CSV";
  const columns = header.map((cell) => excerpt(cell, 40));
  const lines = [
    `${name} table, ${size}, ${countOf(rows, "row")}, ${countOf(columns.length, "column")}: ${listSome(columns, 20)}`,
  ];
  if (sample.length > 0)
    lines.push(
      `First row: ${listSome(
        sample.map((cell) => excerpt(cell, 40)),
        20,
        " | ",
      )}`,
    );
  return lines;
}

function guessDelimiter(text: string): string {
  const header = text.split("\n", 1)[0] as string;
  const counts = DELIMITERS.map((delimiter) => header.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] as string;
}

/** The first records of a table, unquoted. */
function readRecords(text: string, delimiter: string, max: number): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let i = 0; i <= text.length && records.length < max; i++) {
    const char = text[i];
    if (isQuoted && char !== undefined) {
      if (char !== '"') cell += char;
      else if (text[i + 1] === '"') cell += text[++i] as string;
      else isQuoted = false;
    } else if (char === '"' && cell === "") {
      isQuoted = true;
    } else if (char === delimiter || char === "\n" || char === undefined) {
      record.push(cell.replace(/\r$/, ""));
      cell = "";
      if (char === delimiter) continue;
      if (record.length > 1 || record[0] !== "") records.push(record);
      record = [];
    } else {
      cell += char;
    }
  }
  return records;
}

function countRecords(bytes: Buffer): number {
  let records = 0;
  let isQuoted = false;
  let isEmpty = true;
  for (const byte of bytes) {
    if (byte === 0x0a && !isQuoted) {
      if (!isEmpty) records++;
      isEmpty = true;
      continue;
    }
    if (byte === 0x22) isQuoted = !isQuoted;
    if (byte !== 0x0d) isEmpty = false;
  }
  return isEmpty ? records : records + 1;
}

const LEVEL = /\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|PANIC)\b/i;
const TIME =
  /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?|\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\b\d\d:\d\d:\d\d\b/;

/** Most of the first lines have a time near their start, or nearly all a level. */
export function looksLikeLog(text: string): boolean {
  const heads = text
    .split("\n", 100)
    .filter((line) => line.trim() !== "")
    .map((line) => line.slice(0, 80));
  if (heads.length < 5) return false;
  const timed = heads.filter((head) => TIME.test(head)).length;
  const levelled = heads.filter((head) => LEVEL.test(head)).length;
  return timed > heads.length * 0.6 || levelled > heads.length * 0.8;
}

export function describeLog(text: string, size: string, lineCount: number): string[] {
  const levels = new Map<string, number>();
  let firstTime: string | undefined;
  let lastTime: string | undefined;
  let firstError: string | undefined;
  for (const line of text.split("\n")) {
    const head = line.slice(0, 120);
    const time = TIME.exec(head)?.[0];
    firstTime ??= time;
    lastTime = time ?? lastTime;
    const level = LEVEL.exec(head)?.[1]?.toUpperCase().replace("WARNING", "WARN");
    if (level === undefined) continue;
    levels.set(level, (levels.get(level) ?? 0) + 1);
    if (/ERROR|CRITICAL|FATAL|PANIC/.test(level)) firstError ??= line;
  }
  const lines = [`Log, ${size}, ${countOf(lineCount, "line")}`];
  if (firstTime !== undefined) lines.push(`From ${firstTime} to ${lastTime}`);
  if (levels.size > 0) {
    const counts = [...levels].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    lines.push(`Levels: ${counts.map(([level, count]) => `${level} ${count}`).join(", ")}`);
  }
  if (firstError !== undefined) lines.push(`First error: ${excerpt(firstError, 200)}`);
  lines.push(`Starts: ${excerpt(text, 160)}`);
  return lines;
}
