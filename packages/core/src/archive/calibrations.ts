/** What a batch shows about how models count tokens: each model's factor is updated from its messages in order, and written once. */
import { calibrate, UNCALIBRATED } from "../text/tokens.ts";
import type { Calibration } from "../text/tokens.ts";
import type { PreparedMessage } from "../store/rows.ts";
import type { RowWriter } from "./changes.ts";
import type { CalibrationRow } from "./reads.ts";

/** A well-known model is only updated occasionally: the factor hardly moves, and every change is a page to write. */
const WELL_KNOWN_SAMPLES = 64;
const LEARN_EVERY = 8;

type Sample = NonNullable<PreparedMessage["calibration"]>;

export class Calibrations {
  readonly #stored: ReadonlyMap<string, Calibration>;
  readonly #busy: ReadonlySet<string>;
  readonly #changed = new Map<string, Calibration>();

  constructor(rows: readonly CalibrationRow[]) {
    this.#stored = new Map(rows.map((row) => [row.model, row]));
    this.#busy = new Set(rows.filter(({ isBusy }) => isBusy).map(({ model }) => model));
  }

  note(messageId: number, sample: Sample): void {
    if (this.#busy.has(sample.model)) return;
    const before = this.#changed.get(sample.model) ?? this.#stored.get(sample.model);
    if (before && before.samples >= WELL_KNOWN_SAMPLES && messageId % LEARN_EVERY !== 0) return;
    this.#changed.set(sample.model, calibrate(before ?? UNCALIBRATED, sample));
  }

  save(writer: RowWriter, now: number): void {
    for (const [model, { factor, samples }] of this.#changed) {
      const learned = { factor, samples, updated_at: now };
      if (this.#stored.has(model)) writer.update("token_calibration", { model }, learned);
      else writer.insert("token_calibration", { model, ...learned });
    }
  }
}
