/**
 * Changes the archive from the page, in two steps: a preview, which returns a confirmation, and the action, which requires one. A confirmation
 * is valid once, for a few minutes, and for what was shown: if the archive has changed so that the action would differ, it is refused. One
 * action at a time.
 */
import { hash, randomBytes } from "node:crypto";
import { EngineError, isSummaryId } from "@lossless/core";
import { prepare } from "./action-kinds.ts";
import type { ActionOptions, Prepared } from "./action-kinds.ts";
import type { ActionPreview, ActionResult, ActionRequest } from "./api-types.ts";

interface Promised {
  readonly request: ActionRequest;
  readonly fingerprint: string;
  readonly until: number;
}

const GOOD_FOR_MS = 5 * 60_000;
const KEPT = 50;
const SHOWN_LINES = 200;
const MAX_MESSAGES = 1_000;
const MAX_TEXT = 2_000;

export class Actions {
  readonly #options: ActionOptions;
  readonly #promised = new Map<string, Promised>();
  readonly #now: () => number;
  #isBusy = false;

  constructor(options: ActionOptions, now: () => number = Date.now) {
    this.#options = options;
    this.#now = now;
  }

  async preview(body: unknown): Promise<ActionPreview> {
    const request = parseRequest(body);
    const prepared = await prepare(this.#options, request);
    const confirmation = prepared.isEmpty ? null : randomBytes(18).toString("base64url");
    if (confirmation !== null) this.#promise(confirmation, request, prepared);
    return { ...prepared.preview, lines: shorten(prepared.preview.lines), confirmation };
  }

  async apply(body: unknown, signal: AbortSignal): Promise<ActionResult> {
    const confirmation = asRecord(body)["confirmation"];
    const promised = typeof confirmation === "string" ? this.#promised.get(confirmation) : undefined;
    if (promised === undefined || promised.until < this.#now())
      throw new EngineError("denied", "cannot do it: it was not confirmed, or the confirmation has expired", {
        hint: "open the preview again",
      });
    if (this.#isBusy) throw new EngineError("database_busy", "cannot do it: another action is running");
    this.#promised.delete(confirmation as string);
    this.#isBusy = true;
    try {
      const prepared = await prepare(this.#options, promised.request);
      if (fingerprintOf(prepared) !== promised.fingerprint)
        throw new EngineError("denied", "cannot do it: the archive has changed since the preview", {
          hint: "open the preview again",
        });
      const { title, facts = [], lines = [], warning = null, changes = [] } = await prepared.run(signal);
      return { title, facts, lines: shorten(lines), warning, changes: changes.slice(0, SHOWN_LINES) };
    } finally {
      this.#isBusy = false;
    }
  }

  #promise(confirmation: string, request: ActionRequest, prepared: Prepared): void {
    const until = this.#now() + GOOD_FOR_MS;
    this.#promised.set(confirmation, { request, fingerprint: fingerprintOf(prepared), until });
    const [oldest] = this.#promised.keys();
    if (this.#promised.size > KEPT && oldest !== undefined) this.#promised.delete(oldest);
  }
}

const fingerprintOf = ({ boundTo, preview }: Prepared): string =>
  hash("sha256", JSON.stringify([preview.title, boundTo]));

function shorten(lines: readonly string[]): readonly string[] {
  const more = lines.length - SHOWN_LINES;
  return more <= 0 ? lines : [...lines.slice(0, SHOWN_LINES), `and ${more.toLocaleString("en")} more`];
}

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** Parses the request, or throws an error that lists the actions. */
function parseRequest(body: unknown): ActionRequest {
  const request = asRecord(body);
  switch (request["action"]) {
    case "backup":
    case "mend":
      return { action: request["action"] };
    case "fold": {
      const conversationId = readConversationId(request);
      if (conversationId === null)
        throw new EngineError("usage", "cannot fold: name the conversationId of one conversation");
      return { action: "fold", conversationId };
    }
    case "dissolve":
      return { action: "dissolve", summaryId: readSummaryId(request) };
    case "rewrite":
      return {
        action: "rewrite",
        summaryId: readSummaryId(request),
        isSubtree: request["isSubtree"] === true,
      };
    case "repair":
      return { action: "repair", conversationId: readConversationId(request) };
    case "forget":
      return readForget(request);
    default:
      throw new EngineError(
        "usage",
        `cannot do ${JSON.stringify(request["action"] ?? null)}: it must be one of backup, mend, fold, dissolve, rewrite, repair, forget`,
      );
  }
}

function readForget(request: Readonly<Record<string, unknown>>): ActionRequest {
  const reason = readText(request, "reason");
  if (request["messageIds"] === undefined) {
    const pattern = readText(request, "pattern");
    if (pattern.trim() === "")
      throw new EngineError("usage", "cannot forget: name messageIds, or a pattern that they contain");
    return { action: "forget", pattern, conversationId: readConversationId(request), reason };
  }
  const ids: unknown = request["messageIds"];
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= MAX_MESSAGES && ids.every(isId);
  if (!isList)
    throw new EngineError(
      "usage",
      `cannot use messageIds: it must be a list of 1 to ${MAX_MESSAGES} numbers of messages`,
    );
  return { action: "forget", messageIds: ids as number[], reason };
}

const isId = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;

function readSummaryId(request: Readonly<Record<string, unknown>>): string {
  const id = request["summaryId"];
  if (typeof id === "string" && isSummaryId(id)) return id;
  throw new EngineError(
    "usage",
    "cannot use summaryId: it must be the id of a summary, such as sum_0123456789abcdef",
  );
}

function readConversationId(request: Readonly<Record<string, unknown>>): number | null {
  const id = request["conversationId"] ?? null;
  if (id === null || isId(id)) return id;
  throw new EngineError(
    "usage",
    "cannot use conversationId: it must be the number of a conversation, or null",
  );
}

function readText(request: Readonly<Record<string, unknown>>, name: string): string {
  const text = request[name] ?? "";
  if (typeof text === "string" && text.length <= MAX_TEXT) return text;
  throw new EngineError("usage", `cannot use ${name}: it must be a text of at most ${MAX_TEXT} characters`);
}
