/** Shared by the steps of the demo: paths, a way to open the archive, and lines of at most 80 columns. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine, MessageBody, MessageView } from "@lossless/core";
import { wrapToWidth } from "@lossless/core/doors";

export interface Step {
  readonly title: string;
  readonly run: (tour: Tour) => Promise<void>;
}

export type StoredMessage = MessageBody & { readonly view: MessageView };

export const COLUMNS = 80;
const INDENT = "   ";
const PAGE = 500;

export class Tour {
  readonly folder: string;
  readonly database: string;
  readonly sample = fileURLToPath(new URL("../../sample/sample-session.jsonl", import.meta.url));

  constructor(folder: string) {
    this.folder = folder;
    this.database = join(folder, "lcm.db");
  }

  /** Opens the archive for one step. Ignores the user's own settings, so that the tour is the same everywhere. */
  async withArchive<T>(work: (engine: Engine) => Promise<T>, database = this.database): Promise<T> {
    const { settings } = resolveSettings({ config: { databasePath: database, pruneHeartbeatOk: true } });
    // Nothing else waits for this thread, and starting others would take longer than most steps.
    const engine = await openEngine({ database, filesDir: settings.largeFilesDir, settings, thread: false });
    try {
      return await work(engine);
    } finally {
      await engine.close();
    }
  }

  say(line: string): void {
    process.stdout.write(`${line}\n`);
  }

  /** Indented lines. */
  tell(text: string): void {
    for (const line of text.split("\n")) this.say(line === "" ? "" : INDENT + line);
  }

  /** Prose, wrapped at 80 columns. */
  explain(text: string): void {
    for (const line of wrapToWidth(text, COLUMNS - INDENT.length)) this.say(INDENT + line);
  }
}

/** Every message of the sample's conversation, in order. */
export async function* readAll(engine: Engine): AsyncGenerator<StoredMessage, void, void> {
  const { items } = await engine.listConversations({ limit: 1 });
  const conversationId = items[0]?.conversationId ?? 0;
  for (let after: string | null = null; ;) {
    const page = await engine.listMessages({ conversationId, limit: PAGE, after });
    for (const { messageId } of page.items) {
      const message = await engine.readMessage({ messageId });
      if (message !== null) yield message;
    }
    if (page.next === null) return;
    after = page.next;
  }
}
