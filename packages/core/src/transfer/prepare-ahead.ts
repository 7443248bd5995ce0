/**
 * An import that uses two processors: while the engine's thread writes one batch, this thread parses, counts, analyses and compresses the
 * next. Redaction is the engine's own, so with patterns set the engine prepares everything itself.
 */

import { randomBytes } from "node:crypto";

import { arrivalBytes, type Engine } from "../engine.ts";
import { prepareMessage } from "../ingest/prepare.ts";
import { hiddenMask, type Arrival } from "../model/message.ts";
import type { Settings } from "../model/settings.ts";
import type { PreparedMessage } from "../store/store.ts";

import type { ImportTarget } from "./import-target.ts";

/** The engine, which must be behind a thread for this to be of use, as an import sees it. */
export function createPreparingTarget(engine: Engine, settings: Settings): ImportTarget {
  if (settings.redactPatterns.length > 0) return engine;
  const { largeFileThresholdTokens } = settings;
  return {
    prepareAhead: (messages) => messages.map((arrival) => prepareWhole(arrival, largeFileThresholdTokens)),
    ingest: (request) => engine.ingest(request),
    readSession: (request) => engine.readSession(request),
    knownEvents: (request) => engine.knownEvents(request),
    setBranch: (request) => engine.setBranch(request),
  };
}

/** Terms are usually read when the index takes the message in; here is the thread that has the time. */
function prepareWhole(arrival: Arrival, largeFileThresholdTokens: number): PreparedMessage {
  const prepared = prepareMessage(arrivalBytes(arrival), {
    hidden: hiddenMask(arrival.hidden ?? []),
    createdAt: arrival.createdAt ?? Date.now(),
    largeFileThresholdTokens,
    random: takeRandom,
  });
  const terms = prepared.readTerms();
  return { ...prepared, readTerms: () => terms };
}

const RANDOM_BYTES = 16_384;
let pool = new Uint8Array();

/** Sixteen bytes at a time from the system cost more than hashing the message they salt. */
function takeRandom(size: number): Uint8Array {
  if (pool.byteLength < size) pool = randomBytes(Math.max(size, RANDOM_BYTES));
  const taken = pool.subarray(0, size);
  pool = pool.subarray(size);
  return taken;
}
