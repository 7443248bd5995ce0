/** Live updates while agents write: checks every second whether the archive has changed, and reloads the screen if so. */
import type { App } from "./app.ts";

const POLL_MS = 1_000;

export function follow(app: App, pollMs = POLL_MS): Disposable {
  let last: string | null = null;
  let timer: NodeJS.Timeout | null = null;
  let isEnded = false;
  const look = async (): Promise<void> => {
    const state = await readState(app);
    if (isEnded) return;
    app.setLive(state !== null);
    if (state !== null && last !== null && state !== last) await app.refresh();
    last = state ?? last;
    if (!isEnded) timer = setTimeout(() => void look(), pollMs);
  };
  void look();
  return {
    [Symbol.dispose]() {
      isEnded = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** Null while it cannot be read: another program may hold a lock. */
async function readState({ archive }: App): Promise<string | null> {
  try {
    const { conversations, messages, revisions, summaries, tokens, lastStoredAt } =
      await archive.engine.status(archive.scope);
    return JSON.stringify({ conversations, messages, revisions, summaries, tokens, lastStoredAt });
  } catch {
    return null;
  }
}
