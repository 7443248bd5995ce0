/** Current failures: recorded for `status`, and logged when they begin and end, not at every turn. */

import type { PluginLogger } from "./host.ts";
import type { ProcessMemory } from "./process-memory.ts";

export class Outages {
  #memory: ProcessMemory;
  #logger: PluginLogger;

  constructor(memory: ProcessMemory, logger: PluginLogger) {
    this.#memory = memory;
    this.#logger = logger;
  }

  begin(part: string, error: unknown, remedy?: string): void {
    if (this.#memory.fail(part, error, remedy)) this.#logger.warn(`${part}: ${describeError(error)}`);
  }

  end(part: string): void {
    if (this.#memory.recover(part)) this.#logger.info(`${part}: works again`);
  }
}

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
