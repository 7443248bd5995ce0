/**
 * Collects the origin of a session while its lines are read. It is passed on with the batch of the lines that name it, so that a killed import
 * loses neither.
 */
import type { OriginUpdate } from "@lossless/core";
import type { JsonObject } from "@lossless/core/formats";
import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join, sep } from "node:path";
import { parseLine } from "../formats/format.ts";
import type { ToldOrigin, TranscriptFormat } from "../formats/format.ts";
import type { FormatName } from "../formats/names.ts";
import type { OpenTranscript } from "./detect.ts";
import { readLines } from "./lines.ts";
import { findProject } from "./project.ts";

/** OpenClaw writes session files of pi, below its own folder. */
const OPENCLAW_FOLDER = `${sep}.openclaw${sep}`;

/** The program that wrote a file; undefined for a format that any program may write. */
function nameAgent(format: FormatName, path: string): string | undefined {
  if (format === "openai") return undefined;
  return format === "pi" && path.includes(OPENCLAW_FOLDER) ? "openclaw" : format;
}

/** The Gemini CLI keeps a file beside its folder of chats that names its working folder; undefined if there is none. */
export function findGeminiFolder(path: string): string | undefined {
  const marker = join(dirname(dirname(path)), ".project_root");
  const folder = existsSync(marker) ? readFileSync(marker, "utf8").trim() : "";
  return isAbsolute(folder) ? folder : undefined;
}

/** After this many lines a file has named its folder, or never will. */
const HEAD_LINES = 400;

/** The folder of a transcript; undefined while its lines may still name one, null if they do not. */
export async function findFolder(
  transcript: OpenTranscript,
  format: TranscriptFormat,
  signal: AbortSignal | undefined,
): Promise<string | null | undefined> {
  if (format.name === "gemini-cli") return findGeminiFolder(transcript.path);
  if (format.readOrigin === undefined) return null;
  let lines = 0;
  for await (const line of readLines(transcript.file, { ...transcript, signal, stopsAtOverlong: true })) {
    const parsed = parseLine(line.bytes);
    const folder = parsed.kind === "entry" ? format.readOrigin(parsed.entry)?.folder : undefined;
    if (folder !== undefined && isAbsolute(folder)) return folder;
    lines += 1;
    if (lines === HEAD_LINES) return null;
  }
  return undefined;
}

export class OriginReader {
  readonly #agent: string | undefined;
  readonly #read: NonNullable<TranscriptFormat["readOrigin"]>;
  #project: string | undefined;
  #told: Omit<ToldOrigin, "folder" | "titleRank"> = {};
  /** How much the title is worth that was said last. */
  titleRank = 0;
  #isNew = true;

  constructor(format: Pick<TranscriptFormat, "name" | "readOrigin">, path: string) {
    this.#agent = nameAgent(format.name, path);
    this.#read = format.readOrigin ?? (() => null);
    const folder = format.name === "gemini-cli" ? findGeminiFolder(path) : undefined;
    if (folder !== undefined) this.#project = findProject(folder);
  }

  /** The lines before were read by an earlier import, and may have said a title: lesser ones do not replace it. */
  goOn(titleRank = 1): void {
    this.titleRank = titleRank;
  }

  note(entry: JsonObject): void {
    const told = this.#read(entry);
    if (told === null) return;
    const { folder } = told;
    // A session that changes its folder is still the same project.
    if (this.#project === undefined && folder !== undefined && isAbsolute(folder)) {
      this.#project = findProject(folder);
      this.#isNew = true;
    }
    for (const field of ["branch", "title", "model"] as const) {
      const value = told[field];
      if (value === undefined || (field === "title" && !this.#mayTitle(told))) continue;
      if (value === this.#told[field]) continue;
      this.#told = { ...this.#told, [field]: value };
      this.#isNew = true;
    }
  }

  #mayTitle({ titleRank = this.titleRank }: ToldOrigin): boolean {
    if (titleRank < this.titleRank) return false;
    this.titleRank = titleRank;
    return true;
  }

  /** What is known now, once after each change; undefined when nothing is new. */
  take(): OriginUpdate | undefined {
    if (!this.#isNew) return undefined;
    this.#isNew = false;
    const { branch, title, model } = this.#told;
    return { agent: this.#agent, project: this.#project, branch, title, model };
  }
}
