/**
 * Whether an arriving event is already stored. It is identified by its id; the bytes only show whether it has changed since.
 *
 * Invariant: an event that the write itself has stored is known from then on.
 */
import { commit, commitRedacted } from "../model/chain.ts";
import type { AppendEvent } from "../store/rows.ts";
import type { Version } from "./reads.ts";

/** The kinds of event ids in `event_ids`. */
export const EVENT_KIND = { entry: 0, provisional: 1, alias: 2 } as const;

/** It arrived before, with other bytes. */
export interface Changed {
  readonly kind: "changed";
  readonly first: Version;
  /** In the order of arrival, the first included. */
  readonly versions: readonly Version[];
}

/** How an arriving event relates to what is stored. */
export type Relation =
  | { readonly kind: "new" }
  | { readonly kind: "known"; readonly version: Version; readonly outcome: "known" | "forgotten" }
  | Changed;

export class KnownEvents {
  readonly #versions: Map<string, Version[]>;

  constructor(versions: readonly Version[]) {
    this.#versions = Map.groupBy(versions, (version) => nameEvent(version.event_id));
    // Two ids of one message share its versions: what arrives under one of them is known under the other.
    const byFirst = new Map<number | undefined, Version[]>();
    for (const [name, list] of this.#versions) {
      const shared = byFirst.get(list[0]?.message_id) ?? list;
      byFirst.set(list[0]?.message_id, shared);
      this.#versions.set(name, shared);
    }
  }

  relate(event: AppendEvent): Relation {
    const versions = this.#versions.get(nameEvent(event.eventId));
    const first = versions?.[0];
    if (!versions || !first) return { kind: "new" };
    if (first.forgotten_at !== null) return { kind: "known", version: first, outcome: "forgotten" };
    const equal = versions.find((version) => isSameArrival(version, event));
    return equal ? { kind: "known", version: equal, outcome: "known" } : { kind: "changed", first, versions };
  }

  note(version: Version): void {
    const name = nameEvent(version.event_id);
    const versions = this.#versions.get(name);
    if (versions) versions.push(version);
    else this.#versions.set(name, [version]);
  }
}

/** As a database stores it: all lone surrogates are the same there. */
export const nameEvent = (eventId: string): string => eventId.toWellFormed();

/** Under the key it was stored with, a redacted message is compared with what arrived; otherwise with what is stored of it. */
function isSameArrival(version: Version, event: AppendEvent): boolean {
  const { salt, commitment, keyed } = version;
  if (keyed === null) {
    const forms = event.original === undefined ? [event.arrival] : [event.arrival, event.original];
    return forms.some((bytes) => commit(salt, bytes).equals(commitment));
  }
  if (event.keyed?.keyId === version.key_id) return Buffer.compare(event.keyed.commit(salt), keyed) === 0;
  return commitRedacted(commit(salt, event.arrival), keyed, version.sealed ?? 0).equals(commitment);
}
