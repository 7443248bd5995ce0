/**
 * Care as the engine offers it: lists for the doctor, summaries regenerated, and forgetting. Joins the store with the summariser; what to
 * do, and whether, is decided by `maintain/` and the person who asks.
 */
import { measureSummary } from "./folding.ts";
import { viewMessage, searchText } from "../message/normalize.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import { HIDDEN } from "../model/message.ts";
import type { Settings } from "../model/settings.ts";
import type {
  ConversationTies,
  DissolveReport,
  DoubtfulSummary,
  ForgetPlan,
  ImportedPart,
  RemovedCounts,
  TransplantReport,
} from "../store/care.ts";
import { nameSource } from "../store/folding.ts";
import type { Debt, RunItem, SummaryNode, SummaryReplacement, SummaryText } from "../store/folding.ts";
import type { Store } from "../store/store.ts";
import { FALLBACK_MARKER } from "../summarize/extractive.ts";
import type { Summarize, SummarizeResult } from "../summarize/summarize.ts";
import type { BriefTexts } from "../summarize/prompts.ts";

export interface RewriteRequest {
  readonly summaryId: string;
  /** Only makes the new text; nothing changes but the ledger of spending. */
  readonly isDry: boolean;
  /** Writes it without a model. */
  readonly isExtractive?: boolean;
  /** Takes only a text that a model wrote, or that was meant to be written without one: not a stand-in after a failure. */
  readonly mustHeal?: boolean;
  readonly customInstructions?: string;
  /** Own briefs in the place of ours. */
  readonly briefs?: BriefTexts;
  /** A text that was made before, dry, and looked at: it is put in place and nothing is regenerated. */
  readonly text?: ReviewedText;
  readonly signal?: AbortSignal;
}

/** What a dry rewrite answered, handed back. */
export interface ReviewedText {
  readonly content: string;
  readonly model: string;
  readonly level: SummaryText["level"];
  /** What it was made from. If that has changed since, it is refused. */
  readonly sourceKeys: readonly string[];
}

export interface RewriteAnswer {
  readonly oldId: string;
  /** The summary that stands in its place; null when it was dry, the text did not change, or it would not have healed. */
  readonly newId: string | null;
  readonly before: { readonly content: string; readonly tokens: number; readonly model: string };
  readonly after: {
    readonly content: string;
    readonly tokens: number;
    readonly model: string;
    readonly level: SummaryText["level"];
  };
  /** What the new text was made from, as the archive names it. */
  readonly sourceKeys: readonly string[];
}

export interface ForgetAnswer {
  readonly plan: ForgetPlan;
  /** Old and new ids of the published summaries that were remade. */
  readonly remade: readonly { readonly oldId: string; readonly newId: string }[];
  /** Whether the freed pages have been wiped; false when another process kept them in use. */
  readonly isWiped: boolean;
}

/** What the engine offers beside storing, folding and finding. */
export interface CareEngine {
  listDebts(): Promise<Debt[]>;
  closeDebt(request: { conversationId: number }): Promise<boolean>;
  /** Removes summaries of a conversation with those above them, all when none are named, and shows what they stood for; null when something else uses one. */
  dropSummaries(request: { conversationId: number; summaryIds?: readonly string[] }): Promise<number | null>;
  /** What imports brought in, the newest first. */
  listImports(): Promise<ImportedPart[]>;
  readTies(request: { conversationIds: readonly number[] }): Promise<ConversationTies[]>;
  /** Removes conversations with everything in them; null if they are not as expected. */
  removeConversations(request: { expected: readonly ConversationTies[] }): Promise<RemovedCounts | null>;
  listPublished(request: {
    after: string;
    limit: number;
    conversationId?: number;
  }): Promise<DoubtfulSummary[]>;
  listFilePaths(): Promise<string[]>;
  /** Those of the given events whose bytes cannot be read back from the archive exactly as given. */
  findUnproven(request: {
    sessionId: string;
    owner?: string;
    events: readonly { eventId: string; bytes: Uint8Array }[];
  }): Promise<string[]>;
  readVersions(): Promise<{ schemaVersion: number; storedSchemaVersion: number }>;
  /** Writes a published summary anew from its sources. */
  rewriteSummary(request: RewriteRequest): Promise<RewriteAnswer>;
  /** Puts the sources of a summary back into the context. Null: it does not stand there by itself. */
  dissolveSummary(request: { summaryId: string; isDry: boolean }): Promise<DissolveReport | null>;
  /** Copies a conversation with its summaries in front of another one. */
  transplant(request: { from: number; to: number; isDry: boolean }): Promise<TransplantReport>;
  /** What forgetting these messages would touch. */
  planForget(request: { messageIds: readonly number[] }): Promise<ForgetPlan>;
  /** Erases messages, and everything that was made from them. Cannot be undone. */
  forget(request: { messageIds: readonly number[]; reason: string }): Promise<ForgetAnswer>;
  isForgettingOpen(): Promise<boolean>;
  /** Wipes what a forgetting freed, when it could not do so itself. */
  finishForgetting(): Promise<boolean>;
}

export interface CareParts {
  readonly store: Store;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly emit: EventSink;
  readonly summarize: Summarize;
  /** The same without a model. */
  readonly extract: Summarize;
  readonly reindex: () => Promise<unknown>;
}

/** Others may store while new texts are made; then everything is planned again. */
const MAX_TRIES = 5;
/** This many words in a row, in a summary that does not rest on the message, did not come there by chance. */
const SHINGLE_WORDS = 8;
const PAGE = 256;

export class Care {
  #parts: CareParts;

  constructor(parts: CareParts) {
    this.#parts = parts;
  }

  async rewrite(request: RewriteRequest): Promise<RewriteAnswer> {
    const { store, clock } = this.#parts;
    const node = await this.#needPublished(request.summaryId);
    const run = await store.readSources(node.summaryId);
    const sourceKeys = run.map(nameSource);
    if (request.text !== undefined && request.text.sourceKeys.join() !== sourceKeys.join())
      throw changedMeanwhile(node.summaryId);
    const text = request.text ?? (await this.#write(node, run, request));
    const { content, tokens, model } = node;
    const summary = {
      content: text.content,
      model: text.model,
      level: text.level,
      summaryId: this.#makeId(),
      tokens: this.#measure(text.content, node.depth, run),
    };
    const answer = {
      oldId: node.summaryId,
      before: { content, tokens, model },
      after: { content: text.content, tokens: summary.tokens, model: text.model, level: text.level },
      sourceKeys,
    };
    // The same text over changed sources is new: it rests on them as they are now.
    const isNoBetter =
      (text.content === content && !node.isStale) ||
      (request.mustHeal === true && text.content.startsWith(FALLBACK_MARKER));
    if (request.isDry || isNoBetter) return { ...answer, newId: null };
    const replacement = { oldId: node.summaryId, summary, sourceKeys };
    const outcome = await store.replaceSummary(replacement, clock.now());
    if (outcome.kind === "stale") throw changedMeanwhile(node.summaryId);
    return { ...answer, newId: outcome.summaryId };
  }

  async #needPublished(summaryId: string): Promise<SummaryNode> {
    const node = await this.#parts.store.readSummary(summaryId);
    if (node?.state === "cover") return node;
    const why = node === null ? "there is no such summary" : `it is ${node.state}, no context uses it`;
    throw new EngineError("not_found", `cannot rewrite ${summaryId}: ${why}`, {
      step: { kind: "list", what: "summaries" },
    });
  }

  #write(node: SummaryNode, run: readonly RunItem[], request: RewriteRequest): Promise<SummarizeResult> {
    const { settings, summarize, extract } = this.#parts;
    const { customInstructions, briefs } = request;
    return (request.isExtractive ? extract : summarize)({
      conversationId: node.conversationId,
      purpose: node.kind,
      depth: node.depth,
      run,
      previous: null,
      targetTokens: node.depth === 0 ? settings.leafTargetTokens : settings.condensedTargetTokens,
      sourceTokens: sumShown(run),
      signal: request.signal ?? new AbortController().signal,
      customInstructions,
      briefs,
    });
  }

  dissolve(request: { summaryId: string; isDry: boolean }): Promise<DissolveReport | null> {
    return this.#parts.store.dissolveSummary({ ...request, now: this.#parts.clock.now() });
  }

  async planForget(messageIds: readonly number[]): Promise<ForgetPlan> {
    const { store } = this.#parts;
    const direct = await store.planForget(messageIds, []);
    return store.planForget(messageIds, await this.#findEchoes(direct));
  }

  async forget(request: { messageIds: readonly number[]; reason: string }): Promise<ForgetAnswer> {
    const { store, clock } = this.#parts;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const direct = await store.planForget(request.messageIds, []);
      const alsoSummaryIds = await this.#findEchoes(direct);
      const plan = await store.planForget(request.messageIds, alsoSummaryIds);
      const replacements = await this.#remake(plan);
      const outcome = await store.forget({ ...request, alsoSummaryIds, replacements, now: clock.now() });
      if (outcome.kind === "stale") continue;
      const remade = replacements.map(({ oldId, summary }) => ({ oldId, newId: summary.summaryId }));
      return { plan: outcome.plan, remade, isWiped: await this.#tryToWipe() };
    }
    throw new EngineError("database_busy", "cannot forget: the conversation changes too fast", {
      hint: "retry when the conversation is idle",
    });
  }

  /** The messages are gone whatever happens here; what is left to do stays noted in the archive, and the doctor finds it. */
  async #tryToWipe(): Promise<boolean> {
    try {
      return await this.finishForgetting();
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#parts.emit({
        kind: "degraded",
        part: "files",
        message: `freed pages could not be wiped: ${error.message}`,
      });
      return false;
    }
  }

  async finishForgetting(): Promise<boolean> {
    const { store, reindex } = this.#parts;
    // A damaged index may hold anything; a new one holds only what is there.
    if ((await store.status()).index.kind === "degraded") await reindex();
    return store.wipeFreed();
  }

  /** New texts for the published summaries, the finest first: each from what is left of its sources. */
  async #remake(plan: ForgetPlan): Promise<SummaryReplacement[]> {
    const forgotten = new Set(plan.messageIds);
    const made = new Map<string, SummaryReplacement & { isEmpty: boolean }>();
    for (const { summaryId, isPublished } of plan.summaries) {
      if (!isPublished) continue;
      const node = await this.#needPublished(summaryId);
      const sources = await this.#parts.store.readSources(summaryId);
      const left = sources.map((item) => withoutForgotten(item, forgotten, made));
      const isEmpty = left.every(
        (item) => item.hidden !== 0 || (item.summary !== null && item.messages === 0),
      );
      const text = isEmpty
        ? renderPlace(node, this.#parts.clock.now())
        : await this.#write(node, left, { summaryId, isDry: true, isExtractive: true });
      const tokens = this.#measure(text.content, node.depth, left);
      made.set(summaryId, {
        oldId: summaryId,
        summary: { ...text, summaryId: this.#makeId(), tokens },
        // What it will have been made from, once those below it have been replaced, is checked under the old names.
        sourceKeys: sources.map(nameSource),
        isEmpty,
      });
    }
    return [...made.values()].map(({ isEmpty: _isEmpty, ...replacement }) => replacement);
  }

  /** Summaries that do not rest on the messages and yet repeat them: a model was shown the summary before the run. */
  async #findEchoes(plan: ForgetPlan): Promise<string[]> {
    const touched = new Set(plan.summaries.map((summary) => summary.summaryId));
    const holders = new Map<string, string[]>();
    for (const conversationId of plan.conversationIds) {
      for await (const { summaryId, content } of this.#walkSummaries(conversationId)) {
        if (touched.has(summaryId)) continue;
        for (const shingle of listShingles(content))
          holders.set(shingle, [...(holders.get(shingle) ?? []), summaryId]);
      }
    }
    const echoes = new Set<string>();
    for (const messageId of holders.size === 0 ? [] : plan.messageIds) {
      const body = await this.#parts.store.readMessage(messageId);
      const text = body === null ? "" : searchText(viewMessage(body.bytes));
      for (const shingle of listShingles(text)) for (const id of holders.get(shingle) ?? []) echoes.add(id);
    }
    return [...echoes];
  }

  async *#walkSummaries(conversationId: number): AsyncGenerator<{ summaryId: string; content: string }> {
    for (let after: string | null = null; ;) {
      const page = await this.#parts.store.listSummaries({ conversationId, after, limit: PAGE });
      yield* page.items;
      if (page.next === null) return;
      after = page.next;
    }
  }

  #measure(content: string, depth: number, run: readonly RunItem[]): number {
    return measureSummary({ content, depth, run }, this.#parts.settings.timezone);
  }

  #makeId(): string {
    return `sum_${Buffer.from(this.#parts.clock.random(8)).toString("hex")}`;
  }
}

const changedMeanwhile = (summaryId: string): EngineError =>
  new EngineError("database_busy", `cannot rewrite ${summaryId}: it changed meanwhile`, {
    hint: "run it again",
  });

function withoutForgotten(
  item: RunItem,
  forgotten: ReadonlySet<number>,
  made: ReadonlyMap<string, SummaryReplacement & { isEmpty: boolean }>,
): RunItem {
  if (item.messageId !== null && forgotten.has(item.messageId))
    return { ...item, hidden: item.hidden | HIDDEN.forgotten, bytes: null };
  const replacement = item.summary === null ? undefined : made.get(item.summary.summaryId);
  if (item.summary === null || replacement === undefined) return item;
  const { content, tokens } = replacement.summary;
  return {
    ...item,
    tokens,
    messages: replacement.isEmpty ? 0 : item.messages,
    summary: { ...item.summary, content, tokens },
  };
}

/** Stands where everything was forgotten. */
function renderPlace(node: SummaryNode, now: number): SummarizeResult {
  const day = (at: number): string => new Date(at).toISOString().slice(0, 10);
  const content = `[LCM forgotten] Messages from ${day(node.earliestAt)} to ${day(node.latestAt)} stood here. They were removed on request on ${day(now)}.`;
  return { content, tokens: 0, model: "extractive", level: "extractive" };
}

const sumShown = (run: readonly RunItem[]): number =>
  run.reduce((sum, item) => sum + (item.hidden === 0 ? item.tokens : 0), 0);

function listShingles(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const shingles: string[] = [];
  for (let at = 0; at + SHINGLE_WORDS <= words.length; at++)
    shingles.push(words.slice(at, at + SHINGLE_WORDS).join(" "));
  return shingles;
}
