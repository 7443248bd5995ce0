/**
 * The archive that calls read, opened when the first call needs it, for one owner. The server can be started before there is an archive; until
 * then every call reports that, and the first one after its creation finds it.
 */
import type { Engine } from "@lossless/core";

export interface ArchiveReader {
  /** The archive; opened once, retried after a failure. */
  engine(): Promise<Engine>;
  /** The owner whose conversations may be read; undefined for all. Never taken from a request. */
  readonly owner: string | undefined;
  /** The project it was started in: its recent events are listed first. */
  readonly project?: string | undefined;
  /** The time zone for displayed times. */
  readonly timeZone: string;
}

/** An archive that is opened on first use. */
export function openOnDemand(open: () => Promise<Engine>): {
  engine(): Promise<Engine>;
  close(): Promise<void>;
} {
  let opened: Promise<Engine> | null = null;
  const engine = (): Promise<Engine> => {
    opened ??= open().catch((error: unknown) => {
      opened = null;
      throw error;
    });
    return opened;
  };
  const close = async (): Promise<void> => {
    const last = opened;
    opened = null;
    await last?.then((engine) => engine.close()).catch(() => undefined);
  };
  return { engine, close };
}
