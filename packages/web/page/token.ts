/**
 * The token that lets this page ask about the archive. It comes in the address that `lcm web` printed, leaves it at once, and is kept in the
 * session storage: of this tab and of this port, and sent nowhere unless the page's own script sends it.
 */

const KEY = "lcm-token";

function takeToken(): string {
  const url = new URL(location.href);
  const given = url.searchParams.get("token");
  if (given === null) return sessionStorage.getItem(KEY) ?? "";
  sessionStorage.setItem(KEY, given);
  url.searchParams.delete("token");
  history.replaceState(null, "", url);
  return given;
}

const token = takeToken();

/** Every question to the server goes through here. */
export const fetchWithToken = (path: string, options: RequestInit = {}): Promise<Response> =>
  fetch(path, { ...options, headers: { ...options.headers, "x-lcm-token": token } });
