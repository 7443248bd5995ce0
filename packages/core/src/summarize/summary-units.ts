/**
 * Cuts sources into units: the smallest pieces a summary may keep or drop. A unit is a sentence somebody said, an action of the
 * agent with its outcome (all actions on one file in one turn together), the newest task list, or a line of an older summary.
 * Every unit knows when, who, which terms it carries, and which further names it could mention.
 */
import type { Action, Outcome, Task } from "./actions.ts";
import { describeCall, describeResult } from "./actions.ts";
import { splitClosingLine } from "./closing-line.ts";
import { cueOf, cutAtWord, readProse } from "./sentences.ts";
import type { SourceLine, SourcePart } from "./source.ts";
import { partsOf, speakerOf } from "./source.ts";
import type { Vocabulary, Voice } from "./terms.ts";
import { isPerson, parseNamed, parseSummaryLines, splitPieces, type SummaryLine } from "./summary-lines.ts";
import type { ZoneClock, ZonedTime } from "./time.ts";

export interface Unit {
  /** Reading order. */
  readonly order: number;
  readonly source: number;
  /** Units of one message, or of one line of a summary, share this. */
  readonly line: string;
  readonly date: string;
  readonly time: string;
  readonly speaker: string;
  readonly kind: "said" | "action" | "tasks";
  /** A few words for the closing line, when the unit itself is left out; empty when its sentence has to give them. */
  readonly label: string;
  /** What stands before the names, and what stands after them. */
  readonly head: string;
  readonly tail: string;
  /** Terms the unit's own text carries. */
  readonly terms: readonly number[];
  /** Terms it may name in brackets after `head`, best first once weighed. */
  readonly names: readonly number[];
  /** Those of `names` that the text behind the unit defines rather than uses. */
  readonly defined: ReadonlySet<number>;
  readonly bonus: number;
  readonly worth: number;
}

export interface UnitSet {
  readonly units: Unit[];
  /** Topics that the closing lines of older summaries offered. */
  readonly topics: string[];
  /** For a term, the file or command it was last seen in. */
  readonly homes: Map<number, string>;
}

/** People's own words outlive the agent's: what a user said once is rarely said again. */
const USER_FACTOR = 1.9;
/** A pasted log is not what the user said; after so many sentences of one message the factor is gone. */
const USER_SENTENCES = 14;
const FIRST_REQUEST_BONUS = 4;
const LAST_REQUEST_BONUS = 4;
const MAX_RESULT_SCAN = 200_000;
const SHOWED_CODE = "showed code";
const NONE: ReadonlySet<number> = new Set();
/** A function, type or class that code declares, in the notations of most languages. */
const DEFINITION =
  /\b(?:func(?:[ \t]*\([^()\n]*\))?|function\*?|def|class|type|interface|struct|enum|trait|fn|module|CREATE TABLE)[ \t]+([A-Za-z_$][\w$]*)/g;

export function cutUnits(sources: readonly SourceLine[], clock: ZoneClock, vocabulary: Vocabulary): UnitSet {
  const cutter = new UnitCutter(clock, vocabulary, sources);
  for (let i = 0; i < sources.length; i++) cutter.read(sources[i] as SourceLine, i);
  return cutter.finish();
}

interface ActionGroup {
  readonly order: number;
  readonly source: number;
  readonly moment: ZonedTime;
  readonly speaker: string;
  readonly action: Action;
  readonly verbs: Map<string, number>;
  readonly details: string[];
  readonly names: Set<number>;
  readonly defined: Set<number>;
  outcome: Outcome | null;
}

class UnitCutter {
  readonly #clock: ZoneClock;
  readonly #vocabulary: Vocabulary;
  readonly #units: Unit[] = [];
  readonly #topics: string[] = [];
  readonly #homes = new Map<number, string>();
  readonly #firstUser: number;
  readonly #lastUser: number;
  #groups = new Map<string, ActionGroup>();
  #pending: ActionGroup[] = [];
  #tasks: {
    tasks: readonly Task[];
    moment: ZonedTime;
    source: number;
    speaker: string;
    order: number;
  } | null = null;
  #order = 0;

  constructor(clock: ZoneClock, vocabulary: Vocabulary, sources: readonly SourceLine[]) {
    this.#clock = clock;
    this.#vocabulary = vocabulary;
    const requests = sources.map((source, i) => (isRequest(source) ? i : -1)).filter((i) => i >= 0);
    this.#firstUser = requests[0] ?? -1;
    this.#lastUser = requests.at(-1) ?? -1;
  }

  read(source: SourceLine, index: number): void {
    const moment = this.#momentOf(source.at);
    if (source.kind === "summary") {
      this.#readSummary(source, index, moment);
      return;
    }
    if (isRequest(source)) this.#closeTurn();
    for (const part of partsOf(source)) this.#readPart(source, part, index, moment);
  }

  finish(): UnitSet {
    this.#closeTurn();
    this.#pushTasks();
    return { units: this.#units, topics: this.#topics, homes: this.#homes };
  }

  #momentOf(at: number | null): ZonedTime {
    return at === null ? { date: "", time: "" } : this.#clock.split(at);
  }

  #readPart(source: SourceLine, part: SourcePart, index: number, moment: ZonedTime): void {
    if (part.type === "text") this.#readText(source, part.text, index, moment);
    else if (part.type === "tool_call") this.#readCall(source, part, index, moment);
    else if (part.type === "tool_result") this.#readResult(part, index);
    else if (part.type === "image" || part.type === "file") this.#readAttachment(source, part, index, moment);
  }

  #readText(source: SourceLine, text: string, index: number, moment: ZonedTime): void {
    const isNotice = source.role === "user" && isMachineWritten(text);
    const isUser = source.role === "user" && !isNotice;
    const speaker = isNotice ? "notice" : speakerOf(source);
    const prose = readProse(text);
    const voice: Voice = isUser ? "user" : "agent";
    if (prose.code !== "") this.#pushCode(prose.code, index, moment, speaker);
    prose.sentences.forEach((sentence, nth) => {
      const isPaste = isUser && nth >= USER_SENTENCES;
      const factor = isUser && !isPaste ? USER_FACTOR : 1;
      const isRequest = isUser && nth < 3;
      const request =
        (isRequest && index === this.#firstUser ? FIRST_REQUEST_BONUS : 0) +
        (isRequest && index === this.#lastUser ? LAST_REQUEST_BONUS : 0);
      this.#push({
        source: index,
        line: `${index}`,
        ...moment,
        speaker,
        kind: "said",
        label: "",
        head: sentence.text,
        tail: "",
        terms: this.#vocabulary.observe(sentence.text, index, isPaste ? "agent" : voice),
        names: [],
        defined: NONE,
        bonus: (sentence.cue + (isUser && nth === 0 && sentence.worth === 1 ? 1.5 : 0)) * factor + request,
        worth: sentence.worth * (isUser && !isPaste ? 1.25 : fragmentWorth(sentence.text)),
      });
    });
  }

  /** Code in a message is named, not quoted. */
  #pushCode(code: string, index: number, moment: ZonedTime, speaker: string): void {
    const names = this.#vocabulary.observe(code, index, "bulk");
    this.#push({
      source: index,
      line: `${index}`,
      ...moment,
      speaker,
      kind: "action",
      label: "",
      head: SHOWED_CODE,
      tail: "",
      terms: [],
      names,
      defined: this.#findDefinitions(code),
      bonus: 0.2,
      worth: 1,
    });
  }

  #findDefinitions(text: string): Set<number> {
    const defined = new Set<number>();
    for (const [, name] of text.matchAll(DEFINITION)) {
      const id = this.#vocabulary.idOf(name as string);
      if (id !== undefined) defined.add(id);
    }
    return defined;
  }

  #readCall(source: SourceLine, part: SourcePart, index: number, moment: ZonedTime): void {
    const action = describeCall(part.toolName, part.text);
    if (action.tasks !== undefined) {
      this.#tasks = {
        tasks: action.tasks,
        moment,
        source: index,
        speaker: speakerOf(source),
        order: this.#order++,
      };
      for (const task of action.tasks) this.#vocabulary.observe(task.text, index, "agent");
      this.#pending.push(this.#detachedGroup(action, index, moment, source));
      return;
    }
    const key = `${action.targetKind}:${action.target}`;
    const group = this.#groups.get(key) ?? this.#detachedGroup(action, index, moment, source);
    this.#groups.set(key, group);
    group.verbs.set(action.verb, (group.verbs.get(action.verb) ?? 0) + 1);
    if (action.detail !== "" && group.details.length < 2 && !group.details.includes(action.detail))
      group.details.push(action.detail);
    this.#vocabulary.observe(action.target, index, "agent");
    this.#nameTerms(group, this.#vocabulary.observe(action.body, index, "agent"), action.body);
    this.#pending.push(group);
  }

  #detachedGroup(action: Action, index: number, moment: ZonedTime, source: SourceLine): ActionGroup {
    return {
      order: this.#order++,
      source: index,
      moment,
      speaker: speakerOf(source),
      action,
      verbs: new Map(),
      details: [],
      names: new Set(),
      defined: new Set(),
      outcome: null,
    };
  }

  /** Results answer calls in order; a result without a call in this run only feeds the vocabulary. */
  #readResult(part: SourcePart, index: number): void {
    const text = part.text.length > MAX_RESULT_SCAN ? part.text.slice(0, MAX_RESULT_SCAN) : part.text;
    const terms = this.#vocabulary.observe(text, index, "bulk");
    const group = this.#pending.shift();
    if (group === undefined) return;
    const outcome = describeResult(part.text, part.isError === true, group.action.targetKind);
    if (outcome !== null) group.outcome = outcome;
    this.#nameTerms(group, terms, text);
  }

  #nameTerms(group: ActionGroup, terms: readonly number[], text: string): void {
    const home = group.action.targetKind === "file" ? group.action.target : "";
    for (const id of terms) {
      group.names.add(id);
      if (home !== "") this.#homes.set(id, home);
    }
    if (home === "") return;
    for (const id of this.#findDefinitions(text)) group.defined.add(id);
  }

  #readAttachment(source: SourceLine, part: SourcePart, index: number, moment: ZonedTime): void {
    const label = cutAtWord(part.text.replace(/\s+/g, " ").trim(), 120);
    const head = `attached ${part.type === "image" ? "an image" : "a file"}${label === "" ? "" : `: ${label}`}`;
    const terms = this.#vocabulary.observe(head, index, source.role === "user" ? "user" : "agent");
    this.#push({
      source: index,
      line: `${index}`,
      ...moment,
      speaker: speakerOf(source),
      kind: "action",
      label: label,
      head,
      tail: "",
      terms,
      names: [],
      defined: NONE,
      bonus: 1,
      worth: 1,
    });
  }

  /** Emits the actions of the turn that ends: what was done to one target in one turn is one unit. */
  #closeTurn(): void {
    for (const group of this.#groups.values()) this.#pushGroup(group);
    this.#groups = new Map();
    this.#pending = [];
  }

  #pushGroup(group: ActionGroup): void {
    const head = `${joinVerbs(group.verbs)} ${markTarget(group.action)}${group.details.join("")}`.trim();
    const tail = group.outcome === null ? "" : ` → ${group.outcome.text}`;
    const terms = this.#vocabulary.observe(
      `${group.action.target}${group.details.join(" ")}${tail}`,
      group.source,
      "agent",
    );
    const named = new Set(terms);
    this.#units.push({
      order: group.order,
      source: group.source,
      line: `${group.source}`,
      ...group.moment,
      speaker: group.speaker,
      kind: "action",
      label: labelOf(group.action),
      head,
      tail,
      terms,
      names: [...group.names].filter((id) => !named.has(id)),
      defined: group.defined,
      bonus: actionBonus(group),
      worth: 1,
    });
  }

  #pushTasks(): void {
    if (this.#tasks === null) return;
    const { tasks, moment, source, speaker, order } = this.#tasks;
    const open = tasks.filter((task) => !task.done).map((task) => cutAtWord(task.text, 100));
    const done = tasks.filter((task) => task.done).map((task) => cutAtWord(task.text, 80));
    const head = [
      open.length > 0 ? `open tasks: ${open.join(", ")}` : "",
      done.length > 0 ? `done: ${done.join(", ")}` : "",
    ]
      .filter(Boolean)
      .join("; ");
    const terms = this.#vocabulary.observe(head, source, "agent");
    this.#units.push({
      order,
      source,
      line: `${source}`,
      ...moment,
      speaker,
      kind: "tasks",
      label: "the task list",
      head,
      tail: "",
      terms,
      names: [],
      defined: NONE,
      bonus: open.length > 0 ? 8 : 3,
      worth: 1,
    });
  }

  #readSummary(source: SourceLine, index: number, moment: ZonedTime): void {
    const { body, topics } = splitClosingLine(source.text);
    this.#topics.push(...topics);
    for (const line of parseSummaryLines(body, moment)) {
      const voice: Voice = isPerson(line.speaker) ? "user" : "agent";
      if (line.isContext) {
        this.#vocabulary.observe(line.text, index, voice);
        continue;
      }
      for (const piece of splitPieces(line.text)) this.#pushPiece(piece, line, index, voice);
    }
  }

  #pushPiece(piece: string, line: SummaryLine, index: number, voice: Voice): void {
    const { head, defines, uses, tail } = parseNamed(piece);
    const terms = this.#vocabulary.observe(`${head}${tail}`, index, voice);
    const defined = this.#vocabulary.observe(defines, index, "agent");
    const nameIds = [...defined, ...this.#vocabulary.observe(uses, index, "agent")];
    const factor = voice === "user" ? USER_FACTOR : 1;
    this.#push({
      source: index,
      line: `${index}:${line.number}`,
      date: line.date,
      time: line.time,
      speaker: line.speaker,
      kind: /^open tasks: /i.test(piece) ? "tasks" : /`/.test(head.slice(0, 24)) ? "action" : "said",
      label: /`[^`]{3,60}`/.exec(head)?.[0] ?? "",
      head,
      tail,
      terms,
      names: nameIds.filter((id) => !terms.includes(id)),
      defined: new Set(defined),
      bonus: (cueOf(piece) + (voice === "user" ? 1.5 : 0)) * factor,
      worth: voice === "user" ? 1.25 : 1,
    });
  }

  #push(unit: Omit<Unit, "order">): void {
    this.#units.push({ ...unit, order: this.#order++ });
  }
}

const isRequest = (source: SourceLine): boolean =>
  source.kind === "message" &&
  source.role === "user" &&
  partsOf(source).some((part) => part.type === "text" && part.text.trim() !== "");

/** Hosts put notifications and command output into user messages, wrapped in tags. Nobody typed those. */
const isMachineWritten = (text: string): boolean => /^\s*<[a-z][\w-]*>/i.test(text);

/** "None found." says nothing without the heading that is gone. */
const fragmentWorth = (text: string): number => (text.length < 30 && !text.includes("`") ? 0.5 : 1);

function joinVerbs(verbs: ReadonlyMap<string, number>): string {
  return [...verbs].map(([verb, count]) => (count > 1 ? `${verb} ${count}×` : verb)).join(", ");
}

function markTarget(action: Action): string {
  if (action.target === "" || action.targetKind === "other") return action.target;
  const marked = action.target.includes("`") ? action.target : `\`${action.target}\``;
  return action.targetKind === "query" ? `for ${marked}` : marked;
}

function labelOf(action: Action): string {
  if (action.target === "" || action.target.length > 70) return "";
  return action.targetKind === "command"
    ? `the output of \`${action.target}\``
    : markTarget(action).replace(/^for /, "the search for ");
}

/** Commands that only look: they matter by what they found, which others say. */
const LOOKING = /^(?:cat|ls|head|tail|pwd|echo|which|sleep|wc|file|stat)\b/;

function actionBonus(group: ActionGroup): number {
  let bonus = group.action.targetKind === "command" && LOOKING.test(group.action.target) ? 0 : 0.4;
  if (
    group.verbs.has("edited") ||
    group.verbs.has("wrote") ||
    group.verbs.has("deleted") ||
    group.verbs.has("moved")
  )
    bonus += 1.6;
  if (
    group.action.targetKind === "command" &&
    /\b(commit|push|merge|deploy|publish|release|install|migrate)\b/.test(group.action.target)
  )
    bonus += 1.2;
  if (group.outcome?.failed === true) bonus += 4;
  else if (group.outcome !== null) bonus += 0.6;
  return bonus;
}
