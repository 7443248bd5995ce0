/**
 * Describes a large file in about 200 tokens, so that a model can decide whether to open it: the shape of JSON, the columns of a table, the
 * symbols of code, the headings of a document, the levels of a log, the size of an image. Calls no model (see `engine/describe-files.ts`);
 * the same bytes give the same words. Work is bounded: apart from counting lines, only the first megabytes are read.
 */
import { describeCode, describeListing, languageOf } from "./explore-code.ts";
import {
  describeHtml,
  describeMarkdown,
  describeText,
  describeXml,
  describeYaml,
} from "./explore-documents.ts";
import { describeImage } from "./explore-image.ts";
import {
  describeJson,
  describeJsonLines,
  describeLog,
  describeTable,
  looksLikeLog,
} from "./explore-records.ts";
import { baseType, parseJson, sniffMimeType, type FileLabel } from "./media-types.ts";

export { extensionFor } from "./media-types.ts";

export interface FileContent extends FileLabel {
  readonly bytes: Uint8Array;
}

/** Longest text that is read; the rest is only counted. */
const MAX_READ_BYTES = 4 * 1024 * 1024;
/** About 200 tokens of English. */
const MAX_SUMMARY_CHARS = 900;

/**
 * A short description of a file's content.
 *
 * @example exploreContent({ fileName: "a.csv", bytes: Buffer.from("id,name\n1,Ann\n") })
 * // "CSV table, 14 bytes, 1 row, 2 columns: id, name\nFirst row: 1 | Ann"
 */
export function exploreContent({ fileName, mimeType, bytes }: FileContent): string {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = formatSize(content.length);
  const lines = describe(content, size, fileName ?? "", baseType(mimeType));
  return clip(lines.join("\n"), MAX_SUMMARY_CHARS);
}

function describe(bytes: Buffer, size: string, fileName: string, type: string): string[] {
  if (bytes.length === 0) return ["Empty file"];
  if (isBinary(bytes)) return [describeBinary(bytes, size, type)];
  const extension = /\.([A-Za-z0-9]+)$/.exec(fileName)?.[1]?.toLowerCase() ?? "";
  const text = readHead(bytes);
  const isWhole = bytes.length <= MAX_READ_BYTES;
  const named = describeByName(bytes, text, size, extension, type);
  if (named) return named;
  const value = parseJson(bytes);
  if (value) return describeJson(value, size);
  if (looksLikeJsonLines(text)) return describeJsonLines(text, size, countLines(bytes));
  if (looksLikeLog(text)) return describeLog(text, size, countLines(bytes));
  if (/^\s*<\?xml\b/.test(text)) return describeXml(text, size);
  if (/^\s*<(?:!doctype html|html)\b/i.test(text)) return describeHtml(text, size);
  if (/^#{1,6} \S/m.test(text) && (text.match(/^#{1,6} \S/gm) ?? []).length >= 3) {
    return describeMarkdown(text, size, countLines(bytes));
  }
  return (
    describeListing(text, size, countLines(bytes)) ?? describeText(text, size, countLines(bytes), isWhole)
  );
}

/** By extension or media type, when they name a format and the content agrees. */
function describeByName(
  bytes: Buffer,
  text: string,
  size: string,
  extension: string,
  type: string,
): string[] | null {
  const is = (extensions: string, types = ""): boolean =>
    (extension !== "" && extensions.split(" ").includes(extension)) ||
    (type !== "" && types.split(" ").includes(type));
  if (is("csv", "text/csv")) return describeTable(text, size, bytes, null);
  if (is("tsv tab", "text/tab-separated-values")) return describeTable(text, size, bytes, "\t");
  if (is("jsonl ndjson", "application/x-ndjson")) return describeJsonLines(text, size, countLines(bytes));
  if (is("md markdown mdx", "text/markdown")) return describeMarkdown(text, size, countLines(bytes));
  if (is("html htm", "text/html")) return describeHtml(text, size);
  if (is("xml svg xsd plist", "text/xml application/xml image/svg+xml")) return describeXml(text, size);
  if (is("yaml yml", "text/yaml application/yaml application/x-yaml")) return describeYaml(text, size);
  if (is("log")) return looksLikeLog(text) ? describeLog(text, size, countLines(bytes)) : null;
  const language = languageOf(extension, type);
  return language === null ? null : describeCode(text, language, size, countLines(bytes));
}

function looksLikeJsonLines(text: string): boolean {
  const [first = "", second = ""] = text.split("\n", 2);
  return first.startsWith("{") && second.startsWith("{") && isJson(first) && isJson(second);
}

function isJson(line: string): boolean {
  return parseJson(Buffer.from(line)) !== undefined;
}

/** Zero bytes and other control characters near the start: not readable text. */
export function isBinary(bytes: Buffer): boolean {
  const head = bytes.subarray(0, 4096);
  let controls = 0;
  for (const byte of head) {
    if (byte === 0) return true;
    if (byte < 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09 && byte !== 0x1b) controls++;
  }
  return controls > head.length / 50;
}

function describeBinary(bytes: Buffer, size: string, declared: string): string {
  const sniffed = sniffMimeType(bytes);
  const type = sniffed === "application/octet-stream" && declared !== "" ? declared : sniffed;
  return describeImage(bytes, type, size) ?? `Binary file, ${type}, ${size}`;
}

function readHead(bytes: Buffer): string {
  const text = bytes.toString("utf8", 0, MAX_READ_BYTES).replace(/^\ufeff/, "");
  return bytes.length > MAX_READ_BYTES ? text.replace(/\ufffd{1,3}$/, "") : text;
}

function countLines(bytes: Buffer): number {
  let count = bytes.at(-1) === 0x0a ? 0 : 1;
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count++;
  return count;
}

function formatSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Cuts a text at whole characters. */
function clip(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, "")}…`;
}
