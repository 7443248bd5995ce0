/** The driver with nothing around it: what benchmarks compare the store with. */
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

  /** Sends at once; what is sent before an answer came travels together. */
  send(text: string, values: readonly unknown[] = []): Promise<{ rows: Values[] }> {
    return values.length === 0
      ? this.#client.query<Values>(text)
      : this.#client.query<Values>(text, [...values]);
  }

  end(): Promise<void> {
    return this.#client.end();
  }
}
