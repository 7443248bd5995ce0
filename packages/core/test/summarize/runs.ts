/** Runs, scripted models and books for the tests of the summariser. */
import { makeTemporaryFolder } from "@lossless/testkit";
import type { Complete, CompleteRequest, CompleteResult } from "../../src/model/complete.ts";
import type { EngineEvent } from "../../src/model/events.ts";
import type { Settings } from "../../src/settings/settings.ts";
import { resolveSettings } from "../../src/settings/settings-resolve.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";
import type { RunItem, SpendRecord, SummaryRow } from "../../src/store/folding.ts";
import { SqliteStore } from "@lossless/sqlite";
import type { Summarize, SummarizeRequest } from "../../src/summarize/summarize.ts";
import { createSummarizer, type SummarizerOptions } from "../../src/summarize/summarizer.ts";

export const START = Date.UTC(2026, 1, 14, 11, 0);

export function messageItem(index: number, message: unknown, hidden = 0): RunItem {
  const bytes = Buffer.from(JSON.stringify(message));
  return {
    startPosition: index,
    endPosition: index,
    seq: index,
    hidden,
    tokens: estimateTextTokens(bytes.toString()),
    messages: 1,
    createdAt: START + index * 60_000,
    isDated: true,
    messageId: index,
    versionId: index,
    bytes,
    summary: null,
  };
}

export function summaryItem(index: number, content: string): RunItem {
  const summary: SummaryRow = {
    summaryId: `sum_${index.toString(16).padStart(16, "0")}`,
    conversationId: 1,
    kind: "leaf",
    depth: 0,
    state: "cover",
    startPosition: index,
    endPosition: index,
    messages: 8,
    descendantCount: 0,
    tokens: estimateTextTokens(content),
    sourceTokens: 4000,
    earliestAt: START + index * 3_600_000,
    latestAt: START + index * 3_600_000 + 1_800_000,
    content,
    model: "test",
    level: "normal",
    isStale: false,
    isRoot: false,
    createdAt: START,
    previousId: null,
  };
  const { messages, tokens } = summary;
  const at = START + index * 3_600_000;
  const item = {
    startPosition: index,
    endPosition: index,
    seq: index,
    hidden: 0,
    messages,
    tokens,
    createdAt: at,
    isDated: true,
  };
  return { ...item, messageId: null, versionId: null, bytes: null, summary };
}

/** Enough talk for a summary to be shorter than it. */
export function talk(turns = 24): RunItem[] {
  return Array.from({ length: turns }, (_, index) =>
    messageItem(index + 1, {
      role: index % 2 === 0 ? "user" : "assistant",
      content: `Turn ${index}: we looked at the invoices of the northern branch, compared the totals with the ledger of last spring, and agreed to postpone the shipment of the ${index} crates until the customs office replies to Miriam.`,
    }),
  );
}

export const GOOD_SUMMARY =
  "The northern branch's invoices were compared with last spring's ledger. The shipment of crates waits until the customs office replies to Miriam.\nExpand for details about: the totals.";

export function requestFor(run: RunItem[], changes: Partial<SummarizeRequest> = {}): SummarizeRequest {
  return {
    conversationId: 7,
    purpose: "leaf",
    depth: 0,
    run,
    previous: null,
    isStart: true,
    targetTokens: 600,
    sourceTokens: run.reduce((sum, item) => sum + item.tokens, 0),
    signal: new AbortController().signal,
    ...changes,
  };
}

export function settingsFor(config: Record<string, unknown> = {}): Settings {
  return resolveSettings({ env: {}, config: { timezone: "UTC", ...config }, stateDir: "/nowhere" }).settings;
}

export type Step =
  | CompleteResult
  | string
  | ((request: CompleteRequest, signal: AbortSignal) => Promise<CompleteResult>);

export interface ScriptedModel {
  readonly complete: Complete;
  readonly requests: CompleteRequest[];
}

/** Answers with one step after the other; the last one repeats. A string is a text that reports no usage. */
export function scriptModel(...steps: readonly Step[]): ScriptedModel {
  const requests: CompleteRequest[] = [];
  return {
    requests,
    complete: async (request, signal) => {
      const step = steps[Math.min(requests.length, steps.length - 1)] as Step;
      requests.push(request);
      if (typeof step === "function") return step(request, signal);
      return typeof step === "string" ? replyWith(request, step) : step;
    },
  };
}

export function replyWith(request: CompleteRequest, text: string): CompleteResult {
  const model = request.model ?? { provider: "host", model: "chosen" };
  return { kind: "text", text, model, inputTokens: null, outputTokens: null };
}

export function fail(
  failure: Extract<CompleteResult, { kind: "failure" }>["failure"],
  retryAfterMs?: number,
): CompleteResult {
  const message = `scripted ${failure}`;
  return { kind: "failure", failure, message, retryAfterMs };
}

/** Never answers by itself; ends when it is told to. */
export function hang(onAbort: () => void = () => undefined): Step {
  return (_request, signal) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        onAbort();
        resolve(fail("aborted"));
      });
    });
}

export interface Books extends Disposable {
  readonly store: SqliteStore;
  /** Every call in the ledger, as it was recorded. */
  readonly calls: SpendRecord[];
  readonly events: EngineEvent[];
  readonly clock: { now(): number; advance(ms: number): void };
  /** A summariser on these books. */
  summarizer(
    options: Pick<SummarizerOptions, "complete" | "hostModel"> & { config?: Record<string, unknown> },
  ): Summarize;
  /** Closes the database and opens it again, as a restart does. */
  restart(): Promise<void>;
}

export function openBooks(): Books {
  const folder = makeTemporaryFolder();
  const open = (): SqliteStore =>
    new SqliteStore({ path: folder.file("lcm.db"), filesDir: folder.file("files"), create: true });
  let store = open();
  let now = START;
  const events: EngineEvent[] = [];
  const calls: SpendRecord[] = [];
  const clock = {
    now: () => now,
    advance: (ms: number) => {
      now += ms;
    },
  };
  return {
    get store() {
      return store;
    },
    calls,
    events,
    clock,
    summarizer({ config, ...options }) {
      return createSummarizer({
        ...options,
        settings: settingsFor(config),
        clock,
        emit: (event) => events.push(event),
        store: {
          recordSpend: (record) => {
            calls.push(record);
            return store.recordSpend(record);
          },
          countSpendCalls: (since) => store.countSpendCalls(since),
          sumSpend: (request) => store.sumSpend(request),
          readGuards: () => store.readGuards(),
          saveGuard: (guard) => store.saveGuard(guard),
        },
      });
    },
    async restart() {
      await store.close();
      store = open();
    },
    [Symbol.dispose]() {
      void store.close();
      folder[Symbol.dispose]();
    },
  };
}
