/** The bare driver: the baseline of the benchmarks. */
import type { Values } from "@lossless/core/ports";
import pg from "pg";

export class BareClient {
  readonly #client: pg.Client;

  constructor(address: string) {
    this.#client = new pg.Client({ connectionString: address, pipeline: true });
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  /** Sends at once; statements sent before an answer arrives are pipelined. */
  send(text: string, values: readonly unknown[] = []): Promise<{ rows: Values[] }> {
    return values.length === 0
      ? this.#client.query<Values>(text)
      : this.#client.query<Values>(text, [...values]);
  }

  end(): Promise<void> {
    return this.#client.end();
  }
}
