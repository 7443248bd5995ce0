/**
 * An import that uses two processors: while the engine's thread writes one batch, this thread parses, counts, analyses and compresses the
 * next. Redaction is the engine's own, so with patterns set the engine prepares everything itself.
 */

import { arrivalBytes } from "../engine/ingest.ts";
import { prepareMessage } from "../ingest/prepare.ts";
import { PreparedPacker } from "../ingest/prepared-batch.ts";
import { hiddenMask } from "../model/message.ts";
import { drawRandom } from "../model/random.ts";
import type { Settings } from "../model/settings.ts";

import type { PrepareAhead } from "./import-report.ts";

/** Prepares batches on the calling thread; undefined where the engine must do it. Of use only with an engine behind a thread. */
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
          largeFileThresholdTokens,
          random: drawRandom,
          parsed,
        };
        packer.add(prepareMessage(arrivalBytes(arrival), options));
      },
      finish(arrivals) {
        idle.push(packer);
        return packer.finish(arrivals);
      },
    };
  };
}
