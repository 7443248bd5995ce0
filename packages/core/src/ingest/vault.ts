/**
 * What happens to redacted values. With a key they can be sealed (AES-256-GCM, a fresh nonce each), and a redacted message is committed to
 * what arrived by a keyed hash, so that nobody can guess a short secret from the archive. Without a key, values are dropped.
 *
 * Invariants: a sealed value opens only for the message and the placeholder it was sealed for; the key is read from a private file or the
 * environment, is never stored, and never part of a setting, an error or an event.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { commit, commitRedacted } from "../model/chain.ts";
import { EngineError } from "../model/errors.ts";
import type { Settings } from "../settings/settings.ts";
import type { PreparedRedaction, RedactedMessage, SealedValue } from "../store/redaction.ts";
import { restoreArrival } from "./redact.ts";
import type { RedactedValue } from "./redact.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Environment variable for the key, instead of a file. */
export const KEY_VARIABLE = "LCM_REDACTION_KEY";

export interface Vault {
  /** Identifies the key without revealing anything about it. */
  readonly keyId: string;
  commit(salt: Uint8Array, arrival: Uint8Array): Buffer;
  seal(value: Uint8Array, range: SealedRange, random: (size: number) => Uint8Array): SealedValue;
  /** Null when the value was sealed with another key, for another place, or was changed. */
  open(value: SealedValue, range: SealedRange): Buffer | null;
}

/** What a sealed value is bound to. The commitment stays with a message when it is moved; its number does not. */
export interface SealedRange {
  readonly commitment: Uint8Array;
  readonly ordinal: number;
  readonly at: number;
  readonly length: number;
}

export function createVault(key: Uint8Array): Vault {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync("sha256", key, "lossless-claw", purpose, KEY_BYTES));
  const [sealing, committing] = [derive("seal"), derive("commit")];
  const keyId = derive("name").toString("hex", 0, 8);
  return {
    keyId,
    commit: (salt, arrival) => createHmac("sha256", committing).update(salt).update(arrival).digest(),
    seal(value, range, random) {
      const nonce = random(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", sealing, nonce).setAAD(renderRange(range));
      const sealed = Buffer.concat([cipher.update(value), cipher.final(), cipher.getAuthTag()]);
      const { ordinal, at, length } = range;
      return { ordinal, at, length, keyId, nonce, sealed };
    },
    open(value, range) {
      if (value.keyId !== keyId || value.sealed.byteLength < TAG_BYTES) return null;
      const end = value.sealed.byteLength - TAG_BYTES;
      try {
        const decipher = createDecipheriv("aes-256-gcm", sealing, value.nonce)
          .setAAD(renderRange(range))
          .setAuthTag(value.sealed.subarray(end));
        return Buffer.concat([decipher.update(value.sealed.subarray(0, end)), decipher.final()]);
      } catch {
        // The only possible error here is a wrong sealed value: the tag does not match.
        return null;
      }
    },
  };
}

function renderRange({ commitment, ordinal, at, length }: SealedRange): Buffer {
  return Buffer.concat([Buffer.from(JSON.stringify(["sealed", ordinal, at, length])), commitment]);
}

/** The vault configured in the settings; null if there is none. Throws if a key is configured and cannot be used. */
export function openVault({ redactionKeyFile }: Pick<Settings, "redactionKeyFile">): Vault | null {
  const text = redactionKeyFile === "" ? process.env[KEY_VARIABLE] : readKeyFile(redactionKeyFile);
  if (text === undefined || text.trim() === "") return null;
  return createVault(parseKey(text, redactionKeyFile === "" ? KEY_VARIABLE : redactionKeyFile));
}

function readKeyFile(path: string): string {
  try {
    const { mode } = statSync(path);
    if (process.platform !== "win32" && (mode & 0o077) !== 0)
      throw refuseKey(path, "others can read the file", `chmod 600 ${path}`);
    const text = readFileSync(path, "utf8");
    if (text.trim() === "") throw refuseKey(path, "the file is empty");
    return text;
  } catch (error) {
    if (error instanceof EngineError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw refuseKey(path, code === "ENOENT" ? "there is no such file" : `it cannot be read (${code})`);
  }
}

/** 32 bytes as 64 hexadecimal digits or as base64. */
export function parseKey(text: string, where: string): Uint8Array {
  const trimmed = text.trim();
  const isHex = /^[0-9a-f]{64}$/iu.test(trimmed);
  const key = Buffer.from(trimmed, isHex ? "hex" : "base64");
  const isBase64 = /^[A-Za-z0-9+/]{43}=?$/u.test(trimmed);
  if ((isHex || isBase64) && key.byteLength === KEY_BYTES) return key;
  throw refuseKey(where, "it must be 32 bytes, as 64 hexadecimal digits or as base64");
}

function refuseKey(where: string, reason: string, hint?: string): EngineError {
  return new EngineError("config", `cannot use the redaction key ${where}: ${reason}`, {
    step: hint === undefined ? { kind: "make_vault_key" } : undefined,
    hint,
  });
}

/** Commitment and vault entries of a message that was redacted. */
export function commitMessage(request: {
  readonly stored: Uint8Array;
  readonly salt: Uint8Array;
  readonly original: Uint8Array;
  readonly values: readonly RedactedValue[];
  readonly vault: Vault | null;
  readonly keepsValues: boolean;
  readonly random: (size: number) => Uint8Array;
}): { commitment: Buffer; redaction: PreparedRedaction | null } {
  const { stored, salt, original, values, vault, keepsValues, random } = request;
  const plain = commit(salt, stored);
  if (vault === null || values.length === 0) return { commitment: plain, redaction: null };
  const keyed = vault.commit(salt, original);
  const commitment = commitRedacted(plain, keyed, keepsValues ? values.length : 0);
  if (!keepsValues) return { commitment, redaction: { keyId: vault.keyId, keyed, values: [] } };
  const sealed = values.map((value, ordinal) =>
    vault.seal(value.original, { commitment, ordinal, at: value.at, length: value.length }, random),
  );
  return { commitment, redaction: { keyId: vault.keyId, keyed, values: sealed } };
}

/** The opened values of a message; null if one cannot be opened. */
export function openValues(vault: Vault, message: RedactedMessage): RedactedValue[] | null {
  const { commitment } = message;
  const opened: RedactedValue[] = [];
  for (const value of message.values) {
    const original = vault.open(value, { commitment, ...value });
    if (original === null) return null;
    opened.push({ at: value.at, length: value.length, original });
  }
  return opened;
}

/**
 * Proves with the key that a message with its values put back is what arrived. Undefined: unknown, because the values were dropped or
 * another key was used. Null: proven. Otherwise: what is wrong.
 */
export function proveArrival(vault: Vault, message: RedactedMessage): string | null | undefined {
  if (message.values.length === 0) return undefined;
  if (message.values.some(({ keyId }) => keyId !== vault.keyId)) return undefined;
  const opened = openValues(vault, message);
  if (opened === null) return "a sealed value does not open: it was changed, or belongs to another message";
  if (message.keyId !== vault.keyId) return undefined;
  const arrival = restoreArrival(message.bytes, opened);
  return vault.commit(message.salt, arrival).equals(message.keyed)
    ? null
    : "with its sealed values put back it is not what arrived";
}
