/**
 * The type of a file: by its first bytes, by a name, by a media type. Also the extension of a stored file, which comes from outside and is
 * therefore reduced to a few safe letters.
 */

/** First bytes of formats that can be recognised by them. */
const SIGNATURES: readonly (readonly [mimeType: string, offset: number, hex: string])[] = [
  ["image/png", 0, "89504e470d0a1a0a"],
  ["image/jpeg", 0, "ffd8ff"],
  ["image/gif", 0, "47494638"],
  ["image/webp", 8, "57454250"],
  ["image/bmp", 0, "424d"],
  ["application/pdf", 0, "255044462d"],
  ["application/zip", 0, "504b0304"],
  ["application/gzip", 0, "1f8b08"],
  ["audio/wav", 8, "57415645"],
  ["audio/mpeg", 0, "494433"],
  ["audio/ogg", 0, "4f676753"],
  ["video/mp4", 4, "66747970"],
];

const UNKNOWN_BINARY = "application/octet-stream";

/** The media type that the first bytes show. */
export function sniffMimeType(bytes: Buffer): string {
  for (const [mimeType, offset, hex] of SIGNATURES) {
    if (bytes.toString("hex", offset, offset + hex.length / 2) === hex) return mimeType;
  }
  return UNKNOWN_BINARY;
}

/** Texts above this are not parsed to find out whether they are JSON. */
const MAX_PARSED_BYTES = 32 * 1024 * 1024;

/** `application/json` for text that is JSON, else `text/plain`. */
export function guessTextType(bytes: Buffer): string {
  return parseJson(bytes) === undefined ? "text/plain" : "application/json";
}

/** The object or array in the bytes, or undefined. */
export function parseJson(bytes: Buffer): object | undefined {
  if (bytes.length > MAX_PARSED_BYTES || !/^\ufeff?\s*[[{]/.test(bytes.toString("utf8", 0, 256)))
    return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8").replace(/^\ufeff/, ""));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

const EXTENSIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "application/gzip": "gz",
    "application/javascript": "js",
    "application/json": "json",
    "application/pdf": "pdf",
    "application/sql": "sql",
    "application/toml": "toml",
    "application/x-ndjson": "jsonl",
    "application/x-sh": "sh",
    "application/xml": "xml",
    "application/yaml": "yaml",
    "application/x-yaml": "yaml",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/jpg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html",
    "text/javascript": "js",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/tab-separated-values": "tsv",
    "text/x-python": "py",
    "text/xml": "xml",
    "text/yaml": "yaml",
    "video/mp4": "mp4",
  }),
);

export interface FileLabel {
  readonly fileName?: string | undefined;
  readonly mimeType?: string | undefined;
}

/**
 * The extension for a stored file, always one to eight of [a-z0-9].
 *
 * @example extensionFor({ fileName: "Report.CSV" }) // "csv"
 */
export function extensionFor({ fileName, mimeType }: FileLabel): string {
  const named = /\.([A-Za-z0-9]{1,8})$/.exec(fileName ?? "")?.[1];
  if (named !== undefined) return named.toLowerCase();
  const type = baseType(mimeType);
  return EXTENSIONS.get(type) ?? (type === "" || isTextType(type) ? "txt" : "bin");
}

/** A media type without parameters, in lower case. */
export function baseType(mimeType: string | undefined): string {
  return (mimeType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

function isTextType(type: string): boolean {
  return type.startsWith("text/") || /(?:json|xml|yaml|script)$/.test(type);
}
