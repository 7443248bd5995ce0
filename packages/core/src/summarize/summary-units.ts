/**
 * Cuts sources into units: the smallest pieces a summary may keep or drop. A unit is a sentence somebody said, an action of the agent with
 * its outcome (all actions on one file in one turn together), the newest task list, or a line of an older summary. Every unit has its time,
 * speaker, terms, and further names it could mention.
 */
import type { Action, ActionResult, Task } from "./actions.ts";
import { describeCall, describeResult, SAYS_ONLY_FAILED } from "./actions.ts";
import { splitClosingLine } from "./closing-line.ts";
import {
  cueOf,
  cutAtWord,
  isChatter,
  isCorrection,
  isDecision,
  isNarration,
  type Prose,
  readProse,
  type Sentence,
} from "./sentences.ts";
import type { SourceLine, SourcePart } from "./source.ts";
import { partsOf, speakerOf } from "./source.ts";
import type { Vocabulary, Voice } from "./terms.ts";
import { readUserText, type UserText } from "./injected.ts";
import { cutExcerpts, listSignatures } from "./outline.ts";
import { parseNameList, type QuotedName } from "./name-list.ts";
import {
  isPerson,
  parseNamed,
  parseSummaryLines,
  type Section,
  splitPieces,
  type SummaryLine,
} from "./summary-lines.ts";
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
  /** Set if it states the progress of the work rather than what happened. */
  readonly section: Section | null;
  /** Quoted as written, and never in part. */
  readonly isVerbatim: boolean;
  /** The first request: before everything else, and always kept where an agent works with tools. */
  readonly isPinned: boolean;
  /** Characters of tool output and file text that belong to it and that no summary shows. */
  readonly bulk: number;
  /** The command it ran and the error it met, for the line of names; empty when there is none. */
  readonly command: string;
  readonly error: string;
  /** A few words for the closing line, when the unit itself is left out; empty when its sentence has to provide them. */
  readonly label: string;
  /** The text before the names, and the text after them. */
  readonly head: string;
  readonly tail: string;
  /** Terms in the unit's own text. */
  readonly terms: readonly number[];
  /** Names that its text defines, besides its terms: it may list them in brackets after `head`. */
  readonly names: readonly number[];
  readonly bonus: number;
  readonly worth: number;
}

export interface UnitSet {
  readonly units: Unit[];
  /** Topics that the closing lines of older summaries offered. */
  readonly topics: string[];
  /** Messages and lines of summaries that were read. */
  readonly length: number;
  /** Commands and errors that older summaries listed, oldest first. */
  readonly quoted: QuotedName[];
  /** Names of the people who spoke, word by word. */
  readonly speakers: ReadonlySet<string>;
  /** An agent works with tools here. */
  readonly isWork: boolean;
}

/** Users' own words count more than the agent's: what a user said once is rarely said again. */
const USER_FACTOR = 1.9;
/** A pasted log is not what the user said; after this many sentences of one message the factor is gone. */
const USER_SENTENCES = 14;
const FIRST_REQUEST_BONUS = 4;
const LAST_REQUEST_BONUS = 4;
/** Characters of a first request and of a short message that are quoted whole. */
const MAX_GOAL = 1_600;
const MAX_SHORT = 280;
/** If less than this of a request fits, its best sentences represent it better; a condensed summary keeps its beginning all the same. */
const MIN_GOAL_PART = 600;
const SHORT_BONUS = 1.5;
/** Content words from which a short message counts in full far from the messages around it: "and?" says nothing there. */
const FULL_QUOTE_TERMS = 5;
const CORRECTION_BONUS = 2;
/** "Ok, thanks" is not worth a line. */
const CHATTER_WORTH = 0.15;
/** How many of the last sources are searched for the agent's next step. */
const NEXT_SOURCES = 4;
const NEXT_BONUS = 4;
/** Uses that the first name of a list counts as. */
const LISTED_USES = 4;
const PASTE_WORTH = 0.4;
/** People among themselves agree and disagree about everything: what they talk about says more than how. */
const CHAT_CUE_SHARE = 0.5;
const OUTLINE_STEP = 2;
const MAX_RESULT_SCAN = 200_000;
const SHOWED_CODE = "showed code";
/** A function, type or class that code declares, in the notations of most languages. */
const DEFINITION =
  /\b(?:func(?:[ \t]*\([^()\n]*\))?|function\*?|def|class|type|interface|struct|enum|trait|fn|module|CREATE TABLE)[ \t]+([A-Za-z_$][\w$]*)/g;

const CALL = /\b([A-Za-z_$][\w$]{2,80})\(/g;

export interface CutOptions {
  readonly clock: ZoneClock;
  readonly vocabulary: Vocabulary;
  /** Whether the conversation begins here, so that its first request is its goal. */
  readonly isStart: boolean;
  /** Whether a condensed summary is made: most of what was said around a message is left out. */
  readonly isCondensed: boolean;
  /** A text of at most this many characters, within the room for one verbatim text. */
  readonly cutVerbatim: (text: string, maxChars: number) => string;
}

/** The fields that most units do not need. */
const PLAIN = {
  section: null,
  isVerbatim: false,
  isPinned: false,
  bulk: 0,
  command: "",
  error: "",
  label: "",
  tail: "",
  names: [],
  bonus: 0,
  worth: 1,
} as const;

type QuoteField = "section" | "isVerbatim" | "isPinned" | "head" | "terms" | "worth";

/** The speaker and the time of something said. */
interface Saying {
  readonly index: number;
  readonly moment: ZonedTime;
  readonly speaker: string;
  readonly isUser: boolean;
}

export function cutUnits(sources: readonly SourceLine[], options: CutOptions): UnitSet {
  const cutter = new UnitCutter(sources, options);
  for (let i = 0; i < sources.length; i++) cutter.read(sources[i] as SourceLine, i);
  return cutter.finish();
}

interface ActionGroup {
  readonly order: number;
  readonly source: number;
  readonly at: number;
  readonly moment: ZonedTime;
  readonly speaker: string;
  readonly action: Action;
  readonly verbs: Map<string, number>;
  readonly details: string[];
  readonly defined: Set<number>;
  /** Declarations in its text; true for those that were written here. */
  readonly signatures: Map<string, boolean>;
  /** Pieces of what was written. */
  readonly written: string[];
  bulk: number;
  outcome: ActionResult | null;
}

/** A call whose result is not known yet: only then is it known whether it did what it says. */
interface PendingCall {
  readonly group: ActionGroup;
  readonly verb: string;
  readonly defined: readonly number[];
  readonly signatures: readonly string[];
  readonly written: readonly string[];
}

class UnitCutter {
  readonly #clock: ZoneClock;
  readonly #vocabulary: Vocabulary;
  readonly #units: Unit[] = [];
  readonly #topics: string[] = [];
  readonly #quoted: QuotedName[] = [];
  readonly #options: CutOptions;
  readonly #sources: number;
  /** People who talk among themselves say much that no agent has to follow: their best sentences are kept, not whole messages. */
  readonly #hasAgent: boolean;
  readonly #speakers = new Set<string>();
  readonly #firstUser: number;
  readonly #lastUser: number;
  #isWork = false;
  #groups = new Map<string, ActionGroup>();
  /** Calls without a result so far, in order, by their ids; those without an id have an empty one. */
  #pending = new Map<string, PendingCall[]>();
  #tasks: {
    tasks: readonly Task[];
    moment: ZonedTime;
    source: number;
    speaker: string;
    order: number;
  } | null = null;
  #next: Unit | null = null;
  /** Messages and summary lines read so far: when a term was used, and how often. */
  #at = 0;
  #order = 0;

  constructor(sources: readonly SourceLine[], options: CutOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#vocabulary = options.vocabulary;
    this.#sources = sources.length;
    this.#hasAgent = sources.some(({ kind, role }) => kind === "message" && role === "assistant");
    const requests = sources.map((source, i) => (isRequest(source) ? i : -1)).filter((i) => i >= 0);
    const isTelling = (i: number): boolean => !isChatter(wordsOf(sources[i]));
    this.#firstUser = requests.find(isTelling) ?? requests[0] ?? -1;
    this.#lastUser = requests.at(-1) ?? -1;
  }

  read(source: SourceLine, index: number): void {
    const moment = this.#momentOf(source.at);
    if (source.kind === "summary") {
      this.#readSummary(source, index, moment);
      return;
    }
    this.#at++;
    this.#noteSpeaker(source.speaker ?? "");
    if (isRequest(source)) this.#closeTurn();
    for (const part of partsOf(source)) this.#readPart(source, part, index, moment);
  }

  finish(): UnitSet {
    this.#closeTurn();
    this.#pushTasks();
    if (this.#next !== null) this.#units.push(this.#next);
    return {
      units: this.#units,
      topics: this.#topics,
      quoted: this.#quoted,
      speakers: this.#speakers,
      length: this.#at + 1,
      isWork: this.#isWork,
    };
  }

  #noteSpeaker(name: string): void {
    for (const word of name.split(/\s+/)) if (word !== "") this.#speakers.add(word);
  }

  #momentOf(at: number | null): ZonedTime {
    return at === null ? { date: "", time: "" } : this.#clock.split(at);
  }

  #readPart(source: SourceLine, part: SourcePart, index: number, moment: ZonedTime): void {
    if (part.type === "text") this.#readText(source, part.text, index, moment);
    else if (part.type === "tool_call") this.#readCall(source, part, index, moment);
    else if (part.type === "tool_result") this.#readResult(part);
    else if (part.type === "image" || part.type === "file") this.#readAttachment(source, part, index, moment);
  }

  #readText(source: SourceLine, raw: string, index: number, moment: ZonedTime): void {
    const { text, isNotice } = source.role === "user" ? readUserText(raw) : { text: raw, isNotice: false };
    if (text === "") return;
    const isUser = source.role === "user" && !isNotice;
    const at = { index, moment, speaker: isNotice ? "notice" : speakerOf(source), isUser };
    const prose = readProse(text);
    if (prose.code !== "") this.#pushCode(prose.code, index, moment, at.speaker);
    const rest = isUser && this.#hasAgent ? this.#takeVerbatim(text, prose, at) : prose.sentences;
    rest.forEach((sentence, nth) => this.#pushSentence(sentence, nth, at));
    const last = prose.sentences.at(-1);
    if (!isUser && !isNotice && last !== undefined && index >= this.#sources - NEXT_SOURCES)
      this.#noteNext(last.text, at);
  }

  /** The first request of a conversation and short messages stay as written; what does not fit is read sentence by sentence. */
  #takeVerbatim(text: string, prose: Prose, at: Saying): readonly Sentence[] {
    const isGoal = this.#options.isStart && at.index === this.#firstUser;
    const whole = (prose.code === "" ? text : prose.sentences.map((each) => each.text).join(" "))
      .replace(/\s+/g, " ")
      .trim();
    const head = this.#options.cutVerbatim(whole, isGoal ? MAX_GOAL : MAX_SHORT);
    const isWhole = head.length === whole.length && prose.code === "";
    const isPart = isGoal && (this.#options.isCondensed || head.length >= MIN_GOAL_PART);
    if (whole === "" || (!isWhole && !isPart)) return prose.sentences;
    const quote = this.#quote(head, isGoal ? "goal" : null);
    this.#push({
      ...this.#saying(at),
      ...quote,
      bonus: isChatter(head) ? 0 : this.#quoteBonus(quote) + this.#requestBonus(at.index),
    });
    return isWhole ? [] : prose.sentences.filter(({ text: each }) => !head.includes(each));
  }

  #quote(head: string, section: Section | null): Pick<Unit, QuoteField> {
    return {
      section: section ?? (isDecision(head) ? "decided" : null),
      isVerbatim: true,
      isPinned: section === "goal",
      head,
      terms: this.#vocabulary.observe(head, this.#at, "user"),
      worth: isChatter(head) ? CHATTER_WORTH : 1.25,
    };
  }

  #quoteBonus({ head, terms }: Pick<Unit, "head" | "terms">): number {
    if (isChatter(head)) return 0;
    const substance = this.#options.isCondensed ? Math.min(1, terms.length / FULL_QUOTE_TERMS) : 1;
    return (
      substance * (cueOf(head) + SHORT_BONUS + (isCorrection(head) ? CORRECTION_BONUS : 0)) * USER_FACTOR
    );
  }

  #requestBonus(index: number): number {
    return (
      (index === this.#firstUser ? FIRST_REQUEST_BONUS : 0) +
      (index === this.#lastUser ? LAST_REQUEST_BONUS : 0)
    );
  }

  #pushSentence(sentence: Sentence, nth: number, at: Saying): void {
    const isPaste = at.isUser && (nth >= USER_SENTENCES || looksPasted(sentence.text));
    const isOwn = at.isUser && !isPaste;
    const cue =
      (this.#hasAgent ? 1 : CHAT_CUE_SHARE) * sentence.cue +
      (isOwn && isCorrection(sentence.text) ? CORRECTION_BONUS : 0);
    const opens = isOwn && nth === 0 && sentence.worth === 1 ? 1.5 : 0;
    this.#push({
      ...this.#saying(at),
      section: isDecision(sentence.text) && sentence.worth === 1 && !isPaste ? "decided" : null,
      head: sentence.text,
      terms: this.#vocabulary.observe(sentence.text, this.#at, isOwn ? "user" : "agent"),
      bonus:
        (cue + opens) * (isOwn ? USER_FACTOR : 1) +
        (isPaste || !this.#hasAgent ? 0 : figureBonus(sentence.text)) +
        (isOwn && nth < 3 ? this.#requestBonus(at.index) : 0),
      worth: sentence.worth * (isOwn ? 1.25 : isPaste ? PASTE_WORTH : fragmentWorth(sentence.text)),
    });
  }

  /** The agent's last statement of what it is about to do. */
  #noteNext(text: string, at: Saying): void {
    if (!isNarration(text)) return;
    const head = text.replace(/[:：]$/, "");
    this.#next = {
      ...this.#saying(at),
      order: this.#order++,
      section: "next",
      head,
      terms: this.#vocabulary.observe(head, this.#at, "agent"),
      bonus: NEXT_BONUS,
    };
  }

  #saying({ index, moment, speaker }: Saying): Omit<Unit, "order" | "head" | "terms"> {
    return { ...PLAIN, source: index, line: `${index}`, ...moment, speaker, kind: "said" };
  }

  /** Code in a message is named, not quoted. */
  #pushCode(code: string, index: number, moment: ZonedTime, speaker: string): void {
    this.#vocabulary.observe(code, this.#at, "bulk");
    this.#push({
      ...PLAIN,
      source: index,
      line: `${index}`,
      ...moment,
      speaker,
      kind: "action",
      head: SHOWED_CODE,
      terms: [],
      names: [...this.#findDefinitions(code)],
      bonus: 0.2,
    });
  }

  #findDefinitions(text: string): Set<number> {
    const defined = new Set<number>();
    for (const [, name] of text.matchAll(DEFINITION)) {
      const id = this.#vocabulary.idOf(name as string);
      if (id === undefined) continue;
      defined.add(id);
      this.#vocabulary.functions.add(id);
    }
    return defined;
  }

  #readCall(source: SourceLine, part: SourcePart, index: number, moment: ZonedTime): void {
    this.#isWork = true;
    const action = describeCall(part.toolName, part.text);
    if (action.tasks !== undefined) {
      this.#tasks = {
        tasks: action.tasks,
        moment,
        source: index,
        speaker: speakerOf(source),
        order: this.#order++,
      };
      for (const task of action.tasks) this.#vocabulary.observe(task.text, this.#at, "agent");
      this.#await(part, { ...NO_CALL, group: this.#detachedGroup(action, index, moment, source) });
      return;
    }
    const key = `${action.targetKind}:${action.target}`;
    const group = this.#groups.get(key) ?? this.#detachedGroup(action, index, moment, source);
    this.#groups.set(key, group);
    if (action.detail !== "" && group.details.length < 2 && !group.details.includes(action.detail))
      group.details.push(action.detail);
    this.#vocabulary.observe(action.target, this.#at, "agent");
    this.#vocabulary.observe(action.body, this.#at, "agent");
    this.#noteCalls(action.body);
    const isFile = action.targetKind === "file";
    this.#await(part, {
      group,
      verb: action.verb,
      defined: isFile ? [...this.#findDefinitions(action.body)] : [],
      signatures: isFile ? listSignatures(action.body) : [],
      written: isFile ? cutExcerpts(action.body) : [],
    });
  }

  #await({ toolCallId = "" }: SourcePart, call: PendingCall): void {
    const same = this.#pending.get(toolCallId);
    if (same === undefined) this.#pending.set(toolCallId, [call]);
    else same.push(call);
  }

  /** What a call did. One that failed changed nothing; a command ran all the same. */
  #finishCall({ group, verb, defined, signatures, written }: PendingCall, failed: boolean): void {
    const told = failed ? (FAILED_VERBS.get(verb) ?? verb) : verb;
    if (told !== "") group.verbs.set(told, (group.verbs.get(told) ?? 0) + 1);
    if (failed) return;
    for (const id of defined) group.defined.add(id);
    for (const signature of signatures) group.signatures.set(signature, true);
    group.written.push(...written);
  }

  #noteCalls(code: string): void {
    for (const [, name] of code.matchAll(CALL)) {
      const id = this.#vocabulary.idOf(name as string);
      if (id !== undefined) this.#vocabulary.functions.add(id);
    }
  }

  #detachedGroup(action: Action, index: number, moment: ZonedTime, source: SourceLine): ActionGroup {
    return {
      order: this.#order++,
      source: index,
      at: this.#at,
      moment,
      speaker: speakerOf(source),
      action,
      verbs: new Map(),
      details: [],
      defined: new Set(),
      signatures: new Map(),
      written: [],
      bulk: 0,
      outcome: null,
    };
  }

  /** A result without a call in this run is only used for the vocabulary. Without ids, results answer calls in order. */
  #readResult(part: SourcePart): void {
    const text = part.text.length > MAX_RESULT_SCAN ? part.text.slice(0, MAX_RESULT_SCAN) : part.text;
    this.#vocabulary.observe(text, this.#at, "bulk");
    const call = (this.#pending.get(part.toolCallId ?? "") ?? this.#pending.get(""))?.shift();
    if (call === undefined) return;
    const { group } = call;
    this.#finishCall(call, part.isError === true);
    const outcome = describeResult(part.text, part.isError === true, group.action.targetKind);
    if (outcome !== null) group.outcome = outcome;
    group.bulk += text.length;
    if (group.action.targetKind !== "command")
      for (const signature of listSignatures(text))
        if (!group.signatures.has(signature)) group.signatures.set(signature, false);
    this.#noteDefinitions(group, text);
  }

  #noteDefinitions(group: ActionGroup, text: string): void {
    if (group.action.targetKind !== "file") return;
    for (const id of this.#findDefinitions(text)) group.defined.add(id);
  }

  #readAttachment(source: SourceLine, part: SourcePart, index: number, moment: ZonedTime): void {
    const label = cutAtWord(part.text.replace(/\s+/g, " ").trim(), 120);
    const head = `attached ${part.type === "image" ? "an image" : "a file"}${label === "" ? "" : `: ${label}`}`;
    const terms = this.#vocabulary.observe(head, this.#at, source.role === "user" ? "user" : "agent");
    this.#push({
      ...PLAIN,
      source: index,
      line: `${index}`,
      ...moment,
      speaker: speakerOf(source),
      kind: "action",
      label,
      head,
      terms,
      bonus: 1,
    });
  }

  /** Emits the actions of the ending turn: everything done to one target in one turn is one unit. */
  #closeTurn(): void {
    for (const calls of this.#pending.values()) for (const call of calls) this.#finishCall(call, false);
    for (const group of this.#groups.values()) this.#pushGroup(group);
    this.#groups = new Map();
    this.#pending = new Map();
  }

  #pushGroup(group: ActionGroup): void {
    const head = `${joinVerbs(group.verbs)} ${markTarget(group.action)}${group.details.join("")}`.trim();
    const tail = group.outcome === null ? "" : ` → ${group.outcome.text}`;
    const terms = this.#vocabulary.observe(
      `${group.action.target}${group.details.join(" ")}${tail}`,
      group.at,
      "agent",
    );
    const named = new Set(terms);
    const isCommand = group.action.targetKind === "command";
    this.#units.push({
      ...PLAIN,
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
      names: [...group.defined].filter((id) => !named.has(id)),
      bulk: group.bulk,
      command: isCommand ? nameCommand(group.action.target) : "",
      error:
        group.outcome?.failed === true && !SAYS_ONLY_FAILED.test(group.outcome.text)
          ? group.outcome.text
          : "",
      bonus: actionBonus(group),
      worth: isCommand && LOOKING.test(group.action.target) ? LOOKING_WORTH : 1,
    });
    this.#pushOutline(group);
  }

  /** Declarations, a few at a time, and pieces of what was written: details of a run if there is room. */
  #pushOutline(group: ActionGroup): void {
    const where = group.action.targetKind === "file" ? `\`${baseName(group.action.target)}\`` : "code found";
    for (const isOwn of [true, false]) {
      const signatures = [...group.signatures].filter(([, own]) => own === isOwn).map(([text]) => text);
      for (let i = 0; i < signatures.length; i += OUTLINE_STEP) {
        const list = signatures.slice(i, i + OUTLINE_STEP).map((text) => `\`${text}\``);
        this.#pushDetail(group, `${where} ${isOwn ? "got" : "has"} ${list.join(", ")}`);
      }
    }
    for (const piece of group.written) this.#pushDetail(group, `${where} now says \`${piece}\``);
  }

  #pushDetail({ source, moment, speaker, order, at }: ActionGroup, head: string): void {
    this.#units.push({
      ...PLAIN,
      // Right after the action itself.
      order: order + 0.5,
      source,
      line: `${source}`,
      ...moment,
      speaker,
      kind: "action",
      head,
      terms: this.#vocabulary.observe(head, at, "bulk"),
      worth: detailWorth(head),
    });
  }

  #pushTasks(): void {
    if (this.#tasks === null) return;
    const { tasks, moment, source, speaker, order } = this.#tasks;
    const push = (section: "open" | "done", isDone: boolean, bonus: number): void => {
      const texts = tasks.filter(({ done }) => done === isDone).map(({ text }) => cutAtWord(text, 100));
      if (texts.length === 0) return;
      const head = texts.join("; ");
      this.#units.push({
        ...PLAIN,
        order,
        source,
        line: `${source}`,
        ...moment,
        speaker,
        kind: "tasks",
        section,
        label: "the task list",
        head,
        terms: this.#vocabulary.observe(head, this.#at, "agent"),
        bonus,
      });
    };
    push("done", true, 3);
    push("open", false, 8);
  }

  #readSummary(source: SourceLine, index: number, moment: ZonedTime): void {
    const { body, topics } = splitClosingLine(source.text);
    this.#topics.push(...topics);
    const isLast = index === this.#sources - 1;
    for (const line of parseSummaryLines(body, moment)) {
      this.#at++;
      if (isPerson(line.speaker)) this.#noteSpeaker(line.speaker);
      if (line.section === "names") this.#readNames(line.text);
      else if (line.section === "goal") this.#pushQuote(line, index);
      // Open and next items of an older summary have been done since, or are stated again.
      else if ((line.section === "open" || line.section === "next") && !isLast) continue;
      else if (isQuote(line.text)) this.#pushQuote(line, index);
      else for (const piece of splitPieces(line.text)) this.#pushPiece(piece, line, index);
    }
  }

  #readNames(text: string): void {
    for (const [group, list] of parseNameList(text)) {
      if (group === "commands run") this.#isWork = true;
      if (group === "errors" || group === "commands run") {
        const texts = list.split(group === "errors" ? " | " : ", ");
        this.#quoted.push(...texts.map((each) => ({ group, text: each })));
      }
      const ids = this.#vocabulary.observe(list, this.#at, "bulk");
      // The list is ordered by use: the names of its first half were used, its first ones more than once.
      ids.forEach((id, nth) => {
        const uses = Math.ceil(LISTED_USES * (1 - (2 * nth) / ids.length));
        if (uses > 0) this.#vocabulary.useAgain(id, uses);
      });
      if (group === "functions") for (const id of ids) this.#vocabulary.functions.add(id);
    }
  }

  /** A text that an older summary quotes whole stays whole; only what does not fit is cut from its end. */
  #pushQuote(line: SummaryLine, index: number): void {
    const whole = isQuote(line.text) ? line.text.slice(1, -1) : line.text;
    const head = this.#options.cutVerbatim(whole, MAX_GOAL);
    const quote = this.#quote(head, line.section === "goal" ? "goal" : null);
    this.#push({
      ...PLAIN,
      source: index,
      line: `${index}:${line.number}`,
      date: line.date,
      time: line.time,
      speaker: line.speaker,
      kind: "said",
      ...quote,
      bonus: this.#quoteBonus(quote),
    });
  }

  #pushPiece(piece: string, line: SummaryLine, index: number): void {
    const voice: Voice = isPerson(line.speaker) ? "user" : "agent";
    const { head, defines, uses, tail } = parseNamed(piece);
    const terms = this.#vocabulary.observe(`${head}${tail}`, this.#at, voice);
    const defined = this.#vocabulary.observe(defines, this.#at, "agent");
    this.#vocabulary.observe(uses, this.#at, "agent");
    this.#noteCalls(head);
    const factor = voice === "user" ? USER_FACTOR : 1;
    const section = line.section as Section | null;
    if (ACTION.test(piece)) this.#isWork = true;
    this.#push({
      ...PLAIN,
      source: index,
      line: `${index}:${line.number}`,
      date: line.date,
      time: line.time,
      speaker: line.speaker,
      kind:
        section === "open" || section === "done" ? "tasks" : /`/.test(head.slice(0, 24)) ? "action" : "said",
      section,
      label: /`[^`]{3,60}`/.exec(head)?.[0] ?? "",
      head,
      tail,
      terms,
      names: defined.filter((id) => !terms.includes(id)),
      bonus:
        (cueOf(piece) + (voice === "user" ? 1.5 : 0)) * factor + (SECTION_BONUS[section ?? "decided"] ?? 0),
      worth: voice === "user" ? 1.25 : detailWorth(head),
    });
  }

  #push(unit: Omit<Unit, "order">): void {
    this.#units.push({ ...unit, order: this.#order++ });
  }
}

/** How an older summary tells of what an agent did. */
const ACTION = /^(?:could not \w+|deleted|edited|moved|ran|read|searched|wrote)\b[^`]{0,24}`/i;

const NO_CALL = { verb: "", defined: [], signatures: [], written: [] } as const;

/** What is said of a call that changes something and failed. */
const FAILED_VERBS: ReadonlyMap<string, string> = new Map([
  ["edited", "could not edit"],
  ["wrote", "could not write"],
  ["deleted", "could not delete"],
  ["moved", "could not move"],
]);

/** Open and next items were stated on purpose. */
const SECTION_BONUS: Partial<Record<Section, number>> = { open: 5, next: NEXT_BONUS };

const isQuote = (text: string): boolean => text.length > 2 && text.startsWith('"') && text.endsWith('"');

const isRequest = (source: SourceLine): boolean =>
  source.kind === "message" &&
  source.role === "user" &&
  partsOf(source).some((part) => part.type === "text" && isWritten(readUserText(part.text)));

/** What a user wrote. */
const wordsOf = (source: SourceLine | undefined): string =>
  source === undefined
    ? ""
    : partsOf(source)
        .flatMap((part) => (part.type === "text" ? readUserText(part.text).text : []))
        .join(" ")
        .trim();

const isWritten = ({ text, isNotice }: UserText): boolean => text !== "" && !isNotice;

/** Lines of a log, of JSON, of a terminal. */
const looksPasted = (text: string): boolean =>
  /^[⎿⏺│✓✗]|"[\w-]+":|\b\w+=\S+ .*\b\w+=\S+|\|\w{3,5}\|/.test(text);

/** Details fill the remaining room: first what was written here, then what was there already. Their verbs distinguish them. */
function detailWorth(head: string): number {
  const verb = /^(?:`[^`]+`|code found) (got|has|now says) `/i.exec(head)?.[1];
  return verb === undefined ? 1 : (DETAIL_WORTH[verb] ?? 1);
}

const DETAIL_WORTH: Readonly<Record<string, number>> = { got: 1.2, has: 0.8, "now says": 0.3 };

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1) || path;

/** A number of two digits or more, an amount, a share, a time: something measured, agreed or counted. */
const FIGURE = /(?<![\w.`/-])(?:[€$£]\s?)?\d[\d.,:]*\d(?![\w/])|(?<![\w.])\d+\s?(?:%|€|[kMG]?B\b|ms\b)/g;
const FIGURE_BONUS = 2;

/** Figures cannot be guessed again: each of the first two in a sentence counts. Where people chat, most are only times of day. */
const figureBonus = (text: string): number => FIGURE_BONUS * Math.min(2, text.match(FIGURE)?.length ?? 0);

/** "None found." says nothing without its heading. */
const fragmentWorth = (text: string): number =>
  (text.length < 30 && !text.includes("`")) || NAME_ALONE.test(text) ? 0.5 : 1;

const NAME_ALONE = /^`[^`]+`[.:]?$/;

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
  if (action.targetKind === "command") return `the output of \`${action.target}\``;
  if (action.targetKind === "file") return `the text of ${markTarget(action)}`;
  return markTarget(action).replace(/^for /, "the search for ");
}

/** Commands that only read: what matters is their findings, which other units state. */
const LOOKING = /^(?:cat|ls|head|tail|pwd|echo|which|sleep|wc|file|stat)\b/;

/** Commands of everyday work: that one of them was run says nothing about this project. */
const ROUTINE =
  /^(?:git (?:add|branch|diff|fetch|log|pull|push|show|stash|status)|cd|cp|curl|find|grep|mkdir|mv|rg|rm|sed)\b/;

/** A command without the parts that only shorten its output; empty if it is not worth a place in the list. */
function nameCommand(line: string): string {
  const command = line
    .replace(/\s*(?:2>&1|2>\/dev\/null)/g, "")
    .replace(/\s*\|\s*(?:head|tail|grep|wc|sort|cat)\b.*$/, "")
    .trim();
  return ROUTINE.test(command) || LOOKING.test(command) || /[\n…]/.test(command) ? "" : command;
}

const LOOKING_WORTH = 0.5;

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
