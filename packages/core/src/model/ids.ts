/** Public identifiers: `msg_<n>`, `sum_` + 16 hex, `file_` + 16 hex, and ULIDs for events without a name. */
import { hash, randomBytes } from "node:crypto";

export const formatMessageId = (id: number): string => `msg_${id}`;

/** Reads `msg_12` or `12`; anything else is null. */
export function parseMessageId(text: string): number | null {
  const match = /^(?:msg_)?([1-9]\d{0,15})$/.exec(text.trim());
  return match ? Number(match[1]) : null;
}

export const isSummaryId = (text: string): boolean => /^sum_[0-9a-f]{16}$/.test(text);
export const isFileId = (text: string): boolean => /^file_[0-9a-f]{16}$/.test(text);

/** One call of `lcm import`, over all its files. */
export const makeImportId = (): string => `imp_${randomBytes(8).toString("hex")}`;

/** A large file is identified by its conversation and its content: the same payload twice is one file. */
export function deriveFileId(conversationId: number, contentSha256: string): string {
  return `file_${hash("sha256", `${conversationId}:${contentSha256}`).slice(0, 16)}`;
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The id of a new summary; randomness is a parameter so that a seed replays. */
export function makeSummaryId(random: (size: number) => Uint8Array): string {
  return `sum_${Buffer.from(random(8)).toString("hex")}`;
}

/** A ULID: 48 bits of time, 80 random bits, sortable as text. Time and randomness are parameters so that a seed replays. */
export function makeUlid(nowMs: number, random: (size: number) => Uint8Array = randomBytes): string {
  let time = "";
  let rest = nowMs;
  for (let i = 0; i < 10; i++) {
    time = CROCKFORD.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  let chance = "";
  for (const byte of random(16)) chance += CROCKFORD.charAt(byte % 32);
  return time + chance;
}
