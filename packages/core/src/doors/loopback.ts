/** What a server for this machine alone needs: its address, a secret that cannot be guessed by the time an answer takes, and its end. */
import { hash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { EngineError } from "../model/errors.ts";

export const LOOPBACK = "127.0.0.1";

/** The port it listens on; 0 takes any that is free. */
export function listenOnLoopback(server: Server, port: number, hint: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const cause = error.code === "EADDRINUSE" ? "something else listens there" : error.message;
      reject(new EngineError("usage", `cannot listen on port ${port}: ${cause}`, { hint, cause: error }));
    });
    server.listen(port, LOOPBACK, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Compares in the same time whatever the difference is. */
export function isSameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", wanted, "buffer"));
}

/** Ctrl-C, or a polite request of the system. */
export async function waitForInterrupt(): Promise<void> {
  await Promise.race(["SIGINT", "SIGTERM", "SIGHUP"].map((name) => once(process, name)));
}
