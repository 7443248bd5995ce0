/** The conversations that belong to a session: all under its key, oldest resets included. */
import type { SessionRef } from "../model/message.ts";
import type { Family } from "../store/recall.ts";
import type { Store } from "../store/store.ts";

/** Each run of a scheduled job is a separate conversation, so its key identifies no family. */
const isCronKey = (key: string): boolean => /(?:^|:)cron(?::|$)/.test(key);

/** The conversations of a session's family, newest first, and what they share with others. */
export const readFamily = (
  store: Store,
  { key, owner }: Pick<SessionRef, "key" | "owner">,
): Promise<Family> => store.readFamily({ owner, sessionKey: key, newestOnly: isCronKey(key) });
