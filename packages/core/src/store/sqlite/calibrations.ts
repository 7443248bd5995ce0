/** What a batch teaches about how models count tokens: each model is read once, learns from its messages in order, and is written once. */
import { calibrate, UNCALIBRATED } from "../../model/tokens.ts";
import type { Calibration } from "../../model/tokens.ts";
import type { PreparedMessage } from "../store.ts";
import type { Connection } from "./connection.ts";

const SELECT_CALIBRATION = "SELECT factor, samples FROM token_calibration WHERE model = ?";
const SAVE_CALIBRATION = `
  INSERT INTO token_calibration (model, factor, samples, updated_at) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET factor = excluded.factor, samples = excluded.samples, updated_at = excluded.updated_at`;

/** A model that is well known is learned from now and then: the factor hardly moves, and every change is a page to write. */
const WELL_KNOWN_SAMPLES = 64;
const LEARN_EVERY = 8;

/** What is known of a model; null for one nobody has reported on. */
export const readCalibration = (connection: Connection, model: string): Calibration | null =>
  connection.get<{ factor: number; samples: number }>(SELECT_CALIBRATION, model) ?? null;

type Sample = NonNullable<PreparedMessage["calibration"]>;

export class Calibrations {
  readonly #connection: Connection;
  readonly #models = new Map<string, Calibration | null>();
  readonly #changed = new Map<string, Calibration>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  note(messageId: number, sample: Sample): void {
    const before = this.#read(sample.model);
    if (before && before.samples >= WELL_KNOWN_SAMPLES && messageId % LEARN_EVERY !== 0) return;
    const after = calibrate(before ?? UNCALIBRATED, sample);
    this.#models.set(sample.model, after);
    this.#changed.set(sample.model, after);
  }

  /** Inside the transaction that stores the messages. */
  save(now: number): void {
    for (const [model, { factor, samples }] of this.#changed)
      this.#connection.run(SAVE_CALIBRATION, model, factor, samples, now);
  }

  #read(model: string): Calibration | null {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    const read = readCalibration(this.#connection, model);
    this.#models.set(model, read);
    return read;
  }
}
