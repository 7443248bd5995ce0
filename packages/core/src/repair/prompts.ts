/**
 * A folder of prompts: the operator's own briefs, one file for each depth, instead of the built-in ones. Missing files mean the built-in
 * brief.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError, toWriteError } from "../model/errors.ts";
import { findNearest } from "../text/nearest.ts";
import { writeNewFile } from "./new-file.ts";
import { BRIEF_NAMES, buildSummaryPrompt, renderOwnBrief } from "../summarize/prompts.ts";
import type { BriefName, BriefTexts, SummaryPrompt } from "../summarize/prompts.ts";

const EXTENSION = ".md";

export interface PromptEntry {
  readonly name: BriefName;
  readonly path: string;
  /** `own`: a file in the folder; `built-in`: ours. */
  readonly origin: "own" | "built-in";
  readonly isChanged: boolean;
}

export function listPrompts(folder: string): PromptEntry[] {
  const own = readPrompts(folder);
  return BRIEF_NAMES.map((name) => ({
    name,
    path: join(folder, name + EXTENSION),
    origin: own[name] === undefined ? "built-in" : "own",
    isChanged: own[name] !== undefined && own[name].trim() !== renderOwnBrief(name).trim(),
  }));
}

/** The briefs of a folder; an unknown name is refused, because the file would silently do nothing. */
export function readPrompts(folder: string): BriefTexts {
  if (!existsSync(folder)) return {};
  const texts: { -readonly [Name in BriefName]?: string } = {};
  for (const file of readdirSync(folder).filter((name) => name.endsWith(EXTENSION))) {
    const name = parsePromptName(file.slice(0, -EXTENSION.length));
    const text = readFileSync(join(folder, file), "utf8");
    if (text.trim() === "")
      throw new EngineError("invalid_input", `cannot use the prompt ${join(folder, file)}: it is empty`);
    texts[name] = text;
  }
  return texts;
}

export function parsePromptName(text: string): BriefName {
  const name = BRIEF_NAMES.find((known) => known === text);
  if (name !== undefined) return name;
  const nearest = findNearest(text, BRIEF_NAMES);
  const hint = nearest === null ? {} : { hint: `did you mean ${nearest}?` };
  throw new EngineError("usage", `cannot find the prompt ${text}: there are ${BRIEF_NAMES.join(", ")}`, hint);
}

/** Writes the built-in briefs into a folder for editing. Existing files are left alone. */
export function exportPrompts(folder: string): { written: string[]; kept: string[] } {
  makeFolder(folder);
  const written: string[] = [];
  const kept: string[] = [];
  for (const name of BRIEF_NAMES) {
    const path = join(folder, name + EXTENSION);
    (writeNewFile(path, `${renderOwnBrief(name)}\n`) ? written : kept).push(path);
  }
  return { written, kept };
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw toWriteError(folder, error);
  }
}

export function showPrompt(folder: string | null, name: BriefName): { text: string; builtIn: string } {
  const builtIn = renderOwnBrief(name);
  const own = folder === null ? undefined : readPrompts(folder)[name];
  return { text: own?.trimEnd() ?? builtIn, builtIn };
}

/** The whole prompt for a model, with a line in place of the sources. */
export function renderPrompt(
  folder: string | null,
  name: BriefName,
  request: { targetTokens: number; timeZone: string },
): SummaryPrompt {
  return buildSummaryPrompt({
    depth: BRIEF_NAMES.indexOf(name),
    mode: "normal",
    sourcesText: "(the sources go here)",
    ...request,
    briefs: folder === null ? undefined : readPrompts(folder),
  });
}
