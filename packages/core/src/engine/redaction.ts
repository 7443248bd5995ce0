/**
 * Redaction as the engine does it: which bytes of an arrival are stored, and what happens to the rest. The key is read when first needed; a
 * key that is configured but unusable is reported before anything is stored.
 */
import { compileRedaction } from "../ingest/redact.ts";
import type { Redact } from "../ingest/redact.ts";
import type { RedactedArrival } from "../ingest/prepare.ts";
import { KEY_VARIABLE, openVault, proveArrival } from "../ingest/vault.ts";
import type { Vault } from "../ingest/vault.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import type { OriginUpdate } from "../model/origin.ts";
import type { Settings } from "../settings/settings.ts";
import type { AppendEvent, ProveArrival, Store } from "../store/store.ts";

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

export class Redaction {
  #parts: RedactionParts;
  #redact: Redact | null;
  #vault: Vault | null | undefined;
  /** The outcome of opening the vault when no value had to be sealed, so that it is not repeated for every message. */
  #reading: { readonly vault: Vault | null } | null = null;

  constructor(parts: RedactionParts) {
    this.#parts = parts;
    this.#redact = compileRedaction(parts.settings.redactPatterns, (names) => {
      const message = `${names.join(", ")} of redactPatterns reached the time limit in a message: the texts it could not check were redacted whole; simplify the pattern`;
      parts.emit({ kind: "degraded", part: "redaction", message });
    });
  }

  /** Fails before the first message if values must be sealed and cannot be. */
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

  /** Redacts a text that is not a message, such as a summary in an import. Matches are not sealed. */
  applyToText(text: string): string {
    if (this.#redact === null) return text;
    return Buffer.from(this.#redact(Buffer.from(text)).bytes).toString("utf8");
  }

  /** A title repeats parts of the conversation. */
  applyToOrigin(origin: OriginUpdate): OriginUpdate {
    const told = Object.entries(origin).filter(([, text]) => text !== undefined);
    return Object.fromEntries(told.map(([field, text]) => [field, this.applyToText(text ?? "")]));
  }

  /** An event may already be stored redacted, whatever the patterns say now. */
  #compareBy(original: Uint8Array): Pick<AppendEvent, "keyed"> {
    const vault = this.#vault ?? (this.#reading ??= { vault: this.#openForReading() }).vault;
    if (vault === null) return {};
    return { keyed: { keyId: vault.keyId, commit: (salt) => vault.commit(salt, original) } };
  }

  /** If the key cannot be read: retried at the next message whose values must be sealed, given up where they need not be. */
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

  /** Undefined: there is no key, so only commitments without one are proven. */
  prover(): ProveArrival | undefined {
    const vault = this.#openForReading();
    return vault === null ? undefined : (message) => proveArrival(vault, message);
  }

  #openForReading(): Vault | null {
    return this.#vault ?? tryOpen(this.#parts.settings)[0];
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

export function refuseWithoutKey(verb: "store" | "open"): EngineError {
  return new EngineError("config", `cannot ${verb} redacted values: there is no redaction key`, {
    hint: `set redactionKeyFile or ${KEY_VARIABLE}${verb === "store" ? ", or redactedValues to drop" : ""}`,
  });
}
