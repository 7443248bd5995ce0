/**
 * The store as a search sees it: messages without the calls and results of our own tools. A message that matches only through such parts is
 * not found; one that matches through its other text is.
 *
 * The index contains whole messages. For the few that have such parts, a clue is tested again on the rest of their text, which costs no
 * statement per hit.
 */
import { readSearchText } from "../message/normalize.ts";
import { EngineError } from "../model/errors.ts";
import type {
  CandidateDocument,
  CandidateRequest,
  MessageText,
  RecallParts,
  RecallScope,
  RecallStore,
  WithRecall,
} from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import type { ClueListing, ClueRequest, CluesFound } from "../store/text-index.ts";
import { holdsClue, readTextTerms } from "../text/index.ts";
import type { TextClue, TextTerms } from "../text/index.ts";

/** What finding documents needs from a store. */
export interface FindStore extends Pick<
  RecallStore,
  "findClues" | "testClues" | "findWritten" | "readCandidates" | "readTexts"
> {
  /** The text of a message without recall parts. */
  textOf(message: Pick<MessageText, "messageId" | "bytes">): string;
}

/** A message with recall parts: their indexes, and the rest of its text. */
interface CutMessage {
  readonly skipped: ReadonlySet<number>;
  readonly text: string;
  terms: TextTerms | null;
}

export class OwnWords implements FindStore {
  readonly #store: Store;
  /** Nothing has to be skipped: it was requested, or there are no such parts. */
  #isWhole: boolean;
  readonly #asked = new Set<number>();
  readonly #cut = new Map<number, CutMessage>();
  /** Messages in the scope of this search that were read. */
  readonly #texts = new Map<number, MessageText>();

  constructor(store: Store, { includeRecall = false }: { readonly includeRecall?: boolean | undefined }) {
    this.#store = store;
    this.#isWhole = includeRecall;
  }

  /** Finds out which of the messages have recall parts. */
  async learn(ids: Iterable<number>): Promise<void> {
    if (this.#isWhole) return;
    const unknown = [...new Set(ids)].filter((id) => !this.#asked.has(id));
    for (const id of unknown) this.#asked.add(id);
    await this.#keep(await this.#store.listRecallParts(unknown));
  }

  /** The same, if the store has returned it with the messages. */
  async #learnFrom(ids: Iterable<number>, found: readonly RecallParts[] | null): Promise<void> {
    if (found === null) return this.learn(ids);
    for (const id of ids) this.#asked.add(id);
    if (!this.#isWhole) await this.#keep(found);
  }

  async #keep(found: readonly RecallParts[]): Promise<void> {
    const mixed = found.filter(({ messageId, isAll }) => !isAll && !this.#cut.has(messageId));
    const unread = mixed.filter(({ bytes }) => bytes === undefined).map(({ messageId }) => messageId);
    const read = await this.#readWhole(unread, {});
    const bytesOf = new Map(read.map(({ messageId, bytes }) => [messageId, bytes]));
    for (const { messageId, ordinals, isAll } of found)
      if (isAll) this.#cut.set(messageId, { skipped: ordinals, text: "", terms: null });
    for (const { messageId, ordinals, bytes = bytesOf.get(messageId) } of mixed)
      if (bytes !== undefined)
        this.#cut.set(messageId, { skipped: ordinals, text: readSearchText(bytes, ordinals), terms: null });
  }

  /** A message whose large file is gone cannot be read; the others can. */
  async #readWhole(ids: readonly number[], scope: RecallScope): Promise<MessageText[]> {
    if (ids.length === 0) return [];
    try {
      return await this.#store.readTexts(ids, scope);
    } catch (error) {
      if (!(error instanceof EngineError && error.code === "not_found")) throw error;
      if (ids.length === 1) return [];
      return (await Promise.all(ids.map((id) => this.#readWhole([id], scope)))).flat();
    }
  }

  /** Those of the messages that were already read. */
  listRead(ids: readonly number[]): MessageText[] {
    return ids.flatMap((id) => this.#texts.get(id) ?? []);
  }

  /** Reads messages, each once per search; unreadable ones are omitted. */
  async readTexts(ids: readonly number[], scope: RecallScope): Promise<MessageText[]> {
    const unknown = ids.filter((id) => !this.#texts.has(id));
    for (const text of await this.#readWhole(unknown, scope)) this.#texts.set(text.messageId, text);
    return this.listRead(ids);
  }

  /** The rest of the text of a message with recall parts; undefined for any other message. Call `learn` first. */
  restOf(messageId: number): string | undefined {
    return this.#cut.get(messageId)?.text;
  }

  textOf({ messageId, bytes }: Pick<MessageText, "messageId" | "bytes">): string {
    return this.restOf(messageId) ?? readSearchText(bytes);
  }

  async findClues(request: ClueRequest): Promise<CluesFound> {
    const found = await this.#store.findClues({ ...request, withRecallParts: !this.#isWhole });
    if (request.kind === "message" && !found.hasRecallParts) this.#isWhole = true;
    if (request.kind === "summary" || this.#isWhole) return found;
    const listed = found.listings.flatMap(({ ids }) => ids);
    await this.#learnFrom(listed, found.recallParts ?? null);
    if (this.#cut.size === 0) return found;
    const listings = found.listings.map((listing, at) =>
      this.#dropUnsaid(listing, request.clues[at] as TextClue),
    );
    return { ...found, listings };
  }

  #dropUnsaid(listing: ClueListing, clue: TextClue): ClueListing {
    const ids = this.#keepHolding(listing.ids, clue);
    return { ...listing, ids, frequency: listing.frequency - (listing.ids.length - ids.length) };
  }

  #keepHolding(ids: readonly number[], clue: TextClue): number[] {
    return ids.filter((id) => {
      const cut = this.#cut.get(id);
      if (cut === undefined) return true;
      return cut.text !== "" && holdsClue((cut.terms ??= readTextTerms(cut.text)), clue);
    });
  }

  async testClues(request: Parameters<RecallStore["testClues"]>[0]): Promise<number[][]> {
    const found = await this.#store.testClues(request);
    if (request.kind !== "message") return found;
    await this.learn(request.ids);
    return found.map((ids, at) => this.#keepHolding(ids, request.clues[at] as TextClue));
  }

  async findWritten(
    request: Parameters<RecallStore["findWritten"]>[0],
  ): ReturnType<RecallStore["findWritten"]> {
    const written = await this.#store.findWritten(request);
    return this.#dropSilent(written, ({ messageId }) => messageId);
  }

  async readCandidates(request: CandidateRequest): Promise<CandidateDocument[]> {
    const candidates = await this.#store.readCandidates(request);
    return request.kind === "message" ? this.#dropSilent(candidates, ({ id }) => id) : candidates;
  }

  /** Drops messages that consist only of recall parts. */
  async #dropSilent<T extends WithRecall>(list: T[], idOf: (one: T) => number): Promise<T[]> {
    const known = list.flatMap(({ recall }) => recall ?? []);
    await this.#learnFrom(list.map(idOf), list.every(({ recall }) => recall !== undefined) ? known : null);
    return list.filter((one) => this.restOf(idOf(one)) !== "");
  }
}
