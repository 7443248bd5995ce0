/** What a local-only server needs: its address, a secret comparison that leaks nothing through timing, and shutdown. */
import { hash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { EngineError } from "../model/errors.ts";

export const LOOPBACK = "127.0.0.1";

/** Returns the port it listens on; 0 takes any free one. */
export function listenOnLoopback(server: Server, port: number, hint: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const cause = error.code === "EADDRINUSE" ? "the port is already in use" : error.message;
      reject(new EngineError("usage", `cannot listen on port ${port}: ${cause}`, { hint, cause: error }));
    });
    server.listen(port, LOOPBACK, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Compares in constant time. */
export function isSameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", wanted, "buffer"));
}

/** Ctrl-C, or another signal to end. */
export async function waitForInterrupt(): Promise<void> {
  await Promise.race(["SIGINT", "SIGTERM", "SIGHUP"].map((name) => once(process, name)));
}
