/**
 * The context for a budget: choose from the cover, load only what was chosen, write it as messages that every provider accepts. Only reads
 * the store: never writes, never drains debt, never calls a model.
 *
 * Invariants: what is sent fits the budget, counted on what is sent; every shown message is represented exactly once; the same archive,
 * budget and model give the same bytes.
 */
import { hash } from "node:crypto";
import { partTokens } from "../message/normalize.ts";
import { findFloor, isHiddenByBoundary } from "../model/boundaries.ts";
import { MAX_SUMMARIES_BEFORE } from "../model/cover.ts";
import type { CoverItem } from "../model/cover.ts";
import { formatMessageId } from "../model/ids.ts";
import type { ModelIdentity } from "../model/message.ts";
import { explainFreshTail, findFreshTail, type TailLimit, type TailPolicy } from "../model/tail.ts";
import { applyFactor, countRepeats, MESSAGE_OVERHEAD_TOKENS } from "../text/tokens.ts";
import { isSummaryItem, isUserMessage } from "../model/tool-groups.ts";
import type { CoverTail, ShownSummary, Stretch } from "../store/folding.ts";
import type { ShownMessage, Store } from "../store/store.ts";
import { choose, divideByFactor, findAnchor, listStretches } from "./choose.ts";
import type { Choice, ChooseRequest, ChosenItem } from "./choose.ts";
import { checkGrammars } from "./grammars.ts";
import type { GrammarCheck, ModelMessage, Provider } from "./grammars.ts";
import { addFront, readForkFront } from "./fork-front.ts";
import type { ForkFront } from "./fork-front.ts";
import { toModelMessage, type WrittenMessage } from "./model-view.ts";
import { DEFAULT_LINE_COSTS, isBulky } from "./pieces.ts";
import { rankByQuestion } from "./relevance.ts";
import { formatRangeId, renderRange, renderSummary } from "./render.ts";
import { repairMessages } from "./repair.ts";
import { writeMessages } from "./write.ts";
import type { ContextMessage } from "./write.ts";

export interface AssembleOptions {
  readonly conversationId: number;
  readonly budgetTokens: number;
  readonly tail: TailPolicy;
  /** The tail that folds leave alone; a context may show more than that. */
  readonly foldTail: TailPolicy;
  readonly timeZone: string;
  /** The model's factor for stored counts. */
  readonly tokenFactor: number;
  readonly model: ModelIdentity | null;
  readonly provider?: Provider;
  /**
   * A few cited lines found for the prompt. It is the last message, never part of the stable front. Null: nothing was found, and its room
   * stays free, so that the front does not depend on search results. Absent: no search was made.
   */
  readonly cue?: string | null | undefined;
  /** In a tight context, summaries about the newest user message up to the anchor get room before others. */
  readonly prefersAsked?: boolean;
  /** Show bulky tool results before the fresh tail, as it was at the anchor, as stubs, even if they would fit. */
  readonly stubsOldResults?: boolean;
  /** False for a reader without the tools that open omitted messages; the lines about them then name no tool. */
  readonly canOpen?: boolean;
  /** A position: the context as if the conversation ended before it. */
  readonly endBefore?: number;
  readonly estimate: (text: string) => number;
  /** Also run every provider's rules on what is sent. */
  readonly checkGrammars?: boolean;
}

export interface ExplainedItem extends ChosenItem {
  readonly role: string | null;
}

export interface AssembledContext {
  readonly conversationId: number;
  readonly messages: ContextMessage[];
  /** What each provider would refuse; only if requested. */
  readonly grammars?: readonly GrammarCheck[];
  readonly estimatedTokens: number;
  readonly budgetTokens: number;
  readonly mode: Choice["mode"];
  /** Changes only when the front of the prompt changes. */
  readonly epoch: string;
  readonly fingerprint: string;
  readonly items: ExplainedItem[];
  readonly shownMessages: number;
  /** The newest messages, which folds leave alone, and what limits their number. */
  readonly tail: TailLimit;
}

/**
 * How much of the cover is read, in budgets: up to 0.2 after the anchor, 0.3 of a tool group across it, then twice the 0.8 of the front,
 * see `choose.ts`. If the newest messages are few and large, more is needed, and then the next share is read.
 */
const READ_SHARES = [2.2, 3, 12, 48] as const;
/** How often a choice that turned out too large when written is made again for less; after that, only the minimum is sent. */
const MAX_TRIES = 8;
/** How often a choice is made again because less was sent than counted. */
const MAX_RECOUNTS = 4;
/** How many levels of summaries are opened below each other. */
const MAX_OPENINGS = 12;
/** Tokens reserved for a cue. */
const MAX_CUE_TOKENS = 600;
const CUE_SHARE = 0.1;
/** The opening, introductory and closing lines alone say nothing. */
const MIN_CUE_LINES = 3;

export async function assembleContext(
  store: Store,
  options: AssembleOptions,
): Promise<AssembledContext | null> {
  const readTail = (share: number): Promise<CoverTail | null> =>
    store.readCoverTail({
      conversationId: options.conversationId,
      maxTokens: Math.ceil((share * options.budgetTokens) / Math.min(1, options.tokenFactor)),
      maxMessages: options.tail.freshTailCount,
      withSummaries: true,
    });
  // Independent reads are issued together: on a server they share one round trip's latency.
  const reading = readForkFront(store, options);
  for (const share of READ_SHARES) {
    const [whole, front] = await Promise.all([readTail(share), reading]);
    if (!whole) return null;
    const cover = options.endBefore === undefined ? whole : cutCover(whole, options.endBefore);
    const context = await assembleFrom(store, { cover, front }, options, share === READ_SHARES.at(-1));
    if (context) return context;
  }
  return null;
}

interface Readable {
  readonly cover: CoverTail;
  readonly front: ForkFront;
  /** Tokens that messages have beyond their stored counts because they repeat characters, as far as known. */
  readonly repeats?: ReadonlyMap<number, number>;
}

/** The context from the part of the cover that was read; null when the choice needed more and `isAll` is not set. */
async function assembleFrom(
  store: Store,
  { cover: whole, front, repeats: known = new Map() }: Readable,
  options: AssembleOptions,
  isAll: boolean,
): Promise<AssembledContext | null> {
  const cover = addRepeats(whole, known);
  const cueRoom =
    options.cue === undefined ? 0 : Math.min(MAX_CUE_TOKENS, Math.floor(CUE_SHARE * options.budgetTokens));
  const cue = fitCue(options.cue ?? null, cueRoom, options);
  const budgetTokens = options.budgetTokens - cueRoom - front.tokens;
  const anchor = findAnchor(
    cover.counters.shownTokens,
    divideByFactor(Math.max(0, budgetTokens), options.tokenFactor),
  );
  const isTight = applyFactor(cover.counters.shownTokens, options.tokenFactor) > budgetTokens;
  const stubbedIds = new Set([
    ...(options.stubsOldResults ? listOldBulky(cover, options.tail, anchor) : []),
    ...(isTight ? await listOldRecall(store, cover, anchor) : []),
  ]);
  const preferred =
    isTight && options.prefersAsked === true ? await findPreferred(store, cover, anchor, options) : [];
  const sources = new Map<string, readonly CoverItem[]>();
  const drafts: Drafts = { messages: new Map(), summaries: new Map(), written: new Map() };
  // The choice uses stored counts. What is sent may be less (reasoning of another model): then there is room for more. Repairs add a few
  // words; when that is too much, choose again for a little less.
  const sent = new Map<number, number>();
  let marginTokens = 0;
  for (let tries = 1; ; tries++) {
    const stubbed = stubItems(cover, stubbedIds);
    const items = new ReadItems({ ...stubbed, items: countAsSent(stubbed.items, sent) });
    const isLeast = tries > MAX_TRIES;
    const room = { budgetTokens, marginTokens, preferred, sources, sent, isLeast };
    const choice = await chooseOpened(store, cover, items, options, room);
    if (items.isMissed && !isAll) return null;
    const shown = addFront(showStubs(choice, stubbedIds), front);
    const context = await writeContext({ store, cover, drafts, options }, shown, cue, {
      tokens: anchor,
      isTight,
    });
    const excess = context.estimatedTokens - options.budgetTokens;
    const repeats = excess > 0 ? findRepeats(choice.items, drafts, known) : known;
    if (repeats.size > known.size)
      return assembleFrom(store, { cover: whole, front, repeats }, options, isAll);
    if (excess > 0 && !isLeastOfAll(choice)) marginTokens += excess + tries * 16;
    else if (tries >= MAX_RECOUNTS || !learnSent(choice, drafts, options, sent)) return context;
  }
}

/** Nothing smaller can be sent. */
const isLeastOfAll = ({ mode, items }: Choice): boolean =>
  mode === "least" && items.every(({ kind }) => kind !== "summary");

/** With the messages of a choice that take more than their stored counts. They are few, so they are looked for only if it is too large. */
function findRepeats(
  items: readonly ChosenItem[],
  { written }: Drafts,
  known: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> {
  const found = new Map(known);
  for (const item of items) {
    if (item.messageId === null || item.kind !== "message" || known.has(item.messageId)) continue;
    const parts = written.get(nameDraft(item))?.parts ?? [];
    const repeats = parts.reduce((sum, { text = "" }) => sum + countRepeats(text), 0);
    if (repeats > 0) found.set(item.messageId, repeats);
  }
  return found;
}

/** The cover with the tokens of repeated characters. */
function addRepeats(cover: CoverTail, repeats: ReadonlyMap<number, number>): CoverTail {
  if (repeats.size === 0) return cover;
  const extraOf = ({ messageId }: CoverItem): number =>
    messageId === null ? 0 : (repeats.get(messageId) ?? 0);
  const recount = (item: CoverItem): CoverItem => ({ ...item, tokens: item.tokens + extraOf(item) });
  const shownTokens = cover.items.reduce((sum, item) => sum + extraOf(item), cover.counters.shownTokens);
  return {
    ...cover,
    items: cover.items.map(recount),
    counters: { ...cover.counters, shownTokens },
    newestUser: cover.newestUser === null ? null : recount(cover.newestUser),
  };
}

type Sent = ReadonlyMap<number, number>;

/** Items with the tokens of messages as sent, where known. */
const countAsSent = (items: readonly CoverItem[], sent: Sent): readonly CoverItem[] =>
  sent.size === 0
    ? items
    : items.map((item) => {
        const tokens = item.messageId === null ? undefined : sent.get(item.messageId);
        return tokens === undefined || tokens >= item.tokens ? item : { ...item, tokens };
      });

/**
 * When less of the front was sent than expected: records how much each of its messages really takes. True when that frees room. What
 * follows the anchor is ignored, so that the front does not change with it.
 */
function learnSent(
  { items, mode, anchorTokens, stableItems, leastTokens }: Choice,
  drafts: Drafts,
  { estimate }: AssembleOptions,
  sent: Map<number, number>,
): boolean {
  if (mode !== "tight") return false;
  const front = anchorTokens === null ? items : items.slice(0, stableItems);
  const found = new Map<number, number>();
  let total = 0;
  let saved = 0;
  for (const item of front) {
    const draft = drafts.written.get(nameDraft(item));
    const tokens = draft === undefined ? item.tokens : Math.min(item.tokens, countTokens([draft], estimate));
    total += tokens;
    saved += item.tokens - tokens;
    if (item.messageId !== null && item.kind === "message") found.set(item.messageId, tokens);
  }
  const isNew = [...found].some(([id, tokens]) => sent.get(id) !== tokens);
  for (const [id, tokens] of found) sent.set(id, tokens);
  return isNew && saved > 0 && total < leastTokens;
}

interface OpeningRoom extends ChooseRoom {
  /** Of summaries, as they are stored. What is read is added. */
  readonly sources: Map<string, readonly CoverItem[]>;
  readonly sent: Sent;
}

/** Makes the choice; if it needs sources, reads them and makes it again. */
async function chooseOpened(
  store: Store,
  cover: CoverTail,
  items: Iterable<CoverItem>,
  options: AssembleOptions,
  { sent, ...room }: OpeningRoom,
): Promise<Choice> {
  for (let openings = 0; ; openings++) {
    const sources = new Map([...room.sources].map(([id, found]) => [id, countAsSent(found, sent)]));
    const choice = chooseFrom(cover, items, options, { ...room, sources });
    if (choice.wanted.length === 0 || openings >= MAX_OPENINGS) return choice;
    for (const [id, found] of await store.readSourceItems(choice.wanted))
      room.sources.set(id, found.some((item) => isHiddenByBoundary(item, cover.boundaries)) ? [] : found);
  }
}

/** The cover without items that begin at a position or later. */
function cutCover(cover: CoverTail, endBefore: number): CoverTail {
  const cut = cover.items.filter((item) => item.startPosition >= endBefore);
  const { shownMessages, shownTokens, firstAt } = cover.counters;
  return {
    ...cover,
    items: cover.items.slice(cut.length),
    counters: {
      shownMessages: shownMessages - cut.reduce((sum, item) => sum + item.messages, 0),
      shownTokens: shownTokens - cut.reduce((sum, item) => sum + item.tokens, 0),
      firstAt,
    },
    reserve: cover.reserve.filter((summary) => summary.endPosition < endBefore),
    summariesBefore: cover.summariesBefore.filter((item) => item.startPosition < endBefore),
    newestUser:
      cover.newestUser !== null && cover.newestUser.startPosition < endBefore ? cover.newestUser : null,
  };
}

/**
 * Bulky results before the fresh tail of the conversation up to the anchor. The tail of the whole conversation moves with every turn, and
 * each result that left it would change the front of the prompt.
 */
function listOldBulky(cover: CoverTail, tail: TailPolicy, anchor: number): ReadonlySet<number> {
  const items = takeBefore(cover, anchor).reverse();
  const { startIndex } = findFreshTail(items, tail);
  const bulky = items
    .slice(0, startIndex)
    .filter((item) => item.toolResults.length > 0 && isBulky(item, DEFAULT_LINE_COSTS));
  return new Set(bulky.flatMap((item) => item.messageId ?? []));
}

/** Items up to the anchor, newest first. */
function takeBefore({ items, counters }: CoverTail, anchor: number): CoverItem[] {
  let after = counters.shownTokens - anchor;
  const cut = items.findIndex((item) => {
    if (after <= 0) return true;
    after -= item.tokens;
    return false;
  });
  return cut < 0 ? [] : items.slice(cut);
}

/** Results of our own tools up to the anchor: what they found is stored elsewhere in the archive. */
async function listOldRecall(store: Store, cover: CoverTail, anchor: number): Promise<number[]> {
  const ids = takeBefore(cover, anchor)
    .filter((item) => item.toolResults.length > 0 && item.tokens > DEFAULT_LINE_COSTS.stubTokens(item))
    .flatMap((item) => item.messageId ?? []);
  const found = await store.listRecallParts(ids);
  return found.filter(({ isAll }) => isAll).map(({ messageId }) => messageId);
}

/** The summaries about the newest user message up to the anchor, which stays the same until the anchor moves. */
async function findPreferred(
  store: Store,
  cover: CoverTail,
  anchor: number,
  { model, estimate }: AssembleOptions,
): Promise<string[]> {
  const items = takeBefore(cover, anchor);
  const user = items.find(isUserMessage);
  const [message] = user?.messageId == null ? [] : await store.readShown([user.messageId]);
  if (message === undefined) return [];
  const { parts } = toModelMessage(message, { model, stub: null, estimate });
  const ids = [...items, ...cover.summariesBefore].flatMap(({ hidden, summaryId }) =>
    hidden === 0 && summaryId !== null ? [summaryId] : [],
  );
  const summaries = await store.readShownSummaries([...new Set(ids)]);
  return rankByQuestion(
    parts.map(({ text }) => text ?? "").join("\n"),
    summaries.map(({ summaryId, content }) => ({ id: summaryId, text: content })),
  );
}

/** The cover with the token counts of these messages as stubs. */
function stubItems(cover: CoverTail, ids: ReadonlySet<number>): CoverTail {
  if (ids.size === 0) return cover;
  const items = cover.items.map((item) =>
    item.messageId !== null && ids.has(item.messageId)
      ? { ...item, tokens: DEFAULT_LINE_COSTS.stubTokens(item) }
      : item,
  );
  return { ...cover, items };
}

type ReadCover = Pick<CoverTail, "counters"> & { readonly items: readonly CoverItem[] };

/** The items that were read, newest first. Records when more were needed. */
class ReadItems implements Iterable<CoverItem> {
  readonly #cover: ReadCover;
  isMissed = false;

  constructor(cover: ReadCover) {
    this.#cover = cover;
  }

  *[Symbol.iterator](): Generator<CoverItem, void> {
    const { items, counters } = this.#cover;
    let messages = 0;
    for (const item of items) {
      messages += item.messages;
      yield item;
    }
    this.isMissed = messages < counters.shownMessages;
  }
}

function showStubs(choice: Choice, ids: ReadonlySet<number>): Choice {
  if (ids.size === 0) return choice;
  const items = choice.items.map((item) =>
    item.messageId !== null && ids.has(item.messageId) && item.kind === "message"
      ? { ...item, kind: "stub" as const, reason: `${item.reason}, tool output as a stub` }
      : item,
  );
  return { ...choice, items };
}

/** The cue shortened to the available room: its last lines, before the closing one, are dropped first. */
function fitCue(
  cue: string | null,
  roomTokens: number,
  { estimate, tokenFactor }: AssembleOptions,
): string | null {
  const lines = cue?.split("\n") ?? [];
  while (lines.length > MIN_CUE_LINES) {
    const text = lines.join("\n");
    if (applyFactor(estimate(text) + MESSAGE_OVERHEAD_TOKENS, tokenFactor) <= roomTokens) return text;
    lines.splice(-2, 1);
  }
  return null;
}

type ChooseRoom = Pick<ChooseRequest, "budgetTokens" | "marginTokens" | "preferred" | "sources" | "isLeast">;

function chooseFrom(
  cover: CoverTail,
  items: Iterable<CoverItem>,
  options: AssembleOptions,
  room: ChooseRoom,
): Choice {
  const summaries = [...cover.items.filter(isSummaryItem), ...cover.summariesBefore];
  return choose({
    items,
    counters: cover.counters,
    ...room,
    tokenFactor: options.tokenFactor,
    tail: options.tail,
    reserve: cover.reserve,
    summariesBefore: (position) => summaries.filter((item) => item.startPosition < position),
    newestUserBefore: (position) =>
      cover.items.find((item) => item.startPosition < position && isUserMessage(item)) ?? cover.newestUser,
  });
}

/** What has been read and drafted for one context, across repeated choices. */
interface Drafts {
  readonly messages: Map<number, ShownMessage>;
  readonly summaries: Map<string, ShownSummary>;
  readonly written: Map<DraftName, WrittenMessage>;
}

interface Writing {
  readonly store: Store;
  readonly cover: CoverTail;
  readonly drafts: Drafts;
  readonly options: AssembleOptions;
}

/** A message as it is has its id; one that is cut has that and how. */
type DraftName = number | string | null;

const nameDraft = ({ messageId, kind, withoutMedia, tokens }: ChosenItem): DraftName =>
  kind === "message" && withoutMedia !== true
    ? messageId
    : `${messageId} ${kind} ${withoutMedia === true}${kind === "stub" ? ` ${tokens}` : ""}`;

async function writeContext(
  { store, cover, drafts: known, options }: Writing,
  choice: Choice,
  cue: string | null,
  anchor: Anchor,
): Promise<AssembledContext> {
  const loaded = await loadChosen(store, cover, choice.items, known, options);
  const drafts = choice.items.map((item) => draftItem(item, loaded, options));
  const withCue = cue === null ? drafts : [...drafts, textMessage(cue)];
  const neutral =
    withCue.length === 0
      ? []
      : repairMessages(withCue, options.provider ? { provider: options.provider } : {});
  const messages = writeMessages(neutral, {
    timeOf: (seq) => (seq === undefined ? 0 : (loaded.times.get(seq) ?? 0)),
    modelOf: (seq) => (seq === undefined ? undefined : loaded.models.get(seq)),
  });
  const items = choice.items.map((item) => explainItem(item, loaded));
  const stable = items.slice(0, choice.stableItems);
  return {
    conversationId: options.conversationId,
    messages,
    grammars: options.checkGrammars ? checkGrammars(neutral) : undefined,
    estimatedTokens: applyFactor(countTokens(neutral, options.estimate), options.tokenFactor),
    budgetTokens: options.budgetTokens,
    mode: choice.mode,
    epoch: `${options.conversationId}:${cover.foldRevision}:${nameFront(choice, cover, anchor, options)}`,
    fingerprint: hash("sha256", JSON.stringify(stable.map((item) => [item.kind, ...item.ids]))).slice(0, 32),
    items,
    shownMessages: cover.counters.shownMessages,
    tail: explainFreshTail(cover.items.toReversed(), options.foldTail),
  };
}

/**
 * With its role; a range with the messages at which it begins and ends; a summary with the times that it spans, because its cover item has the
 * seq and the time of its newest message.
 */
function explainItem(item: ChosenItem, { roles, summaries, ends }: Loaded): ExplainedItem {
  if (item.kind === "range") {
    const { first = null, last = null } = ends.get(item) ?? {};
    const ids = [first, last].flatMap((id) => (id === null ? [] : formatMessageId(id)));
    return { ...item, ids: [...new Set(ids)], role: null };
  }
  const summary = item.summaryId === null ? undefined : summaries.get(item.summaryId);
  if (summary !== undefined)
    return { ...item, role: null, earliestAt: summary.earliestAt, latestAt: summary.latestAt };
  return { ...item, role: item.seq === null ? null : (roles.get(item.seq) ?? null) };
}

interface Anchor {
  readonly tokens: number;
  /** Without stubs the conversation has more tokens than the budget. */
  readonly isTight: boolean;
}

/** What the front depends on besides the folds. Without an anchor it is chosen again at every turn. */
function nameFront(
  { mode, anchorTokens }: Choice,
  { counters }: CoverTail,
  anchor: Anchor,
  { stubsOldResults }: AssembleOptions,
): string {
  if (mode !== "whole") return String(anchorTokens ?? `turn ${counters.shownTokens}`);
  return stubsOldResults || anchor.isTight || anchorTokens !== null ? `whole ${anchor.tokens}` : "whole";
}

/** Offset that keeps a parent's messages far below those of the fork, because both count from one. */
const FORKED_SEQ = 2 ** 40;

interface Loaded extends Drafts {
  readonly times: ReadonlyMap<number, number>;
  readonly roles: Map<number, string>;
  readonly models: Map<number, ModelIdentity>;
  /** Tokens of messages as they are stored, for those that are shown as stubs. */
  readonly wholeTokens: ReadonlyMap<number, number>;
  /** The messages at which a range begins and ends. */
  readonly ends: ReadonlyMap<ChosenItem, { first: number | null; last: number | null }>;
}

async function loadChosen(
  store: Store,
  cover: CoverTail,
  items: readonly ChosenItem[],
  known: Drafts,
  options: AssembleOptions,
): Promise<Loaded> {
  const messageIds = items.flatMap((item) => (item.messageId === null ? [] : [item.messageId]));
  const forked = new Set(items.flatMap((item) => (item.ends === undefined ? [] : (item.messageId ?? []))));
  const summaryIds = items.flatMap((item) => item.summaryId ?? []);
  const { conversationId } = cover;
  const visible = listVisible(cover, (options.endBefore ?? Number.MAX_SAFE_INTEGER) - 1);
  const stretchesOf = (range: ChosenItem): Stretch[] => listStretches(range, items, visible);
  const [messages, summaries, ends] = await Promise.all([
    store.readShown(messageIds.filter((id) => !known.messages.has(id))),
    store.readShownSummaries(summaryIds.filter((id) => !known.summaries.has(id))),
    Promise.all(
      items
        .filter(({ kind }) => kind === "range")
        .map(
          async (item) =>
            [
              item,
              item.ends ?? (await store.findEnds({ conversationId, stretches: stretchesOf(item) })),
            ] as const,
        ),
    ),
  ]);
  for (const message of messages) {
    const seq = forked.has(message.messageId) ? message.seq - FORKED_SEQ : message.seq;
    known.messages.set(message.messageId, { ...message, seq });
  }
  for (const summary of summaries) known.summaries.set(summary.summaryId, summary);
  return {
    ...known,
    times: new Map([...known.messages.values()].map((message) => [message.seq, message.createdAt])),
    roles: new Map(),
    models: new Map(),
    wholeTokens: readWholeTokens(cover, items),
    ends: new Map(ends),
  };
}

/** Where something can be shown: after the newest boundary, and in the summaries before it that stay visible. */
function listVisible({ boundaries, items, summariesBefore }: CoverTail, endPosition: number): Stretch[] {
  const floor = findFloor(boundaries);
  if (floor === 0 || summariesBefore.length === MAX_SUMMARIES_BEFORE)
    return [{ startPosition: 0, endPosition }];
  const retained = [...items, ...summariesBefore].filter(
    (item) =>
      isSummaryItem(item) &&
      item.hidden === 0 &&
      item.startPosition < floor &&
      !isHiddenByBoundary(item, boundaries),
  );
  return [
    ...retained.toSorted((a, b) => a.startPosition - b.startPosition),
    { startPosition: floor, endPosition },
  ];
}

function readWholeTokens(cover: CoverTail, items: readonly ChosenItem[]): ReadonlyMap<number, number> {
  const stubs = new Set(items.flatMap((item) => (item.kind === "stub" ? (item.messageId ?? []) : [])));
  if (stubs.size === 0) return new Map();
  return new Map(
    cover.items.flatMap(({ messageId, tokens }) =>
      messageId !== null && stubs.has(messageId) ? [[messageId, tokens]] : [],
    ),
  );
}

const textMessage = (text: string): ModelMessage => ({ role: "user", parts: [{ type: "text", text }] });

function draftItem(item: ChosenItem, loaded: Loaded, options: AssembleOptions): ModelMessage {
  const summary = item.summaryId === null ? undefined : loaded.summaries.get(item.summaryId);
  if (summary) return draftSummary({ ...summary, lacks: item.lacks }, options);
  const message = item.messageId === null ? undefined : loaded.messages.get(item.messageId);
  if (message) {
    const tokens = message.tokens ?? loaded.wholeTokens.get(message.messageId) ?? item.tokens;
    const roomTokens = item.tokens - MESSAGE_OVERHEAD_TOKENS;
    const line = { id: item.ids[0] ?? "", tokens, canOpen: options.canOpen, roomTokens };
    const name = nameDraft(item);
    const draft =
      loaded.written.get(name) ??
      toModelMessage(message, {
        model: options.model,
        stub: item.kind === "stub" ? line : null,
        mediaStub: item.kind === "stub" || item.withoutMedia === true ? line : null,
        estimate: options.estimate,
      });
    loaded.written.set(name, draft);
    loaded.roles.set(message.seq, draft.role);
    if (draft.model) loaded.models.set(message.seq, draft.model);
    return draft;
  }
  const { first = null, last = null } = loaded.ends.get(item) ?? {};
  const range = { ...item, rangeId: formatRangeId(first, last) };
  return textMessage(renderRange(range, options.timeZone, options.canOpen));
}

/** Tokens of rendered summaries, by everything around their texts; the text under an id never changes. */
const knownTokens = new Map<string, number>();
const MAX_KNOWN_TOKENS = 2_000;

/** Long texts that are sent turn after turn are counted once, not at every turn. */
function draftSummary(
  summary: ShownSummary & { readonly lacks?: number | undefined },
  { timeZone, estimate }: AssembleOptions,
): ModelMessage {
  const text = renderSummary(summary, timeZone);
  const frame = `${text.length} ${text.slice(0, text.indexOf("<content>"))}`;
  let tokens = knownTokens.get(frame);
  if (tokens === undefined) {
    tokens = estimate(text);
    if (knownTokens.size >= MAX_KNOWN_TOKENS) knownTokens.clear();
    knownTokens.set(frame, tokens);
  }
  return { role: "user", parts: [{ type: "text", text, tokens }] };
}

/** Counts what is sent by the same rule as stored counts: one number decides. */
function countTokens(messages: readonly ModelMessage[], estimate: (text: string) => number): number {
  let tokens = 0;
  for (const { role, parts } of messages) {
    // Each result is written as a separate message.
    const results = role === "tool" ? new Set(parts.map((part) => part.toolCallId)).size : 1;
    tokens += Math.max(1, results) * MESSAGE_OVERHEAD_TOKENS;
    for (const part of parts)
      tokens += part.tokens ?? partTokens({ ...part, text: part.text ?? "" }, estimate);
  }
  return tokens;
}
