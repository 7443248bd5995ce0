/**
 * A connection to a test's server that can be cut: refused, as when the server is down, or silent, as when the network loses every packet. A
 * silent connection resumes where it stopped, as TCP does.
 */
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { join } from "node:path";
import type { PostgresServer } from "./postgres-server.ts";

export interface CutProxy {
  /** The address of a database through this proxy. */
  through(address: string): string;
  refuse(): Promise<void>;
  silence(): void;
  /** Ends the connections of clients; the server does not hear of it. */
  abandon(): void;
  heal(): Promise<void>;
  close(): Promise<void>;
}

export async function startCutProxy(server: PostgresServer): Promise<CutProxy> {
  const sockets = new Set<Socket>();
  const clients = new Map<Socket, () => void>();
  let isSilent = false;
  let listener = createServer(accept);
  await listen(listener, 0);
  const { port } = listener.address() as AddressInfo;

  function accept(client: Socket): void {
    const upstream = connect(join(server.folder, ".s.PGSQL.5432"));
    const end = (): void => {
      for (const socket of [client, upstream]) {
        socket.destroy();
        sockets.delete(socket);
        clients.delete(socket);
      }
    };
    clients.set(client, end);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", end).on("close", end);
      from.on("data", (chunk) => to.write(chunk));
      if (isSilent) from.pause();
    }
  }

  async function endAll(): Promise<void> {
    const closed = new Promise((resolve) => listener.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  return {
    through: (address) => address.replace("@/", `@127.0.0.1:${port}/`).replace(/host=[^&]*&?/, ""),
    refuse: endAll,
    silence: () => {
      isSilent = true;
      for (const socket of sockets) socket.pause();
    },
    abandon: () => {
      for (const [client, end] of clients) client.off("close", end).destroy();
      clients.clear();
    },
    heal: async () => {
      isSilent = false;
      for (const socket of sockets) socket.resume();
      if (listener.listening) return;
      listener = createServer(accept);
      await listen(listener, port);
    },
    close: endAll,
  };
}

function listen(listener: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(port, "127.0.0.1", resolve);
  });
}
