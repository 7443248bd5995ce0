/**
 * Redaction as the engine does it: which bytes of an arrival are stored, what becomes of the rest, and opening what was sealed. The key is
 * read when it is first needed, and a key that is named but cannot be used is told before anything is stored.
 */
import { compileRedaction } from "../ingest/redact.ts";
import type { Redact } from "../ingest/redact.ts";
import type { RedactedArrival } from "../ingest/prepare.ts";
import { createVault, KEY_VARIABLE, openValues, openVault, parseKey, proveArrival } from "../ingest/vault.ts";
import type { Vault } from "../ingest/vault.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import { formatMessageId } from "../model/ids.ts";
import type { Settings } from "../model/settings.ts";
import type { AppendEvent, ProveArrival, RedactedMessage, Store } from "../store/store.ts";

export interface UnsealRequest {
  readonly messageId: number;
  readonly owner?: string;
  /** Which placeholder of the message, from 0; all of them when absent. */
  readonly ordinal?: number;
}

export interface UnsealedValue {
  readonly ordinal: number;
  /** As it stands in the message: `[redacted:keys]`. */
  readonly placeholder: string;
  readonly value: string;
}

/** What the engine offers around the vault. */
export interface VaultEngine {
  /** Opens what was sealed of one message. Each opening is a record in the ledger. */
  unseal(request: UnsealRequest): Promise<UnsealedValue[]>;
  /** Seals every value anew with another key. Keyed commitments keep the key they were made with. */
  rotateVault(request: {
    readonly newKey: string;
  }): Promise<{ messages: number; values: number; keyId: string }>;
}

export interface RedactionParts {
  readonly store: Store;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly emit: EventSink;
}

/** What redaction adds to an event. */
export interface RedactedEvent extends Pick<AppendEvent, "arrival" | "original" | "keyed"> {
  readonly redacted?: RedactedArrival;
}

const PAGE = 256;

export class Redaction {
  #parts: RedactionParts;
  #redact: Redact | null;
  #vault: Vault | null | undefined;
  /** What was found when no value had to be sealed, so that it is not looked for at every message. */
  #reading: { readonly vault: Vault | null } | null = null;

  constructor(parts: RedactionParts) {
    this.#parts = parts;
    this.#redact = compileRedaction(parts.settings.redactPatterns, (names) => {
      const message = `${names.join(", ")} of redactPatterns reached the time limit in a message: the texts it could not check were redacted whole; simplify the pattern`;
      parts.emit({ kind: "degraded", part: "redaction", message });
    });
  }

  /** Refuses to go on where values have to be sealed and cannot be, before the first message. */
  check(): void {
    if (this.#redact !== null) this.#openForStoring();
  }

  apply(original: Uint8Array): RedactedEvent {
    if (this.#redact === null) return { arrival: original, ...this.#compareBy(original) };
    const vault = this.#openForStoring();
    const { bytes, values } = this.#redact(original);
    if (values.length === 0) return { arrival: original, ...this.#compareBy(original) };
    const keepsValues = this.#parts.settings.redactedValues !== "drop";
    return {
      arrival: bytes,
      original,
      ...this.#compareBy(original),
      redacted: { original, values, vault, keepsValues },
    };
  }

  /** A text that is no message, such as a summary that comes with an import: what matches is gone from it. */
  applyToText(text: string): string {
    if (this.#redact === null) return text;
    return Buffer.from(this.#redact(Buffer.from(text)).bytes).toString("utf8");
  }

  /** An event may have been stored while it was redacted, whatever the patterns say now. */
  #compareBy(original: Uint8Array): Pick<AppendEvent, "keyed"> {
    const vault = this.#vault ?? (this.#reading ??= { vault: this.#openForReading() }).vault;
    if (vault === null) return {};
    return { keyed: { keyId: vault.keyId, commit: (salt) => vault.commit(salt, original) } };
  }

  /** A key that cannot be read is looked for again at the next message where values must be sealed, and given up where they need not. */
  #openForStoring(): Vault | null {
    const { settings, emit } = this.#parts;
    if (settings.redactedValues === "seal") {
      this.#vault ??= openVault(settings);
      if (this.#vault === null) throw refuseWithoutKey("store");
      return this.#vault;
    }
    if (this.#vault !== undefined) return this.#vault;
    const [vault, reason] = tryOpen(settings);
    this.#vault = vault;
    if (vault === null && (reason !== null || settings.redactedValues === "seal-or-drop")) {
      const message = `redacted values are dropped: ${reason ?? "there is no redaction key"}`;
      emit({ kind: "degraded", part: "vault", message });
    }
    return vault;
  }

  /** Undefined: no key, so that only what needs none is proven. */
  prover(): ProveArrival | undefined {
    const vault = this.#openForReading();
    return vault === null ? undefined : (message) => proveArrival(vault, message);
  }

  #openForReading(): Vault | null {
    return this.#vault ?? tryOpen(this.#parts.settings)[0];
  }

  #needVault(): Vault {
    const vault = openVault(this.#parts.settings);
    if (vault === null) throw refuseWithoutKey("open");
    return vault;
  }

  async unseal({ messageId, owner, ordinal }: UnsealRequest): Promise<UnsealedValue[]> {
    const { store, clock } = this.#parts;
    const vault = this.#needVault();
    const message = await store.readRedacted(messageId, owner);
    const name = formatMessageId(messageId);
    if (message === null || message.values.length === 0)
      throw new EngineError("not_found", `cannot unseal ${name}: the vault has nothing of it`, {
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

  async rotate({ newKey }: { newKey: string }): Promise<{ messages: number; values: number; keyId: string }> {
    const { store, clock } = this.#parts;
    const before = this.#needVault();
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
}

/** The vault, or why there is none. */
function tryOpen(settings: Settings): [vault: Vault | null, reason: string | null] {
  try {
    return [openVault(settings), null];
  } catch (error) {
    if (error instanceof EngineError) return [null, error.message];
    throw error;
  }
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

/** The value as it was meant: in a JSON line it stood as JSON writes it. */
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
        hint: `it wants the key ${message.values[0]?.keyId}, this one is ${vault.keyId}`,
      })
    : new EngineError("database_corrupt", `cannot unseal ${name}: what is sealed was changed`, {
        hint: "restore it from a backup",
      });
}

function refuseWithoutKey(verb: "store" | "open"): EngineError {
  return new EngineError("config", `cannot ${verb} redacted values: there is no redaction key`, {
    hint: `set redactionKeyFile or ${KEY_VARIABLE}${verb === "store" ? ", or redactedValues to drop" : ""}`,
  });
}
