/**
 * Checks messages: each is rebuilt from what is stored and compared with its commitment, its link of the chain, and every column that
 * depends on its bytes or on other rows. Messages that are forgotten according to the ledger must be gone.
 */
import { chainMessage } from "../model/chain.ts";
import { formatMessageId } from "../model/ids.ts";
import type { ProveArrival, PreparedRedaction } from "../store/redaction.ts";
import type { Derive, PreparedPart } from "../store/rows.ts";
import { equalBytes } from "./equal-bytes.ts";
import { groupBy, readRows } from "./pages.ts";
import { read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { Arrival } from "./reads.ts";
import { checkValues, commitStored, toRedaction } from "./redaction.ts";
import { putTogether, toCutPayloads } from "./restore.ts";
import type { CutPart } from "./restore.ts";
import type { IndexProof } from "./storage-proof.ts";
import type { Row } from "./tables.ts";
import type { Problems } from "./verify-problems.ts";

/** What the checks of messages need, and what they count. */
export interface MessageProof {
  readonly derive: Derive;
  readonly proveArrival: ProveArrival;
  readonly index: IndexProof | null;
  readonly problems: Problems;
  readonly redacted: { messages: number; proven: number };
}

const PART_COLUMNS = [
  "message_id",
  "ordinal",
  "type",
  "at",
  "length",
  "tool_call_id",
  "tool_name",
  "file_id",
  "encoding",
] as const;
const VALUE_COLUMNS = ["message_id", "ordinal", "at", "length", "key_id", "nonce", "sealed"] as const;

type PartRow = Row<"message_parts">;

/** A message with all rows that belong to it. */
export interface WholeMessage {
  readonly message: Arrival;
  readonly parts: readonly PartRow[];
  readonly payloads: readonly CutPart[];
  readonly redaction: PreparedRedaction | null;
}

/** The rows that belong to the messages of a page. */
export function* readWhole(page: readonly Arrival[]): Asking<WholeMessage[]> {
  const ids = page.map((message) => message.message_id);
  const by = { column: "message_id", keys: ids } as const;
  const parts = yield* readRows("message_parts", PART_COLUMNS, { ...by, order: ["message_id", "ordinal"] });
  const files = yield* read.files([...new Set(parts.flatMap((part) => part.file_id ?? []))]);
  const redactions = yield* readRows("redactions", ["message_id", "key_id", "keyed"], by);
  const keys = redactions.map((row) => row.message_id);
  const values = yield* readRows("sealed_values", VALUE_COLUMNS, {
    column: "message_id",
    keys,
    order: ["message_id", "ordinal"],
  });
  const partsOf = groupBy(parts, "message_id");
  const fileOf = new Map(files.map((file) => [file.file_id, file]));
  const redactionOf = new Map(redactions.map((row) => [row.message_id, row]));
  const valuesOf = groupBy(values, "message_id");
  return page.map((message) => {
    const id = message.message_id;
    const own = partsOf.get(id) ?? [];
    const row = redactionOf.get(id);
    return {
      message,
      parts: own,
      payloads: own
        .filter((part) => part.type === "payload")
        .map((part) => ({ ...part, file: fileOf.get(part.file_id ?? "") ?? null })),
      redaction: row ? toRedaction(row, valuesOf.get(id) ?? []) : null,
    };
  });
}

export function* checkMessage(whole: WholeMessage, previous: Uint8Array, proof: MessageProof): Asking<void> {
  const { message } = whole;
  const { problems } = proof;
  const name = formatMessageId(message.message_id);
  checkLink(message, previous, name, problems);
  checkReferences(message, name, problems);
  if (message.forgotten_at !== null) return;
  const bytes = yield* rebuild(whole, name, problems);
  if (bytes === null) return;
  if (!commitStored(message.salt, bytes, whole.redaction).equals(message.commitment)) {
    problems.add("altered", name, `${name} is not what was stored: its bytes do not match their commitment`);
    return;
  }
  if (whole.redaction !== null) checkRedaction(message, bytes, whole.redaction, proof);
  if (message.arrival_bytes !== bytes.byteLength) {
    const said = `arrival_bytes of ${name} is ${message.arrival_bytes}, counted ${bytes.byteLength}`;
    problems.add("derived", name, said);
  }
  const derived = proof.derive(bytes, toCutPayloads(whole.payloads));
  for (const column of ["role", "tokens"] as const)
    if (message[column] !== derived[column])
      problems.add(
        "derived",
        name,
        `${column} of ${name} is ${message[column]}, its bytes say ${derived[column]}`,
      );
  // A time from the caller is not in the bytes; a time in the bytes is the message's own.
  if (message.dated !== 1 && derived.isDated)
    problems.add("derived", name, `dated of ${name} is ${message.dated}, its bytes carry a time`);
  checkParts(whole.parts, derived.parts, name, problems);
  proof.index?.expect(message.message_id, message.conversation_id, derived.readTerms);
}

function checkLink(message: Arrival, previous: Uint8Array, name: string, problems: Problems): void {
  const facts = {
    seq: message.seq,
    sessionId: message.session_id,
    eventId: message.event_id,
    position: message.position,
    createdAt: message.created_at,
    hidden: message.hidden,
    revisesSeq: message.revises_seq ?? 0,
  };
  if (equalBytes(chainMessage(previous, facts, message.commitment), message.chain)) return;
  problems.add(
    "chain",
    name,
    `${name} does not continue the chain: its place, id, time or commitment was changed`,
  );
}

/** An event id names one message, the first of its event, and that one names its last revision. */
function checkReferences(message: Arrival, name: string, problems: Problems): void {
  if (message.event_message !== (message.revises ?? message.message_id))
    problems.add("event_ids", name, `the event id of ${name} is not recorded, or names another message`);
  if (message.newest !== message.last_revision) {
    const said = `newest of ${name} is ${message.newest}, its last revision is ${message.last_revision}`;
    problems.add("derived", name, said);
  }
  if (message.revises !== null && message.hidden_now !== message.hidden) {
    const said = `hidden_now of the revision ${name} is ${message.hidden_now}, it arrived with ${message.hidden}`;
    problems.add("derived", name, said);
  }
}

function* rebuild(
  { message, payloads }: WholeMessage,
  name: string,
  problems: Problems,
): Asking<Uint8Array | null> {
  try {
    const contents: (Uint8Array | null)[] = [];
    for (const { file } of payloads)
      contents.push(file === null ? null : yield* read.content(file.storage_path));
    return putTogether(message, payloads, contents);
  } catch (error) {
    problems.add("unreadable", name, `${name} cannot be rebuilt: ${(error as Error).message}`);
    return null;
  }
}

/** Without the key: every placeholder has its entry. With it: the message with its values put back is what arrived. */
function checkRedaction(
  { message_id: messageId, salt, commitment }: Arrival,
  bytes: Uint8Array,
  redaction: PreparedRedaction,
  { problems, redacted, proveArrival }: MessageProof,
): void {
  const name = formatMessageId(messageId);
  const isProven = proveArrival({ ...redaction, messageId, bytes, salt, commitment });
  const problem = checkValues(bytes, redaction) ?? isProven;
  redacted.messages += 1;
  if (isProven === null) redacted.proven += 1;
  if (typeof problem === "string") problems.add("sealed", name, `${name} was redacted: ${problem}`);
}

function checkParts(
  stored: readonly PartRow[],
  derived: readonly PreparedPart[],
  name: string,
  problems: Problems,
): void {
  const isSame =
    stored.length >= derived.length &&
    stored.every((part, ordinal) => part.ordinal === ordinal && isPart(part, derived[ordinal]));
  if (!isSame) problems.add("parts", name, `the parts recorded for ${name} are not those of its bytes`);
}

function isPart(part: PartRow, wanted: PreparedPart | undefined): boolean {
  // Payloads come after the blocks; rebuilding the bytes shows whether they are correct.
  if (!wanted) return part.type === "payload" && part.tool_call_id === null && part.tool_name === null;
  return (
    part.type === wanted.type &&
    part.file_id === null &&
    part.encoding === null &&
    part.at === wanted.at &&
    part.length === wanted.length &&
    part.tool_call_id === (wanted.toolCallId ?? null) &&
    part.tool_name === (wanted.toolName ?? null)
  );
}

const NOTHING = new Uint8Array();

/** A message is erased exactly when a record says so, and then nothing of it is left. */
export function checkForgotten(
  { message, parts, redaction }: WholeMessage,
  recordedAt: number | null,
  problems: Problems,
): void {
  const name = formatMessageId(message.message_id);
  if (message.forgotten_at !== recordedAt) {
    const text =
      recordedAt === null
        ? `${name} is marked as forgotten, but no record says so`
        : `the ledger says that ${name} was forgotten, the message does not`;
    problems.add("forgotten", name, text);
    return;
  }
  if (recordedAt === null) return;
  const isEmpty =
    equalBytes(NOTHING, message.body) && equalBytes(NOTHING, message.salt) && message.encoding === 0;
  if (!isEmpty || parts.length > 0 || redaction !== null)
    problems.add("forgotten", name, `${name} was forgotten, but something of it is left`);
}
