/**
 * Recall as the engine offers it: search, describe, expand, ask and grants. Resolves who asks and what they may see, then hands over to
 * `retrieve/`; decides nothing about ranking or rendering itself.
 */
import type { Clock } from "./model/events.ts";
import type { Settings } from "./model/settings.ts";
import { grepFullText } from "./retrieve/grep.ts";
import type { GrepAnswer, GrepRequest } from "./retrieve/grep.ts";
import { grepRegex, readAsWords } from "./retrieve/regex.ts";
import { RegexScanner } from "./retrieve/regex-scanner.ts";
import { resolveReach } from "./retrieve/scope.ts";
import type { Reach, ScopeRequest } from "./retrieve/scope.ts";
import type { Store } from "./store/store.ts";

export class Recall {
  #store: Store;
  #settings: Settings;
  #clock: Clock;
  #scanner = new RegexScanner();

  constructor(options: { store: Store; settings: Settings; clock: Clock }) {
    this.#store = options.store;
    this.#settings = options.settings;
    this.#clock = options.clock;
  }

  async grep(request: GrepRequest): Promise<GrepAnswer> {
    const reach = await this.#reach(request);
    const now = this.#clock.now();
    if (request.scope !== "files" && request.mode === "full_text") return grepFullText(this.#store, request, reach, { now });
    const found = await this.#grepRegex(request, reach);
    const words = readAsWords(request.pattern);
    if (found.total > 0 || found.truncated || request.scope === "files" || words === "") return found;
    const answer = await grepFullText(this.#store, { ...request, pattern: words, mode: "full_text" }, reach, { now });
    const notes = answer.notes.filter((note) => !note.includes('mode "regex"'));
    return { ...answer, notes: ["No text matches the regular expression; this is what full text finds for its words.", ...notes] };
  }

  #grepRegex(request: GrepRequest, reach: Reach): Promise<GrepAnswer> {
    const isFullText = request.mode === "full_text";
    const pattern = isFullText ? escapePattern(request.pattern) : request.pattern;
    return grepRegex(this.#store, this.#scanner, { ...request, pattern }, reach, Date.now());
  }

  async close(): Promise<void> {
    await this.#scanner.close();
  }

  #reach(request: ScopeRequest): Promise<Reach> {
    return resolveReach({ store: this.#store, settings: this.#settings, now: this.#clock.now() }, request);
  }
}

/** Files have no index of words: a full-text pattern is looked for in their lines as it is written. */
const escapePattern = (text: string): string => text.trim().replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
