/**
 * Finds the conversations of an archive file that a store already has, exactly as in the file. Reads a snapshot, so that nobody waits:
 * conversations found equal here are not compared again under the lock of the import that follows.
 *
 * This is only an optimisation. Anything uncertain (rows to add, a difference, an unreadable file) is left to the import.
 */
import type { Intake, ListedConversation, MovedSummary, Snapshot } from "@lossless/core/ports";
import type { ArchiveRecord } from "./archive-records.ts";
import { ArchiveIntake, nameConversation } from "./archive-intake.ts";
import type { IntakeOptions, StoredAlready } from "./archive-intake.ts";

const PAGE_SUMMARIES = 400;

/** Keyed by the line where a conversation begins. */
export async function findStored(
  snapshot: Snapshot,
  records: AsyncIterable<{ readonly record: ArchiveRecord; readonly lineNumber: number }>,
  options: IntakeOptions,
): Promise<ReadonlyMap<number, StoredAlready>> {
  const found = new Map<number, StoredAlready>();
  const here = new Comparison(snapshot, await snapshot.listMoved({ owner: options.owner }));
  if (here.isEmpty) return found;
  const intake = new ArchiveIntake(here.intake, options);
  let [begun, messages, problems] = [0, 0, 0];
  for await (const { record, lineNumber } of records) {
    if (record.record === "conversation") {
      [begun, messages, problems] = [lineNumber, 0, intake.finish(0).problems.length];
      here.begin();
    }
    if (record.record === "row" && record.row.kind === "message") messages += 1;
    await intake.take(record, lineNumber);
    const isWhole = record.record === "cover" && intake.finish(0).problems.length === problems;
    if (isWhole && here.conversationId !== null)
      found.set(begun, { conversationId: here.conversationId, messages });
  }
  return found;
}

/** Reads one conversation after the other and stores nothing; `conversationId` becomes null as soon as there would be something to store. */
class Comparison {
  conversationId: number | null = null;
  readonly #snapshot: Snapshot;
  readonly #byName: ReadonlyMap<string, readonly ListedConversation[]>;
  #contents: ReadonlyMap<string, string> | null = null;
  #turns: readonly string[] = [];

  constructor(snapshot: Snapshot, stored: readonly ListedConversation[]) {
    this.#snapshot = snapshot;
    const byAge = stored.toSorted((a, b) => a.conversationId - b.conversationId);
    this.#byName = Map.groupBy(byAge, nameConversation);
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  begin(): void {
    [this.conversationId, this.#contents, this.#turns] = [null, null, []];
  }

  #differs(): void {
    this.conversationId = null;
  }

  readonly intake: Intake = {
    append: () => this.#refuse(),
    readSession: () => this.#refuse(),
    listMessages: (request) => this.#snapshot.listMessages(request),
    listMoved: (choice) => this.#snapshot.listMoved(choice),
    readMovedRows: (...request) => this.#snapshot.readMovedRows(...request),
    readMovedFile: async (...request) => this.#snapshot.readMovedFile(...request),
    proveMoved: async () => [],
    moveSessions: async (_sessions, turns) => {
      this.#turns = turns.map(({ key }) => key);
    },
    openMoved: async (moved, nth) => {
      const known = this.#byName.get(nameConversation(moved))?.[nth ?? 0];
      // Skip its rows: there is nothing to compare them with.
      if (known === undefined) return { kind: "conflict", reason: "it is not stored" };
      const { conversationId, rows } = known;
      const { turns } = await this.#snapshot.readMovedSessions([conversationId]);
      const keys = new Set(turns.map(({ key }) => key));
      this.conversationId = this.#turns.every((key) => keys.has(key)) ? conversationId : null;
      return { kind: "opened", conversationId, rows, archivedInstead: false };
    },
    moveRows: async () => this.#differs(),
    noteImported: async () => undefined,
    moveSummaries: async (conversationId, summaries) => {
      const contents = (this.#contents ??= await this.#readContents(conversationId));
      const isKnown = ({ summaryId, content }: MovedSummary): boolean => contents.get(summaryId) === content;
      if (!summaries.every(isKnown)) this.#differs();
      return { stored: 0, known: summaries.length };
    },
    moveCover: async () => undefined,
    retireBeside: async () => undefined,
  };

  async #readContents(conversationId: number): Promise<ReadonlyMap<string, string>> {
    const contents = new Map<string, string>();
    for (let page; page === undefined || page.length === PAGE_SUMMARIES;) {
      page = await this.#snapshot.readMovedSummaries(conversationId, contents.size, PAGE_SUMMARIES);
      for (const { summaryId, content } of page) contents.set(summaryId, content);
    }
    return contents;
  }

  #refuse(): never {
    throw new Error("an archive file never needs this call");
  }
}
