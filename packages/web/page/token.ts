/**
 * The token that lets this page read the archive. It arrives in the address that `lcm web` printed, is removed from it at once, and is kept in
 * the session storage: limited to this tab and this port, and sent only by the page's own script.
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

/** Every request to the server goes through here. */
export const fetchWithToken = (path: string, options: RequestInit = {}): Promise<Response> =>
  fetch(path, { ...options, headers: { ...options.headers, "x-lcm-token": token } });
