/**
 * Access control of the inspector: only the browser of the person who started it may use it. The page's own files are public on the port; every
 * request about the archive needs the token, in a header that the page's script sets. A cookie would not do: cookies ignore ports, so the
 * browser would send it to every other server on this machine. Host and Origin are checked too, so that neither a page of another site nor a DNS
 * name pointed at this machine gets an answer.
 */
import { isSameSecret } from "@lossless/core/doors";
import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export type Refusal = { readonly status: number; readonly message: string };

/** The headers and the address of a request. */
export interface Visit {
  readonly headers: IncomingHttpHeaders;
  readonly url: URL;
}

/** Carries the token, which the page took from the address that `lcm web` printed. */
const TOKEN_HEADER = "x-lcm-token";

/** Carries the token for changes, which only the page's own script can know. */
const WRITE_HEADER = "x-lcm-write";

export class Gate {
  readonly token = randomBytes(24).toString("base64url");
  readonly writeToken = randomBytes(24).toString("base64url");
  readonly #hosts: ReadonlySet<string>;

  constructor(port: number) {
    this.#hosts = new Set([`127.0.0.1:${port}`, `localhost:${port}`]);
  }

  /** Null for a request to this inspector's own address, which may read the page's files. */
  refuse(visit: Visit): Refusal | null {
    const { host, origin } = visit.headers;
    if (host === undefined || !this.#hosts.has(host)) {
      return { status: 421, message: "This inspector answers on its own address only." };
    }
    if (origin !== undefined && origin !== `http://${host}`) {
      return { status: 403, message: "Pages of other sites may not read this archive." };
    }
    const site = visit.headers["sec-fetch-site"];
    if (visit.url.pathname !== "/" && (site === "cross-site" || site === "same-site")) {
      return { status: 403, message: "Pages of other sites may not read this archive." };
    }
    return null;
  }

  /** For a request that passed `refuse`: null when it may read the archive. */
  refuseRead({ headers }: Visit): Refusal | null {
    const token = headers[TOKEN_HEADER];
    if (typeof token === "string" && isSameSecret(token, this.token)) return null;
    return { status: 403, message: "Open the full address that lcm web printed, with its token." };
  }

  /**
   * For a request that passed `refuseRead`: null when it may change something. A form of another site cannot send JSON, cannot set our header,
   * does not know its token, and names its own Origin; each of these alone would be enough.
   */
  refuseWrite({ headers }: Visit): Refusal | null {
    const { host, origin } = headers;
    const token = headers[WRITE_HEADER];
    if (origin !== `http://${host}`)
      return { status: 403, message: "Only the inspector's own page may change this archive." };
    if (typeof token !== "string" || !isSameSecret(token, this.writeToken))
      return { status: 403, message: "This request does not carry the token for changes; reload the page." };
    if (!/^application\/json\b/.test(headers["content-type"] ?? ""))
      return { status: 415, message: "Write requests must be JSON." };
    return null;
  }
}

/** Only the page's own files; no embedding in another page; no connections to anywhere else. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "cache-control": "no-store",
};
