/** The terms of the texts of an archive of maps. Texts are analysed on first use, each once. */
import { decodeTerms } from "@lossless/core/adapter";
import { readTextTerms } from "@lossless/core/ports";
import type { Derive, Row, TextTerms } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { readBytes, readCutPayloads } from "./read.ts";

const split = (terms: Uint8Array): string[] => (terms.byteLength === 0 ? [] : decodeTerms(terms).split(" "));

export class Terms {
  readonly #archive: MemoryArchive;
  readonly #derive: Derive;
  /** Keyed by body: new content under the same number is a different entry. */
  readonly #messages = new WeakMap<Uint8Array, TextTerms>();
  readonly #texts = new Map<string, TextTerms>();

  constructor(archive: MemoryArchive, derive: Derive) {
    this.#archive = archive;
    this.#derive = derive;
  }

  ofMessage(message: Row<"messages">): TextTerms {
    const known = this.#messages.get(message.body);
    if (known) return known;
    const cuts = readCutPayloads(this.#archive, message.message_id);
    const { words, idents } = this.#derive(readBytes(this.#archive, message), cuts).readTerms(null);
    const terms = { words: split(words), idents: split(idents) };
    this.#messages.set(message.body, terms);
    return terms;
  }

  ofText(text: string): TextTerms {
    let terms = this.#texts.get(text);
    if (!terms) this.#texts.set(text, (terms = readTextTerms(text)));
    return terms;
  }
}
