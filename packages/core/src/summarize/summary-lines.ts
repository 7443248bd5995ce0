/**
 * Parses older summaries line by line, so that a condensing pass can choose again among what they kept: the day and time of each line, its
 * speaker, its pieces, and the names in brackets. Also writes those brackets, because both must agree. Prose written by a model works as
 * well: lines without a stamp get the time of their summary.
 */
import { isNameList } from "./name-list.ts";
import { splitLine } from "./sentences.ts";
import type { Vocabulary } from "./terms.ts";
import type { ZonedTime } from "./time.ts";

export interface SummaryLine {
  readonly number: number;
  readonly date: string;
  readonly time: string;
  readonly speaker: string;
  readonly text: string;
  /** The kind of line, if it is not a line of events. */
  readonly section: Section | "names" | null;
}

/** Lines that state the progress of the work; a decision is a line of events that says so after its speaker. */
export type Section = "goal" | "decided" | "done" | "open" | "next";

/** After the events, in this order. */
export const SECTION_LABELS: readonly (readonly [Section, string])[] = [
  ["done", "Done: "],
  ["open", "Open: "],
  ["next", "Next: "],
];
export const DECIDED = " decided";

const DATE_LINE = /^(\d{4}-\d{2}-\d{2})(?:\s+\(?[A-Za-z][\w/+-]*\)?)?:?$/;
const TIMED_LINE = /^(\d{2}:\d{2}) (.*)$/;
const GOAL_LINE = /^Goal(?:, (\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}))?(?:, ([^:"]{1,60}))?: (".*")$/;
const SPOKEN_LINE = /^([^:`]{1,40}): (.*)$/;
/** Others are known once a line with a time names them: a line of prose may have a colon, too. */
const ROLES = ["user", "assistant"];

export function parseSummaryLines(body: string, moment: ZonedTime): SummaryLine[] {
  const lines: SummaryLine[] = [];
  const reader = new LineReader(moment);
  for (const raw of body.split("\n")) {
    const line = raw.trim();
    if (line === "" || line.startsWith("[LCM ") || line.startsWith("[Truncated")) continue;
    const read = reader.read(line);
    if (read !== null) lines.push({ ...read, number: lines.length });
  }
  return lines;
}

/** Reads line by line: a line without a date or a time has those of the line before it. */
class LineReader {
  readonly #moment: ZonedTime;
  readonly #speakers = new Set(ROLES);
  #date: string;
  #time = "";

  constructor(moment: ZonedTime) {
    this.#moment = moment;
    this.#date = moment.date;
  }

  /** Null for a line that only has the date of those after it. */
  read(line: string): Omit<SummaryLine, "number"> | null {
    const dated = DATE_LINE.exec(line);
    if (dated === null) return this.#readText(line);
    this.#date = dated[1] as string;
    this.#time = "";
    return null;
  }

  #readText(line: string): Omit<SummaryLine, "number"> {
    const date = this.#date === "" ? this.#moment.date : this.#date;
    const plain = { date, time: "", speaker: "", text: line, section: null };
    if (isNameList(line)) return { ...plain, section: "names" };
    const goal = GOAL_LINE.exec(line);
    if (goal !== null) {
      const [, day = "", time = "", speaker = "", text = ""] = goal;
      return { date: day || date, time, speaker, text, section: "goal" };
    }
    for (const [section, label] of SECTION_LABELS)
      if (line.startsWith(label)) return { ...plain, section, text: line.slice(label.length) };
    const [, time, said = line] = TIMED_LINE.exec(line) ?? [];
    const spoken = SPOKEN_LINE.exec(said);
    if (spoken === null) return plain;
    const [, who = "", text = ""] = spoken;
    const isDecision = who.endsWith(DECIDED);
    const speaker = isDecision ? who.slice(0, -DECIDED.length) : who;
    if (time !== undefined) {
      this.#time = time;
      this.#speakers.add(speaker);
    } else if (!this.#speakers.has(speaker)) return plain;
    return { date, time: this.#time, speaker, text, section: isDecision ? "decided" : null };
  }
}

/** The line that `GOAL_LINE` reads: the first request, who asked and when. */
export function renderGoal(unit: { date: string; time: string; speaker: string }, text: string): string {
  const when = unit.date === "" ? "" : `, ${unit.date} ${unit.time}`;
  return `Goal${when}${unit.speaker === "" ? "" : `, ${unit.speaker.replaceAll(/[:"]/g, "")}`}: ${text}`;
}

/** Anyone named who is not part of the machinery is a person. */
export const isPerson = (speaker: string): boolean =>
  speaker !== "" && !/^(?:assistant|tool|toolResult|system|notice|other)$/.test(speaker);

/** Sentences, and the pieces between semicolons outside code marks and brackets. */
export function splitPieces(text: string): string[] {
  const pieces: string[] = [];
  for (const sentence of splitLine(text)) pieces.push(...splitOutside(sentence));
  return pieces;
}

function splitOutside(text: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  let inCode = false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i);
    if (char === "`") inCode = !inCode;
    else if (inCode) continue;
    else if (char === "(") depth++;
    else if (char === ")") depth = Math.max(0, depth - 1);
    else if (char === ";" && depth === 0 && text.charAt(i + 1) === " ") {
      pieces.push(text.slice(start, i));
      start = i + 2;
    }
  }
  pieces.push(text.slice(start));
  return pieces.map((piece) => piece.trim()).filter((piece) => piece !== "");
}

/**
 * "edited `a.go` (defines x, y) → ok" is parsed into its names, so that a condensing pass can choose among them again. Older summaries also
 * list names that are used.
 */
export function parseNamed(piece: string): { head: string; defines: string; uses: string; tail: string } {
  const match = NAMED.exec(piece);
  if (match === null) return { head: piece, defines: "", uses: "", tail: "" };
  const [, head, list, tail] = match as unknown as [string, string, string, string];
  const [first = "", second = ""] = list.split("; uses ");
  const isDefinition = first.startsWith("defines ");
  return { head, defines: isDefinition ? first.slice(8) : "", uses: isDefinition ? second : list, tail };
}

const NAMED =
  /^([^`(]{0,40}`[^`]+`[^(]*?|[Ss]howed code) \(((?:defines )?(?:[^\s(),;]+(?:, |; uses ))*[^\s(),;]+)\)(.*)$/;

/** The brackets that `parseNamed` parses. */
export function renderNames(names: readonly number[], vocabulary: Vocabulary): string {
  if (names.length === 0) return "";
  return ` (defines ${names.map((id) => vocabulary.terms[id]?.text ?? "").join(", ")})`;
}
