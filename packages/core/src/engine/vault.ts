/** Opens the values that redaction sealed, and seals them again with another key. */
import { createVault, openValues, openVault, parseKey } from "../ingest/vault.ts";
import type { Vault } from "../ingest/vault.ts";
import { EngineError } from "../model/errors.ts";
import { formatMessageId } from "../model/ids.ts";
import type { Settings } from "../settings/settings.ts";
import type { RedactedMessage } from "../store/store.ts";
import { refuseWithoutKey } from "./redaction.ts";
import type { EngineState } from "./state.ts";

export interface UnsealRequest {
  readonly messageId: number;
  readonly owner?: string;
  /** Which placeholder of the message, from 0; all of them when absent. */
  readonly ordinal?: number;
}

export interface UnsealedValue {
  readonly ordinal: number;
  /** As it is in the message: `[redacted:keys]`. */
  readonly placeholder: string;
  readonly value: string;
}

export interface RotateVaultRequest {
  readonly newKey: string;
}

export interface RotateVaultResult {
  readonly messages: number;
  readonly values: number;
  readonly keyId: string;
}

const PAGE = 256;

export async function unseal(
  { store, clock, settings }: EngineState,
  { messageId, owner, ordinal }: UnsealRequest,
): Promise<UnsealedValue[]> {
  const vault = needVault(settings);
  const message = await store.readRedacted(messageId, owner);
  const name = formatMessageId(messageId);
  if (message === null || message.values.length === 0)
    throw new EngineError("not_found", `cannot unseal ${name}: the vault has no values of it`, {
      hint: "values that were dropped, or redacted without a key, are gone",
    });
  const wanted = message.values.filter((value) => ordinal === undefined || value.ordinal === ordinal);
  if (wanted.length === 0) {
    const last = message.values.length - 1;
    throw new EngineError("not_found", `cannot unseal value ${ordinal} of ${name}: it has 0 to ${last}`);
  }
  const opened = openAll(vault, { ...message, values: wanted });
  await store.recordUnsealing(
    messageId,
    wanted.map((value) => value.ordinal),
    clock.now(),
  );
  return opened;
}

export async function rotateVault(
  { store, clock, settings }: EngineState,
  { newKey }: RotateVaultRequest,
): Promise<RotateVaultResult> {
  const before = needVault(settings);
  const after = createVault(parseKey(newKey, "that is new"));
  let [messages, values] = [0, 0];
  for (let last = 0; ;) {
    const page = await store.listSealed({ after: last, limit: PAGE });
    for (const messageId of page) {
      const message = await store.readRedacted(messageId);
      if (message === null || message.values.every(({ keyId }) => keyId === after.keyId)) continue;
      const opened = openValues(before, message);
      if (opened === null) throw refuseToOpen(message, before);
      const { commitment } = message;
      const sealed = opened.map(({ original, at, length }, ordinal) =>
        after.seal(original, { commitment, ordinal, at, length }, (size) => clock.random(size)),
      );
      await store.replaceSealed(messageId, sealed);
      messages += 1;
      values += sealed.length;
    }
    const end = page.at(-1);
    if (end === undefined || page.length < PAGE) break;
    last = end;
  }
  return { messages, values, keyId: after.keyId };
}

function needVault(settings: Settings): Vault {
  const vault = openVault(settings);
  if (vault === null) throw refuseWithoutKey("open");
  return vault;
}

function openAll(vault: Vault, message: RedactedMessage): UnsealedValue[] {
  const opened = openValues(vault, message);
  if (opened === null) throw refuseToOpen(message, vault);
  return message.values.map(({ ordinal, at, length }, index) => {
    const placeholder = Buffer.from(message.bytes.subarray(at, at + length)).toString("utf8");
    const original = Buffer.from(opened[index]?.original ?? []);
    return { ordinal, placeholder, value: readValue(original, message.bytes) };
  });
}

/** The unescaped value: a JSON line contains it JSON-encoded. */
function readValue(original: Buffer, bytes: Uint8Array): string {
  const text = original.toString("utf8");
  const isInJson = /^\s*[[{"]/u.test(Buffer.from(bytes.subarray(0, 64)).toString("latin1"));
  if (!isInJson) return text;
  try {
    return String(JSON.parse(`"${text}"`));
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

function refuseToOpen(message: RedactedMessage, vault: Vault): EngineError {
  const name = formatMessageId(message.messageId);
  const isOther = message.values.some(({ keyId }) => keyId !== vault.keyId);
  return isOther
    ? new EngineError("config", `cannot unseal ${name}: it was sealed with another key`, {
        hint: `it needs the key ${message.values[0]?.keyId}, this one is ${vault.keyId}`,
      })
    : new EngineError("database_corrupt", `cannot unseal ${name}: the sealed value was changed`, {
        hint: "restore it from a backup",
      });
}
