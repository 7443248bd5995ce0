/**
 * Recall as the engine offers it: search, describe, expand, ask and grants. Resolves who asks and what they may see, then hands over to
 * `retrieve/`; decides nothing about ranking or rendering itself.
 */
import type { Clock } from "./model/events.ts";
import type { Settings } from "./model/settings.ts";
import { grepFullText } from "./retrieve/grep.ts";
import type { GrepAnswer, GrepRequest } from "./retrieve/grep.ts";
import { resolveReach } from "./retrieve/scope.ts";
import type { Reach, ScopeRequest } from "./retrieve/scope.ts";
import type { Store } from "./store/store.ts";

export class Recall {
  #store: Store;
  #settings: Settings;
  #clock: Clock;

  constructor(options: { store: Store; settings: Settings; clock: Clock }) {
    this.#store = options.store;
    this.#settings = options.settings;
    this.#clock = options.clock;
  }

  async grep(request: GrepRequest): Promise<GrepAnswer> {
    const reach = await this.#reach(request);
    return grepFullText(this.#store, request, reach, { now: this.#clock.now() });
  }

  #reach(request: ScopeRequest): Promise<Reach> {
    return resolveReach({ store: this.#store, settings: this.#settings, now: this.#clock.now() }, request);
  }
}
