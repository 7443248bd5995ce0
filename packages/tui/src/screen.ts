/**
 * What a screen of the terminal UI is, and what it may use. A screen keeps its own state, draws itself as lines, and answers keys. It knows
 * nothing of the terminal; `app.ts` stacks screens, `terminal-ui.ts` puts them on a real one.
 */
import type { HeadedConversation, Engine, Scope, Settings } from "@lossless/core";
import type { DoctorResult } from "@lossless/core/repair";
import type { GraphBook } from "./graph-book.ts";
import type { Key, KeyHelp } from "./keys.ts";
import type { ListArea } from "./mouse.ts";
import type { Paint } from "./paint.ts";
import type { Sought } from "./sought.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Screen {
  /** A word for the line at the top. */
  readonly name: string;
  /** Which of how many is chosen, such as 12/162, where the list holds only some of them; else its area says it. */
  readonly position?: string | null;
  /** Where its list is, so that the mouse can choose a row. */
  readonly area?: ListArea | null;
  /** What its own keys do, the most useful first. */
  readonly keys: readonly KeyHelp[];
  /** The conversation it is about, if it is about one. */
  readonly conversation?: HeadedConversation;
  /** Reads what it shows: when it is opened, comes back into sight, or the archive has changed. */
  load(): Promise<void>;
  /** At most `rows` lines of at most `columns` columns. */
  render(size: Size, paint: Paint): string[];
  /** False: the key means nothing here, and may mean something everywhere. */
  handle(key: Key): Promise<boolean> | boolean;
  /** Waits for what is not needed but good to have on the screen, such as first words; what takes longer is drawn later. */
  settle?(): Promise<void>;
  /** Ends what is under way. */
  close?(): void;
}

/** The archive as the terminal UI has it: open for reading; changes open it again, for as long as they take. */
export interface TuiArchive {
  readonly engine: Engine;
  readonly scope: Scope;
  readonly settings: Settings;
  /** The model that writes summaries, as people name it; null: none, the engine writes them itself. */
  readonly modelName: string | null;
  /** Where agents keep their sessions: transcripts in them can be imported. */
  readonly sessionFolders: readonly string[];
  change<T>(work: (engine: Engine) => Promise<T>): Promise<T>;
  /** Runs the doctor's checks beside everything else. */
  examine(onProgress: (done: number, total: number) => void): Promise<DoctorResult>;
}

export interface Question {
  readonly label: string;
  readonly text?: string;
  /** Called while the line is typed. */
  readonly onType?: (text: string) => Promise<void> | void;
  /** Null when it was given up. */
  readonly onDone: (text: string | null) => Promise<void> | void;
}

/** Ways to other screens. Screens do not know each other; `navigation.ts` knows them all. Each answers true: the key had a meaning. */
export interface Navigator {
  messages(conversation: HeadedConversation, messageId?: number, sought?: Sought): Promise<boolean>;
  /** One message, all of it; with what was sought in it, at that place. */
  message(messageId: number, sought?: Sought | null): Promise<boolean>;
  graph(conversation: HeadedConversation, summaryId?: string, sought?: Sought): Promise<boolean>;
  context(conversation: HeadedConversation): Promise<boolean>;
  /** The context as it was before a summary was made; null: its newest one. */
  contextBefore(conversation: HeadedConversation, summaryId: string | null): Promise<boolean>;
  /** What the writer of a summary was given as what comes before; null: of its newest one. */
  previousContext(conversation: HeadedConversation, summaryId: string | null): Promise<boolean>;
  files(conversation: HeadedConversation): Promise<boolean>;
  file(fileId: string): Promise<boolean>;
  search(conversation: HeadedConversation | null): Promise<boolean>;
  spend(): Promise<boolean>;
  /** Transcripts in the folders of sessions. */
  transcripts(): Promise<boolean>;
  doctor(): Promise<boolean>;
  rewrite(conversation: HeadedConversation, summaryId: string): Promise<boolean>;
  repair(conversation: HeadedConversation): Promise<boolean>;
  dissolve(conversation: HeadedConversation, summaryId: string): Promise<boolean>;
  transplant(conversation: HeadedConversation): Promise<boolean>;
  help(about: Screen): Promise<boolean>;
}

/** What a screen may ask of the program around it. */
export interface Desk {
  readonly archive: TuiArchive;
  readonly go: Navigator;
  readonly graphs: GraphBook;
  readonly timezone: string;
  now(): number;
  /** Rows and columns screens have at the moment. */
  readonly size: Size;
  open(screen: Screen): Promise<void>;
  /** To the screen before. Changed: all of them read again when they are seen. */
  back(options?: { readonly hasChanged: boolean }): Promise<void>;
  /** A line at the bottom until the next key. */
  say(text: string): void;
  ask(question: Question): void;
  /** Runs something long beside the keys; what fails is said. What it returns is done between keys, and may change screens. */
  run(work: () => Promise<void | (() => Promise<void>)>): void;
  redraw(): void;
}
