/**
 * Round trips as a network has them. A proxy stands between a program and its server and makes every message travel in rounds: what the program
 * sends until it is silent goes out together, and no answer comes back before all of it is answered. So a round is what somebody waits for
 * once, on however many connections.
 */
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit/temporary.ts";

/** A program that has sent nothing for so long waits for an answer. */
const SILENCE_MS = 12;
const SOCKET = ".s.PGSQL.5432";
/** The lengths of a message's type and of its length. */
const TYPE_BYTES = 1;
const LENGTH_BYTES = 4;
const [QUERY, SYNC, READY] = ["Q", "S", "Z"].map((letter) => letter.charCodeAt(0));

export interface Wire {
  /** The server's address by way of the proxy. */
  readonly address: string;
  /** How many rounds, and how many statements, some work takes until it is done. */
  count(work: () => Promise<unknown>): Promise<{ readonly trips: number; readonly statements: number }>;
  close(): void;
}

/** Takes messages apart that come in pieces, and counts those of some types. */
class MessageCounter {
  #rest = Buffer.alloc(0);
  /** The first message of a program has no type. */
  #isTyped: boolean;

  constructor(isTyped: boolean) {
    this.#isTyped = isTyped;
  }

  add(chunk: Buffer, types: readonly (number | undefined)[]): number {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    let counted = 0;
    for (;;) {
      const head = this.#isTyped ? TYPE_BYTES : 0;
      if (this.#rest.length < head + LENGTH_BYTES) return counted;
      const end = head + this.#rest.readUInt32BE(head);
      if (this.#rest.length < end) return counted;
      // The greeting is answered by the server's being ready, as a statement is.
      if (!this.#isTyped || types.includes(this.#rest[0])) counted += 1;
      this.#isTyped = true;
      this.#rest = this.#rest.subarray(end);
    }
  }
}

interface Line {
  readonly client: Socket;
  readonly server: Socket;
  toServer: Buffer[];
  toClient: Buffer[];
}

export async function startWire(address: string): Promise<Wire> {
  const folder = makeTemporaryDirectory();
  const serverFolder = /host=([^&]*)/.exec(address)?.[1] ?? "";
  const lines = new Set<Line>();
  let awaited = 0;
  let asked = 0;
  let trips = 0;
  let statements = 0;
  let silence: NodeJS.Timeout | undefined;

  const send = (): void => {
    if (awaited > 0 || asked === 0) return;
    trips += 1;
    statements += asked;
    awaited = asked;
    asked = 0;
    for (const line of lines) for (const chunk of line.toServer.splice(0)) line.server.write(chunk);
  };
  const wait = (): void => {
    clearTimeout(silence);
    silence = setTimeout(send, SILENCE_MS);
  };
  const answer = (): void => {
    for (const line of lines) for (const chunk of line.toClient.splice(0)) line.client.write(chunk);
    wait();
  };
  const proxy = createServer((client) => {
    const server = connect(join(serverFolder, SOCKET));
    const line: Line = { client, server, toServer: [], toClient: [] };
    lines.add(line);
    const end = (): void => {
      lines.delete(line);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on("error", end).on("close", end);
    const sent = new MessageCounter(false);
    const answered = new MessageCounter(true);
    client.on("data", (chunk) => {
      line.toServer.push(chunk);
      asked += sent.add(chunk, [QUERY, SYNC]);
      wait();
    });
    server.on("data", (chunk) => {
      line.toClient.push(chunk);
      awaited -= answered.add(chunk, [READY]);
      if (awaited === 0) answer();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(join(folder, SOCKET), resolve));
  return {
    address: address.replace(/host=[^&]*/, `host=${folder}`),
    async count(work) {
      [trips, statements] = [0, 0];
      await work();
      return { trips, statements };
    },
    close: () => proxy.close(),
  };
}
