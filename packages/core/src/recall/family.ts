/** The conversations that belong to a session: all under its key, oldest resets included. */
import type { SessionRef } from "../model/message.ts";
import type { Store } from "../store/store.ts";

/** Each run of a scheduled job is a conversation of its own, so its key names no family. */
const isCronKey = (key: string): boolean => /(?:^|:)cron(?::|$)/.test(key);

/** The conversations of a session's family, newest first. */
export async function listFamily(
  store: Store,
  session: Pick<SessionRef, "key" | "owner">,
): Promise<readonly number[]> {
  const family = await store.listScope({ owner: session.owner, sessionKey: session.key });
  return isCronKey(session.key) ? family.slice(0, 1) : family;
}
