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
const [QUERY, EXECUTE, SYNC, READY] = ["Q", "E", "S", "Z"].map((letter) => letter.charCodeAt(0));

interface Counted {
  readonly trips: number;
  readonly statements: number;
  /** How often the server was told to answer what it had been sent. */
  readonly answers: number;
}

export interface Wire {
  /** The server's address by way of the proxy. */
  readonly address: string;
  /** How many rounds, statements and separate answers some work takes until it is done. */
  count(work: () => Promise<unknown>): Promise<Counted>;
  close(): void;
}

/** Takes messages apart that come in pieces, and tells their types. */
class MessageReader {
  #rest = Buffer.alloc(0);
  /** The first message of a program has no type. */
  #isTyped: boolean;

  constructor(isTyped: boolean) {
    this.#isTyped = isTyped;
  }

  /** The types of the messages that are complete now, among those asked for; the greeting counts as a query. */
  add(chunk: Buffer, types: readonly (number | undefined)[]): (number | undefined)[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const found: (number | undefined)[] = [];
    for (;;) {
      const head = this.#isTyped ? TYPE_BYTES : 0;
      if (this.#rest.length < head + LENGTH_BYTES) return found;
      const end = head + this.#rest.readUInt32BE(head);
      if (this.#rest.length < end) return found;
      // The greeting is answered by the server's being ready, as a statement is.
      const type = this.#isTyped ? this.#rest[0] : QUERY;
      if (types.includes(type)) found.push(type);
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
  let sent = 0;
  let trips = 0;
  let statements = 0;
  let answers = 0;
  let silence: NodeJS.Timeout | undefined;

  const send = (): void => {
    if (awaited > 0 || asked === 0) return;
    trips += 1;
    statements += sent;
    answers += asked;
    awaited = asked;
    asked = sent = 0;
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
    const asking = new MessageReader(false);
    const answered = new MessageReader(true);
    client.on("data", (chunk) => {
      line.toServer.push(chunk);
      const types = asking.add(chunk, [QUERY, EXECUTE, SYNC]);
      asked += types.filter((type) => type !== EXECUTE).length;
      sent += types.filter((type) => type !== SYNC).length;
      wait();
    });
    server.on("data", (chunk) => {
      line.toClient.push(chunk);
      awaited -= answered.add(chunk, [READY]).length;
      if (awaited === 0) answer();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(join(folder, SOCKET), resolve));
  return {
    address: address.replace(/host=[^&]*/, `host=${folder}`),
    async count(work) {
      [trips, statements, answers] = [0, 0, 0];
      await work();
      return { trips, statements, answers };
    },
    close: () => proxy.close(),
  };
}
