/**
 * An import that uses two processors: while the engine's thread writes one batch, this thread parses, counts, analyses and compresses the
 * next. Redaction is the engine's own, so with patterns set the engine prepares everything itself.
 */

import { arrivalBytes } from "../engine.ts";
import { prepareMessage } from "../ingest/prepare.ts";
import { hiddenMask, type Arrival } from "../model/message.ts";
import { drawRandom } from "../model/random.ts";
import type { Settings } from "../model/settings.ts";
import type { PreparedMessage } from "../store/store.ts";

import type { PrepareAhead } from "./import-report.ts";

/** Prepares batches on the calling thread; undefined where the engine must do it. Of use only with an engine behind a thread. */
export function createPreparer(settings: Settings): PrepareAhead | undefined {
  if (settings.redactPatterns.length > 0) return undefined;
  const { largeFileThresholdTokens } = settings;
  return (messages) => messages.map((arrival) => prepareWhole(arrival, largeFileThresholdTokens));
}

/** Terms are usually read when the index takes the message in; here is the thread that has the time. */
function prepareWhole(arrival: Arrival, largeFileThresholdTokens: number): PreparedMessage {
  const prepared = prepareMessage(arrivalBytes(arrival), {
    hidden: hiddenMask(arrival.hidden ?? []),
    createdAt: arrival.createdAt ?? Date.now(),
    largeFileThresholdTokens,
    random: drawRandom,
  });
  const terms = prepared.readTerms();
  return { ...prepared, readTerms: () => terms };
}
