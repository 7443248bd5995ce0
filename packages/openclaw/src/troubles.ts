/** What does not work right now: noted for `status`, and logged when it begins and when it ends, not at every turn. */

import type { PluginLogger } from "./host.ts";
import type { Notes } from "./notes.ts";

export class Troubles {
  #notes: Notes;
  #logger: PluginLogger;

  constructor(notes: Notes, logger: PluginLogger) {
    this.#notes = notes;
    this.#logger = logger;
  }

  begin(part: string, error: unknown, remedy?: string): void {
    if (this.#notes.fail(part, error, remedy)) this.#logger.warn(`${part}: ${describeError(error)}`);
  }

  end(part: string): void {
    if (this.#notes.recover(part)) this.#logger.info(`${part}: works again`);
  }
}

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
