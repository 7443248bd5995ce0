/**
 * Who may talk to the inspector: the browser of the person who started it, and nobody else. A request needs the token, first in the
 * address and from then on as a cookie. Host and Origin are checked too, so that neither a page of another site nor a name that was
 * pointed at this machine gets an answer.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export type Refusal = { readonly status: number; readonly message: string };

/** What is asked of the headers and the address of a request. */
export interface Visit {
  readonly headers: IncomingHttpHeaders;
  readonly url: URL;
}

const COOKIE_SECONDS = 30 * 24 * 3600;

/** Carries the token for changes, which only the page's own script can know. */
export const WRITE_HEADER = "x-lcm-write";

export class Gate {
  readonly token = randomBytes(24).toString("base64url");
  readonly writeToken = randomBytes(24).toString("base64url");
  readonly #hosts: ReadonlySet<string>;
  readonly #cookie: string;

  constructor(port: number) {
    this.#hosts = new Set([`127.0.0.1:${port}`, `localhost:${port}`]);
    // Cookies know no ports: two inspectors at a time must not take each other's.
    this.#cookie = `lcm_inspector_${port}`;
  }

  /** Null for a visit that may be answered. */
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
    if (this.hasToken(visit) || this.#hasCookie(visit)) return null;
    return { status: 403, message: "Open the whole address that lcm web has printed, with its token." };
  }

  /**
   * For a visit that `refuse` lets pass: null when it may change something. A form of another site cannot send JSON, cannot set our
   * header, does not know its token, and names its own Origin; each of these alone would be enough.
   */
  refuseWrite({ headers }: Visit): Refusal | null {
    const { host, origin } = headers;
    const token = headers[WRITE_HEADER];
    if (origin !== `http://${host}`)
      return { status: 403, message: "Only the inspector's own page may change this archive." };
    if (typeof token !== "string" || !isSame(token, this.writeToken))
      return { status: 403, message: "This request does not carry the token for changes; reload the page." };
    if (!/^application\/json\b/.test(headers["content-type"] ?? ""))
      return { status: 415, message: "Changes are asked for in JSON." };
    return null;
  }

  hasToken({ url }: Visit): boolean {
    return url.pathname === "/" && isSame(url.searchParams.get("token") ?? "", this.token);
  }

  #hasCookie({ headers }: Visit): boolean {
    const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim());
    return pairs.some(
      (pair) =>
        pair.startsWith(`${this.#cookie}=`) && isSame(pair.slice(this.#cookie.length + 1), this.token),
    );
  }

  renderCookie(): string {
    return `${this.#cookie}=${this.token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${COOKIE_SECONDS}`;
  }
}

/** Compares in the same time whatever the difference is. */
function isSame(given: string, wanted: string): boolean {
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", wanted, "buffer"));
}

/** Nothing but the page's own files; nothing inside another page; nothing to anywhere else. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "cache-control": "no-store",
};
