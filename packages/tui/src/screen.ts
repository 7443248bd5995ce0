/**
 * The interface of a screen of the terminal UI, and what it may use. A screen keeps its own state, renders itself as lines, and handles keys. It
 * does not depend on the terminal; `app.ts` stacks screens, `terminal-ui.ts` draws them on a real one.
 */
import type { HeadedConversation, Engine, Scope, Settings } from "@lossless/core";
import type { DoctorResult, Finding, MendResult } from "@lossless/core/repair";
import type { Entry } from "./entries.ts";
import type { GraphBook } from "./graph-book.ts";
import type { Key, KeyHelp } from "./keys.ts";
import type { ListArea } from "./mouse.ts";
import type { Paint } from "./paint.ts";
import type { Sought } from "./sought.ts";
import type { TurnBook } from "./turn-book.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Screen {
  /** A word for the line at the top. */
  readonly name: string;
  /** The chosen row and the total, such as 12/162, if the list has only some of them; otherwise its area has it. */
  readonly position?: string | null;
  /** Where its list is, so that the mouse can choose a row. */
  readonly area?: ListArea | null;
  /** Its own keys, the most useful first. */
  readonly keys: readonly KeyHelp[];
  /** Its conversation, if it has one. */
  readonly conversation?: HeadedConversation;
  /** Loads its content: when it is opened or shown again, or the archive has changed. */
  load(): Promise<void>;
  /** At most `rows` lines of at most `columns` columns. */
  render(size: Size, paint: Paint): string[];
  /** False: the key has no meaning here, but may be a global one. */
  handle(key: Key): Promise<boolean> | boolean;
  /** Waits for optional content, such as first words; what takes longer is drawn later. */
  settle?(): Promise<void>;
  /** Cancels running work. */
  close?(): void;
}

/** The archive for the terminal UI: open for reading; changes open it again for their duration. */
export interface TuiArchive {
  readonly engine: Engine;
  readonly scope: Scope;
  readonly settings: Settings;
  /** The name of the model that writes summaries; null: none, the engine writes them itself. */
  readonly modelName: string | null;
  /** Where agents keep their sessions: transcripts in them can be imported. */
  readonly sessionFolders: readonly string[];
  change<T>(work: (engine: Engine) => Promise<T>): Promise<T>;
  /** Runs the doctor's checks in the background. */
  examine(onProgress: (done: number, total: number) => void): Promise<DoctorResult>;
  /** Fixes those of the findings that are safe to fix, after a backup. */
  mend(findings: readonly Finding[]): Promise<MendResult>;
}

export interface Question {
  readonly label: string;
  readonly text?: string;
  /** Called while the line is typed. */
  readonly onType?: (text: string) => Promise<void> | void;
  /** Null when it was cancelled. */
  readonly onDone: (text: string | null) => Promise<void> | void;
}

/**
 * Navigation to other screens. Screens do not know each other; `navigation.ts` knows them all. Each method returns true: the key was handled.
 */
export interface Navigator {
  messages(conversation: HeadedConversation, messageId?: number, sought?: Sought): Promise<boolean>;
  /** One complete message. */
  message(messageId: number): Promise<boolean>;
  /** A message, or a call with its result, as a whole; with a search hit, at its place. */
  entry(entry: Entry, sought?: Sought | null): Promise<boolean>;
  /** A turn as a whole, by the entry of its request. */
  turn(entry: Entry, conversation: HeadedConversation): Promise<boolean>;
  graph(conversation: HeadedConversation, summaryId?: string, sought?: Sought): Promise<boolean>;
  context(conversation: HeadedConversation): Promise<boolean>;
  /** The former context of a summary; null: of its newest one. */
  contextBefore(conversation: HeadedConversation, summaryId: string | null): Promise<boolean>;
  /** The previous context of a summary; null: of its newest one. */
  previousContext(conversation: HeadedConversation, summaryId: string | null): Promise<boolean>;
  files(conversation: HeadedConversation): Promise<boolean>;
  file(fileId: string): Promise<boolean>;
  search(conversation: HeadedConversation | null): Promise<boolean>;
  spend(): Promise<boolean>;
  /** Transcripts in the session folders. */
  transcripts(): Promise<boolean>;
  doctor(): Promise<boolean>;
  rewrite(conversation: HeadedConversation, summaryId: string): Promise<boolean>;
  repair(conversation: HeadedConversation): Promise<boolean>;
  dissolve(conversation: HeadedConversation, summaryId: string): Promise<boolean>;
  transplant(conversation: HeadedConversation): Promise<boolean>;
  help(about: Screen): Promise<boolean>;
}

/** What a screen may use of the program around it. */
export interface Desk {
  readonly archive: TuiArchive;
  readonly go: Navigator;
  readonly graphs: GraphBook;
  readonly turns: TurnBook;
  readonly timezone: string;
  now(): number;
  /** The current rows and columns for screens. */
  readonly size: Size;
  open(screen: Screen): Promise<void>;
  /** Returns to the previous screen. `hasChanged`: all screens reload when they are shown. */
  back(options?: { readonly hasChanged: boolean }): Promise<void>;
  /** Shows a line at the bottom until the next key. */
  say(text: string): void;
  ask(question: Question): void;
  /** Runs a long task in the background; failures are shown. The function it returns runs between keys, and may change screens. */
  run(work: () => Promise<void | (() => Promise<void>)>): void;
  redraw(): void;
}
