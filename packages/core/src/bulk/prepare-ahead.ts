/**
 * An import that uses two processors: while the engine's thread writes one batch, this thread parses, counts, analyses and compresses the
 * next. Only the engine redacts, so with patterns set the engine prepares everything itself.
 */

import { prepareMessage } from "../ingest/prepare.ts";
import { PreparedPacker } from "./prepared-batch.ts";
import { hiddenMask } from "../model/message.ts";
import { drawRandom } from "../ingest/random.ts";
import type { JsonObject } from "../text/json-object.ts";
import type { Arrival } from "../model/message.ts";
import type { Settings } from "../settings/settings.ts";
import type { PackedPrepared } from "./prepared-batch.ts";

/** Begins a batch. */
export type PrepareAhead = () => BatchPreparer;

export interface BatchPreparer {
  /** Prepares the next message of the batch; `parsed` is its parsed bytes, if they are a JSON object. */
  add(message: Arrival & { readonly bytes: Uint8Array }, parsed?: JsonObject): void;
  /** The batch; its messages are in `arrivals`, which is transferred with it. */
  finish(arrivals: Uint8Array<ArrayBuffer>): PackedPrepared;
}

/** Prepares batches on the calling thread; undefined if the engine must do it. Useful only with an engine in a thread. */
export function createPreparer(settings: Settings): PrepareAhead | undefined {
  if (settings.redactPatterns.length > 0) return undefined;
  const { largeFileThresholdTokens } = settings;
  /** Those whose batch is finished. */
  const idle: PreparedPacker[] = [];
  return () => {
    const packer = idle.pop() ?? new PreparedPacker();
    return {
      add(arrival, parsed) {
        const options = {
          hidden: hiddenMask(arrival.hidden ?? []),
          createdAt: arrival.createdAt ?? Date.now(),
          isUndated: arrival.isUndated,
          largeFileThresholdTokens,
          random: drawRandom,
          parsed,
        };
        packer.add(prepareMessage(arrival.bytes, options));
      },
      finish(arrivals) {
        idle.push(packer);
        return packer.finish(arrivals);
      },
    };
  };
}
